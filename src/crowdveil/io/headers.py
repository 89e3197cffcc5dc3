"""Check the header of a table before it is read: the number of columns and the delimiter."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from crowdveil.errors import InputError, counted

DELIMITERS = (",", ";", "\t", "|")
MAX_COLUMNS = 10_000
"""Columns of a table. Every column takes memory before a value of it is read."""
MAX_HEADER_BYTES = 4 << 20
"""Bytes of the first line of a CSV."""
HEAD_BYTES = 1 << 16
_FOOTER_START = 64
"""Bytes at the start of a Parquet footer that hold the number of schema elements."""


def refuse_wide(name: str, columns: int) -> None:
    """Raise if a table has too many columns."""
    if columns > MAX_COLUMNS:
        raise InputError(
            name,
            f"wanted at most {counted(MAX_COLUMNS, 'column')}, but there are more; remove columns that are not needed.",
        )


def csv_head(stream: Any, name: str) -> bytes:
    """Return the beginning of a CSV with its whole first line; raise if the line is too long."""
    head: bytes = stream.read(HEAD_BYTES)
    while b"\n" not in head and b"\r" not in head and len(head) < MAX_HEADER_BYTES:
        more = stream.read(HEAD_BYTES)
        if not more:
            break
        head += more
    first = head.splitlines()[0] if head.strip() else b""
    if len(first) >= MAX_HEADER_BYTES:
        raise InputError(
            name, f"the first line is longer than {MAX_HEADER_BYTES >> 20} MB; wanted a header with column names."
        )
    # An upper bound of the columns for every delimiter.
    refuse_wide(name, 1 + max(first.count(sign.encode()) for sign in DELIMITERS))
    return head


def delimiter_of(header: str, row: str | None) -> str:
    """Return the delimiter that splits header and first row into equally many columns, else the most frequent one."""

    def score(sign: str) -> tuple[bool, int]:
        cut = [len(next(csv.reader([line], delimiter=sign), [])) for line in (header, row or "")]
        return cut[0] == cut[1] > 1, header.count(sign)

    return max(DELIMITERS, key=score)


def refuse_wide_parquet(path: Path) -> None:
    """Raise if a Parquet file has too many columns, by reading only the start of its footer.

    The footer is in Thrift's compact protocol: field 1, the version as a varint, then field 2, the list of schema elements.
    A file with another footer is left to its reader.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 12:
            return
        file.seek(size - 8)
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or not 0 < length <= size - 12:
            return
        file.seek(size - 8 - length)
        start = file.read(min(_FOOTER_START, length))
    elements = _schema_elements(start)
    if elements is not None:
        refuse_wide(str(path), elements - 1)


def _schema_elements(start: bytes) -> int | None:
    if len(start) < 4 or start[0] != 0x15:
        return None
    _, at = _varint(start, 1)
    if at + 1 >= len(start) or start[at] != 0x19:
        return None
    kind = start[at + 1]
    if kind & 0x0F != 0x0C:
        return None
    return kind >> 4 if kind >> 4 != 0x0F else _varint(start, at + 2)[0]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length number at an offset, and the offset after it."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, at
