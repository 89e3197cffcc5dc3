"""Sums by leaf that come out in order of the leaves, without sorting: a bit for each leaf that has one.

Leaves are marked in words of 64 bits, and words with a mark in words of a second row, so that a few leaves of a large tree are
found as fast as many of a small one.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel, lowest_bit
from crowdveil.kernels._types import Ints


@kernel
def new_sums(leaves: int) -> tuple[Ints, Ints, Ints]:
    """Allocate sums over `leaves` leaves: three for each leaf, all zero; and the two rows of marks."""
    words = (leaves >> 6) + 1
    return np.zeros((leaves, 3), np.int64), np.zeros(words, np.int64), np.zeros((words >> 6) + 1, np.int64)


@kernel
def add(sums: Ints, marks: Ints, words: Ints, leaf: int, volume: int, crowd: int, cells: int) -> None:
    """Add to the sums of a leaf."""
    # Indices are unsigned: others would each be tested for being counted from the end.
    here, word = np.uintp(leaf), leaf >> 6
    sums[here, 0] += volume
    sums[here, 1] += crowd
    sums[here, 2] += cells
    marks[np.uintp(word)] |= 1 << (leaf & 63)
    words[np.uintp(word >> 6)] |= 1 << (word & 63)


@kernel
def take(sums: Ints, marks: Ints, words: Ints, leaf: Ints, volume: Ints, crowd: Ints, cells: Ints, low: int) -> int:
    """Move all sums into lists, by rising leaf, from position `low` on; return where they end. The sums are zero again."""
    at = low
    for row in range(len(words)):
        some = words[row]
        words[row] = 0
        while some != 0:
            word = 64 * row + lowest_bit(some)
            some &= some - 1
            left = marks[word]
            marks[word] = 0
            while left != 0:
                here = 64 * word + lowest_bit(left)
                left &= left - 1
                place, found = np.uintp(at), np.uintp(here)
                leaf[place], volume[place] = here, sums[found, 0]
                crowd[place], cells[place] = sums[found, 1], sums[found, 2]
                sums[found, 0], sums[found, 1], sums[found, 2] = 0, 0, 0
                at += 1
    return at
