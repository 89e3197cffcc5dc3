"""Rows of trips or flows to sorted groups by step, origin and destination, in the engine and out of core."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crowdveil.errors import CrowdveilError, InputError, OutputError, counted
from crowdveil.io.engine import engine, fetch, literal, quoted
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, OdReader, Problems, ZoneNames
from crowdveil.io.ordered import flows_in_order, read_in_order
from crowdveil.io.parallel import side_by_side
from crowdveil.io.people_in_engine import EnginePeople
from crowdveil.io.person_ids import IdRules
from crowdveil.io.source import Source
from crowdveil.io.steps import Steps, wall_sql
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import FAR_FUTURE, Clock, far_reason, say_clock, say_zone
from crowdveil.io.values import codes
from crowdveil.io.weights import summed
from crowdveil.io.zone_ids import refuse_other_spelling
from crowdveil.model.arrays import Indices, Ints, frozen, row_slices
from crowdveil.model.flows import WEIGHT_UNITS, FlowCounts, Flows
from crowdveil.model.zones import Zones
from crowdveil.solve.od.weights import rounded

_LOOKED_AT = 100_000
"""Unknown zone ids that are looked at to find out why they are unknown."""
_SINCE_YEAR_1 = 62_135_596_800


def engine_can_read(source: Source, columns: OdColumns, zones: Zones) -> bool:
    """Whether rows can go from the file to the engine without passing through here: ids and native times only."""
    if not source.is_parquet or not columns.by_id or columns.is_flows or columns.weight is not None:
        return False
    if _engine_would_mistake(source):
        return False
    time_ok = columns.time is None or pa.types.is_timestamp(source.schema.field(columns.time).type)
    return (
        time_ok
        and all(_id_kind(source, c) is not None for c in (columns.origin, columns.destination))
        and (columns.user is None or _id_kind(source, columns.user) is not None)
        and len(zones) > 0
    )


def _engine_would_mistake(source: Source) -> bool:
    """Whether the engine takes the name of the file for a pattern, or two columns, or its own, for one."""
    lower = [c.lower() for c in (*source.columns, "file_row_number")]
    return len(set(lower)) < len(lower) or any(sign in str(source.path) for sign in "*?[")


def _id_kind(source: Source, column: str | None) -> str | None:
    kind = source.schema.field(column).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "BIGINT"
    return "VARCHAR" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def read_in_engine(
    source: Source,
    columns: OdColumns,
    zones: Zones,
    seconds: int | None,
    tz: str,
    form: TimeForm,
    ids: IdRules,
    drop_invalid: bool,
    members: bool,
    notes: ReadNotes,
) -> Flows:
    """Group a Parquet file of trips inside the engine; rows that cannot be used come out as groups without a key."""
    with engine(reading=source.path) as connection, _engine_errors(source.name):
        file = f"read_parquet({literal(str(source.path))}, file_row_number = true, hive_partitioning = false)"
        keys = {p: _register_ids(connection, source, p, getattr(columns, p), zones) for p in ("origin", "destination")}
        wall, far = _wall_expression(connection, source, columns, file, tz, form, notes)
        people = EnginePeople.of(connection, source, columns, file, ids)
        steps = Steps(seconds, tz) if seconds and wall else None
        step_sql = steps.number_sql("wall") if steps else "0::BIGINT"
        person = ("person", "members")[: 1 + members] if columns.user is not None else ()
        # Only columns of names that are given here: the file may have some that are called o, d or person itself.
        rows = (
            f"(SELECT f.file_row_number, f.{keys['origin']} AS o, f.{keys['destination']} AS d"
            f"{f', {wall} AS wall' if wall else ''}{f', {far} AS far' if far else ''}{people.column} FROM {file} f{people.join})"
        )
        # Zones are looked up for groups and not for trips, of which there are many more.
        grouped = fetch(connection, f"SELECT {_IN_ZONES.format(rows=f'({group_sql(step_sql, rows, person)})')}")
        if sum(grouped[c].null_count for c in ("step", "o", "d")) or grouped["bad"].to_numpy().any():
            _refuse_other_spelling(connection, rows, columns, zones, source.name)
            reasons, matched = _reasons(columns, wall, far), f"(SELECT {_IN_ZONES.format(rows=rows)})"
            _diagnose(connection, matched, reasons).settle(source.name, drop_invalid, notes)
            good = " AND ".join(f"NOT ({condition})" for condition in reasons.values())
            usable = f"(SELECT * FROM {matched} WHERE {good})"
            grouped = fetch(connection, group_sql(step_sql, usable, person))
            people = people.among(connection, usable)
    flows = to_flows(grouped, zones, None, steps, columns.user is not None, source.name)
    ids.warn(people.alike, columns.user, notes)
    return replace(flows, distinct_people=people.count)


_IN_ZONES = (
    "r.* REPLACE (zo.i AS o, zd.i AS d) FROM {rows} r "
    "LEFT JOIN ids_origin zo ON zo.id = r.o LEFT JOIN ids_destination zd ON zd.id = r.d"
)
"""SQL that puts zone indices in place of zone ids; NULL where there is no such zone."""


def _register_ids(connection: Any, source: Source, place: str, column: str, zones: Zones) -> str:
    """Make the table of zone ids for a column, in the column's own type, and return the column for SQL."""
    ids, index = list(zones.ids), np.arange(len(zones), dtype=np.int32)
    if _id_kind(source, column) == "BIGINT":
        # Only a number that reads as the id does can be meant by it: 7 is "7", and never "07".
        whole = [i for i in index.tolist() if _is_number(ids[i])]
        table = pa.table({"id": pa.array([int(ids[i]) for i in whole], pa.int64()), "i": pa.array(whole, pa.int32())})
    else:
        table = pa.table({"id": pa.array(ids, pa.string()), "i": pa.array(index)})
    connection.register(f"arrow_{place}", table)
    connection.sql(f"CREATE TEMP TABLE ids_{place} AS SELECT * FROM arrow_{place}")
    return quoted(column)


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 20 and str(int(text)) == text and -(2**63) <= int(text) < 2**63


