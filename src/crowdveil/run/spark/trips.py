"""Trips and flows on a cluster: rows to step, origin, destination and person where they lie, then grouped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from crowdveil.engine.spark import TASKS_A_SLOT, Frame, SparkEngine
from crowdveil.errors import InputError, Option
from crowdveil.io.flows import by_place, step_of, with_trees
from crowdveil.io.grouping import refuse_repeated
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, Problems, find_od_columns, zones_named
from crowdveil.io.source import Source
from crowdveil.io.steps import Steps
from crowdveil.io.tiling import Places, given_zones, zones_around
from crowdveil.io.times import refuse_spread
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import FlowCounts, Flows
from crowdveil.model.globe import JOINED, Reach
from crowdveil.model.zones import Zones
from crowdveil.reading import FlowReading
from crowdveil.run.spark.rows import (
    BAD,
    PACKS,
    NameReader,
    PartReader,
    PersonReader,
    PlaceReader,
    RepeatedPairs,
    TileReader,
    TripReader,
)
from crowdveil.run.spark.sources import (
    count_people,
    form_there,
    id_rules,
    quoted,
    readable,
    settle_clock,
    settle_zone,
    source_of,
)


@dataclass(frozen=True)
class SparkTrips:
    """Trips in packs that lie on the cluster, and the little that is known of them here.

    Attributes
    ----------
    rows
        The frame of packs, as `PACKS` has it.
    reader
        How they were read.
    counts
        What k counts.
    numbers, sizes
        The time steps, rising, by their numbers; and how much work each is, in rows.
    crowd
        The distinct people, or trips; of a table of flows without ids an upper bound of the people.
    crowd_is_exact
        Whether `crowd` is no upper bound.
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
    crowd_is_exact: bool = False


def read_spark_trips(engine: SparkEngine, data: Any, reading: FlowReading, notes: ReadNotes) -> SparkTrips:
    """Read trips or flows on the cluster, into packs of rows by time step.

    The frame of rows is not kept: keep it with `engine.kept` around everything that is done with it.
    """
    frame = engine.read(readable(data))
    source = source_of(engine, data, frame)
    named = {role: getattr(reading, role) for role in OdColumns.__dataclass_fields__}
    tiled = by_place(reading.zones, reading.grid, reading.h3, reading.voronoi)
    columns = find_od_columns(source, named, tiled, notes)
    frame = frame.select(*[quoted(c) for c in dict.fromkeys(columns.used)])
    zones = _zones(engine, frame, source, columns, reading, notes)
    seconds = step_of(reading.step, columns, notes)
    own_steps = reading.step is None and columns.is_flows and columns.time is not None
    seconds = 1 if own_steps else seconds
    steps = Steps(seconds, reading.tz) if seconds and columns.time else None
    came_up = not tiled and reading.zones is None
    form, ids = form_there(engine, frame, source, columns.time, reading, notes), id_rules(reading)
    reader = TripReader(source, columns, zones, reading.tz, form, steps, came_up, ids)
    rows = engine.map_rows(frame, reader, PACKS)
    none, made = np.zeros(0, np.int64), _frame(zones, reading, columns)
    return SparkTrips(rows, reader, made.counts, none, none, 0, steps.seconds if steps else None, made)


def look_at(
    engine: SparkEngine, trips: SparkTrips, reading: FlowReading, notes: ReadNotes, *, visited: bool, progress: Any
) -> SparkTrips:
    """The same with what is known of the steps, once the rows have been read; bad rows are told or refused.

    `visited`: gather too which tiles any trip starts or ends in.
    """
    columns = trips.reader.columns
    text = "SELECT step, note, sum(size) AS size, sum(crowd) AS crowd FROM {rows} GROUP BY step, note"
    figures = engine.gather(engine.sql(text, rows=trips.rows), progress).sort_by("step")
    noted = figures.filter(pc.is_valid(figures["note"]))
    _settle(dict(zip(noted["note"].to_pylist(), noted["size"].to_pylist(), strict=True)), trips.reader, reading, notes)
    steps = figures.filter(pc.is_null(figures["note"]))
    name = trips.reader.source.name
    if len(steps) == 0:
        raise InputError(name, "no row can be used, or all volumes are zero; wanted at least one.")
    if columns.is_flows and columns.people is not None and columns.user is None:
        _refuse_repeated(engine, trips)
    numbers, sizes, crowds = (steps[name].to_numpy() for name in ("step", "size", "crowd"))
    if trips.reader.steps is not None:
        first, last = trips.reader.steps.starts(numbers[[0, -1]]).tolist()
        refuse_spread(first, last, trips.reader.form, f"{name}, column {columns.time}")
    step_s = trips.step_s
    if reading.step is None and columns.is_flows and columns.time is not None and trips.reader.steps is not None:
        t = trips.reader.steps.starts(numbers)
        step_s = int(np.diff(t).min()) if len(t) > 1 else 3600
    frame = trips.frame
    if visited:
        seen = np.zeros(len(frame.zones), np.bool_)
        found = engine.map_rows(trips.rows.select("packed"), TileReader(trips.reader.schema), TileReader.schema)
        tiles = engine.gather(engine.sql("SELECT DISTINCT tile FROM {found}", found=found))
        seen[tiles["tile"].to_numpy()] = True
        frame = replace(frame, visited_tiles=seen)
    crowd = int(crowds.sum()) if columns.user is None else _people(engine, trips, notes)
    exact = columns.user is not None or trips.counts == "trips"
    return replace(trips, numbers=numbers, sizes=sizes, crowd=crowd, step_s=step_s, frame=frame, crowd_is_exact=exact)


