"""Give memory that was freed back to the system: the allocators of Arrow and of the C library keep it for themselves."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

import pyarrow as pa

LARGE_BYTES = 1 << 24
"""Bytes of an array that has pages of its own; smaller ones, such as those of chunks, are used again in the heap."""
_MMAP_THRESHOLD = -3
"""Number of the option of glibc."""


def return_unused() -> None:
    """Give back what was freed. Else a table, or arrays of a stage that is over, count until the process ends."""
    pa.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def map_large_arrays() -> None:
    """Let large arrays have pages of their own, which the system gets back when they are freed.

    By default the C library puts arrays of up to 32 MB into the heap once one of that size was freed, and what is freed there
    stays below what is not.
    """
    if sys.platform == "linux" and (option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        option(_MMAP_THRESHOLD, LARGE_BYTES)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return the function of glibc that gives free pages back; None where the C library is another one."""
    if sys.platform != "linux":
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim
