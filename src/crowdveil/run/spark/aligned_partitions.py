"""A release beside the flows that it was made from, both on a cluster: cut into the same parts, to be checked or measured."""

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
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, Option
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import FlowReading
from crowdveil.run.manifest import reading_again, refuse_other_counts
from crowdveil.run.spark.merge_partitions import checked_parts, even_parts
from crowdveil.run.spark.rows import PartReader
from crowdveil.run.spark.trips import SparkTrips, look_at, part_reader, read_spark_trips
from crowdveil.run.spark.verifying import (
    NO_MOMENT,
    ReleasePart,
    ReleaseThere,
    RowPacker,
    findings_there,
    guarantees_of,
    open_there,
    part_numbers,
    rest_of,
    sizes_there,
    told_findings,
    without_outlines,
)
from crowdveil.run.verification import check


@dataclass(frozen=True)
class BothParts:
    """From the packs of a part to its flows and to the files that speak of them; sent to executors."""

    original: PartReader
    release: ReleasePart
    all_areas: bool = False

    def __call__(self, part: pa.Table) -> tuple[Flows, WrittenRelease]:
        """The original may have no flow here, and the release no row."""
        of_original = part["original"]
        flows = self.original(part.filter(of_original))
        flows = self.original.frame if flows is None else flows
        packs = part.filter(pc.invert(of_original))["packed"]
        return flows, self.release(packs, moments_of_steps(flows), all_areas=self.all_areas)


@dataclass(frozen=True)
class AlignedPartitions:
    """Packs of both on the cluster, by part.

    Attributes
    ----------
    packs
        The frame, with the columns part, original and packed.
    parts
        How many there are.
    read
        What opens the packs of a part.
    trips
        The original.
    moments, original_moments
        The time steps of either, and those of the original, rising.
    """

    packs: Frame
    parts: int
    read: BothParts
    trips: SparkTrips
    moments: Ints
    original_moments: Ints


def moments_of_steps(flows: Flows) -> Ints:
    """The times of time steps as rows of a release have them."""
    return flows.t * 1000 if flows.step_s is not None else np.full(min(flows.steps, 1), NO_MOMENT)


@contextmanager
def beside(
    engine: SparkEngine, release: ReleaseThere, original: Any, given: dict[str, Any], notes: ReadNotes,
    progress: Progress, *, members: bool, all_areas: bool,
) -> Iterator[AlignedPartitions]:  # fmt: skip
    """Read the original as it was for the release, and lay both side by side. Options that are `given` go before."""
    if release.steps is None:
        raise InputError(
            release.folder,
            f"it holds trajectories, which are held against the original without Spark; leave {Option('engine')} out.",
        )
    reading = FlowReading.checked(reading_again(release.manifest, given))
    trips, rows = read_spark_trips(engine, original, reading, notes), engine.read(release.data)
    with engine.kept(trips.rows):
        trips = look_at(engine, trips, reading, notes, visited=False, progress=progress)
        steps = trips.reader.steps
        ours = steps.starts(trips.numbers) * 1000 if steps is not None else np.full(len(trips.numbers), NO_MOMENT)
        theirs, sizes = sizes_there(engine, rows)
        moments = np.union1d(ours, theirs)
        size = np.zeros(len(moments), np.int64)
        size[np.searchsorted(moments, ours)] += trips.sizes
        size[np.searchsorted(moments, theirs)] += sizes
        parts = even_parts(size, engine.slots)
        number = part_numbers(parts)
        opened = ReleasePart(engine.schema(rows), release.steps, without_outlines(release.features))
        read = BothParts(part_reader(trips, members=members), opened, all_areas)
        bins = engine.table(pa.table({"step": trips.numbers, "part": number[np.searchsorted(moments, ours)]}))
        of_release = engine.map_rows(rows, RowPacker(opened.rows, moments, number), RowPacker.schema)
        packs = engine.sql(
            "SELECT b.part, true AS original, r.packed FROM {rows} r JOIN {bins} b USING (step) WHERE r.note IS NULL "
            "UNION ALL SELECT part, false AS original, packed FROM {release}",
            rows=trips.rows,
            bins=bins,
            release=of_release,
        )
        yield AlignedPartitions(packs, len(parts), read, trips, moments, ours)


@dataclass(frozen=True)
class CheckedBeside:
    """Checks some whole time steps with the original at hand."""

    guarantees: tuple[Guarantee, ...]
    read: BothParts

    def __call__(self, part: pa.Table) -> pa.Table:
        """One line: what came of each guarantee."""
        with engines.use(LocalEngine(1)):
            flows, written = self.read(part)
            return told_findings(check(written, self.guarantees, flows))


def verify_with_original(
    engine: SparkEngine, folder: str, original: Any, given: dict[str, Any], progress: Progress = no_progress
) -> tuple[list[tuple[Guarantee, Finding]], dict[str, Any]]:
    """As `verifying.verify`, with the data that the release was made from, which is read as its manifest says."""
    release = open_there(engine, folder)
    guarantees = guarantees_of(release)
    members = release.manifest["k_counts"] == "people"
    with beside(engine, release, original, given, ReadNotes(), progress, members=members, all_areas=False) as both:
        refuse_other_counts(release.manifest, both.trips.counts)
        findings = findings_there(engine, both.packs, CheckedBeside(guarantees, both.read), both.parts, progress)
        rest, frame = rest_of(both.read.release, both.moments), both.trips.frame
        findings.append([finding.as_json() for _, finding in check(rest, guarantees, frame)])
    return checked_parts(guarantees, findings), release.manifest
