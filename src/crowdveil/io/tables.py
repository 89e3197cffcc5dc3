"""Write tables as plain files: at once, or in chunks.

Text in a CSV that a spreadsheet would run as a formula is escaped by a leading apostrophe: a zone name is untrusted, and
`=HYPERLINK(…)` would run in the reader's spreadsheet. Tables of a release are read with `unescape_formulas`, which restores the
names. Plain numbers, such as -5, are not escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from crowdveil.io.values import one_array
from crowdveil.model.arrays import Labels
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


ABOUT = b"crowdveil"
"""Metadata key of a Parquet file whose value is `about` as JSON."""


@contextmanager
def open_table_writer(
    path: Path, schema: pa.Schema, about: dict[str, Any], names: Labels
) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that appends rows to a file in the format of its suffix.

    `names` are all values of its text columns. `about` describes the rows: JSON holds it next to them, Parquet in the
    metadata, and CSV not at all.
    """
    check_ending(path, ".json")
    if path.suffix.lower() == ".json":
        with _json(path, about) as write:
            yield write
    elif path.suffix.lower() == ".csv":
        plain = _plain(schema.empty_table()).schema
        with pacsv.CSVWriter(path, plain, write_options=csv_write_options(pa.array(names, pa.string()))) as writer:
            yield lambda table: writer.write_table(escape_formulas(_plain(table)))
    else:
        described = schema.with_metadata({ABOUT: json.dumps(about, ensure_ascii=False).encode()})
        # Rows are sorted by the first column: statistics of it help readers, those of others only cost time.
        with pq.ParquetWriter(path, described, compression=COMPRESSION, write_statistics=schema.names[:1]) as writer:
            yield lambda table: writer.write_table(table.replace_schema_metadata(described.metadata))


@contextmanager
def _json(path: Path, about: dict[str, Any]) -> Iterator[Callable[[pa.Table], None]]:
    with path.open("w", encoding="utf-8") as file:
        head = json.dumps(about, ensure_ascii=False, indent=2).rstrip("\n}")
        file.write(head + (",\n" if about else "\n") + '  "rows": [')
        first = True

        def write(table: pa.Table) -> None:
            nonlocal first
            for row in _plain(table).to_pylist():
                file.write(("\n    " if first else ",\n    ") + json.dumps(row, ensure_ascii=False))
                first = False

        yield write
        file.write("\n  ]\n}\n")


def _plain(table: pa.Table) -> pa.Table:
    """Return the table as text and numbers: times as local ISO 8601 text, and dictionary columns decoded."""
    return pa.table({name: _plain_column(table[name]) for name in table.column_names})


def _plain_column(column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        # Times repeat in many rows: each distinct one is formatted once.
        times = one_array(column).dictionary_encode()
        seconds = times.dictionary.cast(pa.timestamp("s", column.type.tz)).cast(pa.int64()).to_numpy()
        return iso_times(seconds, column.type.tz or "UTC").take(times.indices)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
