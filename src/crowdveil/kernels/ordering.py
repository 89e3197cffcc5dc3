"""Searching and sorting inside of kernels."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def first_from(values: Ints | Floats, low: int, high: int, lower_bound: float) -> int:
    """Return the first position from `low` on, below `high`, where rising values reach `lower_bound`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < lower_bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def merge_sort(times: Ints, rows: Ints, lo: int, hi: int) -> None:
    """Sort times[lo:hi] and the rows with them, keeping the order of equal times: runs of two, four, eight … are merged.

    Written out, because numpy's argsort inside a kernel takes many times as long to compile as everything else here.
    """
    other_times = np.empty(hi - lo, np.int64)
    other_rows = np.empty(hi - lo, np.int64)
    width = 1
    while width < hi - lo:
        for start in range(lo, hi, 2 * width):
            middle = min(start + width, hi)
            end = min(start + 2 * width, hi)
            left = start
            right = middle
            for at in range(start - lo, end - lo):
                if left < middle and (right >= end or times[left] <= times[right]):
                    other_times[at] = times[left]
                    other_rows[at] = rows[left]
                    left += 1
                else:
                    other_times[at] = times[right]
                    other_rows[at] = rows[right]
                    right += 1
        for at in range(hi - lo):
            times[lo + at] = other_times[at]
            rows[lo + at] = other_rows[at]
        width *= 2