def part_reader(trips: SparkTrips, *, members: bool) -> PartReader:
    """From packs to flows, for executors; with `members`, it is kept who is behind each flow."""
    return PartReader(trips.reader.schema, trips.counts, trips.reader.steps, trips.step_s, trips.frame, members)


def _people(engine: SparkEngine, trips: SparkTrips, notes: ReadNotes) -> int:
    """The number of distinct people; ids that look alike are noted."""
    reader = PersonReader(trips.reader.schema)
    found = engine.map_rows(trips.rows.select("packed"), reader, reader.schema)
    people, alike = count_people(engine, found)
    trips.reader.ids.warn(alike, trips.reader.columns.user, notes)
    return people


def _refuse_repeated(engine: SparkEngine, trips: SparkTrips) -> None:
    """Raise if people of several rows would have to be added up."""
    tasks = TASKS_A_SLOT * engine.slots
    keyed = engine.sql(f"SELECT packed, pmod(step, {tasks}) AS task FROM {{rows}} WHERE note IS NULL", rows=trips.rows)
    found = engine.map_groups(keyed, "task", RepeatedPairs(trips.reader.schema), RepeatedPairs.schema, tasks)
    refuse_repeated(pc.sum(engine.gather(found)["repeated"]).as_py(), trips.reader.source.name)


def _zones(
    engine: SparkEngine, frame: Frame, source: Source, columns: OdColumns, reading: FlowReading, notes: ReadNotes
) -> Zones:
    """The zones that were given or asked for; places and names come from all executors."""
    if reading.grid is not None or reading.h3 is not None:
        found = engine.map_rows(frame, PlaceReader(source, columns, reading.h3), PlaceReader.schema)
        sides = ", ".join(f"{how}({name}) AS {name}" for name, how in JOINED.items())
        boxes = engine.gather(engine.sql(f"SELECT {sides}, cell FROM {{found}} GROUP BY cell", found=found)).to_pylist()
        here = [Places(Reach(*(b[name] for name in JOINED)), frozenset(filter(None, [b["cell"]]))) for b in boxes]
        return zones_around(here, reading.grid, reading.h3, source.name)
    given = given_zones(reading.zones, reading.zone_id, reading.voronoi, notes)
    if given is not None:
        return given
    if not columns.by_id:
        raise InputError(
            f"coordinates need zones; give {Option('zones')}, {Option('grid')}, {Option('h3')} or {Option('voronoi')}."
        )
    names = engine.map_rows(frame, NameReader(source, columns), NameReader.schema)
    return zones_named(engine.gather(engine.sql("SELECT DISTINCT name FROM {names}", names=names))["name"].to_pylist())


def _frame(zones: Zones, reading: FlowReading, columns: OdColumns) -> Flows:
    none = np.zeros(0, np.int64)
    counts: FlowCounts = "people" if columns.user is not None or columns.people is not None else "trips"
    nowhere = none.astype(np.int32)
    weight = None if columns.weight is None else none
    empty = Flows(
        zones, none, np.zeros(1, np.int64), nowhere, nowhere, none, none, counts, tz=reading.tz, weight=weight
    )
    trees = reading.hierarchy, reading.destination_hierarchy
    return empty if trees == (None, None) else with_trees(empty, *trees)


def _settle(said: dict[str, int], reader: TripReader, reading: FlowReading, notes: ReadNotes) -> None:
    """Stop because of bad rows, or note them; tell how times were read."""
    problems = Problems()
    for note, n in sorted(said.items()):
        if note.startswith(BAD):
            problems.add_count(note.removeprefix(BAD), n, [])
    settle_zone(said, reader.source, reader.columns.time, reader.tz, notes)
    settle_clock(said, reader.columns.time, reader.tz, notes)
    problems.settle(reader.source.name, reading.drop_invalid, notes)
