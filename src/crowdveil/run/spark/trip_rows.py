"""Rows of trips and flows on executors: from chunks of the input to packed rows, and from those of a partition to flows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine.packing import PACK_ROWS, in_runs, packed, unpacked
from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.od_grouping import regroup, to_flows
from crowdveil.io.od_rows import OdReader, ZoneNames
from crowdveil.io.person_ids import id_type
from crowdveil.io.source import MISSING, Source
from crowdveil.io.stations import positions
from crowdveil.io.tiling import find_cover
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.values import encode_ids
from crowdveil.io.weights import SUMS
from crowdveil.model.arrays import Sent
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Reach
from crowdveil.model.time_axis import TimeAxis
from crowdveil.model.zones import Zones

BAD, INSTANTS, WALLS, SKIPPED, TWICE = "bad:", "instants", "walls", "skipped", "twice"
"""Notes among the rows: unusable rows, by reason; whether times have a zone; and local times that a clock skipped or showed
twice."""


MOST_LEFT = 0.8
"""Share of rows that may be left at most, so that adding up equal rows before they are sent is worth it."""
PACKED_TRIPS = pa.schema(
    [("step", pa.int64()), ("note", pa.string()), ("size", pa.int64()), ("crowd", pa.int64()), ("packed", pa.binary())]
)
"""Packed rows of one step: how many rows, and their people (an upper bound where people have no ids), or their trips where people
are not known. A note has nothing else but its count, as the size."""


@dataclass(frozen=True)
class TripReader(Sent):
    """Packs chunks of the input by time step: the columns step, o, d, person, n, rows, people and weight, those that exist.

    A row stands for `n` trips.
    """

    source: Source
    columns: OdColumns
    zones: Zones
    tz: str
    form: TimeForm
    steps: TimeAxis | None
    came_up: bool = False
    """Whether the zones are the names in the data."""

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of packed rows."""
        fields = [("step", pa.int64()), ("o", pa.int32()), ("d", pa.int32())]
        if self.columns.user is not None:
            fields.append(("person", id_type(self.source.schema.field(self.columns.user).type)))
        fields.append(("n", pa.int64()))
        if self.columns.is_flows:
            fields.append(("rows", pa.int64()))
        if self.columns.people is not None:
            fields.append(("people", pa.int64()))
        if self.columns.weight is not None:
            fields.append(("weight", SUMS))
        return pa.schema(fields)

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the packed rows of chunks, and notes."""
        names = ZoneNames(self.zones, from_data=self.came_up)
        reader = OdReader(self.source, self.columns, names, self.tz, self.form, ReadNotes())
        held: list[pa.RecordBatch] = []
        notes: dict[str, int] = {}
        left = 0.0
        for batch in chunks:
            if batch.num_rows == 0:
                continue
            chunk = reader.prepare(0, without_missing(self.source, batch))
            if "part" in chunk.rows.schema.names and pc.max(chunk.rows["part"]).as_py():
                raise InputError(self.source.name, "Expected whole volumes on Spark, got fractions. Round them.")
            held.append(self._keyed(chunk.rows))
            for reason, n in chunk.problems.count.items():
                notes[BAD + reason] = notes.get(BAD + reason, 0) + n
            if chunk.instants is not None:
                notes[INSTANTS if chunk.instants else WALLS] = 1
            for note, n in ((SKIPPED, chunk.skipped), (TWICE, chunk.twice)):
                if n:
                    notes[note] = notes.get(note, 0) + n
            if sum(rows.num_rows for rows in held) >= PACK_ROWS:
                packs, left = self._packs(held, left)
                yield packs
                held = []
        if held:
            yield self._packs(held, left)[0]
        if notes:
            nothing: list[Any] = [None] * len(notes)
            yield record_batch([nothing, [*notes], [*notes.values()], nothing, nothing], PACKED_TRIPS)

    def _packs(self, held: list[pa.RecordBatch], left: float) -> tuple[pa.RecordBatch, float]:
        """Return the packed rows of chunks, and the share of rows that are left where equal ones are added up.

        That is done only if few enough were `left` of the rows before: it takes as long as reading them.
        """
        rows = pa.Table.from_batches(held, self.schema)
        if left < MOST_LEFT:
            n, rows = len(rows), self._combined(rows)
            left = len(rows) / max(n, 1)
        of_people = next((name for name in ("person", "people") if name in rows.column_names), "n")
        packed_rows = []
        for step, run in in_runs(rows, rows["step"].to_numpy()):
            crowd = pc.count_distinct(run["person"]) if of_people == "person" else pc.sum(run[of_people])
            packed_rows.append((step, None, run.num_rows, crowd.as_py(), packed(run)))
        columns = list(zip(*packed_rows, strict=True)) or [()] * len(PACKED_TRIPS)
        return record_batch(columns, PACKED_TRIPS), left

    def _combined(self, rows: pa.Table) -> pa.Table:
        """Add up rows with equal keys, since all rows go over the network."""
        keys = [name for name in ("step", "o", "d", "person") if name in rows.column_names]
        sums = [name for name in rows.column_names if name not in keys]
        made = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in sums])
        return made.rename_columns({f"{name}_sum": name for name in sums}).select(self.schema.names).cast(self.schema)

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
        return filled_batch(self.schema, n, made)


@dataclass(frozen=True)
class ChunkReader:
    """Makes columns of each chunk of the input with a function; sent to executors."""

    columns: Callable[[pa.RecordBatch], list[Any]]
    schema: pa.Schema

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the columns of each chunk."""
        for chunk in chunks:
            yield record_batch(self.columns(chunk), self.schema)


