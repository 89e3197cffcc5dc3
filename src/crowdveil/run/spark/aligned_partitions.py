"""A release and its original flows on a cluster, in the same partitions, to be verified or measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil import engine as engines
from crowdveil.engine import LocalEngine
from crowdveil.engine.packing import unpacked
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, Option
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, group_sums
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import FlowReading
from crowdveil.run.manifest import original_input_options, refuse_other_counts
from crowdveil.run.merge_partitions import even_partitions, merge_findings
from crowdveil.run.release_partitions import (
    NO_MOMENT,
    ReleasePartition,
    overlapping_windows,
    rest_of,
    units_of,
    without_outlines,
)
from crowdveil.run.spark.release_verification import (
    RowPacker,
    SparkRelease,
    check_partitions,
    findings_table,
    open_spark_release,
    partition_numbers,
    rows_by_time,
)
from crowdveil.run.spark.spark_trips import SparkTrips, flow_partition_reader, read_spark_trips, summarize_trips
from crowdveil.run.spark.trip_rows import FlowPartitionReader
from crowdveil.run.verification import check, stated_guarantees


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
        read = AlignedReader(flow_partition_reader(trips, members=members), opened, all_areas)
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


@dataclass(frozen=True)
class AlignedPartitionCheck:
    """Checks a partition of whole time steps with the original."""

    guarantees: tuple[Guarantee, ...]
    read: AlignedReader

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the findings as one row."""
        with engines.use(LocalEngine(1)):
            flows, written = self.read(partition)
            return findings_table(check(written, self.guarantees, flows))


def verify_with_original(
    engine: SparkEngine, folder: str, original: Any, given: dict[str, Any], progress: Progress = no_progress
) -> tuple[list[tuple[Guarantee, Finding]], dict[str, Any]]:
    """Verify a release as `release_verification.verify`, and against its original, read as the manifest says."""
    release = open_spark_release(engine, folder)
    guarantees = stated_guarantees(release.manifest)
    members = release.manifest["k_unit"] == "people"
    with align_partitions(
        engine, release, original, given, ReadNotes(), progress, members=members, all_areas=False
    ) as both:
        refuse_other_counts(release.manifest, both.trips.counts)
        findings = check_partitions(
            engine, both.packed_rows, AlignedPartitionCheck(guarantees, both.read), both.partitions, progress
        )
        rest, frame = rest_of(both.read.release, both.units), both.trips.frame
        findings.append([finding.as_json() for _, finding in check(rest, guarantees, frame)])
        findings += overlapping_windows(both.read.release, guarantees)
    return merge_findings(guarantees, findings), release.manifest
