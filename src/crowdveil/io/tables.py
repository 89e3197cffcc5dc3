"""Write tables of flows and trajectories as plain files, as read, not anonymized.

Text in a CSV that a spreadsheet would run as a formula is escaped by a leading apostrophe: a zone name is untrusted, and
`=HYPERLINK(…)` would run in the reader's spreadsheet. Tables of a release are read with `unescape_formulas`, which restores the
names. Plain numbers, such as -5, are not escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from crowdveil.errors import Option, OutputError, Text
from crowdveil.io.atomic import new_file
from crowdveil.io.omx import write_omx
from crowdveil.io.times import iso_times
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories

COMPRESSION = "zstd"
CHUNK_ROWS = 1 << 20
"""Rows of a chunk, which is a row group in Parquet."""
_ENDINGS = (".csv", ".parquet", ".pq")
_NEEDS_QUOTES = r'[",\r\n]'
_FORMULA = r"^'*[=+\-@\t\r\n]"
_ESCAPED = r"^'+[=+\-@\t\r\n]"
_NUMBER = r"^[+\-]?(\d+\.?\d*|\.\d+|inf|nan)([eE][+\-]?\d+)?$"


def check_ending(path: Path, *more: str, option: str = "output") -> None:
    """Raise unless the suffix of the name is one of a table format, or one of `more`; `option` names the file."""
    endings = (*_ENDINGS, *more)
    if path.suffix.lower() not in endings:
        raise OutputError(
            path,
            Text(
                "Expected a name that ends in {endings}. Name another with {option}.",
                endings=" or ".join(endings),
                option=Option(option),
            ),
        )


def check_picture(path: str | Path) -> None:
    """Raise unless the suffix of the name is .png."""
    if Path(path).suffix.lower() != ".png":
        raise OutputError(path, Text("Expected a name that ends in .png. Name another with {plot}."))


def write_table(table: pa.Table, path: Path, *, as_input: bool = False) -> None:
    """Write a table in the format of the name's suffix: .parquet or .csv.

    In a CSV, text that a spreadsheet would run as a formula is escaped, unless the table is to be read as input again.
    """
    check_ending(path)
    if path.suffix.lower() == ".csv":
        table = table if as_input else escape_formulas(table)
        pacsv.write_csv(table, path, csv_write_options(pa.array(table.column_names), *table.columns))
    else:
        pq.write_table(table, path, compression=COMPRESSION)


def write_chunked_table(chunk: Callable[[slice], pa.Table], rows: int, path: Path) -> None:
    """Write a table of `rows` rows; `chunk` returns the table of a slice. Parquet is written in chunks."""
    check_ending(path)
    if path.suffix.lower() == ".csv" or rows == 0:
        write_table(chunk(slice(0, rows)), path)
        return
    bounds = range(0, rows, CHUNK_ROWS)
    chunks = (chunk(slice(low, min(low + CHUNK_ROWS, rows))) for low in bounds)
    first = next(chunks)
    with pq.ParquetWriter(path, first.schema, compression=COMPRESSION) as writer:
        for table in chain([first], chunks):
            writer.write_table(table)


def write_json_or_table(content: Callable[[], Any], table: Callable[[], pa.Table], path: Path) -> None:
    """Write the content where the suffix is .json, otherwise the table; either is made only if it is written."""
    if path.suffix.lower() == ".json":
        path.write_text(json.dumps(content(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        write_table(table(), path)


def csv_write_options(*columns: Any) -> pacsv.WriteOptions:
    """Return options to write these columns as CSV, with quotes only if some text needs them."""
    style = "needed" if any(_needs_quotes(column) for column in columns) else "none"
    return pacsv.WriteOptions(quoting_style=style, quoting_header=style)


def _needs_quotes(column: Any) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, _NEEDS_QUOTES)).as_py())


def write_flows(flows: Flows, path: str | Path, *, overwrite: bool = False) -> None:
    """Write flows as CSV, Parquet or OMX, not anonymized."""
    check_ending(Path(path), ".omx")
    with new_file(Path(path), overwrite=overwrite) as file:
        if file.suffix.lower() == ".omx":
            write_omx(flows, file)
            return
        table = flows.to_arrow()
        if flows.step_s is not None and file.suffix.lower() == ".csv":
            times = iso_times(flows.t, flows.tz).take(pa.array(flows.step))
            table = table.set_column(0, "t", times)
        write_table(table, file, as_input=True)


def write_trajectories(data: Trajectories, path: str | Path, *, overwrite: bool = False) -> None:
    """Write trajectories as CSV or Parquet with their original ids, not anonymized."""
    check_ending(Path(path))
    with new_file(Path(path), overwrite=overwrite) as file:
        table = data.to_arrow()
        if file.suffix.lower() == ".csv":
            table = table.set_column(2, "timestamp", iso_times(data.t, "UTC"))
        write_table(table, file, as_input=True)


def escape_formulas(table: pa.Table) -> pa.Table:
    """Return a table in which no text value is a formula."""
    return _map_text(table, _escape)


def unescape_formulas(table: pa.Table) -> pa.Table:
    """Return the table as it was before `escape_formulas`."""
    return _map_text(table, lambda column: _replace(column, _ESCAPED, lambda texts: pc.utf8_slice_codeunits(texts, 1)))


def _escape(column: Any) -> Any:
    found = _replace(column, _FORMULA, lambda texts: pc.binary_join_element_wise("'", texts, ""))
    return found if found is column else pc.if_else(pc.match_substring_regex(column, _NUMBER), column, found)


def _replace(column: Any, pattern: str, change: Any) -> Any:
    """Change the texts that match; return the column itself if none does."""
    matches = pc.match_substring_regex(column, pattern)
    return pc.if_else(matches, change(column), column) if pc.any(matches).as_py() else column


def _map_text(table: pa.Table, change: Any) -> pa.Table:
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(number)
            changed = change(column)
            if changed is not column:
                table = table.set_column(number, field, changed)
    return table
