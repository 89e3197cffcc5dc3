"""Combinations of visits: how many owners share each, and which visits must go so that none is shared by few.

A combination is a selection of visits of one trajectory, in order and not necessarily one after the other. Tables of combinations
are hash tables with open addressing, in arrays whose length is a power of two: `keys` (-1: free), and with each key the owners
that were counted and the last one of them. Trajectories come in the order of their owners, so that an owner is counted once.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Bytes, Ints, Mask

PUBLISHED, SUPPRESSED, MERGED = 0, 1, 2
LARGEST = 4
"""Most visits of a combination."""
_SPREAD = -7046029254386353131
"""2^64 over the golden ratio, as a number with a sign."""


@kernel
def _find(key: int, keys: Ints) -> int:
    """Return the position of a key, or the free position where it would be."""
    mask = len(keys) - 1
    at = ((key * _SPREAD) >> 31) & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel
def _grow_table(keys: Ints, count: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the same table with twice the length."""
    new_keys = np.full(2 * len(keys), -1, np.int64)
    new_count = np.zeros(2 * len(keys), np.int64)
    new_last = np.full(2 * len(keys), -1, np.int64)
    for i in range(len(keys)):
        if keys[i] >= 0:
            at = _find(keys[i], new_keys)
            new_keys[at], new_count[at], new_last[at] = keys[i], count[i], last[i]
    return new_keys, new_count, new_last


@kernel
def _head(chosen: Ints, size: int, first: int, symbol: Ints, symbols: int, pairs: Ints) -> int:
    """Return one number for all visits of a combination but the last, or but the last two of four; pairs are identified by
    their position.
    """
    if size == 1:
        return 0
    head: int = symbol[first + chosen[0]]
    if size == 2:
        return head
    return _find(head * symbols + symbol[first + chosen[1]], pairs)


@kernel
def _key(head: int, size: int, third: int, last: int, symbols: int, pairs: Ints) -> int:
    """Return one number for a combination, from its head, the third symbol of four, and its last symbol."""
    if size < LARGEST:
        return head * symbols + last
    return head * len(pairs) + _find(third * symbols + last, pairs)


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
def count_combinations(
    size: int, block: int, blocks: int, symbol: Ints, symbols: int, offsets: Ints, owner: Ints, pairs: Ints
) -> tuple[Ints, Ints]:
    """Return the combinations of a size whose first symbol is of a block, as a table: keys, and how many owners have each."""
    keys = np.full(1 << 12, -1, np.int64)
    count = np.zeros(1 << 12, np.int64)
    last = np.full(1 << 12, -1, np.int64)
    chosen = np.empty(LARGEST, np.int64)
    used = 0
    for i in range(len(owner)):
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
            for j in range(chosen[size - 2] + 1 if size > 1 else 0, length):
                if size == 1 and symbol[first + j] % blocks != block:
                    continue
                key = _key(head, size, third, symbol[first + j], symbols, pairs)
                at = _find(key, keys)
                if keys[at] < 0:
                    keys[at] = key
                    used += 1
                if last[at] != owner[i]:
                    last[at] = owner[i]
                    count[at] += 1
                if 2 * used > len(keys):
                    keys, count, last = _grow_table(keys, count, last)
            going = _next(chosen, size - 1, length - 1)
    return keys, count


@kernel
def table_of(values: Ints) -> Ints:
    """Build a table of keys alone."""
    length = 1 << 4
    while length < 2 * len(values) + 1:
        length *= 2
    keys = np.full(length, -1, np.int64)
    for i in range(len(values)):
        keys[_find(values[i], keys)] = values[i]
    return keys


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
    """Remove visits until all combinations of a size are in the table `good`; return the fate of each visit, and how many
    trajectories change.

    In each trajectory the visit that is in most bad combinations goes first, the earliest of equals, until none is bad. Each
    visit is in as many combinations as any other, so that it is also the one in fewest good ones. Visits that come to follow
    one another and are of one symbol become one. A trajectory without a good combination goes whole.
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
                if good[_find(key, good)] != key:
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
    """Let visits of one trajectory go until no combination that is left is bad."""
    within = np.empty(length, np.int64)
    while True:
        within[:] = 0
        for j in range(size):
            chosen[j] = j
        for number in range(len(bad)):
            if bad[number]:
                there = True
                for j in range(size):
                    there = there and fate[first + chosen[j]] == PUBLISHED
                if there:
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
            # What had become one with it goes with it.
            fate[first + after] = SUPPRESSED
            after += 1
        _merge_around(worst, first, length, symbol, fate)
