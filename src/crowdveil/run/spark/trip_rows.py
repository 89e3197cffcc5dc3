"""Rows of trips and flows on executors: from chunks of the input to packed rows, and from those of a partition to flows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.io.source import MISSING, Source

BAD, INSTANTS, WALLS, SKIPPED, TWICE = "bad:", "instants", "walls", "skipped", "twice"
"""Notes among the rows: unusable rows, by reason; whether times have a zone; and local times that a clock skipped or showed
twice."""


@dataclass(frozen=True)
class ChunkReader:
    """Makes columns of each chunk of the input with a function; sent to executors."""

    columns: Callable[[pa.RecordBatch], list[Any]]
    schema: pa.Schema

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the columns of each chunk."""
        for chunk in chunks:
            yield record_batch(self.columns(chunk), self.schema)


PEOPLE = pa.schema([("person", pa.string()), ("lower", pa.string())])


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
