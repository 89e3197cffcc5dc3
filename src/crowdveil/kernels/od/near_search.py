"""Search for the multiplier that keeps a budget where similar boxes tell about what it is.

One pass over all boxes tries several multipliers (`several_multipliers`). Few boxes then differ between the two nearest to the
budget, and only these are evaluated at the multipliers that follow (`partition.search`).
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints, Small
from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, MAX_GUESSES, TRIED, TRIES, P, Q, begin_search, judge
from crowdveil.kernels.od.partition import search
from crowdveil.kernels.od.several_multipliers import evaluate_keys, read_key
from crowdveil.kernels.od.structures import COLUMNS, PARTS, PUBLISH, SearchArrays, Splits


@kernel
def _settled_choice(i: int, cost: Ints, splits: Splits, keys: Ints, column: int, p: int, bits: int) -> int:
    """Return what becomes of a box at a multiplier: the first choice with the best key; staying whole comes before splits."""
    key = keys[COLUMNS * i + column]
    if key == cost[i] * (PARTS << bits):
        return PUBLISH
    for split in range(splits.offsets[i], splits.offsets[i + 1] - 1):
        option = splits.lost[split] * ((p << bits) + 1)
        for e in range(splits.link_offsets[split], splits.link_offsets[split + 1]):
            option += keys[COLUMNS * splits.link[e] + column]
        if option == key:
            return split
    last: int = splits.offsets[i + 1] - 1
    return last


@kernel
def _open_boxes(splits: Splits, keys: Ints, p: Ints, bits: int, left: int, right: int, arrays: SearchArrays) -> Ints:
    """Return the boxes that may change between the multipliers of two columns, of those that a partition may need.

    Others have the same suppressed volume at both, thus the same partition in between: what it costs goes into `arrays.best`. No
    column is before the first: then all boxes are open; beyond the last nothing is suppressed.
    """
    best, on_left, on_right = arrays.best, arrays.left, arrays.right
    n, mask = len(splits.offsets) - 1, (1 << bits) - 1
    known = min(right, COLUMNS - 1)
    reached = np.zeros(n, np.bool_)
    opened, at = np.empty(n, np.int64), n
    reached[n - 1] = True
    for i in range(n - 1, -1, -1):
        if not reached[i]:
            continue
        on_right[i] = keys[COLUMNS * i + right] & mask if right < COLUMNS else 0
        on_left[i] = keys[COLUMNS * i + left] & mask if left >= 0 else on_right[i] + 1
        if on_left[i] == on_right[i]:
            best[2 * i], best[2 * i + 1] = read_key(keys[COLUMNS * i + known], p[known], bits)
            continue
        at -= 1
        opened[at] = i
        for e in range(splits.link_offsets[splits.offsets[i]], splits.link_offsets[splits.offsets[i + 1]]):
            reached[splits.link[e]] = True
    return opened[at:]


@kernel
def _add_settled_choices(
    cost: Ints, splits: Splits, keys: Ints, column: int, p: int, bits: int, opened: Ints, choice: Ints
) -> Ints:
    """Add the choices of all boxes of a partition that were not open, those at the multiplier of a column; return the boxes that
    it publishes, rising.
    """
    n = len(cost)
    reached, settled = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    for i in opened:
        settled[i] = False
    published, at = np.empty(n, np.int64), n
    reached[n - 1] = True
    for i in range(n - 1, -1, -1):
        if not reached[i]:
            continue
        if settled[i]:
            choice[i] = _settled_choice(i, cost, splits, keys, column, p, bits)
        if choice[i] == PUBLISH:
            at -= 1
            published[at] = i
        else:
            for e in range(splits.link_offsets[choice[i]], splits.link_offsets[choice[i] + 1]):
                reached[splits.link[e]] = True
    return published[at:].copy()


@kernel
def search_near(
    cost: Ints, volume: Ints, splits: Splits, allowed: Small, budget: int, p: Ints, bits: int
) -> tuple[bool, int, int, int, int, Ints, Ints]:
    """Find the multiplier whose best partition suppresses at most `budget` trips, as `partition.search` does.

    The multipliers p / PARTS, COLUMNS of them, are tried first, in one pass; they rise. Boxes may all be published and split in
    any way, and keys have `bits` for a suppressed volume. Returned are also what becomes of each box, and those published.
    """
    n = len(cost)
    keys, notes = np.empty(COLUMNS * n, np.int64), begin_search(p[0], int(np.int64(PARTS)))
    arrays = SearchArrays(
        np.empty(2 * n, np.int64), np.full(n, PUBLISH, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    )
    evaluate_keys(cost, splits, p, bits, keys)
    left = int(np.int64(-1))  # typed, since kernels that are called with a literal are compiled once more for it
    for column in range(COLUMNS):
        if read_key(keys[COLUMNS * (n - 1) + column], p[column], bits)[1] > budget:
            left = column
    right, verdict, a, s = left + 1, GO_ON, 0, 0
    if 0 < right < COLUMNS:
        notes[TRIES] = MAX_GUESSES  # where the lines of both meet is nearer to the answer than a guess
    for column in range(max(left, 0), min(right + 1, COLUMNS)):
        notes[TRIED + P], notes[TRIED + Q] = p[column], PARTS
        a, s = read_key(keys[COLUMNS * (n - 1) + column], p[column], bits)
        verdict = judge(notes, a, s, budget)
    known = min(right, COLUMNS - 1)
    found, opened = (True, p[known], PARTS, a, s), np.empty(0, np.int64)
    if verdict != FOUND:
        opened = _open_boxes(splits, keys, p, bits, left, right, arrays)
        found = search(opened, cost, volume, splits, allowed, budget, notes, arrays)
    published = _add_settled_choices(cost, splits, keys, known, p[known], bits, opened, arrays.choice)
    return found[0], found[1], found[2], found[3], found[4], arrays.choice, published
