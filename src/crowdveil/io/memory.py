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
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of the options of glibc."""


def return_unused() -> None:
    """Give back what was freed. Else a table, or arrays of a stage that is over, count until the process ends."""
    pa.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
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
