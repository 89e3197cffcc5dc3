"""The one way through, for trajectories on a cluster: nothing comes here but figures, tiles, and published rows for a report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.finished import keep_until_done
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.entropy import fresh
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.guarantees.base import require_checked, require_not_violated
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.geojson import write_features
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_writer import area_features, area_properties
from crowdveil.io.written_release import AREAS_FILE, MANIFEST_FILE, TRAJECTORY_COLUMNS
from crowdveil.method import Method
from crowdveil.model.canonical import canonical_order
from crowdveil.model.projection import LocalProjection
from crowdveil.model.release import Areas
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.zones import Grid, Zones
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.reading import TrajectoryReading
from crowdveil.report.cost_summary import TrajectoryCost
from crowdveil.report.html import REPORT_FILE
from crowdveil.run.manifest import build_manifest, file_entry, folder_entry, write_manifest
from crowdveil.run.resume import drawn_seed
from crowdveil.run.spark.finished_partitions import FinishedParts, Wave
from crowdveil.run.spark.merge_partitions import AREA, ROW, checked_parts, facts_of
from crowdveil.run.spark.point_rows import KEY
from crowdveil.run.spark.points import SparkPoints, look_at, read_spark_points
from crowdveil.run.spark.running import (
    FILE_ROWS,
    PARTS_FOLDER,
    WAVES_A_SLOT,
    SparkResult,
    SparkRun,
    reported,
    told_by,
    write_part_files,
)
from crowdveil.run.spark.staging import check_target, new_folder
from crowdveil.run.spark.trajectories import KEYED, OUTCOME, PUBLISHED, Plan, TrackReader, TracksPart
from crowdveil.run.spark.trajectory_verifying import check_tracks_there
from crowdveil.run.spark.verifying import part_hashes
from crowdveil.run.verification import add_run_warnings, refuse_large_k, structural_guarantees, what_k_counts

DATA_FOLDER = "trajectories.parquet"
PART_POINTS = 100_000
"""Points of a part, unless those that must be done together have more. Not by the size of the cluster, so that finished parts are
those of any."""
NO_ATTACK = "attacks on trajectories look at all of them at once, so none was tried on Spark."


def run(job: SparkRun, engine: SparkEngine, progress: Progress, stage: Callable[[str], None]) -> SparkResult:
    """Read, anonymize in parts, number all of them, write aside, verify what was written, and only then put it in place."""
    if not isinstance(job.reading, TrajectoryReading):
        raise TypeError("trajectories are read as trajectories")
    check_target(engine.files, job.output, overwrite=job.overwrite)
    notes = ReadNotes()
    stage("reading")
    points = read_spark_points(engine, job.data, job.reading, notes)
    key = None if job.key is None else {**job.key, "points of a part": PART_POINTS}
    finished = FinishedParts(engine, job.resume, key, "part", None if job.seed is not None else fresh())
    with (
        engine.kept(points.rows),
        engine.kept(points.tracks),
        keep_until_done(finished),
        new_folder(engine.files, job.output, overwrite=job.overwrite) as aside,
    ):
        points = look_at(engine, points, job.reading, notes, progress)
        counts = what_k_counts(points.frame, job.params)
        refuse_large_k(job.params, points.people if counts == "people" else points.trajectories, counts)
        guarantees = (*job.method.guarantees(points.frame, job.params), *structural_guarantees(job.method))
        stage("anonymizing")
        outcome = _in_parts(engine, job, points, guarantees, finished, f"{aside}/{PARTS_FOLDER}", progress)
        told = PartitionSummary.of(told_by(engine, outcome))
        checked = told.checked(guarantees)
        require_checked(checked)
        add_run_warnings(
            job.method, points.frame, job.params, told.cost.numbers(), notes, seed_given=job.seed is not None
        )
        if job.attack:
            notes.add(NO_ATTACK)
        stage("writing")
        data = f"{aside}/{DATA_FOLDER}"
        _write_numbered(engine, outcome, told.cost, data, progress)
        areas = _areas(engine, outcome, points, told)
        stage("verifying")
        features = [] if areas is None else [{"properties": properties} for properties in area_properties(areas)]
        require_not_violated(check_tracks_there(engine, data, features, guarantees, progress))
        stage("reporting")
        with scratch_folder() as made:
            here = Path(made)
            files = {"data": folder_entry(DATA_FOLDER, part_hashes(engine, data))}
            if areas is not None:
                write_features(area_features(areas, np.ones(len(areas), np.bool_)), here / AREAS_FILE)
                files["areas"] = file_entry(here / AREAS_FILE)
            manifest = build_manifest(
                method=job.method, params=job.params, reading=job.reading, seed_given=job.seed is not None, data=job.data,
                notes=notes, counts=counts, checked=checked, cost=told.cost.numbers(), risk=None,
                facts=told.facts(job.method, job.params), files=files,
            )  # fmt: skip
            if job.report:
                manifest = reported(engine, here, data, manifest, told.cost.points, notes)
            write_manifest(here, manifest)
            for name in (AREAS_FILE, REPORT_FILE, MANIFEST_FILE):
                if (here / name).exists():
                    engine.files.put(here / name, f"{aside}/{name}")
        engine.files.remove(f"{aside}/{PARTS_FOLDER}")
    return SparkResult(manifest, notes, [*told.cost.lines(), told.distance_line()])


def _in_parts(
    engine: SparkEngine, job: SparkRun, points: SparkPoints, guarantees: tuple[Guarantee, ...], finished: FinishedParts,
    folder: str, progress: Progress,
) -> Frame:  # fmt: skip
    """What came of all parts, as it lies on the cluster."""
    ids = points.reader.ids
    plan = Plan(job.method.name, job.params, tuple(ids), points.frame.start, PART_POINTS)
    outline = ", ".join([*plan.needs, "0 AS task"])
    tracks = engine.sql(f"SELECT {outline} FROM {{tracks}}", tracks=points.tracks)
    planned = engine.map_groups(tracks, "task", plan, plan.schema(engine.schema(tracks)), 1)
    with engine.kept(planned):
        parts = engine.gather(engine.sql("SELECT DISTINCT part FROM {planned}", planned=planned))["part"].to_numpy()
        reader = TrackReader(points.frame)
        function = TracksPart(
            job.method.name, job.params, drawn_seed(job.seed, finished), reader, guarantees, len(parts)
        )
        finished.begin(folder, parts)
        left = np.setdiff1d(parts, finished.steps)
        at_once = WAVES_A_SLOT * engine.slots if job.resume is not None else max(len(left), 1)
        for low in range(0, len(left), at_once):
            these = left[low : low + at_once]
            columns = ", ".join([*(f"r.{name}" for name in ("lon", "lat", "t")), *(f"p.{n}" for n in KEYED)])
            keyed = engine.sql(
                f"SELECT {columns} FROM {{rows}} r JOIN {{planned}} p ON {' AND '.join(f'r.{n} = p.{n}' for n in ids)} "
                f"JOIN {{bins}} b ON p.part = b.part WHERE r.note IS NULL",
                rows=points.rows,
                planned=planned,
                bins=engine.table(pa.table({"part": these})),
            )
            made = engine.map_groups(keyed, "part", function, OUTCOME, len(these))
            finished.add(Wave(these, made), progress)
    return finished.all()


def _write_numbered(engine: SparkEngine, outcome: Frame, cost: TrajectoryCost, folder: str, progress: Progress) -> None:
    """The points of the release under new numbers of trajectories, in their order; one trajectory is in one file."""
    rows = outcome.where(f"kind = '{ROW}'")
    keys = engine.gather(outcome.where(f"kind = '{PUBLISHED}'").select("source", *KEY))
    numbers = engine.table(new_numbers(keys))
    published = engine.sql(
        "SELECT o.lat, o.lon, o.timestamp, n.trajectory_id, o.place FROM {rows} o JOIN {numbers} n ON o.source = n.source",
        rows=rows,
        numbers=numbers,
    )
    files = max(min(engine.slots, cost.trajectories), -(-cost.points // FILE_ROWS), 1)
    placed = published.repartitionByRange(files, "trajectory_id").sortWithinPartitions("trajectory_id", "place")
    write_part_files(engine, placed.select(*TRAJECTORY_COLUMNS), folder, progress)


def new_numbers(published: pa.Table) -> pa.Table:
    """The new number of each published trajectory, from their keys, as a run on one machine gives it."""
    published = published.sort_by("source")
    keys = np.array([published[name].to_numpy() for name in KEY], np.int64).reshape(len(KEY), len(published))
    order, _ = canonical_order(keys, None, 0)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(1, len(order) + 1)
    return pa.table({"source": published["source"], "trajectory_id": number})


def _areas(engine: SparkEngine, outcome: Frame, points: SparkPoints, told: PartitionSummary) -> Areas | None:
    """The tiles that any part names, in their order; None where the method names none."""
    found = engine.gather(engine.sql(f"SELECT DISTINCT tile FROM {{outcome}} WHERE kind = '{AREA}'", outcome=outcome))
    tiles, grid = np.sort(found["tile"].to_numpy()), told.grid
    if grid is not None:
        zones = grid_zones(grid, (tiles % grid.columns).astype(np.int32), (tiles // grid.columns).astype(np.int32))
        return Areas.of_tiles(zones, np.arange(len(tiles), dtype=np.int32))
    if not told.with_areas:
        return None
    return Areas.of_tiles(points.frame.zones or Zones.from_ids([]), tiles.astype(np.int32))


@dataclass(frozen=True)
class PartitionSummary:
    """What all parts tell, in their order."""

    parts: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, lines: Sequence[str]) -> PartitionSummary:
        """From the lines of JSON, in whatever order they came."""
        return cls(sorted((json.loads(line) for line in lines), key=lambda part: part["part"]))

    @property
    def cost(self) -> TrajectoryCost:
        """What is published of the data."""
        return sum((TrajectoryCost(**part["cost"]) for part in self.parts), TrajectoryCost())

    @property
    def grid(self) -> Grid | None:
        """The grid of the tiles that are named, the same in all parts."""
        found = next((part["grid"] for part in self.parts if part["grid"] is not None), None)
        return None if found is None else Grid(LocalProjection(*found[0]), *found[1:])

    @property
    def with_areas(self) -> bool:
        """Whether the method names tiles."""
        return any(part["areas"] for part in self.parts)

    def checked(self, guarantees: Sequence[Guarantee]) -> list[tuple[Guarantee, Finding]]:
        """What came of each guarantee in all parts."""
        return checked_parts(guarantees, [part["findings"] for part in self.parts])

    def facts(self, method: Method, params: Params) -> dict[str, Any]:
        """What the manifest says of the figures of all parts."""
        return facts_of([row for part in self.parts for row in part["figures"] or ()], method, params)

    def distance_line(self) -> str:
        """How far published trajectories are from their originals, for whoever ran it; not for release."""
        n = self.cost.trajectories
        meters = math.sqrt(math.fsum(part["squares"] for part in self.parts) / n) if n else 0.0
        return f"distance to originals  {meters:,.1f} m (root of the mean square, in space alone)"
