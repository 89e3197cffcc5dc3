"""Group rows of trips or flows by time step, origin and destination, out of core, and sort the groups as `Flows`.

Rows that are more than fit in memory, or that are read a few time steps at a time, are first written to a file of DuckDB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import EmptyInputError, InputError, counted
from crowdveil.io.duckdb_engine import duckdb_errors, engine, execute, fetch
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdReader
from crowdveil.io.person_ids import count_case_variants, note_case_variants
from crowdveil.io.times import refuse_spread
from crowdveil.io.values import encode_ids, read_weight_sums
from crowdveil.model.arrays import Indices, Ints, Mask, ranks, row_slices
from crowdveil.model.flows import WEIGHT_UNITS, Flows, rounded
from crowdveil.model.time_axis import TimeAxis, shortest_step
from crowdveil.model.zones import Zones

MAX_ROWS = 16_000_000
"""Trips with people that are grouped at once, in about 1 GB."""


def group_sql(rows: str, columns: Collection[str]) -> str:
    """Return SQL that adds up trips, people and weights by step, origin and destination.

    With the column n, a row stands for n trips, and with the column part for a part of one more. With "members" in `columns`, the
    ids of people are listed too.
    """
    trips = "sum(n)" if "n" in columns else "count(*)"
    sums = ", sum(weight)::DECIMAL(38, 0) AS weight" if "weight" in columns else ""
    sums += ", sum(part)::BIGINT AS part" if "part" in columns else ""
    if "person" in columns:
        # Two nested groupings can spill to disk, where count(DISTINCT) holds sets in memory.
        members = ", list(person) AS members" if "members" in columns else ""
        return (
            f"SELECT step, o, d, sum(n)::BIGINT AS trips, count(*) AS people{sums}{members} FROM "
            f"(SELECT step, o, d, person, {trips} AS n{sums} FROM {rows} GROUP BY 1, 2, 3, 4) GROUP BY 1, 2, 3"
        )
    people = ", sum(people)::BIGINT AS people, count(*) AS rows" if "people" in columns else ""
    return f"SELECT step, o, d, {trips}::BIGINT AS trips{people}{sums} FROM {rows} GROUP BY 1, 2, 3"


class FlowGrouping:
    """Groups the usable rows of a reader as flows: all rows at once, or those of some time steps from a file.

    Parameters
    ----------
    reader
        Reader of the rows.
    seconds
        Length of a time step; None for one matrix.
    own_steps
        Whether the times of flows are their time steps.
    drop_invalid
        Whether rows that cannot be used are dropped.
    """

    def __init__(self, reader: OdReader, seconds: int | None, own_steps: bool, drop_invalid: bool) -> None:
        columns = reader.columns
        self.reader, self.drop_invalid = reader, drop_invalid
        self.own_steps = own_steps and columns.is_flows and columns.time is not None
        seconds = 1 if self.own_steps else seconds
        self.steps = TimeAxis(seconds, reader.tz) if seconds and columns.time else None
        self.people: int | None = None
        """Number of distinct people in the usable rows; None where people are not known."""
        self._columns: list[str] = []
        self._failed: list[BaseException] = []

    def flows(self, *, members: bool) -> Flows:
        """Return all rows as flows."""
        with engine() as connection, self._errors():
            self._register(connection)
            rows = "stream"
            if "person" in self._columns:  # kept, to be read again for the number of people
                self._keep(connection, "FROM stream")
                rows = "rows"
            grouped = self.groups(connection, rows, self.reader.notes.rows, members=members)
        self.reader.settle(self.drop_invalid)
        flows = replace(self.as_flows(grouped, *self.reader.names.finish()), distinct_people=self.people)
        self._refuse_spread(flows.t)
        return replace(flows, step_s=shortest_step(flows.t, flows.tz)) if self.own_steps else flows

    def stage(self, folder: Path) -> StagedRows:
        """Write the usable rows to a file in a folder, sorted by time step."""
        path = folder / "rows.duckdb"
        with engine(database=path) as connection, self._errors():
            self._register(connection)
            self._keep(connection, "FROM stream ORDER BY step")
            sizes = fetch(connection, "SELECT step, count(*) AS size FROM rows GROUP BY step ORDER BY step")
        self.reader.settle(self.drop_invalid)
        staged = StagedRows(self, path, sizes["step"].to_numpy(), sizes["size"].to_numpy())
        self._refuse_spread(staged.starts)
        return staged

    def _register(self, connection: Any) -> None:
        """Give a connection the rows with their time steps as the table `stream`, which can be read once."""
        batches = (_keyed(batch, self.steps) for batch in self.reader.batches())
        first = next(batches, None)
        if first is None:
            raise InputError(self.reader.source.name, "there are no rows. Expected at least one.")
        self._columns = first.schema.names

        def stream() -> Iterator[pa.RecordBatch]:
            # DuckDB keeps only the text of an error, so the error itself is kept here.
            try:
                for batch in chain([first], batches):
                    yield batch.cast(first.schema)
            except BaseException as error:
                self._failed.append(error)
                raise

        connection.register("stream", pa.RecordBatchReader.from_batches(first.schema, stream()))

    def _keep(self, connection: Any, query: str) -> None:
        """Write the result of a query to the table `rows`, and count its people."""
        execute(connection, f"CREATE TABLE rows AS {query}")
        if "person" in self._columns:
            ids = fetch(connection, "SELECT DISTINCT person FROM rows")["person"]
            note_case_variants(count_case_variants(ids), self.reader.columns.user, self.reader.notes)
            self.people = len(ids)

    def groups(self, connection: Any, table: str, rows: int, *, members: bool) -> pa.Table:
        """Return the groups of a table or query, with the number of its rows at most.

        DuckDB spills a grouping to disk, but needs memory in proportion to its groups when it ends, and there are about as many
        groups of people as trips. So many trips with people are grouped in parts: all trips of a step and an origin are in one.
        """
        parts = max(-(-rows // MAX_ROWS), 1) if "person" in self._columns else 1
        names = _with_members(self._columns, members)
        return pa.concat_tables(
            fetch(connection, group_sql(f"(FROM {table} WHERE hash(step, o) % {parts} = {part})", names))
            for part in range(parts)
        )

    def _refuse_spread(self, t: Ints) -> None:
        reader = self.reader
        if len(t):
            refuse_spread(int(t[0]), int(t[-1]), reader.form, f"{reader.source.name}, column {reader.columns.time}")

    def _errors(self) -> AbstractContextManager[None]:
        return duckdb_errors(self.reader.source.name, self._failed)

    def as_flows(self, grouped: pa.Table, zones: Zones, final: Indices | None) -> Flows:
        """Return groups as flows; `final` is the zone of each index."""
        columns, name = self.reader.columns, self.reader.source.name
        if "rows" in grouped.column_names:
            refuse_repeated(int((grouped["rows"].to_numpy() > 1).sum()), name)
        if "part" in grouped.column_names and pc.max(grouped["part"]).as_py():
            note_fractions(self.reader.notes, f"volumes in column {columns.volume}")
            grouped = _rounded_volumes(grouped, final)
        with_people = columns.user is not None or columns.people is not None
        return to_flows(grouped, zones, final, self.steps, with_people, name)


class StagedRows:
    """The usable rows of a reader in a file of the engine, from which flows of some time steps are grouped.

    Attributes
    ----------
    zones
        The zones.
    starts, sizes
        Start of each time step, rising, and its number of rows.
    """

    def __init__(self, grouping: FlowGrouping, path: Path, numbers: Ints, sizes: Ints) -> None:
        self.zones, self._final = grouping.reader.names.finish()
        self.starts = grouping.steps.starts(numbers) if grouping.steps else numbers
        self.sizes = sizes
        self._grouping, self._path, self._numbers = grouping, path, numbers

    def flows(self, which: Mask, *, members: bool) -> Flows:
        """Return the flows of the time steps in `which`."""
        grouping, rows = self._grouping, int(self.sizes[which].sum())
        steps = f"(FROM rows WHERE step IN ({', '.join(map(str, self._numbers[which]))}))"
        with engine(database=self._path) as connection, duckdb_errors(grouping.reader.source.name):
            grouped = grouping.groups(connection, steps, rows, members=members)
        return grouping.as_flows(grouped, self.zones, self._final)


def _with_members(columns: list[str], members: bool) -> list[str]:
    return [*columns, "members"] if members else columns


def note_fractions(notes: ReadNotes, what: str) -> None:
    """Note how fractions of trips are read."""
    notes.add(
        f"{what} are fractions: they are rounded to whole trips in the order of the zones, and the rest of each is "
        "carried over to the next one."
    )


def _rounded_volumes(grouped: pa.Table, final: Indices | None) -> pa.Table:
    """Return groups with fractional volumes rounded in each time step, as weights are."""
    step, o, d, whole, part = (grouped[name].to_numpy() for name in ("step", "o", "d", "trips", "part"))
    if final is not None:
        o, d = final[o], final[d]
    order = np.lexsort((d, o, step))
    starts = np.flatnonzero(np.append(True, np.diff(step[order]) != 0))
    trips = np.empty(len(grouped), np.int64)
    trips[order] = rounded(whole[order], part[order], np.append(starts, len(order)))
    return grouped.set_column(grouped.column_names.index("trips"), "trips", pa.array(trips))


def refuse_repeated(repeated: int, name: str) -> None:
    """Raise if counts of people of several rows would have to be added up."""
    if repeated:
        raise InputError(
            name,
            f"{counted(repeated, 'pair')} of zones have several rows in a time step, and people of different rows "
            "cannot be added up. Give one row for each pair and step, or remove the column of people.",
        )


def _keyed(rows: pa.RecordBatch, steps: TimeAxis | None) -> pa.RecordBatch:
    """Return prepared rows with their time step and, as n, the trips that each stands for; drop rows without trips."""
    if "volume" in rows.schema.names:
        some = pc.greater(rows["volume"], 0)
        rows = rows.filter(pc.or_(some, pc.greater(rows["part"], 0)) if "part" in rows.schema.names else some)
    number = np.zeros(len(rows), np.int64) if steps is None else steps.number(rows["wall"].to_numpy())
    columns = {"n" if name == "volume" else name: rows[name] for name in rows.schema.names if name != "wall"}
    return pa.RecordBatch.from_pydict({"step": pa.array(number), **columns})


def group_in_memory(rows: pa.Table, *, members: bool) -> pa.Table:
    """Group rows in memory that have their step."""
    with engine() as connection, duckdb_errors("trips"):
        connection.register("rows", rows)
        return fetch(connection, group_sql("rows", _with_members(rows.column_names, members)))


def to_flows(
    grouped: pa.Table, zones: Zones, final: Indices | None, steps: TimeAxis | None, with_people: bool, name: str | None
) -> Flows:
    """Return grouped rows as `Flows`, sorted by step, origin and destination."""
    weighted = "weight" in grouped.column_names
    step, o, d = (grouped[column].to_numpy() for column in ("step", "o", "d"))
    if final is not None:
        o, d = final[o], final[d]
    volume = read_weight_sums(grouped["weight"], name or "trips") if weighted else grouped["trips"].to_numpy()
    people = grouped["people" if with_people else "trips"].to_numpy()
    kept = np.flatnonzero((volume > 0) & (people > 0))
    if len(kept) == 0:
        raise EmptyInputError(name or "trips", "no row can be used, or all volumes are zero. Expected at least one.")
    order = kept[_order(step[kept], o[kept], d[kept], len(zones))]
    step, o, d, volume, people = step[order], o[order], d[order], volume[order], people[order]
    members = _members(grouped["members"].take(pa.array(order))) if "members" in grouped.column_names else (None, None)
    starts = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
    offsets = np.append(starts, len(step))
    flows = Flows(
        zones,
        steps.starts(step[starts]) if steps else np.zeros(1, np.int64),
        offsets,
        o,
        d,
        rounded(volume // WEIGHT_UNITS, volume % WEIGHT_UNITS, offsets) if weighted else volume,
        people,
        "people" if with_people else "trips",
        steps.step_s if steps else None,
        steps.tz if steps else "UTC",
        person_offsets=members[0],
        person_ids=members[1],
        weight=volume if weighted else None,
    )
    return without_empty_steps(flows, name) if weighted else flows


def without_empty_steps(flows: Flows, name: str | None) -> Flows:
    """Return weighted flows without the time steps whose volumes are all rounded to 0."""
    filled = np.add.reduceat(flows.volume, flows.offsets[:-1]) > 0
    if filled.all():
        return flows
    if not filled.any():
        raise EmptyInputError(
            name or "trips",
            "the weights of every time step add up to less than half a trip. Check them.",
            units=flows.exact_units,
        )
    kept = flows.at_steps(np.flatnonzero(filled))
    return replace(kept, dropped_weight=flows.exact_units - kept.exact_units)


def _members(lists: Any) -> tuple[Ints, Ints]:
    """Return lists of person ids as offsets and numbers, ascending inside each list."""
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    number, _, _ = encode_ids(lists.flatten())
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return offsets, number[np.lexsort((number, row_slices(offsets)))].astype(np.int64)


def _order(step: Ints, o: Indices, d: Indices, zones: int) -> Ints:
    """Return the row order by step, origin and destination; one number a row sorts three times as fast as several."""
    number, _ = ranks(step)
    return np.argsort((number * zones + o) * zones + d)
