"""One matrix over two trees, from its rows to its best partition within a budget, in one call; or within several budgets.

A data set has thousands of matrices that each take a millisecond: between calls Python would take a quarter of that, and hold its
lock. The steps are those of `boxes.BoxSpace`, which goes on from here where the partition is not good enough yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import inner_kernel, kernel, lowest_bit
from crowdveil.kernels._types import Floats, Indices, Ints, Mask, Small
from crowdveil.kernels.od.near_search import complete_partitions, search_between, search_near
from crowdveil.kernels.od.partition import spend_slack
from crowdveil.kernels.od.step_rows import rows_by_origin
from crowdveil.kernels.od.structures import (
    ANY_CHOICE,
    PARTS,
    BoxArrays,
    DestinationTree,
    MatrixRows,
    OriginTree,
    Splits,
)
from crowdveil.kernels.od.tree_boxes import build_boxes


class Partition(NamedTuple):
    """The best partition of a multiplier p/q, if one was found; see `near_search` and `partition.spend_slack`.

    Its cost and suppressed volume; how many trips of the rest of the budget were spent, and the cost that this saved; then what
    becomes of each box. `columns` has origin, destination, volume and crowd of the boxes that are published then, in the order of
    all boxes: one array, since Python takes over each by itself.
    """

    found: bool
    p: int
    q: int
    cost: int
    suppressed: int
    spent: int
    saved: int
    choice: Ints
    columns: Ints


@inner_kernel
def _put_columns(boxes: BoxArrays, published: Ints, columns: Ints) -> None:
    """Fill in the columns of some boxes, by their numbers rising; bits put these into order without a sort."""
    at, marks = 0, np.zeros((len(boxes.origin) >> 6) + 1, np.int64)
    for box in published:
        marks[box >> 6] |= 1 << (box & 63)
    for word in range(len(marks)):
        while marks[word] != 0:
            i, to = np.uintp(64 * word + lowest_bit(marks[word])), np.uintp(at)
            marks[word] &= marks[word] - 1
            columns[0, to], columns[1, to] = boxes.origin[i], boxes.destination[i]
            columns[2, to], columns[3, to] = boxes.volume[i], boxes.crowd[i]
            at += 1


@inner_kernel
def _nothing_known(splits: Splits, boxes: int) -> tuple[Floats, Mask, Small]:
    """Return what `spend_slack` notes of splits, and that boxes may do anything."""
    n = len(splits.lost)
    return np.empty(n, np.float64), np.zeros(n, np.bool_), np.full(boxes, ANY_CHOICE, np.int8)


@kernel
def solve_matrix(
    origin_tree: OriginTree,
    destination_tree: DestinationTree,
    o_cost: Ints,
    d_cost: Ints,
    k: int,
    origin: Indices,
    destination: Indices,
    volume: Ints,
    crowd: Ints,
    budget: int,
    bits: int,
    near: float,
    share: float,
    parts: Floats,
    largest: int,
) -> tuple[BoxArrays, Splits, Ints, Partition]:
    """Build the boxes of a matrix, find the best partition within a budget above 0, and spend what it leaves.

    The multipliers that are tried first are `parts` of `near`, or where `share` is not 0 of that share of what a trip costs if
    nothing is split. Nothing is tried where the last of them, in PARTS, is above `largest`, or where there are no boxes. `bits`
    are those of the number of trips.
    """
    offsets, _, _ = rows_by_origin(origin, volume, len(destination_tree.tile_leaf))
    rows = MatrixRows(offsets, destination, volume, crowd)
    boxes, splits, cost = build_boxes(rows, None, origin_tree, destination_tree, o_cost, d_cost, False, k)
    n = len(cost)
    p = np.empty(len(parts), np.int64)
    if n > 0:
        middle = near if share == 0 else share * cost[n - 1] / max(boxes.volume[n - 1], 1)
        for at in range(len(parts)):
            p[at] = max(int(round(middle * parts[at] * PARTS)), 1)
    if n == 0 or p[-1] > largest:
        nothing = Partition(False, 0, 0, 0, 0, 0, 0, np.empty(0, np.int64), np.empty((4, 0), np.int64))
        return boxes, splits, cost, nothing
    # Typed, since a function that is called with a literal is compiled once more for it.
    no_cost, spent, saved = int(np.int64(0)), 0, 0
    kept, at_p, q, a, s, choice, published = search_near(cost, splits, budget, p, bits)
    if kept:
        worth, known, allowed = _nothing_known(splits, n)
        given = choice, published, cost, splits, allowed
        published, spent, saved = spend_slack(*given, no_cost, budget - s, worth, known)
    columns = np.empty((4, len(published)), np.int64)
    _put_columns(boxes, published, columns)
    return boxes, splits, cost, Partition(kept, at_p, q, a, s, spent, saved, choice, columns)


@kernel
def solve_budgets(
    boxes: BoxArrays, splits: Splits, cost: Ints, lost_cost: int, budgets: Ints, keys: Ints, tried: Ints, bits: int
) -> tuple[Ints, Ints, Ints]:
    """Find the best partition within each of several budgets, and spend what it leaves.

    A row of `tried` has what `near_search.Ends` has of the multipliers that a budget lies between. Returned are a table with a
    row for each budget, the numbers of its `Partition` and where its columns end; choices of the boxes of each partition; and
    the columns of all, one after the other.
    """
    count, n = len(budgets), len(cost)
    table, choices = np.zeros((count, 8), np.int64), np.empty((count, n), np.int64)
    is_open = np.zeros((count, (n >> 6) + 1), np.int64)
    for at in range(count):
        given = tried[at], bits, True, is_open[at], choices[at]
        found, p, q, a, s = search_between(cost, splits, budgets[at], keys, *given)
        table[at, 0], table[at, 1], table[at, 2], table[at, 3], table[at, 4] = found, p, q, a, s
    published, first = complete_partitions(splits, keys, tried, bits, is_open, choices)
    worth, known, allowed = _nothing_known(splits, n)
    last = first.copy()
    for at in range(count):
        last[at] = n
        if table[at, 0]:
            partition = choices[at], published[at, first[at] :], cost, splits, allowed
            after, spent, saved = spend_slack(*partition, lost_cost, budgets[at] - table[at, 4], worth, known)
            first[at], last[at] = 0, len(after)
            published[at, : len(after)] = after
            table[at, 5], table[at, 6] = spent, saved
    columns, end = np.empty((4, (last - first).sum()), np.int64), 0
    for at in range(count):
        begin, end = end, end + last[at] - first[at]
        _put_columns(boxes, published[at, first[at] : last[at]], columns[:, begin:end])
        table[at, 7] = end
    return table, choices, columns
