"""Write tables in chunks, as CSV, Parquet or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from crowdveil.io.tables import COMPRESSION, check_ending, csv_write_options, escape_formulas
from crowdveil.io.times import iso_times
from crowdveil.io.values import one_array
from crowdveil.model.arrays import Labels

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
