"""Derive a coarser release from a published one by adding up its rows, which reveals nothing new."""

from __future__ import annotations

import math
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from pydantic import Field

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, SumsOfParent, WellFormedFlows
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.atomic import check_target, new_folder
from crowdveil.io.derived_files import write_derived
from crowdveil.io.geojson import write_features
from crowdveil.io.manifest import CheckedGuarantee, DecisionEntry, FileEntry, Manifest, MethodEntry, ParentEntry
from crowdveil.io.notes import ReadNotes
from crowdveil.io.partition import read_groups
from crowdveil.io.tables import write_table
from crowdveil.io.times import time_column
from crowdveil.io.written_release import AREAS_FILE, MANIFEST_FILE, NO_TIME, WrittenRelease, read_release
from crowdveil.ledger.store import Ledger
from crowdveil.model.arrays import Ints, group_sums
from crowdveil.model.time_axis import TimeAxis, step_seconds
from crowdveil.params import DURATION, Params
from crowdveil.run import releases
from crowdveil.run.ledgers import Recorder
from crowdveil.run.manifest import guarantee_entries
from crowdveil.run.result import Result
from crowdveil.run.stages import FileEntries
from crowdveil.run.verification import DERIVED, check
from crowdveil.version import __version__


class DeriveOptions(Params):
    """Options of a derived release."""

    step: str | None = Field(None, json_schema_extra=DURATION)
    """Add up time steps to longer ones of this length, such as 1d; all for a single matrix."""
    to_zones: Any = Field(None, json_schema_extra={"metavar": "FILE"})
    """Add up areas to these zones: a table with the columns zone and group, and a row for each tile."""


@dataclass(frozen=True, eq=False)
class DerivedTables:
    """Tables of a derived release; `row` is the derived row of each row of the parent, -1 where it was left out."""

    flows: pa.Table
    steps: pa.Table
    features: list[tuple[dict[str, Any], Any]]
    row: Ints


def derive(
    folder: Path,
    output: Path,
    options: DeriveOptions,
    *,
    overwrite: bool = False,
    report: bool = True,
    ledger: Ledger | None = None,
) -> Result:
    """Write a coarser release of the rows of a published one."""
    if options.step is None and options.to_zones is None:
        raise ParameterError(Text("nothing would change. Give {step} or {to_zones}."))
    check_target(Path(output).absolute(), overwrite=overwrite, mark_file=MANIFEST_FILE)
    parent, written = releases.sound_release(Path(folder))
    k = _check_parent(folder, parent, written)
    _check_step(options, parent.step_seconds)
    tables = derived_tables(written, options, parent.time_zone)
    suffix = Path(parent.file_names["data"]).suffix
    names = {"data": f"flows{suffix}", "steps": f"steps{suffix}", "areas": AREAS_FILE}
    recorder = None if ledger is None else Recorder(ledger, Path(output))
    lines = [f"{len(tables.flows):,} rows from {len(written.data):,} of {Path(folder).name}"]
    with ExitStack() as in_place, new_folder(Path(output), overwrite=overwrite, mark_file=MANIFEST_FILE) as target:
        write_table(tables.flows, target / names["data"])
        write_table(tables.steps, target / names["steps"])
        write_features(tables.features, target / AREAS_FILE)
        names |= write_derived(read_release(target, names), (), parent.time_zone, target)
        files = {role: FileEntry.of(target / name) for role, name in names.items()}
        read_back = read_release(target, names)
        checked = _checked(read_back, Path(folder), parent, options, k)
        manifest = _manifest(Path(folder), parent, options, k, tables, files, checked)
        with nullcontext() if recorder is None else recorder.ledger.locked():
            if recorder is not None:
                audited = recorder.derived(read_back, manifest)
                manifest = manifest.model_copy(update={"ledger": audited.statement})
                lines += [f"ledger: {line}" for line in audited.lines]
            if report:
                releases.add_report(target, read_back, manifest)
            manifest.write(target)
            if recorder is not None:
                in_place.enter_context(recorder.recorded(target, manifest))
    return Result(Path(output), manifest, None, ReadNotes(), lines)


def _check_parent(folder: Path, manifest: Manifest, written: WrittenRelease) -> int:
    """Return the k of the parent; raise where its rows cannot be added up."""
    if not written.is_flows:
        raise InputError(folder, "Expected a release of flows, but it holds trajectories.")
    stated = manifest.guaranteed(FlowKAnonymity.name)
    if stated is None:
        raise InputError(folder, "its rows have no group size, since it is not k-anonymous; derive from one that is.")
    return int(stated["k"])