TILES = pa.schema([("tile", pa.int32())])
PEOPLE = pa.schema([("person", pa.string()), ("lower", pa.string())])
ZONE_NAMES = pa.schema([("name", pa.string())])
POSITIONS = pa.schema([("id", pa.string()), ("lon", pa.float64()), ("lat", pa.float64()), ("n", pa.int64())])
BOXES = pa.schema([*((side.name, pa.float64()) for side in fields(Reach)), ("cell", pa.string())])


def tiles_of(rows: pa.Schema, chunk: pa.RecordBatch) -> list[Any]:
    """Return the tiles that packed trips start or end in."""
    trips = unpacked(chunk["packed"].drop_null(), rows)
    return [np.unique(np.concatenate([trips[end].to_numpy() for end in "od"]))]


def people_of(rows: pa.Schema, chunk: pa.RecordBatch) -> list[Any]:
    """Return the people of packed rows, with their ids in lower case."""
    people = pc.unique(unpacked(chunk["packed"].drop_null(), rows)["person"]).cast(pa.string())
    return [people, pc.utf8_lower(people)]


def zone_names_of(source: Source, columns: OdColumns, chunk: pa.RecordBatch) -> list[Any]:
    """Return the names of zones."""
    plain = without_missing(source, chunk)
    return [sorted({str(x) for column in (columns.origin, columns.destination) for x in encode_ids(plain[column])[1]})]


def positions_of(source: Source, columns: OdColumns, places: dict[str, str], chunk: pa.RecordBatch) -> list[Any]:
    """Return ids of zones with their positions, and the rows of each."""
    found = positions(without_missing(source, chunk), columns, places, source.name)
    return [found[name] for name in POSITIONS.names]


def boxes_of(source: Source, columns: OdColumns, h3: int | None, chunk: pa.RecordBatch) -> list[Any]:
    """Return the bounding box of positions, with each of their H3 cells."""
    found = find_cover(without_missing(source, chunk), columns, source.name, h3)
    cells: list[str | None] = [*sorted(found.cells)] or [None]
    return [*([side] * len(cells) for side in astuple(found.reach)), cells]


@dataclass(frozen=True)
class FlowPartitionReader(Sent):
    """Reads the flows of a partition of whole time steps from packed rows; sent to executors.

    Attributes
    ----------
    rows
        The columns of packed rows.
    steps
        How time is divided.
    frame
        Flows without rows: what all partitions have in common.
    members
        Whether the person ids of each flow are kept.
    """

    rows: pa.Schema
    steps: TimeAxis | None
    frame: Flows
    members: bool

    def __call__(self, partition: pa.Table) -> Flows | None:
        """Return the flows; None where all volumes are rounded to 0."""
        frame = self.frame
        grouped = regroup(unpacked(partition["packed"], self.rows), members=self.members)
        try:
            flows = to_flows(grouped, frame.zones, None, self.steps, frame.k_unit == "people", None)
        except InputError:  # no row is left; another partition may have some
            return None
        return replace(
            flows, step_s=frame.step_s, origin_tree=frame.origin_tree, destination_tree=frame.destination_tree,
            visited_tiles=frame.visited_tiles, partition=frame.partition, pois=frame.pois,
        )  # fmt: skip

    def weight(self, partition: pa.Table) -> int:
        """Return the weight of all trips of a partition, in units; 0 where they have no weights."""
        if "weight" not in self.rows.names:
            return 0
        return int(pc.sum(unpacked(partition["packed"], self.rows)["weight"]).as_py() or 0)


@dataclass(frozen=True)
class RepeatedPairs:
    """Counts pairs of zones that have several rows in a time step."""

    rows: pa.Schema
    schema = pa.schema([("repeated", pa.int64())])

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the count as one row."""
        rows = regroup(unpacked(partition["packed"], self.rows), members=False)["rows"].to_numpy()
        return pa.table({"repeated": [int((rows > 1).sum())]}, schema=self.schema)


def without_missing(source: Source, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a chunk of a CSV with nulls in place of the words for missing values, as our parser does."""
    if source.delimiter is None:
        return batch
    words = pa.array(MISSING)
    # Not if_else, whose result has offsets out of bounds for a part of a column in pyarrow 22.
    columns = [pc.replace_with_mask(c, pc.is_in(c, words), pa.scalar(None, c.type)) for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def filled_batch(schema: pa.Schema, n: int, made: dict[str, Any]) -> pa.RecordBatch:
    """Return `n` rows from columns by name; those that are not given are null."""
    columns = [_column(made[f.name], f.type) if f.name in made else pa.nulls(n, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def record_batch(columns: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows from the values of each column of a schema: lists, arrays, or columns of tables, which have chunks."""
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def _column(values: Any, kind: Any) -> Any:
    return pa.array(values, kind) if isinstance(values, np.ndarray | list) else values.cast(kind)
