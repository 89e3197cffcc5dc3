"""The one way through, for data on a cluster: nothing comes here but figures, areas, and the published rows a report needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.attacks.risk import refuse_beaten
from crowdveil.engine.finished import kept_until_done
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.entropy import fresh
from crowdveil.errors import GuaranteeViolatedError, Option, ParameterError
from crowdveil.guarantees import Guarantee
from crowdveil.guarantees.base import refuse_broken, refuse_unchecked
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.geojson import write_features
from crowdveil.io.grouping import refuse_tiny_weights
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release import area_features, area_properties
from crowdveil.io.tables import write_table
from crowdveil.io.written import AREAS_FILE, MANIFEST_FILE, read_release
from crowdveil.method import Method
from crowdveil.model.arrays import Mask
from crowdveil.model.flows import FlowCounts, Flows
from crowdveil.model.release import Areas
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.report.html import REPORT_FILE, public_report
from crowdveil.run.manifest import build_manifest, file_entry, folder_entry, with_file, write_manifest
from crowdveil.run.resume import drawn_seed
from crowdveil.run.spark.finished_partitions import FinishedParts, Wave
from crowdveil.run.spark.merge_partitions import AREA, ROW, TOLD, Gathered, areas_of, even_parts
from crowdveil.run.spark.staging import check_target, new_folder
from crowdveil.run.spark.steps import StepsPart, row_schema
from crowdveil.run.spark.trips import SparkTrips, look_at, part_reader, read_spark_trips
from crowdveil.run.spark.verifying import check_there, part_hashes
from crowdveil.run.verification import (
    add_run_warnings,
    refuse_large_k,
    structural_guarantees,
    what_k_counts,
    without_exact_figures,
)

DATA_FOLDER, STEPS_FILE, PARTS_FOLDER = "flows.parquet", "steps.parquet", "parts"
WAVES_A_SLOT = 4
"""Parts of a slot that are finished together where finished ones are kept."""
FILE_ROWS = 1_000_000
REPORT_ROWS = 5_000_000
"""Published rows that are fetched for a report at most."""


@dataclass(frozen=True)
class SparkRun:
    """What is to be done, checked before anything is read."""

    method: Method
    params: Params
    reading: FlowReading | TrajectoryReading
    data: Any
    output: str
    seed: int | None
    overwrite: bool
    attack: bool
    report: bool
    resume: str | None
    key: dict[str, Any] | None
    """All that finished parts depend on, where they are kept."""


@dataclass(frozen=True)
class SparkResult:
    """What came of it."""

    manifest: dict[str, Any]
    notes: ReadNotes
    cost: list[str]


def check_supported_on_spark(method: Method, params: Params, request: Any) -> None:
    """Raise if a run cannot be done on a cluster, with the reason."""
    reason = method.together(params)
    if reason is not None:
        raise ParameterError(Option("engine", "spark"), f"{method.name} cannot be done in parts, since {reason}.")
    if request.table_format != "parquet" or request.data_name is not None:
        raise ParameterError(
            f"{Option('engine', 'spark')} writes Parquet under its own names; leave {Option('format')} and the name out."
        )
    if request.private_report is not None:
        raise ParameterError(
            f"{Option('private_report')} shows the original, which does not leave the cluster; leave it out."
        )
    if request.pairing is not None and method.takes is Flows:
        raise ParameterError(Option("pairing"), f"{method.name} is for flows, which have none; leave it out.")
    if request.pairing is not None:
        raise ParameterError(
            f"{Option('pairing')} tells of the original, which does not leave the cluster; leave it out."
        )


def run(job: SparkRun, engine: SparkEngine, progress: Progress, stage: Callable[[str], None]) -> SparkResult:
    """Read, anonymize in parts, write aside, verify what was written, and only then put it in place."""
    if not isinstance(job.reading, FlowReading):
        raise TypeError("flows are read as flows")
    check_target(engine.files, job.output, overwrite=job.overwrite)
    notes = ReadNotes()
    stage("reading")
    visited = getattr(job.params, "min_inhabited_tiles", 0) > 0  # the only choice of a method that asks for it
    trips = read_spark_trips(engine, job.data, job.reading, notes)
    finished = FinishedParts(engine, job.resume, job.key, entropy=None if job.seed is not None else fresh())
    with (
        engine.kept(trips.rows),
        kept_until_done(finished),
        new_folder(engine.files, job.output, overwrite=job.overwrite) as aside,
    ):
        trips = look_at(engine, trips, job.reading, notes, visited=visited, progress=progress)
        refuse_large_k(job.params, trips.crowd, trips.counts, exact=trips.crowd_is_exact)
        guarantees = (*job.method.guarantees(trips.frame, job.params), *structural_guarantees(job.method))
        counts: FlowCounts = "trips" if job.method.rows == "noisy" else trips.counts
        stage("anonymizing")
        finished.begin(f"{aside}/{PARTS_FOLDER}", trips.numbers)
        outcome = _in_parts(engine, job, trips, guarantees, counts, finished, progress)
        gathered = Gathered.of(told_by(engine, outcome))
        if not gathered.parts:
            refuse_tiny_weights(trips.reader.source.name)
        refuse_large_k(job.params, gathered.crowd, trips.counts)
        checked = gathered.checked(guarantees)
        refuse_unchecked(checked)
        trials = gathered.trials if job.attack else []
        refuse_beaten(trials)
        add_run_warnings(
            job.method, trips.frame, job.params, gathered.cost.numbers(), notes, seed_given=job.seed is not None
        )
        stage("writing")
        data = f"{aside}/{DATA_FOLDER}"
        _write_rows(engine, outcome, counts, gathered.cost.flows, data, progress)
        areas, drawn = _areas(engine, outcome, trips)
        stage("verifying")
        steps = gathered.steps_table(trips.frame.tz if trips.step_s is not None else "UTC")
        features = [{"properties": properties} for properties in area_properties(areas)]
        refuse_broken(check_there(engine, engine.read(data), steps, features, guarantees, progress))
        stage("reporting")
        with scratch_folder() as made:
            here = Path(made)
            manifest = _small_files(engine, here, data, steps, areas, drawn, lambda files: build_manifest(
                method=job.method, params=job.params, reading=job.reading, seed_given=job.seed is not None, data=job.data,
                notes=notes, counts=what_k_counts(trips.frame, job.params), checked=checked, cost=gathered.cost.numbers(),
                risk=[trial.as_json() for trial in trials] if job.attack else None,
                facts=gathered.facts(job.method, job.params), files=files,
            ))  # fmt: skip
            if job.method.rows == "noisy":
                manifest = without_exact_figures(manifest)
            if job.report:
                manifest = reported(engine, here, data, manifest, gathered.cost.flows, notes)
            write_manifest(here, manifest)
            for name in (STEPS_FILE, AREAS_FILE, REPORT_FILE, MANIFEST_FILE):
                if (here / name).exists():
                    engine.files.put(here / name, f"{aside}/{name}")
        engine.files.remove(f"{aside}/{PARTS_FOLDER}")
    return SparkResult(manifest, notes, gathered.cost.lines())


def _in_parts(
    engine: SparkEngine, job: SparkRun, trips: SparkTrips, guarantees: tuple[Guarantee, ...], counts: FlowCounts,
    finished: FinishedParts, progress: Progress,
) -> Frame:  # fmt: skip
    """What came of all parts, as it lies on the cluster."""
    reader = part_reader(trips, members=job.method.needs_members)
    seed = drawn_seed(job.seed, finished)
    function = StepsPart(job.method.name, job.params, seed, reader, guarantees, job.attack, trips.numbers, counts)
    left = np.flatnonzero(~np.isin(trips.numbers, finished.steps))
    parts = [left[part] for part in even_parts(trips.sizes[left], engine.slots)]
    at_once = WAVES_A_SLOT * engine.slots if job.resume is not None else max(len(parts), 1)
    for low in range(0, len(parts), at_once):
        these = parts[low : low + at_once]
        step = np.concatenate([trips.numbers[part] for part in these])
        number = np.repeat(np.arange(len(these)), [len(part) for part in these])
        bins = engine.table(pa.table({"step": step, "part": number}))
        keyed = engine.sql(
            "SELECT r.packed, b.part FROM {rows} r JOIN {bins} b USING (step) WHERE r.note IS NULL",
            rows=trips.rows,
            bins=bins,
        )
        made = engine.map_groups(keyed, "part", function, function.schema, len(these))
        finished.add(Wave(step, made), progress)
    return finished.all()


def told_by(engine: SparkEngine, outcome: Frame) -> list[str]:
    """The line that each part tells."""
    lines: list[str] = engine.gather(outcome.where(f"kind = '{TOLD}'").select(TOLD))[TOLD].to_pylist()
    return lines


def _write_rows(
    engine: SparkEngine, outcome: Frame, counts: FlowCounts, rows: int, folder: str, progress: Progress
) -> None:
    """The rows of the release as part files with plain names."""
    published = outcome.where(f"kind = '{ROW}'").select(*row_schema(counts).names)
    write_part_files(engine, published.coalesce(max(engine.slots, -(-rows // FILE_ROWS))), folder, progress)


def write_part_files(engine: SparkEngine, rows: Frame, folder: str, progress: Progress) -> None:
    """Rows as a folder of part files with plain names, in the order of the frame's partitions."""
    engine.write(rows, folder, progress=progress)
    files = engine.files
    for name, _, _ in files.listed(folder):
        if name.startswith((".", "_")):
            files.remove(f"{folder}/{name}")
    for number, name in enumerate(files.names(folder)):
        files.move(f"{folder}/{name}", f"{folder}/part-{number:05}.parquet")


