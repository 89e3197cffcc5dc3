"""Combinations of visits: list them, and find which visits must go so that none is shared by few.

A combination is a selection of visits of one trajectory, in order and not necessarily one after the other. It is one number: the
symbols of up to three visits, or the places of two pairs in `pairs`, the sorted list of all that occur.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Bytes, Ints, Mask

PUBLISHED, SUPPRESSED, MERGED = 0, 1, 2
LARGEST = 4
"""Most visits of a combination."""


@kernel
def _head(chosen: Ints, size: int, first: int, symbol: Ints, symbols: int, pairs: Ints) -> int:
    """Return one number for all visits but the last one, or for the first two of four; a pair is its place in `pairs`."""
    if size == 1:
        return 0
    head: int = symbol[first + chosen[0]]
    if size == 2:
        return head
    return int(np.searchsorted(pairs, head * symbols + symbol[first + chosen[1]]))


@kernel
def _key(head: int, size: int, third: int, last: int, symbols: int, pairs: Ints) -> int:
    """Return one number for a combination, from its head, the third symbol of four, and its last symbol."""
    if size < LARGEST:
        return head * symbols + last
    return head * len(pairs) + int(np.searchsorted(pairs, third * symbols + last))


@kernel
def _next(chosen: Ints, size: int, length: int) -> bool:
    """Go to the next selection of places below `length`, in lexicographic order; False after the last one."""
    i = size - 1
    while i >= 0 and chosen[i] == length - size + i:
        i -= 1
    if i < 0:
        return False
    chosen[i] += 1
    for j in range(i + 1, size):
        chosen[j] = chosen[j - 1] + 1
    return True


@kernel
def list_combinations(
    size: int, block: int, blocks: int, symbol: Ints, symbols: int, offsets: Ints, pairs: Ints
) -> tuple[Ints, Ints]:
    """Return each occurrence of a combination of a size whose first symbol is of a block, and its trajectory, in order of
    trajectories.
    """
    keys, trajectory = np.empty(1 << 12, np.int64), np.empty(1 << 12, np.int64)
    chosen = np.empty(LARGEST, np.int64)
    n = 0
    for i in range(len(offsets) - 1):
        first, length = offsets[i], offsets[i + 1] - offsets[i]
        if length < size:
            continue
        for j in range(size - 1):
            chosen[j] = j
        going = True
        while going:
            if size > 1 and symbol[first + chosen[0]] % blocks != block:
                # All that begin with this visit are another block's: go to the last of them.
                for j in range(1, size - 1):
                    chosen[j] = length - size + j
                going = _next(chosen, size - 1, length - 1)
                continue
            head = _head(chosen, size, first, symbol, symbols, pairs)
            third = symbol[first + chosen[2]] if size == LARGEST else 0
            keys, trajectory = grow(keys, n + length), grow(trajectory, n + length)
            for j in range(chosen[size - 2] + 1 if size > 1 else 0, length):
                if size > 1 or symbol[first + j] % blocks == block:
                    keys[n] = _key(head, size, third, symbol[first + j], symbols, pairs)
                    trajectory[n] = i
                    n += 1
            going = _next(chosen, size - 1, length - 1)
    return keys[:n], trajectory[:n]


@kernel
def _merge_around(gone: int, first: int, length: int, symbol: Ints, fate: Bytes) -> None:
    """Merge the visits on both sides of a removed visit if they are of one symbol."""
    before = gone - 1
    while before >= 0 and fate[first + before] != PUBLISHED:
        before -= 1
    after = gone + 1
    while after < length and fate[first + after] != PUBLISHED:
        after += 1
    if before >= 0 and after < length and symbol[first + before] == symbol[first + after]:
        fate[first + after] = MERGED


@kernel
def break_combinations(
    size: int, symbol: Ints, symbols: int, offsets: Ints, pairs: Ints, good: Ints
) -> tuple[Bytes, int]:
    """Remove visits until all combinations of a size are in the sorted list `good`; return the fate of each visit, and how many
    trajectories change.

    In each trajectory the visit that is in most bad combinations goes first, the earliest of equals, until none is bad. Each
    visit is in as many combinations as any other, so that it is also the one in fewest good ones. Visits that come to follow
    one another and are of one symbol become one. A trajectory without a good combination is suppressed.
    """
    fate = np.zeros(len(symbol), np.uint8)
    chosen = np.empty(LARGEST, np.int64)
    changed = 0
    for i in range(len(offsets) - 1):
        first, length = offsets[i], offsets[i + 1] - offsets[i]
        if length < size:
            continue
        total = 1
        for j in range(size):
            total = total * (length - j) // (j + 1)
        bad = np.zeros(total, np.bool_)
        for j in range(size - 1):
            chosen[j] = j
        number, bads, going = 0, 0, True
        while going:
            head = _head(chosen, size, first, symbol, symbols, pairs)
            third = symbol[first + chosen[2]] if size == LARGEST else 0
            for j in range(chosen[size - 2] + 1 if size > 1 else 0, length):
                key = _key(head, size, third, symbol[first + j], symbols, pairs)
                place = np.searchsorted(good, key)
                if place == len(good) or good[place] != key:
                    bad[number] = True
                    bads += 1
                number += 1
            going = _next(chosen, size - 1, length - 1)
        if bads == 0:
            continue
        changed += 1
        if bads == total:
            for j in range(length):
                fate[first + j] = SUPPRESSED
            continue
        _break_one(size, first, length, symbol, bad, chosen, fate)
    return fate, changed


@kernel
def _break_one(size: int, first: int, length: int, symbol: Ints, bad: Mask, chosen: Ints, fate: Bytes) -> None:
    """Remove visits of one trajectory until none of its combinations is bad."""
    within = np.empty(length, np.int64)
    while True:
        within[:] = 0
        for j in range(size):
            chosen[j] = j
        for number in range(len(bad)):
            if bad[number]:
                published = True
                for j in range(size):
                    published = published and fate[first + chosen[j]] == PUBLISHED
                if published:
                    for j in range(size):
                        within[chosen[j]] += 1
                else:
                    bad[number] = False
            _next(chosen, size, length)
        worst = 0
        for j in range(length):
            if within[j] > within[worst]:
                worst = j
        if within[worst] == 0:
            return
        fate[first + worst] = SUPPRESSED
        after = worst + 1
        while after < length and fate[first + after] != PUBLISHED:
            # Visits that were merged with it go, too.
            fate[first + after] = SUPPRESSED
            after += 1
        _merge_around(worst, first, length, symbol, fate)
