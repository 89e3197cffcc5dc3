"""Columns of rows in files that are mapped into memory: the system drops their pages where it needs memory, and reads them again.

A run that handles time steps in parts reads its rows into them, so that its memory does not grow with the number of rows.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.errors import OutputError

_DROP = getattr(mmap, "MADV_DONTNEED", None)


class ColumnFiles:
    """Columns in files without a name, which end with the arrays that use them; short ones are in memory.

    Parameters
    ----------
    above
        Most rows of a column in memory.
    """

    def __init__(self, above: int) -> None:
        self.above = above
        self._maps: list[mmap.mmap] = []

    def new(self, rows: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a column that is to be filled, in a file of its own if it is long."""
        if rows <= self.above:
            return np.empty(rows, dtype)
        size = max(rows, 1) * np.dtype(dtype).itemsize
        try:
            with tempfile.TemporaryFile(prefix="crowdveil-") as file:
                os.posix_fallocate(file.fileno(), 0, size)  # a full disk is found here, and not by a signal later
                mapped = mmap.mmap(file.fileno(), size)
        except OSError:
            raise OutputError(
                tempfile.gettempdir(),
                "the disk for temporary files is full; free some space, or set TMPDIR to another disk.",
            ) from None
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype, rows)

    def drop_pages(self) -> None:
        """Have pages that were used so far count no longer; they are read from the files again where they are needed."""
        if _DROP is not None:
            for mapped in self._maps:
                mapped.madvise(_DROP)


_files: ContextVar[ColumnFiles | None] = ContextVar("column_files", default=None)


@contextmanager
def columns_in_files(above: int = 0) -> Iterator[ColumnFiles]:
    """Have columns of flows that are read in the block lie in files, if they have more than `above` rows."""
    files = ColumnFiles(above)
    before = _files.set(files)
    try:
        yield files
    finally:
        _files.reset(before)


def new_column(rows: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a column that is to be filled: in memory, or in a file where `columns_in_files` says so."""
    files = _files.get()
    return np.empty(rows, dtype) if files is None else files.new(rows, dtype)


def drop_column_pages() -> None:
    """Drop the pages of columns in files, if there are any."""
    files = _files.get()
    if files is not None:
        files.drop_pages()
