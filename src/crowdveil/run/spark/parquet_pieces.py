"""Parquet files on disks that all executors see, read by Arrow in Python: no row passes through Java."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.engine.spark import TASKS_A_SLOT, BatchFunction, Frame, SparkEngine
from crowdveil.io.source import Source, parquet_batches

MOST_FILES = 1000
"""Files whose footers the driver reads at most."""
_UNITS = ("ms", "us")
"""Units of times that Spark and Arrow read alike."""


@dataclass(frozen=True)
class PieceReader:
    """Reads row groups of Parquet files, and gives them to a function over chunks of rows; sent to executors.

    Attributes
    ----------
    name
        Name of the data, for messages.
    schema
        The columns that are read, with the types that Spark gives them.
    function
        What is done with the rows.
    ids
        Columns whose text is left as a dictionary: each value is looked up once, not each row.
    """

    name: str
    schema: pa.Schema
    function: BatchFunction
    ids: tuple[str, ...] = ()

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the function makes of the rows."""
        return self.function(self._rows(pieces))

    def _rows(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = self.schema.names
        text = [name for name in self.ids if pa.types.is_string(self.schema.field(name).type)]
        for chunk in pieces:
            for piece in chunk.to_pylist():
                for rows in parquet_batches(
                    self.name, piece["path"], names, read_dictionary=text, row_group=piece["row_group"]
                ):
                    columns = [rows[n] if n in text else rows[n].cast(self.schema.field(n).type) for n in names]
                    yield pa.RecordBatch.from_arrays(columns, names=names)


def map_source(
    engine: SparkEngine,
    data: Any,
    source: Source,
    frame: Frame,
    function: BatchFunction,
    made: pa.Schema,
    *,
    columns: Sequence[str],
    ids: Sequence[str] = (),
) -> Frame:
    """Map a function over chunks of columns of the input; `frame` has them, for what only Spark can read.

    The function gets the text of `ids` dictionary-encoded where that is faster.
    """
    schema = pa.schema([source.schema.field(name) for name in columns])
    found = parquet_pieces(engine, data, schema) if source.delimiter is None else None
    if found is None:
        return engine.map_rows(frame, function, made)
    tasks = min(len(found), TASKS_A_SLOT * engine.slots)
    reader = PieceReader(source.name, schema, function, tuple(ids))
    return engine.map_rows(engine.table(found).repartition(tasks), reader, made)


def parquet_pieces(engine: SparkEngine, data: Any, schema: pa.Schema) -> pa.Table | None:
    """Return path and number of each row group; None where the files are elsewhere, or Spark reads a column in another way."""
    paths = engine.files.local_files(str(data)) if isinstance(data, str | Path) else None
    if paths is None or len(paths) > MOST_FILES:
        return None
    pieces: list[tuple[str, int]] = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            if not same_columns(file.schema_arrow, schema):
                return None
            pieces += [(path, group) for group in range(file.metadata.num_row_groups)]
    if not pieces:
        return None
    return pa.table({"path": [path for path, _ in pieces], "row_group": [group for _, group in pieces]})


def same_columns(file: pa.Schema, wanted: pa.Schema) -> bool:
    """Return whether a file has columns with types that Spark reads as the given ones, without changing a value."""
    return all(file.get_field_index(f.name) >= 0 and _alike(file.field(f.name).type, f.type) for f in wanted)


def _alike(own: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_timestamp(own) and pa.types.is_timestamp(other):
        return own.unit in _UNITS and other.unit == "us" and (own.tz is None) == (other.tz is None)
    # Spark knows no dictionaries: it reads the values.
    return bool((own.value_type if pa.types.is_dictionary(own) else own).equals(other))
