"""Trips and flows on a cluster: rows to step, origin, destination and person, packed by time step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine.spark import TASKS_A_SLOT, Frame, SparkEngine
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.axes import check_axes
from crowdveil.io.flows import resolve_step_seconds, with_tree
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import ENDS, NAMED, OdColumns, by_role, find_od_columns, refuse_unread_volumes
from crowdveil.io.od_grouping import refuse_repeated
from crowdveil.io.od_rows import Problems, zones_named
from crowdveil.io.person_ids import note_case_variants
from crowdveil.io.source import Source
from crowdveil.io.stations import MAX_POSITIONS, station_columns, zones_of_positions
from crowdveil.io.tiling import PointCover, Tiling, by_coordinates, given_zones, usable_coordinates, zones_covering
from crowdveil.io.times import refuse_spread
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows, FlowUnit
from crowdveil.model.globe import JOINED, Reach
from crowdveil.model.time_axis import TimeAxis
from crowdveil.model.zones import Zones
from crowdveil.reading import FlowReading, with_partition, with_pois
from crowdveil.run.spark.parquet_pieces import map_source
from crowdveil.run.spark.sources import (
    FORM_ROWS,
    count_people,
    learn_time_form,
    map_chunks,
    quoted,
    readable,
    settle_clock,
    settle_zone,
    source_of,
)
from crowdveil.run.spark.trip_rows import (
    BAD,
    BOXES,
    PACKED_TRIPS,
    PEOPLE,
    POSITIONS,
    TILES,
    ZONE_NAMES,
    RepeatedPairs,
    TripReader,
    boxes_of,
    people_of,
    positions_of,
    tiles_of,
    without_missing,
    zone_names_of,
)


@dataclass(frozen=True)
class SparkTrips:
    """Packed trips on the cluster, and a summary of them.

    Attributes
    ----------
    rows
        The frame of packed rows, in the schema `PACKED_TRIPS`.
    reader
        How they were read.
    numbers, sizes
        Sorted numbers of the time steps, and the rows of each.
    crowd
        The distinct people, or trips; an upper bound of the people where `crowd_is_exact` is not set.
    crowd_is_exact
        Whether `crowd` is no upper bound.
    frame
        Flows without rows: zones, trees, what k counts, the length of a step, and what else all partitions have in common.
    """

    rows: Frame
    reader: TripReader
    numbers: Ints
    sizes: Ints
    crowd: int
    frame: Flows
    crowd_is_exact: bool = False

    @property
    def starts(self) -> Ints:
        """Return the start of each time step, UTC seconds; 0 where the data have no times."""
        steps = self.reader.steps
        return steps.starts(self.numbers) if steps is not None else np.zeros(len(self.numbers), np.int64)


def read_spark_trips(engine: SparkEngine, data: Any, reading: FlowReading, notes: ReadNotes) -> SparkTrips:
    """Read trips or flows on the cluster, and pack them by time step.

    The rows are not cached: use `engine.kept` around all queries on them.
    """
    for option in ("bbox", "time_window", "fold"):
        if getattr(reading, option) is not None:
            raise ParameterError(
                Option(option),
                f"it is not available on Spark; prepare the data before with crowdveil flows, or leave {Option('engine')} out.",
            )
    frame = engine.read(readable(data))
    source = source_of(engine, data, frame)
    named = by_role({role: getattr(reading, role) for role in NAMED}, source)
    columns = find_od_columns(source, named, by_coordinates(reading.zones), notes)
    names = [*dict.fromkeys(columns.used)]
    used = frame.select(*map(quoted, names))
    zones = given = _given_zones(engine, used, source, columns, reading, notes)
    if zones is None:
        zones = given = _stations(engine, frame, source, columns, reading, notes)
    if zones is None:
        zones = _named_zones(engine, used, source, columns)
    seconds = resolve_step_seconds(reading.step, columns, notes)
    own_steps = reading.step is None and columns.is_flows and columns.time is not None
    seconds = 1 if own_steps else seconds
    steps = TimeAxis(seconds, reading.tz) if seconds and columns.time else None
    form = learn_time_form(engine, used, source, columns.time, reading)
    head = without_missing(source, engine.gather(frame.limit(FORM_ROWS)).combine_chunks().to_batches()[0])
    if not reading.each_row_is_a_trip:
        refuse_unread_volumes(head, columns, named, form, source.name)
    if not columns.by_id:
        of_file = given if Tiling.of(reading.zones) is None else None
        for end, (lon, lat) in zip(ENDS, usable_coordinates(head, columns, source.name), strict=True):
            check_axes(lon, lat, columns.coordinates(end), source.name, of_file, notes)
    reader = TripReader(source, columns, zones, reading.tz, form, steps, given is None)
    rows = map_source(engine, data, source, used, reader, PACKED_TRIPS, columns=names, ids=columns.zone_ids)
    none, made = np.zeros(0, np.int64), _frame(zones, reading, columns, notes)
    return SparkTrips(rows, reader, none, none, 0, replace(made, step_s=steps.step_s if steps else None))


def summarize_trips(
    engine: SparkEngine,
    trips: SparkTrips,
    reading: FlowReading,
    notes: ReadNotes,
    *,
    visited: bool,
    k: int,
    progress: Any,
) -> SparkTrips:
    """Add the summary of the time steps, once rows were read; note bad rows, or raise. With `visited`, add visited tiles.

    People are counted only where there may be fewer than `k`, or where ids may differ in case alone.
    """
    columns = trips.reader.columns
    text = (
        "SELECT step, note, sum(size) AS size, sum(crowd) AS crowd, max(crowd) AS least FROM {rows} GROUP BY step, note"
    )
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
    frame = trips.frame
    if reading.step is None and columns.is_flows and columns.time is not None and trips.reader.steps is not None:
        t = trips.reader.steps.starts(numbers)
        frame = replace(frame, step_s=int(np.diff(t).min()) if len(t) > 1 else 3600)
    if visited:
        seen = np.zeros(len(frame.zones), np.bool_)
        found = map_chunks(engine, trips.rows.select("packed"), TILES, tiles_of, trips.reader.schema)
        tiles = engine.gather(engine.sql("SELECT DISTINCT tile FROM {found}", found=found))
        seen[tiles["tile"].to_numpy()] = True
        frame = replace(frame, visited_tiles=seen)
    counted = columns.user is not None and (
        not pa.types.is_integer(trips.reader.schema.field("person").type) or pc.max(steps["least"]).as_py() < k
    )
    crowd = _people(engine, trips, notes) if counted else int(crowds.sum())
    exact = counted or frame.k_unit == "trips"
    return replace(trips, numbers=numbers, sizes=sizes, crowd=crowd, frame=frame, crowd_is_exact=exact)


def _people(engine: SparkEngine, trips: SparkTrips, notes: ReadNotes) -> int:
    """Count the distinct people; note ids that differ only in case."""
    found = map_chunks(engine, trips.rows.select("packed"), PEOPLE, people_of, trips.reader.schema)
    people, alike = count_people(engine, found)
    note_case_variants(alike, trips.reader.columns.user, notes)
    return people


def _refuse_repeated(engine: SparkEngine, trips: SparkTrips) -> None:
    """Raise if people of several rows would have to be added up."""
    tasks = TASKS_A_SLOT * engine.slots
    keyed = engine.sql(f"SELECT packed, pmod(step, {tasks}) AS task FROM {{rows}} WHERE note IS NULL", rows=trips.rows)
    found = engine.map_groups(keyed, "task", RepeatedPairs(trips.reader.schema), RepeatedPairs.schema, tasks)
    refuse_repeated(pc.sum(engine.gather(found)["repeated"]).as_py(), trips.reader.source.name)


def _given_zones(
    engine: SparkEngine, frame: Frame, source: Source, columns: OdColumns, reading: FlowReading, notes: ReadNotes
) -> Zones | None:
    """Return the zones that were given or asked for, None if there are none; positions come from all executors."""
    tiling = Tiling.of(reading.zones)
    if tiling is not None:
        found = map_chunks(engine, frame, BOXES, boxes_of, source, columns, tiling.h3)
        sides = ", ".join(f"{how}({name}) AS {name}" for name, how in JOINED.items())
        boxes = engine.gather(engine.sql(f"SELECT {sides}, cell FROM {{found}} GROUP BY cell", found=found)).to_pylist()
        here = [PointCover(Reach(*(b[name] for name in JOINED)), frozenset(filter(None, [b["cell"]]))) for b in boxes]
        return zones_covering(here, tiling, source.name)
    given = given_zones(columns, reading.zones, reading.zone_id, notes)
    if given is None and not columns.by_id:
        raise InputError(f"coordinates need zones; give {Option('zones')}, such as grid:500m.")
    return given


def _stations(
    engine: SparkEngine, frame: Frame, source: Source, columns: OdColumns, reading: FlowReading, notes: ReadNotes
) -> Zones | None:
    """Return the Voronoi cells of the stations in the data; None if ids have no coordinates, or not one position each."""
    places = station_columns(source, columns, by_role({role: getattr(reading, role) for role in NAMED}, source))
    if places is None:
        return None
    needed = [columns.origin, columns.destination, *places.values()]
    used = frame.select(*[quoted(c) for c in dict.fromkeys(needed) if c is not None])
    found = map_chunks(engine, used, POSITIONS, positions_of, source, columns, places)
    counts = engine.gather(
        engine.sql(
            f"SELECT id, lon, lat, sum(n) AS n FROM {{found}} GROUP BY id, lon, lat LIMIT {MAX_POSITIONS + 1}",
            found=found,
        )
    )
    return zones_of_positions(counts if len(counts) <= MAX_POSITIONS else None, columns, notes)


def _named_zones(engine: SparkEngine, frame: Frame, source: Source, columns: OdColumns) -> Zones:
    """Return zones without positions, from the ids in the data."""
    names = map_chunks(engine, frame, ZONE_NAMES, zone_names_of, source, columns)
    return zones_named(engine.gather(engine.sql("SELECT DISTINCT name FROM {names}", names=names))["name"].to_pylist())


def _frame(zones: Zones, reading: FlowReading, columns: OdColumns, notes: ReadNotes) -> Flows:
    none = np.zeros(0, np.int64)
    counts: FlowUnit = "people" if columns.user is not None or columns.people is not None else "trips"
    nowhere = none.astype(np.int32)
    weight = None if columns.weight is None else none
    empty = Flows(
        zones, none, np.zeros(1, np.int64), nowhere, nowhere, none, none, counts, tz=reading.tz, weight=weight
    )
    frame = empty if reading.hierarchy is None else with_tree(empty, reading.hierarchy)
    frame = with_pois(frame, reading.pois, notes)
    return with_partition(frame, reading.partition)


def _settle(said: dict[str, int], reader: TripReader, reading: FlowReading, notes: ReadNotes) -> None:
    """Raise because of bad rows, or note them; note how times were read."""
    problems = Problems()
    for note, n in sorted(said.items()):
        if note.startswith(BAD):
            problems.add_count(note.removeprefix(BAD), n, [])
    settle_zone(said, reader.source, reader.columns.time, reader.tz, notes)
    settle_clock(said, reader.columns.time, reader.tz, notes)
    problems.settle(reader.source.name, reading.drop_invalid, notes)
