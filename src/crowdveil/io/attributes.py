"""Attributes of zones as a table, from values of JSON or of a database."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

MAX_COLUMNS = 2000


def attribute_table(rows: int, columns: dict[str, list[Any]]) -> pa.Table:
    """Return a table of columns; values of mixed types become text. Raise ValueError for too many columns."""
    if len(columns) > MAX_COLUMNS:
        raise ValueError("too many columns")
    if not columns:  # a plain table without columns has no row count
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))])
    return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: list[Any]) -> pa.Array:
    kinds = {type(v) for v in values if v is not None}
    plain: dict[frozenset[type], pa.DataType] = {
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    try:
        return pa.array(values, plain.get(frozenset(kinds), pa.string()))
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
        return pa.array([_as_text(v) for v in values], pa.string())


def _as_text(value: Any) -> str | None:
    text = value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return None if text is None else text.encode("utf-8", "replace").decode()