def _check_step(options: DeriveOptions, known: int | None) -> None:
    """Raise unless derived time steps hold whole time steps of the parent: shorter ones would have the volumes of longer ones."""
    wanted = step_seconds(options.step)
    if wanted is not None and (known is None or wanted % known):
        own = "one matrix" if known is None else f"time steps of {known:,} s"
        raise ParameterError(Option("step"), f"the release has {own}. Expected a length that holds whole ones.")


def derived_tables(written: WrittenRelease, options: DeriveOptions, tz: str) -> DerivedTables:
    """Add up the rows of a release: by time step and by areas."""
    seconds = None if options.step in (None, "all") else step_seconds(options.step)
    area, features = derived_areas(written.features, options.to_zones)
    ends = [np.append(area, -1)[written.area_numbers(name)] for name in ("origin_area", "destination_area")]
    times, step = written.row_steps()
    start, until = _periods(written, times[step], seconds, options.step == "all", tz)
    inside = (ends[0] >= 0) & (ends[1] >= 0)
    keys = np.column_stack([start, until, *ends])[inside]
    rows, of_row = np.unique(keys, axis=0, return_inverse=True)
    unit = "people" if "people" in written.data.column_names else "trips"
    volume, people = _sums(written, unit, inside, of_row.reshape(-1), len(rows))
    row = np.full(len(written.data), -1, np.int64)
    row[inside] = of_row.reshape(-1)
    used = np.unique(rows[:, 2:])
    names = np.array([properties["area"] for properties, _ in features], dtype=object)
    spans = written.has_intervals and options.step is None
    flows = pa.table(
        {
            "t": _time_column(rows[:, 0], tz, written),
            **({"until": _time_column(rows[:, 1], tz, written)} if spans else {}),
            "origin_area": pa.array(names[rows[:, 2]], pa.string()),
            "destination_area": pa.array(names[rows[:, 3]], pa.string()),
            "volume": volume,
            unit: people,
            "state": pa.array(["published"] * len(rows), pa.string()),
        }
    )
    steps = _steps_table(written, options, rows, volume, tz)
    return DerivedTables(flows, steps, [features[i] for i in used.tolist()], row)


def _sums(written: WrittenRelease, unit: str, inside: Any, of_row: Ints, rows: int) -> tuple[Ints, Ints]:
    """Return volume and group size of each derived row. People of several rows may be the same: the largest group counts."""
    people = np.zeros(rows, np.int64)
    (np.maximum if unit == "people" else np.add).at(people, of_row, written.column(unit)[inside])
    return group_sums(of_row, written.column("volume")[inside], rows), people


def _periods(written: WrittenRelease, t: Ints, seconds: int | None, whole: bool, tz: str) -> tuple[Ints, Ints]:
    """Return start and end of the derived time step of each row; NO_TIME where there is none."""
    if whole or np.all(t == NO_TIME):
        return np.full(len(t), NO_TIME), np.full(len(t), NO_TIME)
    until = written.row_intervals()[1] if written.has_intervals else t
    if seconds is None:
        return t, until if written.has_intervals else np.full(len(t), NO_TIME)
    steps = TimeAxis(seconds, tz)
    number = steps.number_at(t)
    if written.has_intervals and np.any(steps.number_at(until - 1) != number):
        raise ParameterError(Option("step"), "some rows span several steps of this length. Choose a longer one.")
    return steps.starts(number), np.full(len(t), NO_TIME)


def _time_column(t: Ints, tz: str, written: WrittenRelease) -> Any:
    """Return times as the parent writes them: timestamps, or text in a CSV."""
    missing = t == NO_TIME
    if missing.all():
        return pa.nulls(len(t), written.data["t"].type)
    return time_column(t, tz, as_text=pa.types.is_string(written.data["t"].type))


def _steps_table(written: WrittenRelease, options: DeriveOptions, rows: Ints, volume: Ints, tz: str) -> pa.Table:
    """Return the table of time steps. It gives no suppressed totals, since the parent does not list steps without rows."""
    if options.step is None:
        table = written.steps
        place = table.schema.get_field_index("published")
        published = np.zeros(len(table), np.int64)
        listed, number = written.listed_steps()
        if len(rows):
            at = np.searchsorted(listed, np.where(rows[:, 0] == NO_TIME, listed[0], rows[:, 0]), side="right") - 1
            by_step = group_sums(at, volume, len(listed))
            published = by_step[number]
        table = table.set_column(place, "published", pa.array(published))
        nothing = pa.nulls(len(table), pa.int64())
        return table.set_column(table.schema.get_field_index("suppressed"), "suppressed", nothing).filter(
            pa.array(published > 0)
        )
    starts, index = np.unique(rows[:, 0], return_inverse=True)
    published = group_sums(index.reshape(-1), volume, len(starts))
    return pa.table(
        {
            "t": _time_column(starts, tz, written),
            "published": published,
            "suppressed": pa.nulls(len(starts), pa.int64()),
        }
    )