def _areas(engine: SparkEngine, outcome: Frame, trips: SparkTrips) -> tuple[Areas, Mask]:
    """The areas that any part names; an area that two parts tell differently is refused."""
    table = engine.gather(
        engine.sql(
            "SELECT area, first(tiles) AS tiles, count(DISTINCT tiles) AS ways, max(drawn) AS drawn FROM {outcome} "
            f"WHERE kind = '{AREA}' GROUP BY area",
            outcome=outcome,
        )
    )
    if len(table) and pc.max(table["ways"]).as_py() > 1:
        raise GuaranteeViolatedError("two areas have one name, so nothing was published.")
    return areas_of(table, trips.frame.zones)


def _small_files(
    engine: SparkEngine, here: Path, data: str, steps: pa.Table, areas: Areas, drawn: Mask,
    manifest: Callable[[dict[str, dict[str, Any]]], dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Write what is small here; the manifest names these and the part files."""
    write_table(steps, here / STEPS_FILE)
    write_features(area_features(areas, drawn), here / AREAS_FILE)
    return manifest(
        {
            "data": folder_entry(DATA_FOLDER, part_hashes(engine, data)),
            "steps": file_entry(here / STEPS_FILE),
            "areas": file_entry(here / AREAS_FILE),
        }
    )


def reported(
    engine: SparkEngine, here: Path, data: str, manifest: dict[str, Any], rows: int, notes: ReadNotes
) -> dict[str, Any]:
    """The manifest with the report, if the published rows are few enough to be looked at here."""
    if rows > REPORT_ROWS:
        notes.say(f"there are more than {REPORT_ROWS:,} published rows, so no report was drawn.")
        return manifest | {"input": manifest["input"] | {"notes": notes.said}}
    engine.files.fetch(data, here / manifest["files"]["data"]["name"])
    written = read_release(here, {role: entry["name"] for role, entry in manifest["files"].items()})
    (here / REPORT_FILE).write_text(public_report(written, manifest), encoding="utf-8", newline="\n")
    return with_file(manifest, "report", here / REPORT_FILE)
