"""Groups of trajectories at a small log cost: the trajectory that is drawn gathers the nearest ones, until k people are together.

Candidates wait in a heap by a bound of their cost from below, and only that of the first in it is made better: by the whole, by
chunks, by rough logs, and at last the cost itself. When the boxes that stand for a group take one more member some go and the
others get larger, so that matches with any other save less than before: bounds stay bounds while a group grows.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.log_cost import best_saving, put_together
from crowdveil.kernels.trajectory.log_cost_bounds import (
    CHUNKS,
    FINE,
    SURE,
    SURE_COST,
    bound_by_chunks,
    bound_by_rough_logs,
    bound_by_whole,
    evenly_saved,
    slack,
    suffix_bounds,
    summarize,
)

Costs = tuple[float, float, float]

BY_WHOLE, BY_CHUNKS, BY_ROUGH_LOGS, KNOWN = 0, 1, 2, 3
"""How well the cost of a candidate is known."""


@kernel
def _sift(heap: Ints, size: int, at: int, cost: Floats) -> None:
    """Put one that may have become dearer into its place; of equal costs the smaller number comes first."""
    one = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = heap[child]
        if child + 1 < size:
            next_one = heap[child + 1]
            if cost[next_one] < cost[other] or (cost[next_one] == cost[other] and next_one < other):
                other = next_one
                child += 1
        if cost[one] < cost[other] or (cost[one] == cost[other] and one < other):
            break
        heap[at] = other
        at = child
    heap[at] = one


@kernel
def _heapify(heap: Ints, size: int, cost: Floats) -> None:
    for at in range(size // 2 - 1, -1, -1):
        _sift(heap, size, at, cost)


@kernel
def _rough_or_less(
    rows: Floats, low: int, high: int, columns: Floats, begin: int, end: int, costs: Costs, enough: float
) -> tuple[float, float]:
    """Return a bound of what matches of two sequences save, and what some matches are sure to save.

    The bound is at most `enough`, or what those matches save, where no matches save more than that. Rows are the shorter one.
    """
    p, q = high - low, end - begin
    sure = evenly_saved(rows, low, high, columns, begin, end, costs) - slack(p, costs)
    needed = max(enough, sure)
    count = max(q // FINE, 1)
    fine, table = np.empty((9, count)), np.empty((count + 1, p + 1))
    summarize(columns, begin, end, fine, 0, count)
    line, row = np.empty(q), np.empty(max(p, q))
    if suffix_bounds(rows, low, high, fine, count, costs, table, row) + slack(p, costs) < needed:
        return needed, sure
    most = bound_by_rough_logs(rows, low, high, columns, begin, end, costs, line, row, table, needed)
    return most, max(sure, most - 3 * slack(p, costs)) if most > needed else sure


@kernel
def bring_nearest(
    heap: Ints, size: int, cost: Floats, known: Ints, own: Floats, p: int, own_chunks: Floats,
    boxes: Floats, offsets: Ints, chunks: Floats, costs: Costs, computed: Ints,
) -> None:  # fmt: skip
    """Bring the candidate of least cost to the front of the heap; of equal costs the one with the smaller number.

    `cost` is that of each candidate, less what the p boxes of `own` cost if they are left out, which is the same for all.
    """
    # What the nearest one is sure to cost at most: others are given up as soon as they are sure to cost more.
    line, limit = np.empty(p), np.inf
    while known[heap[0]] != KNOWN:
        j = heap[0]
        low, high = offsets[j], offsets[j + 1]
        q = high - low
        if q > len(line):
            line = np.empty(2 * q)
        how = known[j] + 1
        enough = q * costs[0] - limit
        if how == BY_ROUGH_LOGS:
            if p <= q:
                most, sure = _rough_or_less(own, 0, p, boxes, low, high, costs, enough)
            else:
                most, sure = _rough_or_less(boxes, low, high, own, 0, p, costs, enough)
            limit = min(limit, q * costs[0] - sure)
        elif how == BY_CHUNKS:
            if p <= q:
                most = bound_by_chunks(own, 0, p, chunks, CHUNKS * j, min(CHUNKS, q), costs, line)
            else:
                most = bound_by_chunks(boxes, low, high, own_chunks, 0, min(CHUNKS, p), costs, line)
        elif p <= q:
            most = best_saving(own, 0, p, boxes, low, high, costs, line)
        else:
            most = best_saving(boxes, low, high, own, 0, p, costs, line)
        known[j] = how
        cost[j] = q * costs[0] - most if how == KNOWN else max(cost[j], q * costs[0] - most)
        computed[how] += 1
        _sift(heap, size, 0, cost)


@kernel
def begin(
    heap: Ints, size: int, cost: Floats, known: Ints, own: Floats, p: int, offsets: Ints, whole: Floats, costs: Costs
) -> None:
    """Make a heap of candidates by the first bound."""
    own_whole = np.empty((9, 1))
    summarize(own, 0, p, own_whole, 0, 1)
    for at in range(size):
        j = heap[at]
        q = offsets[j + 1] - offsets[j]
        cost[j] = q * costs[0] - bound_by_whole(own_whole, whole, j, min(p, q), costs)
        known[j] = BY_WHOLE
    _heapify(heap, size, cost)


@kernel
def _begin_anew(heap: Ints, size: int, cost: Floats, known: Ints, offsets: Ints, costs: Costs) -> None:
    """Take what was known of costs for bounds of what they are now."""
    for at in range(size):
        j = heap[at]
        if known[j] == KNOWN:
            cost[j] -= 2 * (offsets[j + 1] - offsets[j]) * costs[0] * (SURE - 1) + SURE_COST
        known[j] = BY_WHOLE
    _heapify(heap, size, cost)


@kernel
def gather(
    pivot: int, alive: Ints, k: int, growing: bool, person: Ints, boxes: Floats, offsets: Ints, chunks: Floats,
    whole: Floats, costs: Costs, computed: Ints,
) -> tuple[Ints, Floats]:  # fmt: skip
    """Return the members of a group, in the order in which they come, and the boxes that stand for them.

    The pivot takes the one of `alive` that costs least, and so on until k people are in the group. With `growing` costs are
    those to the boxes of all members, otherwise those to the pivot. `computed` counts bounds and costs by how they are known.
    """
    p = offsets[pivot + 1] - offsets[pivot]
    made = boxes[:, offsets[pivot] : offsets[pivot + 1]].copy()
    own = made if growing else made.copy()
    left = p
    own_chunks = np.empty((9, CHUNKS))
    summarize(own, 0, p, own_chunks, 0, min(CHUNKS, p))
    cost, known = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1, np.int64)
    heap, size = np.empty(len(alive), np.int64), 0
    for j in alive:
        if j != pivot:
            heap[size] = j
            size += 1
    begin(heap, size, cost, known, own, p, offsets, whole, costs)
    members, count, people = np.empty(size + 1, np.int64), 1, 1
    members[0] = pivot
    while people < k and size > 0:
        bring_nearest(
            heap, size, cost, known, own, left if growing else p, own_chunks, boxes, offsets, chunks, costs, computed
        )
        j = heap[0]
        is_new = True
        for i in range(count):
            is_new = is_new and person[members[i]] != person[j]
        people += is_new
        members[count] = j
        count += 1
        left = put_together(made, left, boxes, offsets[j], offsets[j + 1], costs)
        size -= 1
        heap[0] = heap[size]
        if growing:
            summarize(own, 0, left, own_chunks, 0, min(CHUNKS, left))
            _begin_anew(heap, size, cost, known, offsets, costs)
        elif size > 0:
            _sift(heap, size, 0, cost)
    return members[:count].copy(), made[:, :left].copy()


@kernel
def nearest(
    own: Floats, boxes: Floats, offsets: Ints, chunks: Floats, whole: Floats, costs: Costs, computed: Ints
) -> int:
    """Find the one of some sequences that costs least to be put together with `own`; of equal ones the first."""
    p, n = own.shape[1], len(offsets) - 1
    own_chunks = np.empty((9, CHUNKS))
    summarize(own, 0, p, own_chunks, 0, min(CHUNKS, p))
    cost, known, heap = np.empty(n), np.empty(n, np.int64), np.arange(n)
    begin(heap, n, cost, known, own, p, offsets, whole, costs)
    bring_nearest(heap, n, cost, known, own, p, own_chunks, boxes, offsets, chunks, costs, computed)
    return int(heap[0])
