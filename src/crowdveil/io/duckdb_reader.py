"""Group Parquet files of trips inside DuckDB, so that rows never pass through Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.io.atomic import scratch_folder
from crowdveil.io.duckdb_engine import duckdb_errors, engine, fetch, is_pattern, quote_identifier, quote_literal
from crowdveil.io.duckdb_groups import RowGroups
from crowdveil.io.duckdb_people import EnginePeople
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.od_grouping import to_flows
from crowdveil.io.od_rows import OdReader, Problems
from crowdveil.io.person_ids import note_case_variants
from crowdveil.io.source import Source
from crowdveil.io.times import FAR_FUTURE, far_reason, note_assumed_zone, note_clock_changes
from crowdveil.io.zone_ids import refuse_other_spelling
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import Clock, TimeAxis
from crowdveil.model.zones import Zones

SMALL_FILE_ROWS = 100_000
"""Rows of files that are not grouped in place: to open an engine that may read a file takes longer than to read them."""
_MAX_UNKNOWN_IDS = 100_000
"""Unknown zone ids that are compared with the known ones."""
_SINCE_YEAR_1 = 62_135_596_800
_FILE_NAME = "crowdveil_file_name"
"""Column of the name of a row's file, where there are several."""


def can_read_in_duckdb(source: Source, columns: OdColumns, zones: Zones) -> bool:
    """Return whether DuckDB should group the files themselves: many unweighted trips with zone ids and native times."""
    if (source.rows or 0) <= SMALL_FILE_ROWS:
        return False
    if not source.is_parquet or not columns.by_id or columns.is_flows or columns.weight is not None:
        return False
    if _is_ambiguous(source):
        return False
    time_ok = columns.time is None or pa.types.is_timestamp(source.schema.field(columns.time).type)
    return (
        time_ok
        and all(_id_kind(source, c) is not None for c in (columns.origin, columns.destination))
        and (columns.user is None or _id_kind(source, columns.user) is not None)
        and len(zones) > 0
    )


def _is_ambiguous(source: Source) -> bool:
    """Return whether DuckDB reads a file name as a pattern, or confuses columns that differ in case."""
    lower = [c.lower() for c in (*source.columns, "file_row_number", _FILE_NAME)]
    return len(set(lower)) < len(lower) or any(map(is_pattern, source.parquet_files))


def _rows_sql(source: Source) -> str:
    """Return SQL for the rows of a file, or of all files of a folder; rows are numbered through all files."""
    files = source.parquet_files
    names = ", ".join(quote_literal(str(path)) for path in files)
    if len(files) == 1:
        return f"read_parquet({names}, file_row_number = true, hive_partitioning = false)"
    counts = [pq.ParquetFile(path).metadata.num_rows for path in files]
    before = ", ".join(map(str, np.cumsum([0, *counts[:-1]]).tolist()))
    number = f"file_row_number + list_extract([{before}], list_position([{names}], {_FILE_NAME}))"
    options = f"file_row_number = true, hive_partitioning = false, filename = {quote_literal(_FILE_NAME)}"
    return f"(SELECT * REPLACE ({number} AS file_row_number) FROM read_parquet([{names}], {options}))"


