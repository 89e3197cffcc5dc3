"""Trips and flows on a cluster: rows to step, origin, destination and person where they lie, then grouped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.distributed.sources import (
    BAD,
    INSTANTS,
    WALLS,
    quoted,
    readable,
    settle_zone,
    source_of,
    without_missing,
)
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, counted
from crowdveil.io.flows import by_place, step_of, with_trees
from crowdveil.io.grouping import to_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, OdReader, Problems, ZoneNames, find_od_columns, zones_named
from crowdveil.io.source import Source
from crowdveil.io.steps import Steps
from crowdveil.io.tiling import Places, given_zones, places_in, zones_around
from crowdveil.io.values import codes, ids_of
from crowdveil.model.arrays import Ints, refrozen
from crowdveil.model.flows import FlowCounts, Flows
from crowdveil.model.zones import Zones
from crowdveil.reading import FlowReading


@dataclass(frozen=True)
class TripReader:
    """Pieces of the input as rows with the columns step, o, d, person, n, rows, people, weight (those that exist) and note.

    A row stands for `n` trips. Where there is a note, there is nothing else but how often it is to be said.
    """

    source: Source
    columns: OdColumns
    zones: Zones
    tz: str
    time_format: str | None
    steps: Steps | None
    came_up: bool = False
    """Whether the zones are the names in the data."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        refrozen(self.zones)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        fields = [("step", pa.int64()), ("o", pa.int32()), ("d", pa.int32())]
        if self.columns.user is not None:
            kind = ids_of(pa.array([], self.source.schema.field(self.columns.user).type), "users").type
            fields.append(("person", kind))
        fields.append(("n", pa.int64()))
        if self.columns.is_flows:
            fields.append(("rows", pa.int64()))
        if self.columns.people is not None:
            fields.append(("people", pa.int64()))
        if self.columns.weight is not None:
            fields.append(("weight", pa.float64()))
        return pa.schema([*fields, ("note", pa.string())])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of pieces, and what is to be noted of each."""
        names = ZoneNames(self.zones, came_up=self.came_up)
        reader = OdReader(self.source, self.columns, names, self.tz, self.time_format, ReadNotes())
        for batch in pieces:
            if batch.num_rows == 0:
                continue
            piece = reader.prepare(0, without_missing(self.source, batch))
            yield from self._combined(self._keyed(piece.rows))
            notes = {BAD + reason: n for reason, n in piece.problems.count.items()}
            if piece.instants is not None:
                notes[INSTANTS if piece.instants else WALLS] = 1
            if notes:
                yield self._noted(notes)

    def _combined(self, rows: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The same with equal ones together: whatever is left goes over the network."""
        keys = [name for name in ("step", "o", "d", "person") if name in rows.schema.names]
        sums = [name for name in rows.schema.names if name not in (*keys, "note")]
        made = pa.Table.from_batches([rows]).group_by(keys).aggregate([(name, "sum") for name in sums])
        made = made.rename_columns({f"{name}_sum": name for name in sums})
        made = made.append_column("note", pa.nulls(len(made), pa.string())).select(self.schema.names)
        batches: list[pa.RecordBatch] = made.cast(self.schema).to_batches()
        return batches

    def _keyed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.columns.is_flows:
            rows = rows.filter(pc.greater(rows["volume"], 0))
        n = rows.num_rows
        zeros = np.zeros(n, np.int64)
        step = zeros if self.steps is None else self.steps.number(rows["wall"].to_numpy())
        made: dict[str, Any] = {"step": step, "o": rows["o"], "d": rows["d"], "n": zeros + 1}
        if self.columns.is_flows:
            made |= {"n": rows["volume"], "rows": zeros + 1}
        for name in ("person", "people", "weight"):
            if name in rows.schema.names:
                made[name] = rows[name]
        columns = [_column(made[f.name], f.type) if f.name in made else pa.nulls(n, f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _noted(self, notes: dict[str, int]) -> pa.RecordBatch:
        made = {"n": pa.array(list(notes.values()), pa.int64()), "note": pa.array(list(notes), pa.string())}
        columns = [made[f.name] if f.name in made else pa.nulls(len(notes), f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class NameReader:
    """Pieces of the input as the names of zones in them."""

    source: Source
    columns: OdColumns
    schema = pa.schema([("name", pa.string())])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Names, each once a piece."""
        for batch in pieces:
            plain = without_missing(self.source, batch)
            names = {
                str(x) for column in (self.columns.origin, self.columns.destination) for x in codes(plain[column])[1]
            }
            yield pa.RecordBatch.from_pydict({"name": sorted(names)}, schema=self.schema)


@dataclass(frozen=True)
class PlaceReader:
    """Pieces of the input as the box around their places, and the cells of H3 that these lie in."""

    source: Source
    columns: OdColumns
    h3: int | None
    schema = pa.schema([(side, pa.float64()) for side in ("west", "south", "east", "north")] + [("cell", pa.string())])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The box of each piece, beside each of its cells."""
        for batch in pieces:
            found = places_in(without_missing(self.source, batch), self.columns, self.source.name, self.h3)
            cells: list[str | None] = [*sorted(found.cells)] or [None]
            columns = [pa.array([side] * len(cells)) for side in found.box]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(cells, pa.string())], schema=self.schema)


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


@dataclass(frozen=True)
class PartReader:
    """From the rows of some whole time steps to their flows; sent to executors."""

    counts: FlowCounts
    steps: Steps | None
    step_s: int | None
    frame: Flows

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for model in (self.frame, self.frame.zones, self.frame.origin_tree, self.frame.destination_tree):
            if model is not None:
                refrozen(model)

    def __call__(self, part: pa.Table) -> Flows | None:
        """The flows; None where all volumes are rounded to nothing."""
        frame, people = self.frame, self.counts == "people"
        try:
            flows = to_flows(part.combine_chunks(), frame.zones, None, self.steps, people, None)
        except InputError:  # no row is left; another part may have some
            return None
        return replace(
            flows, step_s=self.step_s, origin_tree=frame.origin_tree, destination_tree=frame.destination_tree,
            visited_tiles=frame.visited_tiles,
        )  # fmt: skip


def read_trips_there(
    engine: SparkEngine, data: Any, reading: FlowReading, notes: ReadNotes, *, members: bool
) -> TripsThere:
    """Read and group trips or flows on the cluster; with `members`, keep who is behind each flow.

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
    settle_zone(said, reader.source, reader.columns.time, reader.tz, notes)
    problems.settle(reader.source.name, reading.drop_invalid, notes)


def _column(values: Any, kind: Any) -> Any:
    return pa.array(values, kind) if isinstance(values, np.ndarray) else values.cast(kind)