def _wall_expression(
    connection: Any, source: Source, columns: OdColumns, file: str, tz: str, form: TimeForm, notes: ReadNotes
) -> tuple[str | None, str | None]:
    """SQL for the time on the wall, and for whether a time lies outside the years that are allowed, where some may."""
    if columns.time is None:
        return None, None
    kind = source.schema.field(columns.time).type
    # The engine divides towards zero, which before 1970 is the wrong way: every time is made positive for it.
    seconds = f"(epoch_us(f.{quoted(columns.time)}) + {_SINCE_YEAR_1 * 10**6}) // 1000000 - {_SINCE_YEAR_1}"
    if kind.tz is None:
        say_zone(notes, columns.time, tz)
    low, high = (
        _time_span(source, columns.time)
        or connection.sql(f"SELECT min(s), max(s) FROM (SELECT {seconds} AS s FROM {file} f)").fetchall()[0]
    )
    if low is None:
        return seconds, None
    if kind.tz is None:
        _say_odd_times(connection, seconds, file, Clock(tz), (low, high), columns.time, notes)
    wall = seconds if tz == "UTC" else wall_sql(seconds, instants=kind.tz is not None, tz=tz, low=low, high=high)
    if form.any_years or (low >= 0 and high < FAR_FUTURE):
        return wall, None
    far = f"({seconds} < 0 OR {seconds} >= {FAR_FUTURE})"
    # Such rows come out as groups without a key, as all that cannot be used.
    return f"CASE WHEN {far} THEN NULL ELSE {wall} END", far


def _say_odd_times(
    connection: Any, seconds: str, file: str, clock: Clock, span: tuple[int, int], column: str, notes: ReadNotes
) -> None:
    """Tell how many local times no clock showed, and how many it showed twice; only looked for where the clock was changed."""
    if clock.tz == "UTC" or not any(clock.turns(*span)):
        return
    counts = []
    for ranges in clock.turns(*span):
        inside = " OR ".join(f"s >= {low} AND s < {high}" for low, high in ranges) or "false"
        counts.append(f"count_if({inside})")
    found = connection.sql(f"SELECT {', '.join(counts)} FROM (SELECT {seconds} AS s FROM {file} f)").fetchall()[0]
    say_clock(notes, column, clock.tz, *(int(n) for n in found))


