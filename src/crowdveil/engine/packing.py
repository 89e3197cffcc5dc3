"""Rows in packs: all rows of a piece that have one key are one value of bytes, so that a cluster moves few and large things.

What moves rows between executors looks at each of them, and at each value of each. Packs pass through it as they are, and are
opened where they are needed. A pack holds one Arrow record batch without its schema, which both ends know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

PACK_ROWS = 1_000_000
"""Rows that are put into packs together: the more, the larger packs are."""


def in_runs(rows: pa.Table, keys: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each key, keys rising; rows of one key keep their order."""
    if len(rows) == 0:
        return
    order = np.argsort(keys, kind="stable")
    sorted_keys, (batch,) = keys[order], rows.take(pa.array(order)).combine_chunks().to_batches()
    starts = np.flatnonzero(np.append(True, sorted_keys[1:] != sorted_keys[:-1]))
    for low, high in zip(starts, [*starts[1:], len(keys)], strict=True):
        yield int(sorted_keys[low]), batch.slice(low, high - low)


def packed(batch: pa.RecordBatch) -> bytes:
    """Some rows as bytes."""
    content: bytes = batch.serialize().to_pybytes()
    return content


def unpacked(packs: Any, schema: pa.Schema) -> pa.Table:
    """The rows of all packs in a column of bytes, in the order of packs."""
    # A pack is read where it lies: a buffer of Arrow is cut from the column, and nothing is copied.
    batches = [pa.ipc.read_record_batch(pack.as_buffer(), schema) for pack in packs]
    return pa.Table.from_batches(batches, schema)
