"""Limits of a text table that hold while it arrives, chunk by chunk: its rows, and the length of its header."""

from __future__ import annotations

import re
from typing import Protocol

from crowdveil.server.answers import ApiError

HEADER_MOST = 1 << 16
"""Bytes of the first line of a table."""
TEXT_TABLES = (".csv", ".tsv", ".txt")


class TableCounts(Protocol):
    """What is counted of a table."""

    rows: int
    first_line: int
    ended_first: bool


def count_rows(counts: TableCounts, name: str, chunk: bytes, rows_most: int) -> None:
    """Count the rows of a text table and the length of its first line: either can be a bomb. Other files are not counted."""
    if not name.lower().endswith(TEXT_TABLES):
        return
    counts.rows += max(chunk.count(b"\n"), chunk.count(b"\r"))
    if counts.rows > rows_most + 1:
        raise ApiError(413, "too_large", name, f"wanted at most {rows_most:,} rows; send less data.")
    if not counts.ended_first:
        line = re.search(rb"[\r\n]", chunk)
        counts.first_line += len(chunk) if line is None else line.start()
        counts.ended_first = line is not None and counts.first_line > 0
        if counts.first_line > HEADER_MOST:
            raise ApiError(422, "bad_input", name, f"wanted a header of at most {HEADER_MOST >> 10} KiB.")
