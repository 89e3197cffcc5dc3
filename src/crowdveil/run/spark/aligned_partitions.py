"""A release and its original flows on a cluster, in the same partitions, to be verified or measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine.packing import unpacked
from crowdveil.engine.spark import Frame, SparkEngine, SparkTable, spark_engine
from crowdveil.errors import InputError, Option
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, group_sums
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import FlowReading
from crowdveil.run.manifest import original_input_options, refuse_other_counts
from crowdveil.run.merge_partitions import even_partitions
from crowdveil.run.release_partitions import (
    NO_MOMENT,
    ReleasePartition,
    merge_with_rest,
    units_of,
    without_outlines,
)
from crowdveil.run.spark.release_verification import (
    FlowPartitionCheck,
    RowPacker,
    SparkRelease,
    check_partitions,
    open_spark_release,
    partition_numbers,
    rows_by_time,
    verify,
)
from crowdveil.run.spark.spark_trips import SparkTrips, read_spark_trips, summarize_trips
from crowdveil.run.spark.trip_rows import FlowPartitionReader
from crowdveil.run.stages import Findings
from crowdveil.run.verification import stated_guarantees


@dataclass(frozen=True)
class AlignedReader:
    """Reads the original flows and the released rows of a partition; sent to executors."""

    original: FlowPartitionReader
    release: ReleasePartition
    all_areas: bool = False

    def __call__(self, partition: pa.Table) -> tuple[Flows, WrittenRelease]:
        """Return the flows and the released rows of a partition; either may be empty."""
        of_original = partition["original"]
        flows = self.original(partition.filter(of_original))
        flows = self.original.frame if flows is None else flows
        rows = unpacked(partition.filter(pc.invert(of_original))["packed"], self.release.rows)
        units = units_of(self.release.units, moments_of_steps(flows))
        return flows, self.release(rows, units, all_areas=self.all_areas)


@dataclass(frozen=True)
class AlignedPartitions:
    """Packed rows of the original and the release on the cluster, by partition.

    Attributes
    ----------
    packed_rows
        The frame, with the columns partition_id, original and packed.
    partitions
        Number of partitions.
    read
        Reader of a partition.
    trips
        The original.
    units, original_units
        Sorted time steps, or windows, of both together, and of the original.
    """

    packed_rows: Frame
    partitions: int
    read: AlignedReader
    trips: SparkTrips
    units: Ints
    original_units: Ints


def moments_of_steps(flows: Flows) -> Ints:
    """Return the times of time steps as rows of a release have them, in milliseconds."""
    return flows.t * 1000 if flows.step_s is not None else np.full(min(flows.steps, 1), NO_MOMENT)


@contextmanager
def align_partitions(
    engine: SparkEngine, release: SparkRelease, original: Any, given: dict[str, Any], notes: ReadNotes,
    progress: Progress, *, members: bool, all_areas: bool,
) -> Iterator[AlignedPartitions]:  # fmt: skip
    """Read the original with the manifest's input options, or those that are `given`, and put both into the same partitions."""
    if release.steps is None:
        raise InputError(
            release.folder,
            f"it holds trajectories, which are compared with the original without Spark; leave {Option('engine')} out.",
        )
    reading = FlowReading.checked(original_input_options(release.manifest, given))
    trips, rows = read_spark_trips(engine, original, reading, notes), engine.read(release.data)
    with engine.kept(trips.rows):
        trips = summarize_trips(engine, trips, reading, notes, visited=False, k=0, progress=progress)
        moments = trips.starts * 1000 if trips.reader.steps is not None else np.full(len(trips.numbers), NO_MOMENT)
        ours = units_of(release.units, moments)
        theirs, sizes = rows_by_time(engine, rows, release.units)
        units = np.union1d(ours, theirs)
        size = group_sums(np.searchsorted(units, ours), trips.sizes, len(units))
        size[np.searchsorted(units, theirs)] += sizes
        partitions = even_partitions(size, engine.slots)
        number = partition_numbers(partitions)
        features = without_outlines(release.features)
        opened = ReleasePartition(engine.schema(rows), release.steps, features, release.units)
        flows = FlowPartitionReader(trips.reader.schema, trips.reader.steps, trips.frame, members)
        read = AlignedReader(flows, opened, all_areas)
        bins = engine.table(pa.table({"step": trips.numbers, "partition_id": number[np.searchsorted(units, ours)]}))
        of_release = engine.map_rows(rows, RowPacker(opened, units, number), RowPacker.schema)
        packed_rows = engine.sql(
            "SELECT b.partition_id, true AS original, r.packed FROM {rows} r JOIN {bins} b USING (step) WHERE r.note IS NULL "
            "UNION ALL SELECT partition_id, false AS original, packed FROM {release}",
            rows=trips.rows,
            bins=bins,
            release=of_release,
        )
        yield AlignedPartitions(packed_rows, len(partitions), read, trips, units, np.unique(ours))


def verify_with_original(
    engine: SparkEngine, folder: str, original: Any, given: dict[str, Any], progress: Progress = no_progress
) -> tuple[Findings, dict[str, Any]]:
    """Verify a release as `release_verification.verify`, and against its original, read as the manifest says."""
    release = open_spark_release(engine, folder)
    guarantees = stated_guarantees(release.manifest)
    members = release.manifest["k_unit"] == "people"
    with align_partitions(
        engine, release, original, given, ReadNotes(), progress, members=members, all_areas=False
    ) as both:
        refuse_other_counts(release.manifest, both.trips.frame.k_unit)
        function = FlowPartitionCheck(guarantees, both.read)
        findings = check_partitions(engine, both.packed_rows, function, both.partitions, progress)
        merged = merge_with_rest(findings, both.read.release, both.units, guarantees, both.trips.frame)
    return merged, release.manifest


def verify_on_spark(
    folder: str,
    original: Any = None,
    reading: dict[str, Any] | None = None,
    *,
    master: str | None = None,
    spark: Any = None,
    table: str | None = None,
) -> tuple[list[tuple[Guarantee, Finding]], dict[str, Any]]:
    """Verify a release on Spark, as `verify` does here; return the manifest too. `table` is the format of an original table."""
    with spark_engine(spark, master) as engine:
        if original is None:
            return verify(engine, str(folder))
        return verify_with_original(engine, str(folder), SparkTable.of(original, table), reading or {})