def _id_kind(source: Source, column: str | None) -> str | None:
    kind = source.schema.field(column).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "BIGINT"
    return "VARCHAR" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def read_in_duckdb(reader: OdReader, zones: Zones, seconds: int | None, drop_invalid: bool, members: bool) -> Flows:
    """Group Parquet files of trips inside DuckDB; unusable rows come out as groups without a key."""
    source, columns, notes = reader.source, reader.columns, reader.notes
    with (
        scratch_folder() as working,
        engine(reading=source.parquet_files, working=Path(working)) as connection,
        duckdb_errors(source.name),
    ):
        file = _rows_sql(source)
        keys = {p: _register_ids(connection, source, p, getattr(columns, p), zones) for p in ("origin", "destination")}
        wall, far = _wall_expression(connection, reader, file)
        people = EnginePeople.of(connection, source, columns, file)
        steps = TimeAxis(seconds, reader.tz) if seconds and wall else None
        step_sql = _number_sql(steps) if steps else "0::BIGINT"
        person = ("person", "members")[: 1 + members] if columns.user is not None else ()
        # Columns get new names here, since the file may have columns o, d or person itself.
        rows = (
            f"(SELECT f.file_row_number, f.{keys['origin']} AS o, f.{keys['destination']} AS d"
            f"{f', {wall} AS wall' if wall else ''}{f', {far} AS far' if far else ''}{people.column} FROM {file} f{people.join})"
        )
        groups = RowGroups(connection, step_sql, person, source.rows or 0, Path(working))
        # Zones are looked up per group, of which there are far fewer than trips.
        grouped = groups.fetch(rows, lambda sql: f"SELECT {_IN_ZONES.format(rows=f'({sql})')}")
        if sum(grouped[c].null_count for c in ("step", "o", "d")) or grouped["bad"].to_numpy().any():
            _refuse_other_spelling(connection, rows, columns, zones, source.name)
            notes.rows = source.rows or 0
            reasons, matched = _reasons(columns, wall, far), f"(SELECT {_IN_ZONES.format(rows=rows)})"
            _diagnose(connection, matched, reasons).settle(source.name, drop_invalid, notes)
            good = " AND ".join(f"NOT ({condition})" for condition in reasons.values())
            usable = f"(SELECT * FROM {matched} WHERE {good})"
            grouped = groups.fetch(usable)
            people = people.among(connection, usable)
    held = [grouped]
    del grouped  # `to_flows` frees the groups while it puts them in order
    flows = to_flows(held.pop(), zones, None, steps, columns.user is not None, source.name)
    note_case_variants(people.alike, columns.user, notes)
    return replace(flows, distinct_people=people.count)


_IN_ZONES = (
    "r.* REPLACE (zo.i AS o, zd.i AS d) FROM {rows} r "
    "LEFT JOIN ids_origin zo ON zo.id = r.o LEFT JOIN ids_destination zd ON zd.id = r.d"
)
"""SQL that replaces zone ids by zone indices; NULL for an unknown zone."""


def _register_ids(connection: Any, source: Source, end: str, column: str, zones: Zones) -> str:
    """Create the table of zone ids for a column, in the column's type, and return the quoted column."""
    ids, index = list(zones.ids), np.arange(len(zones), dtype=np.int32)
    if _id_kind(source, column) == "BIGINT":
        # A number matches only the id that it is printed as: 7 is "7", and never "07".
        whole = [i for i in index.tolist() if _is_number(ids[i])]
        table = pa.table({"id": pa.array([int(ids[i]) for i in whole], pa.int64()), "i": pa.array(whole, pa.int32())})
    else:
        table = pa.table({"id": pa.array(ids, pa.string()), "i": pa.array(index)})
    connection.register(f"arrow_{end}", table)
    connection.sql(f"CREATE TEMP TABLE ids_{end} AS SELECT * FROM arrow_{end}")
    return quote_identifier(column)


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 20 and str(int(text)) == text and -(2**63) <= int(text) < 2**63