def _time_span(source: Source, column: str) -> tuple[int, int] | None:
    """The first and last time as the file's own statistics have it, a second wider; None where it has none."""
    with pq.ParquetFile(source.path) as file:
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        columns = [g.column(j) for g in groups for j in range(g.num_columns) if g.column(j).path_in_schema == column]
        try:
            bounds = [t for c in columns if c.is_stats_set for t in (c.statistics.min, c.statistics.max)]
        except (OverflowError, ValueError):  # a time that Python's datetime cannot hold
            return None
    if len(bounds) < 2 * len(groups) or not all(isinstance(t, datetime) for t in bounds):
        return None
    seconds = [calendar.timegm(t.utctimetuple()) for t in bounds]
    return min(seconds) - 1, max(seconds) + 1


def group_sql(step: str, rows: str, columns: Collection[str]) -> str:
    """SQL that counts trips, people and weights by step, origin and destination; with "members", lists the people too.

    With "n" a row stands for so many trips.
    """
    trips = "sum(n)" if "n" in columns else "count(*)"
    weight = ", sum(weight)::DECIMAL(38, 0) AS weight" if "weight" in columns else ""
    if "person" not in columns:
        return f"SELECT {step} AS step, o, d, {trips}::BIGINT AS trips, 0 AS bad{weight} FROM {rows} GROUP BY 1, 2, 3"
    # Counting people as the groups of a first grouping can spill to disk, where count(DISTINCT) holds sets in memory.
    outer = weight + (", list(person) AS members" if "members" in columns else "")
    return (
        "SELECT step, o, d, sum(n)::BIGINT AS trips, count(person) AS people, count(*) - count(person) AS bad"
        f"{outer} FROM (SELECT {step} AS step, o, d, person, {trips} AS n{weight} FROM {rows} "
        "GROUP BY 1, 2, 3, 4) GROUP BY 1, 2, 3"
    )


def _refuse_other_spelling(connection: Any, rows: str, columns: OdColumns, zones: Zones, name: str) -> None:
    """Raise if zone ids are not found because numbers are written in another way."""
    for place, short in (("origin", "o"), ("destination", "d")):
        missing = f"SELECT DISTINCT r.{short} AS id FROM {rows} r ANTI JOIN ids_{place} z ON z.id = r.{short}"
        unknown = fetch(
            connection, f"SELECT id::VARCHAR AS id FROM ({missing}) WHERE id IS NOT NULL LIMIT {_LOOKED_AT}"
        )
        refuse_other_spelling(unknown["id"].to_pylist(), zones, f"{name}, column {getattr(columns, place)}")


def _reasons(columns: OdColumns, wall: str | None, far: str | None) -> dict[str, str]:
    reasons = {
        f"name a zone that is not among the zones in column {columns.origin}": "o IS NULL",
        f"name a zone that is not among the zones in column {columns.destination}": "d IS NULL",
    }
    if far:
        reasons[far_reason(columns.time)] = "far"
    if wall:
        reasons[f"have no usable time in column {columns.time}"] = "wall IS NULL"
    if columns.user is not None:
        reasons[f"have no user in column {columns.user}"] = "person IS NULL"
    return reasons


def _diagnose(connection: Any, rows: str, reasons: dict[str, str]) -> Problems:
    """Count the bad rows by reason, each row under its first, and find the first rows of each."""
    problems, earlier = Problems(), "false"
    for reason, condition in reasons.items():
        where = f"FROM {rows} WHERE ({condition}) AND NOT ({earlier})"
        n = connection.sql(f"SELECT count(*) {where}").fetchall()[0][0]
        if n:
            first = connection.sql(f"SELECT file_row_number + 1 {where} ORDER BY 1 LIMIT 5").fetchall()
            problems.add_count(reason, n, [row for (row,) in first])
        earlier += f" OR ({condition})"
    return problems


