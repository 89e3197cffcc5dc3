"""How freed memory is kept by the process: solving matrix after matrix asks for the same megabytes again and again."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")
"""Variables that set the same: a user who has set one is not overruled."""
LARGEST_KEPT = 2**25
"""Bytes up to which arrays come from memory that is kept: the largest that glibc allows. Larger ones are given back at once."""
KEPT = 2**27
"""Bytes of free memory at the end of a heap that are kept."""


@cache
def keep_freed_memory() -> bool:
    """Have the C library keep memory of small and middle-sized arrays when they are freed; return whether it does so now.

    By default glibc gives the end of its heap back to the system, and takes it again for the next matrix: the system then clears
    every page anew, which took a fifth of the time of a year of hourly matrices. Other C libraries are left as they are.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in _VARIABLES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return all(mallopt(which, size) == 1 for which, size in ((_MMAP_THRESHOLD, LARGEST_KEPT), (_TRIM_THRESHOLD, KEPT)))
