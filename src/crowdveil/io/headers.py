"""Check the header of a table before it is read: the number of columns and the delimiter."""

from __future__ import annotations

import csv
from typing import Any

from crowdveil.errors import InputError, counted

DELIMITERS = (",", ";", "\t", "|")
MAX_COLUMNS = 10_000
"""Columns of a table. Every column takes memory before a value of it is read."""
MAX_HEADER_BYTES = 4 << 20
"""Bytes of the first line of a CSV."""
HEAD_BYTES = 1 << 16


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