@contextmanager
def _engine_errors(name: str, failed: Sequence[BaseException] = ()) -> Iterator[None]:
    """Turn the engine's errors into one sentence; those of our own that passed through it come out as they were."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        if failed:
            raise failed[0] from None
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from None
        raise _in_one_sentence(name, error) from None


def _in_one_sentence(name: str, error: Exception) -> CrowdveilError:
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(name, "grouping it needs more memory or temporary disk space than there is.")
    if "No space" in str(error):
        return OutputError(name, "the disk for temporary files is full; free some space, or set TMPDIR elsewhere.")
    return InputError(name, "the file is broken, or changed while it was read; write it anew.")


def read_piecewise(
    source: Source,
    columns: OdColumns,
    zones: Zones | None,
    own_steps: bool,
    seconds: int | None,
    tz: str,
    form: TimeForm,
    ids: IdRules,
    drop_invalid: bool,
    members: bool,
    notes: ReadNotes,
) -> Flows:
    """Flows from rows that must be looked at here first: text, coordinates, volumes, or zones that come up on the way."""
    own_steps = own_steps and columns.is_flows and columns.time is not None
    seconds = 1 if own_steps else seconds
    steps = Steps(seconds, tz) if seconds and columns.time else None
    new_reader = partial(OdReader, source, columns, ZoneNames(zones), tz, form, notes, ids)
    flows = None
    if columns.is_flows and columns.user is None and zones is not None:
        reader = new_reader()
        flows = read_in_order(reader, zones, steps)
        if flows is not None:
            reader.problems.settle(source.name, drop_invalid, notes)
    if flows is None:
        # Rows that are out of order are mostly so from the start: what was read until then is soon read again.
        flows = _group_pieces(new_reader(), steps, drop_invalid, members)
    return with_own_steps(flows) if own_steps else flows


def _group_pieces(reader: OdReader, steps: Steps | None, drop_invalid: bool, members: bool) -> Flows:
    """Flows from all rows of a reader, whatever their order."""
    columns, name = reader.columns, reader.source.name
    grouped = _grouped(reader, steps, members)
    reader.problems.settle(name, drop_invalid, reader.notes)
    known, final = reader.names.finish()
    summed = columns.is_flows and columns.people is not None and columns.user is None
    if summed and len(grouped):
        refuse_repeated(int((grouped["rows"].to_numpy() > 1).sum()), name)
    flows = to_flows(grouped, known, final, steps, columns.user is not None or columns.people is not None, name)
    return flows if columns.user is None else replace(flows, distinct_people=reader.count_people())


def refuse_repeated(repeated: int, name: str) -> None:
    """Raise if people of several rows would have to be added up."""
    if repeated:
        raise InputError(
            name,
            f"{counted(repeated, 'pair')} of zones have several rows in a time step, and people of different rows "
            "cannot be added up; give one row for each, or leave the column of people out.",
        )


def _grouped(reader: OdReader, steps: Steps | None, members: bool) -> pa.Table:
    """The groups of all rows of a reader."""
    columns, name, batches = reader.columns, reader.source.name, reader.batches()
    first = next(batches, None)
    if first is None:
        raise InputError(name, "there are no rows; wanted at least one.")
    schema = first.schema
    failed: list[BaseException] = []

    def stream() -> Iterator[pa.RecordBatch]:
        # An error inside here reaches the engine as text only, so it is kept to be raised as it was.
        try:
            yield first
            for batch in batches:
                yield batch.cast(schema) if batch.schema != schema else batch
        except BaseException as error:
            failed.append(error)
            raise

    step_sql = steps.number_sql("wall") if steps else "0::BIGINT"
    names = [*schema.names, "members"] if members else schema.names
    sql = (
        _sum_volumes(step_sql, names, "volume", "count(*)") if columns.is_flows else group_sql(step_sql, "rows", names)
    )
    with engine() as connection, _engine_errors(name, failed):
        connection.register("rows", pa.RecordBatchReader.from_batches(schema, stream()))
        return fetch(connection, sql)


def _sum_volumes(step: str, columns: Collection[str], volume: str, rows: str) -> str:
    people = ", sum(people)::BIGINT AS people" if "people" in columns else ""
    if "person" in columns:  # the volume of a row is one person's
        people = ", count(DISTINCT person) AS people"
    return (
        f"SELECT {step} AS step, o, d, sum({volume})::BIGINT AS trips, {rows}::BIGINT AS rows{people} FROM rows "
        f"WHERE {volume} > 0 GROUP BY 1, 2, 3"
    )


def regrouped(rows: pa.Table, *, members: bool) -> pa.Table:
    """Groups of rows that were read and put together before, piece by piece: each has its step, and stands for `n` trips.

    It takes one processor, since it is called where others work beside it.
    """
    names = [*rows.column_names, "members"] if members and "person" in rows.column_names else rows.column_names
    of_flows = "rows" in names
    sql = _sum_volumes("step", names, "n", "sum(rows)") if of_flows else group_sql("step", "rows", names)
    with engine(threads=1) as connection, _engine_errors("trips"):
        connection.register("rows", rows)
        return fetch(connection, sql)


def with_own_steps(flows: Flows) -> Flows:
    """Flows whose times are their steps: a step lasts as long as the shortest time between two."""
    length = int(np.diff(flows.t).min()) if flows.steps > 1 else 3600
    return replace(flows, step_s=length)


def to_flows(
    grouped: pa.Table, zones: Zones, final: Indices | None, steps: Steps | None, with_people: bool, name: str | None
) -> Flows:
    """The engine's sorted groups as the model."""
    o, d = (grouped[c].to_numpy() for c in "od")
    step, trips = grouped["step"].to_numpy(), grouped["trips"].to_numpy()
    people = grouped["people"].to_numpy() if with_people else trips
    weighted = "weight" in grouped.column_names
    volume = summed(grouped["weight"], name or "trips") if weighted else trips
    if final is not None and len(o):
        o, d = final[o], final[d]
    kept = (volume > 0) & (people > 0)
    if not kept.all():
        o, d, step, volume, people = (a[kept] for a in (o, d, step, volume, people))
        grouped = grouped.filter(pa.array(kept))
    if len(o) == 0:
        raise InputError(name or "trips", "no row can be used, or all volumes are zero; wanted at least one.")
    order = _order(step, o, d, len(zones))
    o, d, step, volume, people = side_by_side(*(partial(np.take, a, order) for a in (o, d, step, volume, people)))
    members = _members(grouped["members"].take(pa.array(order))) if "members" in grouped.column_names else (None, None)
    starts = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
    counts: FlowCounts = "people" if with_people else "trips"
    offsets = np.append(starts, len(step))
    trips = rounded(volume // WEIGHT_UNITS, volume % WEIGHT_UNITS, offsets) if weighted else volume
    flows = flows_in_order(
        zones,
        steps,
        step[starts],
        offsets,
        (o, d, trips, people),
        counts,
        members,
        volume if weighted else None,
    )
    return without_empty_steps(flows, name) if weighted else flows


def without_empty_steps(flows: Flows, name: str | None) -> Flows:
    """Weighted flows without time steps in which all is rounded to nothing."""
    filled = np.add.reduceat(flows.volume, flows.offsets[:-1]) > 0
    if filled.all():
        return flows
    if not filled.any():
        refuse_tiny_weights(name or "trips")
    made = flows.at_steps(np.flatnonzero(filled))
    return replace(made, dropped_weight=flows.exact_units - made.exact_units)


def refuse_tiny_weights(name: str) -> NoReturn:
    """Raise because all time steps are rounded to nothing."""
    raise InputError(name, "the weights of every time step add up to less than half a trip; check them.")


def _members(lists: Any) -> tuple[Ints, Ints]:
    """Lists of people to offsets and numbers, rising inside each list."""
    from crowdveil.kernels.ordering import rows_by_group_and_time

    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    number, _, _ = codes(lists.flatten())
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = frozen(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), np.int64)
    _, rising = rows_by_group_and_time(frozen(row_slices(offsets), np.int64), frozen(number, np.int64), offsets)
    return offsets, rising


def _order(step: Ints, o: Indices, d: Indices, zones: int) -> Ints:
    """The order by step, origin and destination: counting sorts, unless there is too much to count."""
    from crowdveil.kernels.ordering import rows_by_two

    first, last = int(step.min()), int(step.max())
    if max(last - first, zones * zones) > max(1 << 24, 4 * len(step)):
        return np.lexsort((d, o, step))
    pair = o.astype(np.int64) * zones + d
    order: Ints = rows_by_two(frozen(step - first, np.int64), frozen(pair, np.int64), last - first + 1, zones * zones)
    return order
