"""What becomes of memory that was freed: large arrays go back to the system, small ones are kept for the next ones."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

import pyarrow as pa

LARGE_BYTES = 1 << 24
"""Bytes of an array that has pages of its own; smaller ones, such as those of chunks, are used again in the heap."""
KEPT_BYTES = 1 << 27
"""Bytes at the end of a heap that are kept when they are freed: more than the arrays of most matrices take."""
RETURNED_BYTES = 3 << 23
"""Fewest free bytes of the heaps that are given back; 14 MiB are free between what libraries keep, in any case."""
RETURNED_ARROW_BYTES = 1 << 24
"""Fewest bytes that Arrow ever had for what it does not use to be given back."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of the options of glibc."""


class _HeapFigures(ctypes.Structure):
    """What glibc counts in its heaps (`mallinfo2`): ten numbers, of which one is used."""

    free: int
    """Free bytes of all heaps."""
    _fields_ = (("others", ctypes.c_size_t * 8), ("free", ctypes.c_size_t), ("at_the_end", ctypes.c_size_t))


def return_unused() -> None:
    """Give back what was freed. Else a table, or arrays of a stage that is over, count until the process ends.

    Little is kept: giving it back, and getting other pages for the next stage, took a tenth of a small run.
    """
    pool = pa.default_memory_pool()
    if (pool.max_memory() or RETURNED_ARROW_BYTES) >= RETURNED_ARROW_BYTES:
        pool.release_unused()
    trim = _malloc_trim()
    if trim is not None and _free_bytes() >= RETURNED_BYTES:
        trim(0)


@cache
def map_large_arrays() -> None:
    """Let large arrays have pages of their own, which the system gets back when they are freed; and keep those of small ones.

    By default the C library puts arrays of up to 32 MB into the heap once one of that size was freed, and what is freed there
    stays below what is not. But it gives back the free end of the heap, of 128 KiB or more: the arrays of every matrix would
    get other pages than those of the one before, which the system clears first. That took a fifth of the time of solving.
    """
    if sys.platform == "linux" and (option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        option(_MMAP_THRESHOLD, LARGE_BYTES)
        option(_TRIM_THRESHOLD, KEPT_BYTES)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return the function of glibc that gives free pages back; None where the C library is another one."""
    if sys.platform != "linux":
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def _free_bytes() -> int:
    """Return the free bytes of all heaps; where the C library cannot count them, as many as are worth giving back."""
    count = _heap_figures()
    return RETURNED_BYTES if count is None else count().free


@cache
def _heap_figures() -> Callable[[], _HeapFigures] | None:
    """Return the function of glibc, from 2.33 on, that counts what is in its heaps; None where there is none."""
    count: Callable[[], _HeapFigures] | None = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if count is not None:
        count.restype = _HeapFigures  # type: ignore[attr-defined]
    return count