def _wall_expression(connection: Any, reader: OdReader, file: str) -> tuple[str | None, str | None]:
    """Return SQL for the local time, and SQL for times outside the allowed years (None if there are none)."""
    column, source, tz = reader.columns.time, reader.source, reader.tz
    if column is None:
        return None, None
    kind = source.schema.field(column).type
    # DuckDB divides towards zero, which is wrong before 1970: every time is made positive first.
    seconds = f"(epoch_us(f.{quote_identifier(column)}) + {_SINCE_YEAR_1 * 10**6}) // 1000000 - {_SINCE_YEAR_1}"
    if kind.tz is None:
        note_assumed_zone(reader.notes, column, tz)
    seen = [t // 10**6 for path in source.parquet_files for t in _time_span(connection, path, column) if t is not None]
    if not seen:
        return seconds, None
    low, high = min(seen), max(seen)
    if kind.tz is None:
        _note_clock_changes(connection, reader, seconds, file, (low, high))
    wall = seconds if tz == "UTC" else wall_sql(seconds, instants=kind.tz is not None, tz=tz, low=low, high=high)
    if reader.form.given is not None or (low >= 0 and high < FAR_FUTURE):
        return wall, None
    far = f"({seconds} < 0 OR {seconds} >= {FAR_FUTURE})"
    # Such rows come out as groups without a key, as all unusable rows.
    return f"CASE WHEN {far} THEN NULL ELSE {wall} END", far


def _note_clock_changes(connection: Any, reader: OdReader, seconds: str, file: str, span: tuple[int, int]) -> None:
    """Note how many local times were skipped or repeated by changes of the clock, if there are changes in the span."""
    turns = Clock(reader.tz).turns(*span)
    if reader.tz == "UTC" or not any(turns):
        return
    inside = (" OR ".join(f"s >= {low} AND s < {high}" for low, high in ranges) or "false" for ranges in turns)
    counts = ", ".join(f"count_if({condition})" for condition in inside)
    found = connection.sql(f"SELECT {counts} FROM (SELECT {seconds} AS s FROM {file} f)").fetchall()[0]
    note_clock_changes(reader.notes, reader.columns.time, reader.tz, *(int(n) for n in found))


def _time_span(connection: Any, path: Path, column: str) -> tuple[int | None, int | None]:
    """Return the first and last time of a file in microseconds, which the engine finds in statistics of one file."""
    name, file = quote_identifier(column), quote_literal(str(path))
    span: tuple[int | None, int | None] = connection.sql(
        f"SELECT epoch_us(min({name})), epoch_us(max({name})) FROM read_parquet({file}, hive_partitioning = false)"
    ).fetchall()[0]
    return span


def _refuse_other_spelling(connection: Any, rows: str, columns: OdColumns, zones: Zones, name: str) -> None:
    """Raise if zone ids are unknown because of another spelling of numbers."""
    for end, short in (("origin", "o"), ("destination", "d")):
        missing = f"SELECT DISTINCT r.{short} AS id FROM {rows} r ANTI JOIN ids_{end} z ON z.id = r.{short}"
        unknown = fetch(
            connection, f"SELECT id::VARCHAR AS id FROM ({missing}) WHERE id IS NOT NULL LIMIT {_MAX_UNKNOWN_IDS}"
        )
        refuse_other_spelling(unknown["id"].to_pylist(), zones, f"{name}, column {getattr(columns, end)}")


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
    """Count the unusable rows by their first reason, and find the first rows of each reason."""
    problems, earlier = Problems(), "false"
    for reason, condition in reasons.items():
        where = f"FROM {rows} WHERE ({condition}) AND NOT ({earlier})"
        n = connection.sql(f"SELECT count(*) {where}").fetchall()[0][0]
        if n:
            first = connection.sql(f"SELECT file_row_number + 1 {where} ORDER BY 1 LIMIT 5").fetchall()
            problems.add_count(reason, n, [row for (row,) in first])
        earlier += f" OR ({condition})"
    return problems


def _number_sql(steps: TimeAxis) -> str:
    """Return SQL for the step number of the local time `wall`. DuckDB divides towards zero: all years are made positive."""
    up = _SINCE_YEAR_1 // steps.step_s + 2
    return (
        f"(wall - {int(steps.local_starts(np.zeros(1, np.int64))[0])} + {up * steps.step_s}) // {steps.step_s} - {up}"
    )


def wall_sql(seconds: str, *, instants: bool, tz: str, low: int, high: int) -> str:
    """Return SQL for the local time. Times without a zone are shifted only where clocks went forward."""
    if instants:
        moments, offsets = Clock(tz).shifts(low, high)
        return f"({seconds}) + {_choose(seconds, moments.tolist(), offsets.tolist())}"
    skipped, _ = Clock(tz).turns(low, high)
    bounds = [bound for both in skipped for bound in both]
    moves = [0, *(move for first, last in skipped for move in (last - first, 0))]
    return f"({seconds}) + {_choose(seconds, bounds, moves)}" if bounds else seconds


def _choose(value: str, bounds: list[int], results: list[int]) -> str:
    """Return SQL for results[i] with bounds[i - 1] <= value < bounds[i], by bisection."""
    if not bounds:
        return str(results[0])
    middle = len(bounds) // 2
    left = _choose(value, bounds[:middle], results[: middle + 1])
    right = _choose(value, bounds[middle + 1 :], results[middle + 1 :])
    return f"CASE WHEN ({value}) < {bounds[middle]} THEN {left} ELSE {right} END"
