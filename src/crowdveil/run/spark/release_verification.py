"""Verification of a release on a cluster: hashes and guarantees, in partitions, from the files alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.packing import in_runs, packed, unpacked
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, group_sums
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import TimeUnits
from crowdveil.progress import Progress, no_progress
from crowdveil.run.merge_partitions import split_by_size
from crowdveil.run.release_partitions import (
    ReleasePartition,
    merge_with_rest,
    moments_of,
    units_of,
    without_outlines,
)
from crowdveil.run.spark.trip_rows import record_batch
from crowdveil.run.stages import Findings, Guarantees
from crowdveil.run.verification import check

PARTITION_ROWS = 1_000_000
"""Rows of a release that are checked together, in whole time steps."""


@dataclass(frozen=True)
class RowPacker:
    """Packs the rows of a release by partition.

    Attributes
    ----------
    release
        The columns of the release, and what of time is in one partition.
    units, partitions
        Sorted time steps, or windows, of rows, and the partition of each.
    """

    release: ReleasePartition
    units: Ints
    partitions: Ints
    schema = pa.schema([("partition_id", pa.int64()), ("packed", pa.binary())])

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the packed rows of each chunk."""
        for chunk in chunks:
            partition = self.partitions[np.searchsorted(self.units, self.release.unit_of(chunk["t"]))]
            runs = in_runs(pa.Table.from_batches([chunk]).cast(self.release.rows), partition)
            packed_rows = [(number, packed(run)) for number, run in runs]
            yield record_batch(list(zip(*packed_rows, strict=True)) or [(), ()], self.schema)


@dataclass(frozen=True)
class FlowPartitionCheck:
    """Checks a partition of whole time steps; it uses guarantees and files, and nothing of methods.

    `read` returns the original flows of a partition, None where they are not given, and its released rows.
    """

    guarantees: Guarantees
    read: Callable[[pa.Table], tuple[Flows | None, WrittenRelease]]
    schema = pa.schema([("findings", pa.string())])

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the findings as one row of JSON."""
        flows, written = self.read(partition)
        line = json.dumps([finding.as_json() for _, finding in check(written, self.guarantees, flows)])
        return pa.table({"findings": [line]}, schema=self.schema)


def read_alone(release: ReleasePartition, partition: pa.Table) -> tuple[None, WrittenRelease]:
    """Return the released rows of a partition, without their original."""
    return None, release(unpacked(partition["packed"], release.rows))


def check_flows(
    engine: SparkEngine, rows: Frame, steps: pa.Table, features: list[dict[str, Any]], units: TimeUnits,
    guarantees: Guarantees, progress: Progress = no_progress,
) -> Findings:  # fmt: skip
    """Check each guarantee on the rows of a release; steps without rows, and all areas together, are checked here."""
    release = ReleasePartition(engine.schema(rows), steps, without_outlines(features), units)
    found, sizes = rows_by_time(engine, rows, units)
    partitions = split_by_size(sizes.tolist(), PARTITION_ROWS)
    findings = []
    if partitions:
        packer = RowPacker(release, found, partition_numbers(partitions))
        packed_rows = engine.map_rows(rows, packer, RowPacker.schema)
        function = FlowPartitionCheck(guarantees, partial(read_alone, release))
        findings = check_partitions(engine, packed_rows, function, len(partitions), progress)
    return merge_with_rest(findings, release, found, guarantees)


def rows_by_time(engine: SparkEngine, rows: Frame, units: TimeUnits) -> tuple[Ints, Ints]:
    """Return the sorted time steps, or windows, of the rows of a release, and the number of rows of each."""
    sizes = engine.gather(engine.sql("SELECT t, count(*) AS size FROM {rows} GROUP BY t", rows=rows))
    found, of_time = np.unique(units_of(units, moments_of(sizes["t"])), return_inverse=True)
    size = group_sums(of_time, sizes["size"].to_numpy(), len(found))
    return found, size


def partition_numbers(partitions: Sequence[Sequence[int]]) -> Ints:
    """Return the partition of each member, in the order of members."""
    numbers: Ints = np.repeat(np.arange(len(partitions)), [len(partition) for partition in partitions])
    return numbers


def check_partitions(
    engine: SparkEngine, packed_rows: Frame, function: FlowPartitionCheck, partitions: int, progress: Progress
) -> list[list[dict[str, Any]]]:
    """Return the findings of each partition."""
    checked = engine.map_groups(packed_rows, "partition_id", function, function.schema, partitions)
    return [json.loads(line) for line in engine.gather(checked, progress)["findings"].to_pylist()]


def file_hashes(engine: SparkEngine, folder: str) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by name; the executors read them."""
    files = engine.session.read.format("binaryFile").option("recursiveFileLookup", "true").load(folder)
    hashes = engine.gather(files.selectExpr("path", "sha2(content, 256) AS hash"))
    return {path.rsplit("/", 1)[-1]: digest for path, digest in zip(*hashes.to_pydict().values(), strict=True)}
