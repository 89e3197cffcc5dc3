"""Serialize the rows of one key in a chunk as one binary value, so that a cluster shuffles few large values.

A shuffle inspects every value of every row. Serialized batches pass through it unchanged and are read where they are needed.
Each holds one Arrow record batch without its schema, which reader and writer share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

PACK_ROWS = 1_000_000
"""Rows that are grouped by key at a time: more rows give larger batches."""


def in_runs(rows: pa.Table, keys: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each key, keys ascending; rows of one key keep their order."""
    if len(rows) == 0:
        return
    order = np.argsort(keys, kind="stable")
    sorted_keys, (batch,) = keys[order], rows.take(pa.array(order)).combine_chunks().to_batches()
    starts = np.flatnonzero(np.append(True, sorted_keys[1:] != sorted_keys[:-1]))
    for low, high in zip(starts, [*starts[1:], len(keys)], strict=True):
        yield int(sorted_keys[low]), batch.slice(low, high - low)


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a record batch as compressed bytes: a cluster copies them several times."""
    made = pa.BufferOutputStream()
    writer = pa.ipc.new_stream(made, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False))
    writer.write_batch(batch)
    begin, end = batch.schema.serialize().size, made.tell()
    content: bytes = made.getvalue()[begin:end].to_pybytes()
    return content


def unpacked(packs: Any, schema: pa.Schema) -> pa.Table:
    """Return the rows of all serialized batches in a binary column, in order."""
    # Each batch is a slice of the column's buffer; nothing is copied.
    batches = [pa.ipc.read_record_batch(pack.as_buffer(), schema) for pack in packs]
    return pa.Table.from_batches(batches, schema)
