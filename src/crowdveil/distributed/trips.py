"""Trips and flows on a cluster: rows to step, origin, destination and person where they lie, then grouped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from crowdveil.distributed.rows import BAD, INSTANTS, WALLS, NameReader, PlaceReader, TripReader
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, ParameterError, counted
from crowdveil.io.flows import by_place, step_of, with_trees
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, Problems, find_od_columns, say_zone, zones_named
from crowdveil.io.source import CSV_SUFFIXES, Source
from crowdveil.io.steps import Steps
from crowdveil.io.tiling import Places, given_zones, zones_around
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import FlowCounts, Flows
from crowdveil.model.zones import Zones
from crowdveil.reading import FlowReading


@dataclass(frozen=True)
class TripsThere:
    """Grouped trips that lie on the cluster, and the little that is known of them here.

    Attributes
    ----------
    rows
        The frame of flows: trips, people and, if they are asked for, the list of these, by step, origin and destination.
    reader
        How they were read.
    counts
        What k counts.
    numbers, sizes
        The time steps, rising, by their numbers; and how much work each is, in flows and people.
    crowd
        An upper bound of the people, as `Flows.crowd`.
    step_s
        Length of a step.
    frame
        Flows without a row: zones, trees, and what else is true of every part.
    """

    rows: Frame
    reader: TripReader
    counts: FlowCounts
    numbers: Ints
    sizes: Ints
    crowd: int
    step_s: int | None
    frame: Flows


def read_trips_there(
    engine: SparkEngine, data: Any, reading: FlowReading, notes: ReadNotes, *, members: bool
) -> TripsThere:
    """Read and group trips or flows on the cluster; with `members`, keep who is behind each flow.

    The frame of rows is not kept: keep it with `engine.kept` around everything that is done with it.
    """
    frame = engine.read(_readable(data))
    source = _source(engine, data, frame)
    named = {role: getattr(reading, role) for role in OdColumns.__dataclass_fields__}
    tiled = by_place(reading.zones, reading.grid, reading.h3, reading.voronoi)
    columns = find_od_columns(source, named, tiled, notes)
    frame = frame.select(*[_quoted(c) for c in dict.fromkeys(columns.used)])
    zones = _zones(engine, frame, source, columns, reading, notes)
    seconds = step_of(reading.step, columns, notes)
    own_steps = reading.step is None and columns.is_flows and columns.time is not None
    seconds = 1 if own_steps else seconds
    steps = Steps(seconds, reading.tz) if seconds and columns.time else None
    came_up = not tiled and reading.zones is None
    reader = TripReader(source, columns, zones, reading.tz, reading.time_format, steps, came_up)
    rows = _grouped(engine, engine.map_rows(frame, reader, reader.schema), reader, members=members)
    none, made = np.zeros(0, np.int64), _frame(zones, reading, columns)
    return TripsThere(rows, reader, made.counts, none, none, 0, steps.seconds if steps else None, made)


def look_at(
    engine: SparkEngine, trips: TripsThere, reading: FlowReading, notes: ReadNotes, *, visited: bool, progress: Any
) -> TripsThere:
    """The same with what is known of the steps, once the rows have been read; bad rows are told or refused.

    `visited`: gather too which tiles any trip starts or ends in.
    """
    columns = trips.reader.columns
    crowd = "people" if trips.counts == "people" else "trips"
    several = "count_if(rows > 1)" if columns.is_flows and columns.people is not None and columns.user is None else "0"
    text = f"count(*) AS size, sum(trips) AS trips, sum({crowd}) AS crowd, {several} AS several"
    query = engine.sql(f"SELECT step, note, {text} FROM {{rows}} GROUP BY step, note", rows=trips.rows)
    figures = engine.gather(query, progress).sort_by("step")
    noted = figures.filter(pc.is_valid(figures["note"]))
    _settle(dict(zip(noted["note"].to_pylist(), noted["trips"].to_pylist(), strict=True)), trips.reader, reading, notes)
    steps = figures.filter(pc.is_null(figures["note"]))
    name = trips.reader.source.name
    if len(steps) == 0:
        raise InputError(f"{name}: no row can be used, or all volumes are zero; wanted at least one.")
    if repeated := pc.sum(steps["several"]).as_py():
        raise InputError(
            f"{name}: {counted(repeated, 'pair')} of zones have several rows in a time step, and people of different rows "
            "cannot be added up; give one row for each, or leave the column of people out."
        )
    numbers, sizes, crowds = (steps[name].to_numpy() for name in ("step", "size", "crowd"))
    if "members" in trips.rows.columns:
        sizes = sizes + crowds
    step_s = trips.step_s
    if reading.step is None and columns.is_flows and columns.time is not None and trips.reader.steps is not None:
        t = trips.reader.steps.starts(numbers)
        step_s = int(np.diff(t).min()) if len(t) > 1 else 3600
    frame = trips.frame
    if visited:
        seen = np.zeros(len(frame.zones), np.bool_)
        tiles = engine.sql(
            "SELECT DISTINCT o FROM {rows} WHERE note IS NULL UNION SELECT DISTINCT d FROM {rows} WHERE note IS NULL",
            rows=trips.rows,
        )
        seen[engine.gather(tiles)["o"].to_numpy()] = True
        frame = replace(frame, visited_tiles=seen)
    return replace(trips, numbers=numbers, sizes=sizes, crowd=int(crowds.sum()), step_s=step_s, frame=frame)


def _readable(data: Any) -> Any:
    if isinstance(data, str | Path):
        if str(data).lower().endswith(".omx"):
            raise InputError(f"{data}: Spark cannot read OMX files; write the flows as Parquet, or run without Spark.")
        return data
    if not hasattr(data, "createOrReplaceGlobalTempView"):
        raise InputError(
            f"wanted a path or a data frame of Spark, but got {type(data).__name__}; give one, or run without Spark."
        )
    return data


def _source(engine: SparkEngine, data: Any, frame: Frame) -> Source:
    named = isinstance(data, str | Path)
    stem = Path(str(data).rstrip("/")) if named else Path("table")
    stem = stem.with_suffix("") if stem.suffix in (".gz", ".bz2", ".zst") else stem
    csv = named and stem.suffix.lower() in CSV_SUFFIXES
    return Source(str(data) if named else "the table", engine.schema(frame), delimiter="," if csv else None)


def _zones(
    engine: SparkEngine, frame: Frame, source: Source, columns: OdColumns, reading: FlowReading, notes: ReadNotes
) -> Zones:
    """The zones that were given or asked for; places and names come from all executors."""
    if reading.grid is not None or reading.h3 is not None:
        found = engine.map_rows(frame, PlaceReader(source, columns, reading.h3), PlaceReader.schema)
        sides = "min(west) AS west, min(south) AS south, max(east) AS east, max(north) AS north"
        boxes = engine.gather(engine.sql(f"SELECT {sides}, cell FROM {{found}} GROUP BY cell", found=found)).to_pylist()
        here = [
            Places((b["west"], b["south"], b["east"], b["north"]), frozenset(filter(None, [b["cell"]]))) for b in boxes
        ]
        return zones_around(here, reading.grid, reading.h3, source.name)
    given = given_zones(reading.zones, reading.zone_id, reading.voronoi, notes)
    if given is not None:
        return given
    if not columns.by_id:
        raise InputError("coordinates need zones; give --zones, --grid, --h3 or --voronoi.")
    names = engine.map_rows(frame, NameReader(source, columns), NameReader.schema)
    return zones_named(engine.gather(engine.sql("SELECT DISTINCT name FROM {names}", names=names))["name"].to_pylist())


def _grouped(engine: SparkEngine, rows: Frame, reader: TripReader, *, members: bool) -> Frame:
    """Flows by step, origin and destination, with the number of people or the list of them; notes stay rows of their own.

    People are counted as the groups of a first grouping. Both groupings are done where all rows of a pair of zones are, so that
    rows go over the network once, and a step with very many trips is spread over all executors.
    """
    columns, keys = reader.schema.names, "step, o, d, note"
    sums = ", ".join(f"sum({name}) AS {name}" for name in columns if name in ("rows", "weight"))
    more = f", {sums}" if sums else ""
    if "person" not in columns:
        people = ", sum(people) AS people" if "people" in columns else ""
        return engine.sql(f"SELECT {keys}, sum(n) AS trips{people}{more} FROM {{rows}} GROUP BY {keys}", rows=rows)
    placed = engine.near(rows, "step", "o", "d", "note")
    listed = ", collect_list(person) AS members" if members and not reader.columns.is_flows else ""
    return engine.sql(
        f"SELECT {keys}, sum(n) AS trips, count(person) AS people{listed}{more} FROM "
        f"(SELECT {keys}, person, sum(n) AS n{more} FROM {{rows}} GROUP BY {keys}, person) GROUP BY {keys}",
        rows=placed,
    )


def _frame(zones: Zones, reading: FlowReading, columns: OdColumns) -> Flows:
    none = np.zeros(0, np.int64)
    counts: FlowCounts = "people" if columns.user is not None or columns.people is not None else "trips"
    nowhere = none.astype(np.int32)
    empty = Flows(zones, none, np.zeros(1, np.int64), nowhere, nowhere, none, none, counts, tz=reading.tz)
    trees = reading.hierarchy, reading.destination_hierarchy
    return empty if trees == (None, None) else with_trees(empty, *trees)


def _settle(said: dict[str, int], reader: TripReader, reading: FlowReading, notes: ReadNotes) -> None:
    """Stop because of bad rows, or note them; tell how times were read."""
    problems = Problems()
    for note, n in sorted(said.items()):
        if note.startswith(BAD):
            problems.add_count(note.removeprefix(BAD), n, [])
    if {INSTANTS, WALLS} <= set(said):
        raise InputError(
            f"{reader.source.name}, column {reader.columns.time}: some times have a zone and some have none; write all of "
            "them in one form."
        )
    if WALLS in said:
        say_zone(notes, reader.columns.time, reader.tz)
    problems.settle(reader.source.name, reading.drop_invalid, notes)


def _quoted(name: str) -> str:
    if "`" in name:
        raise ParameterError("a column has a backtick in its name, which Spark cannot read; rename it.")
    return f"`{name}`"
