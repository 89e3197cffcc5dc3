"""One matrix over two trees, from its rows to its best partition within a budget, in one call.

A data set has thousands of matrices that each take a millisecond: between calls Python would take a quarter of that, and hold its
lock. The steps are those of `boxes.BoxSpace`, which goes on from here where the partition is not good enough yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import inner_kernel, kernel, lowest_bit
from crowdveil.kernels._types import Floats, Indices, Ints
from crowdveil.kernels.od.near_search import search_near
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


class SolvedMatrix(NamedTuple):
    """The boxes of a matrix, and the partition that was found, if any; see `near_search` and `partition.spend_slack`.

    `columns` has origin, destination, volume and crowd of the boxes that are published then, in the order of all boxes: one
    array, since Python takes over each by itself.
    """

    boxes: BoxArrays
    splits: Splits
    cost: Ints
    found: bool
    p: int
    q: int
    cost_found: int
    suppressed: int
    choice: Ints
    columns: Ints
    spent: int
    saved: int


@inner_kernel
def _columns(boxes: BoxArrays, published: Ints) -> Ints:
    """Return the columns of some boxes, by their numbers rising; bits put these into order without a sort."""
    columns, at = np.empty((4, len(published)), np.int64), 0
    marks = np.zeros((len(boxes.origin) >> 6) + 1, np.int64)
    for box in published:
        marks[box >> 6] |= 1 << (box & 63)
    for word in range(len(marks)):
        while marks[word] != 0:
            i, to = np.uintp(64 * word + lowest_bit(marks[word])), np.uintp(at)
            marks[word] &= marks[word] - 1
            columns[0, to], columns[1, to] = boxes.origin[i], boxes.destination[i]
            columns[2, to], columns[3, to] = boxes.volume[i], boxes.crowd[i]
            at += 1
    return columns


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
) -> SolvedMatrix:
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
        nothing = np.empty((4, 0), np.int64)
        return SolvedMatrix(boxes, splits, cost, False, 0, 0, 0, 0, np.empty(0, np.int64), nothing, 0, 0)
    found, p_found, q, a, s, choice, published = search_near(cost, splits, budget, p, bits)
    spent, saved = 0, 0
    if found:
        worth, known = np.empty(len(splits.lost), np.float64), np.zeros(len(splits.lost), np.bool_)
        allowed = np.full(n, ANY_CHOICE, np.int8)
        published, spent, saved = spend_slack(choice, published, cost, splits, allowed, 0, budget - s, worth, known)
    columns = _columns(boxes, published)
    return SolvedMatrix(boxes, splits, cost, found, p_found, q, a, s, choice, columns, spent, saved)