def _checked(
    written: WrittenRelease, folder: Path, parent: Manifest, options: DeriveOptions, k: int
) -> list[CheckedGuarantee]:
    """Check the guarantees on the written files; rows are stated to be disjoint only where they are."""
    seconds = None if options.step in (None, "all") else step_seconds(options.step)
    sums = SumsOfParent(
        parent=Path(folder).absolute().name, sha256=parent.files["data"].sha256,
        step_s=seconds, tz=parent.time_zone, one_step=options.step == "all",
        zones=options.to_zones is not None,
    )  # fmt: skip
    every = (FlowKAnonymity(k=k, k_unit=parent.k_unit), WellFormedFlows(), DisjointFlows())
    groups, form, disjoint = check(written, every)
    listed = [groups, *([] if disjoint[1].violated else [disjoint]), (sums, sums.check_in(written, folder)), form]
    require_not_violated(listed)
    return guarantee_entries(listed)


def _manifest(
    folder: Path,
    parent: Manifest,
    options: DeriveOptions,
    k: int,
    tables: DerivedTables,
    files: FileEntries,
    checked: list[CheckedGuarantee],
) -> Manifest:
    """Return the manifest; it names the parent and repeats its entries about the data."""
    published, before = int(tables.flows["volume"].to_numpy().sum()), int(parent.cost["published_volume"])
    kept = 100 - float(parent.cost.get("suppressed_volume_percent", 0))
    suppressed = 100 - kept * published / before if before else 100.0
    cost = {
        "published_volume": published,
        "published_flows": len(tables.flows),
        "published_time_steps": len(tables.steps),
        "suppressed_volume_percent": math.ceil(10 * suppressed) / 10,
    }
    given = {"step": options.step, "to_zones": options.to_zones is not None, "k": k}
    hashes = {role: entry.sha256 for role, entry in parent.files.items()}
    made = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "crowdveil": __version__,
        "method": MethodEntry(name=DERIVED, status=parent.method.status, parameters=given, seed_given=False, facts={}),
        "input": parent.input.model_copy(update={"notes": [], "dropped": {}}),
        "step_seconds": parent.step_seconds if options.step is None else step_seconds(options.step),
        "k": k,
        "guarantees": checked,
        "cost": cost,
        "risk": None,
        "decision": DecisionEntry(),
        "files": files,
        "ledger": None,
        "parent": ParentEntry(name=Path(folder).absolute().name, method=parent.method.name, files=hashes),
    }
    return parent.model_copy(update=made)


Feature = tuple[dict[str, Any], Any]


def derived_areas(features: list[dict[str, Any]], zones: Any) -> tuple[Ints, list[Feature]]:
    """Return the derived area of each area, -1 where its tiles are not of one zone; and the derived areas, with outlines."""
    shapes = [_shape(feature) for feature in features]
    if zones is None:
        return np.arange(len(features)), list(zip([dict(f["properties"]) for f in features], shapes, strict=True))
    _, group_of = read_groups(zones)
    groups = [{group_of.get(tile) for tile in feature["properties"]["tiles"]} for feature in features]
    of_area = [next(iter(names)) if len(names) == 1 else None for names in groups]
    names = sorted({name for name in of_area if name is not None})
    if not names:
        raise InputError(Option("to_zones"), "no zone holds a whole area of the release. Give larger zones.")
    number = {name: i for i, name in enumerate(names)}
    area = np.array([-1 if name is None else number[name] for name in of_area], np.int64)
    return area, [_joined(name, np.flatnonzero(area == i).tolist(), features, shapes) for i, name in enumerate(names)]


def _shape(feature: dict[str, Any]) -> Any:
    return None if feature.get("geometry") is None else shapely.geometry.shape(feature["geometry"])


def _joined(name: str, areas: list[int], features: list[dict[str, Any]], shapes: list[Any]) -> Feature:
    """Return an area that is the union of areas, which may share tiles."""
    tiles = sorted({tile for i in areas for tile in features[i]["properties"]["tiles"]})
    outlines = [shapes[i] for i in areas if shapes[i] is not None]
    outline = shapely.union_all(outlines, grid_size=1e-6) if outlines else None
    properties: dict[str, Any] = {"area": name, "tiles": tiles, "size": len(tiles), "area_km2": None}
    if outline is not None:
        center = outline.centroid
        properties |= {"lon": round(center.x, 6), "lat": round(center.y, 6)}
    return properties, outline
