"""Different pairs and triples of numbers, by a hash table."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints

_ONE, _TWO, _THREE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_S29, _S32 = np.uint64(29), np.uint64(32)


def count_pairs(first: Ints, second: Ints) -> int:
    """Count the different pairs (first, second): sorting takes ten times as long."""
    return count_in_table(first, second, _new_table(len(first)))


def number_triples(first: Ints, second: Ints, third: Ints) -> Indices | Ints:
    """Number the rows from 0 in order of appearance, rows of equal values alike."""
    table = _new_table(len(first))
    codes = np.empty(len(first), table.dtype)
    number_by_table(first, second, third, table, codes)
    return codes


def _new_table(rows: int) -> Indices | Ints:
    """Return an empty hash table of row numbers, at most half full; of 32 bits each where that is enough."""
    size = 16
    while size < 2 * rows:
        size *= 2
    return np.full(size, -1, np.int32) if rows < 2**31 else np.full(size, -1, np.int64)


@kernel
def count_in_table(first: Ints, second: Ints, taken: Indices | Ints) -> int:
    """Count the different pairs (first, second) by an empty hash table."""
    size = len(taken)
    count = 0
    for i in range(len(first)):
        mixed = np.uint64(first[i]) * _ONE + np.uint64(second[i]) * _TWO
        mixed ^= mixed >> _S29
        place = np.int64(mixed & np.uint64(size - 1))
        while taken[place] >= 0 and (first[taken[place]] != first[i] or second[taken[place]] != second[i]):
            place = (place + 1) & (size - 1)
        if taken[place] < 0:
            taken[place] = i
            count += 1
    return count


@kernel
def number_by_table(first: Ints, second: Ints, third: Ints, taken: Indices | Ints, codes: Indices | Ints) -> None:
    """Number the rows from 0 in order of appearance, rows of equal values alike, by an empty hash table."""
    size = len(taken)
    count = 0
    for i in range(len(first)):
        mixed = np.uint64(first[i]) * _ONE + np.uint64(second[i]) * _TWO
        mixed = (mixed ^ (mixed >> _S32)) * _THREE + np.uint64(third[i]) * _ONE
        mixed ^= mixed >> _S29
        mixed ^= mixed >> _S32
        place = np.int64(mixed & np.uint64(size - 1))
        while True:
            row = taken[place]
            if row < 0:
                taken[place] = i
                codes[i] = count
                count += 1
                break
            if first[row] == first[i] and second[row] == second[i] and third[row] == third[i]:
                codes[i] = codes[row]
                break
            place = (place + 1) & (size - 1)
