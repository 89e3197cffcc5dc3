"""Lists of the leaves that the trips of an origin go to, with running sums: how they are made of rows, and merged.

A list has its leaves in rising order, and BEYOND after the last one. With each leaf is the sum over all leaves before it; with
BEYOND is the sum over all. What goes to an interval of leaves is thus a difference of two entries.

Sums of rows come out in order of the leaves without sorting: a bit for each leaf that has one. Leaves are marked in words of 64
bits, and words with a mark in words of a second row, so that a few leaves of a large tree are found as fast as many of a small
one.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import LeafLists

BEYOND = 2**62
"""A leaf after all others."""


@kernel
def lowest_bit(word: int) -> int:
    """Return the position of the lowest bit of a word that is set; the word is not zero."""
    at = 0
    while not word & 1:
        word >>= 1
        at += 1
    return at


@kernel
def new_lists(size: int) -> LeafLists:
    """Allocate lists of `size` entries in all; each takes one more than it has leaves."""
    leaf, volume = np.empty(size, np.int64), np.empty(size, np.int64)
    return LeafLists(leaf, volume, np.empty(size, np.int64), np.empty(size, np.int64))


@kernel
def new_sums(leaves: int) -> tuple[Ints, Ints, Ints]:
    """Allocate sums over `leaves` leaves: three for each leaf, all zero; and the two rows of marks."""
    words = (leaves >> 6) + 1
    return np.zeros((leaves, 3), np.int64), np.zeros(words, np.int64), np.zeros((words >> 6) + 1, np.int64)


@kernel
def add(sums: Ints, marks: Ints, words: Ints, leaf: int, volume: int, crowd: int, cells: int) -> None:
    """Add to the sums of a leaf."""
    here, word = leaf, leaf >> 6
    sums[here, 0] += volume
    sums[here, 1] += crowd
    sums[here, 2] += cells
    marks[word] |= 1 << (leaf & 63)
    words[word >> 6] |= 1 << (word & 63)


@kernel
def take(sums: Ints, marks: Ints, words: Ints, lists: LeafLists, low: int) -> int:
    """Move all sums into a list that begins at `low`; return where it ends, at its last entry. The sums are zero again."""
    leaf, volume, crowd, cells = lists
    at, all_volume, all_crowd, all_cells = low, 0, 0, 0
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
                place, found = at, here
                leaf[place], volume[place], crowd[place], cells[place] = here, all_volume, all_crowd, all_cells
                all_volume += sums[found, 0]
                all_crowd += sums[found, 1]
                all_cells += sums[found, 2]
                sums[found, 0], sums[found, 1], sums[found, 2] = 0, 0, 0
                at += 1
    leaf[at], volume[at], crowd[at], cells[at] = BEYOND, all_volume, all_crowd, all_cells
    return at


@kernel
def merge_lists(lists: LeafLists, first: int, second: int, spare: LeafLists) -> int:
    """Write the merged list of two over the first of them, which lies before the second; return where it ends.

    There is nothing but the sums of both to add at each leaf of either, so that the loop needs no branch.
    """
    leaf, volume, crowd, cells = lists
    to_leaf, to_volume, to_crowd, to_cells = spare
    i, j, at, one = first, second, 0, 1
    while True:
        mine, other = leaf[i], leaf[j]
        here = min(mine, other)
        to_leaf[at] = here
        to_volume[at] = volume[i] + volume[j]
        to_crowd[at] = crowd[i] + crowd[j]
        to_cells[at] = cells[i] + cells[j]
        if here == BEYOND:
            break
        i += mine <= other
        j += other <= mine
        at += one
    count = int(at)
    for x in range(count + 1):
        leaf[first + x], volume[first + x] = to_leaf[x], to_volume[x]
        crowd[first + x], cells[first + x] = to_crowd[x], to_cells[x]
    return first + count
