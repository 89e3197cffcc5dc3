"""Group rows of trips or flows by time step, origin and destination, out of core, and sort the groups as `Flows`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, counted
from crowdveil.io.duckdb_engine import duckdb_errors, engine_for_rows, fetch
from crowdveil.io.od_rows import OdReader
from crowdveil.io.sorted_flows import flows_in_order, read_in_order
from crowdveil.io.values import encode_ids
from crowdveil.io.weights import read_weight_sums
from crowdveil.model.arrays import Indices, Ints, row_slices
from crowdveil.model.flows import WEIGHT_UNITS, Flows, FlowUnit, rounded
from crowdveil.model.time_axis import TimeAxis
from crowdveil.model.zones import Zones


def group_sql(step: str, rows: str, columns: Collection[str]) -> str:
    """Return SQL that counts trips, people and weights by step, origin and destination.

    With "members" in `columns`, person ids are listed too. With "n", a row stands for n trips.
    """
    trips = "sum(n)" if "n" in columns else "count(*)"
    weight = ", sum(weight)::DECIMAL(38, 0) AS weight" if "weight" in columns else ""
    if "person" not in columns:
        return (
            f"SELECT {step} AS step, o, d, {trips}::BIGINT AS trips, false AS bad{weight} FROM {rows} GROUP BY 1, 2, 3"
        )
    # Two nested groupings can spill to disk, where count(DISTINCT) holds sets in memory.
    outer = weight + (", list(person) AS members" if "members" in columns else "")
    return (
        "SELECT step, o, d, sum(n)::BIGINT AS trips, count(person) AS people, count(*) > count(person) AS bad"
        f"{outer} FROM (SELECT {step} AS step, o, d, person, {trips} AS n{weight} FROM {rows} "
        "GROUP BY 1, 2, 3, 4) GROUP BY 1, 2, 3"
    )


def read_in_chunks(reader: OdReader, seconds: int | None, own_steps: bool, drop_invalid: bool, members: bool) -> Flows:
    """Read flows from rows that Python must prepare: text, coordinates, volumes, or zones found while reading."""
    columns, zones, flows = reader.columns, reader.names.zones, None
    own_steps = own_steps and columns.is_flows and columns.time is not None
    seconds = 1 if own_steps else seconds
    steps = TimeAxis(seconds, reader.tz) if seconds and columns.time else None
    if columns.is_flows and columns.user is None and zones is not None:
        flows = read_in_order(reader, zones, steps)
        if flows is not None:
            reader.problems.settle(reader.source.name, drop_invalid, reader.notes)
    if flows is None:
        # Unsorted rows are mostly unsorted from the start, so little is read twice.
        flows = _group_chunks(replace(reader), steps, drop_invalid, members)
    return with_inferred_steps(flows) if own_steps else flows


def _group_chunks(reader: OdReader, steps: TimeAxis | None, drop_invalid: bool, members: bool) -> Flows:
    """Return flows from all rows of a reader, in any order."""
    columns, name = reader.columns, reader.source.name
    grouped = _group_rows(reader, steps, members)
    reader.problems.settle(name, drop_invalid, reader.notes)
    known, final = reader.names.finish()
    if columns.is_flows and columns.people is not None and columns.user is None and len(grouped):
        refuse_repeated(int((grouped["rows"].to_numpy() > 1).sum()), name)
    flows = to_flows(grouped, known, final, steps, columns.user is not None or columns.people is not None, name)
    return flows if columns.user is None else replace(flows, distinct_people=reader.count_people())


def refuse_repeated(repeated: int, name: str) -> None:
    """Raise if counts of people of several rows would have to be added up."""
    if repeated:
        raise InputError(
            name,
            f"{counted(repeated, 'pair')} of zones have several rows in a time step, and people of different rows "
            "cannot be added up; give one row for each pair and step, or remove the column of people.",
        )


def _group_rows(reader: OdReader, steps: TimeAxis | None, members: bool) -> pa.Table:
    """Group all rows of a reader in DuckDB."""
    columns, name, batches = reader.columns, reader.source.name, reader.batches()
    first = next(batches, None)
    if first is None:
        raise InputError(name, "there are no rows; wanted at least one.")
    second = next(batches, None)
    schema = _with_steps(first, steps).schema
    failed: list[BaseException] = []

    def stream() -> Iterator[pa.RecordBatch]:
        # DuckDB keeps only the text of an error, so the error itself is kept here.
        try:
            for batch in chain([first, second] if second is not None else [first], batches):
                yield _with_steps(batch, steps).cast(schema)
        except BaseException as error:
            failed.append(error)
            raise

    names = [*schema.names, "members"] if members else schema.names
    sql = _sum_volumes(names, "volume", "count(*)") if columns.is_flows else group_sql("step", "rows", names)
    with engine_for_rows(len(first) if second is None else None) as connection, duckdb_errors(name, failed):
        connection.register("rows", pa.RecordBatchReader.from_batches(schema, stream()))
        return fetch(connection, sql)


def _with_steps(rows: pa.RecordBatch, steps: TimeAxis | None) -> pa.RecordBatch:
    """Return prepared rows with their time step in place of the local time."""
    if steps is None:
        return rows.append_column("step", pa.array(np.zeros(len(rows), np.int64)))
    return rows.drop_columns(["wall"]).append_column("step", pa.array(steps.number(rows["wall"].to_numpy())))


def _sum_volumes(columns: Collection[str], volume: str, rows: str) -> str:
    people = ", sum(people)::BIGINT AS people" if "people" in columns else ""
    if "person" in columns:  # the volume of a row is one person's
        people = ", count(DISTINCT person) AS people"
    return (
        f"SELECT step, o, d, sum({volume})::BIGINT AS trips, {rows}::BIGINT AS rows{people} FROM rows "
        f"WHERE {volume} > 0 GROUP BY 1, 2, 3"
    )


def regroup(rows: pa.Table, *, members: bool, threads: int | None = 1) -> pa.Table:
    """Group rows in memory that have their step, and stand for `n` trips each where they were grouped in chunks before.

    It uses one thread by default, since it is called in parallel; all of this process with None.
    """
    names = [*rows.column_names, "members"] if members and "person" in rows.column_names else rows.column_names
    of_flows = "rows" in names
    sql = _sum_volumes(names, "n", "sum(rows)") if of_flows else group_sql("step", "rows", names)
    with engine_for_rows(len(rows), threads) as connection, duckdb_errors("trips"):
        connection.register("rows", rows)
        return fetch(connection, sql)


def with_inferred_steps(flows: Flows) -> Flows:
    """Return flows whose times are their steps; the step length is the shortest difference of two times."""
    length = int(np.diff(flows.t).min()) if flows.steps > 1 else 3600
    return replace(flows, step_s=length)


def to_flows(
    grouped: pa.Table, zones: Zones, final: Indices | None, steps: TimeAxis | None, with_people: bool, name: str | None
) -> Flows:
    """Return grouped rows as `Flows`, sorted by step, origin and destination.

    One column after the other is put in order and its source freed, so that many flows need little more memory than the model.
    """
    weighted, with_members = "weight" in grouped.column_names, "members" in grouped.column_names
    columns = {column: grouped[column].to_numpy() for column in ("step", "o", "d")}
    columns["volume"] = (
        read_weight_sums(grouped["weight"], name or "trips") if weighted else grouped["trips"].to_numpy()
    )
    if with_people or weighted:
        columns["people"] = grouped["people" if with_people else "trips"].to_numpy()
    lists = grouped["members"] if with_members else None
    del grouped
    if final is not None and len(columns["o"]):
        columns |= {end: final[columns[end]] for end in "od"}
    kept = columns["volume"] > 0
    if "people" in columns:
        kept &= columns["people"] > 0
    if not kept.all():
        columns = {column: values[kept] for column, values in columns.items()}
        lists = None if lists is None else lists.filter(pa.array(kept))
    del kept
    if len(columns["o"]) == 0:
        raise InputError(name or "trips", "no row can be used, or all volumes are zero; wanted at least one.")
    order = _order(columns["step"], columns["o"], columns["d"], len(zones))
    for column, values in columns.items():
        # Any other mode than "raise" writes to the new column without a copy; `order` is inside of the column.
        columns[column] = values[order]
    del values
    step, o, d, volume = (columns[column] for column in ("step", "o", "d", "volume"))
    people = columns.get("people", volume)
    members = (None, None) if lists is None else _members(lists.take(pa.array(order)))
    starts = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
    counts: FlowUnit = "people" if with_people else "trips"
    offsets, weights = np.append(starts, len(step)), volume if weighted else None
    trips = rounded(volume // WEIGHT_UNITS, volume % WEIGHT_UNITS, offsets) if weighted else volume
    flows = flows_in_order(zones, steps, step[starts], offsets, (o, d, trips, people), counts, members, weights)
    return without_empty_steps(flows, name) if weighted else flows


def without_empty_steps(flows: Flows, name: str | None) -> Flows:
    """Return weighted flows without the time steps whose volumes are all rounded to 0."""
    filled = np.add.reduceat(flows.volume, flows.offsets[:-1]) > 0
    if filled.all():
        return flows
    if not filled.any():
        refuse_tiny_weights(name or "trips")
    kept = flows.at_steps(np.flatnonzero(filled))
    return replace(kept, dropped_weight=flows.exact_units - kept.exact_units)


def refuse_tiny_weights(name: str) -> NoReturn:
    """Raise because the weights of all time steps are rounded to nothing."""
    raise InputError(name, "the weights of every time step add up to less than half a trip; check them.")


def _members(lists: Any) -> tuple[Ints, Ints]:
    """Return lists of person ids as offsets and numbers, ascending inside each list."""
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    number, _, _ = encode_ids(lists.flatten())
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return offsets, number[np.lexsort((number, row_slices(offsets)))].astype(np.int64)


def _order(step: Ints, o: Indices, d: Indices, zones: int) -> Ints:
    """Return the row order by step, origin and destination."""
    return np.lexsort((o.astype(np.int64) * zones + d, step))
