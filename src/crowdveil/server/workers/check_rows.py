"""Check that a Parquet file does not grow far beyond its size when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.errors import InputError
from crowdveil.io.source import MAX_LISTED, refuse_wide

_CELLS_FREE, _CELLS_A_BYTE = 4_000_000, 256
"""Values that a Parquet file may hold: many, and as many more as its size can stand for."""


def check_rows(path: Path, limits: dict[str, Any]) -> None:
    """Raise if a Parquet file holds more values than its size allows."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return
    try:
        with pq.ParquetFile(path, thrift_container_size_limit=MAX_LISTED) as file:
            about = file.metadata
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader reports what is wrong
    refuse_wide(str(path), about.num_columns)
    rows = about.num_rows
    # Runs of one value take no space in a file, and all of it once they are unpacked.
    if rows * max(1, about.num_columns) > _CELLS_FREE + _CELLS_A_BYTE * path.stat().st_size:
        raise InputError(path.name, "the file holds far more rows than its size allows. Write it again as CSV.")
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    largest = limits.get("upload_bytes")
    if largest is not None and size > 16 * largest:
        raise InputError(path.name, "the file is too large once it is unpacked. Give less data.")
