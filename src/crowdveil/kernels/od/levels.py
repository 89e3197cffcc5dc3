"""OIGH: one level of a tree for origins and one for destinations; what a pair of levels suppresses, and the best pair."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import LevelRows, LevelTree

NODE, VOLUME, CROWD, MOST, HEAD = 0, 1, 2, 3, 4
COLUMNS = 5
"""Of a cell: destination, trips, crowds added up, the largest of them, its last row; the rows before it form a chain."""


@kernel
def _cut(most: int, tree: LevelTree, node_of_leaf: Ints) -> None:
    """Write for each leaf the largest node above it that has at most `most` leaves."""
    parent, size, first_leaf = tree
    root = len(parent) - 1
    for node in range(len(parent)):
        if size[node] <= most and (node == root or size[parent[node]] > most):
            node_of_leaf[first_leaf[node] : first_leaf[node] + size[node]] = node


@kernel
def _people_of(
    head: int, following: Ints, member_offsets: Ints, member: Ints, seen: Ints, mark: int, enough: int
) -> int:
    """Count the different people of a chain of rows; counting stops at `enough`."""
    people, row = 0, head
    while row >= 0:
        for e in range(member_offsets[row], member_offsets[row + 1]):
            if seen[member[e]] != mark:
                seen[member[e]] = mark
                people += 1
                if people == enough:
                    return people
        row = following[row]
    return people


@kernel
def _gather(
    start: int,
    rows: LevelRows,
    o_node: Ints,
    d_node: Ints,
    where: Ints,
    cells: Ints,
    following: Ints,
) -> tuple[int, int]:
    """Add up the rows from `start` on that share its origin by destination: how many cells, and the next row.

    Rows are sorted by the leaf of their origin, so that those of one node follow one another. `where` is -1 everywhere
    before and after.
    """
    row_o, row_d, volume, crowd = rows.origin, rows.destination, rows.volume, rows.crowd
    origin, row, found = o_node[row_o[start]], start, 0
    while row < len(row_o) and o_node[row_o[row]] == origin:
        node = d_node[row_d[row]]
        cell = where[node]
        if cell < 0:
            cell = found
            where[node] = cell
            cells[NODE, cell], cells[VOLUME, cell], cells[CROWD, cell], cells[MOST, cell] = node, 0, 0, 0
            cells[HEAD, cell] = -1
            found += 1
        cells[VOLUME, cell] += volume[row]
        cells[CROWD, cell] += crowd[row]
        cells[MOST, cell] = max(cells[MOST, cell], crowd[row])
        following[row] = cells[HEAD, cell]
        cells[HEAD, cell] = row
        row += 1
    for cell in range(found):
        where[cells[NODE, cell]] = -1
    return found, row


@kernel
def _evaluate(
    rows: LevelRows,
    o_node: Ints,
    o_size: Ints,
    d_node: Ints,
    d_size: Ints,
    k: int,
    budget: int,
    where: Ints,
    cells: Ints,
    following: Ints,
    seen: Ints,
    mark: int,
    lost_by_size: Ints,
) -> tuple[int, int, int, int]:
    """Return suppressed and published volume of a pair of levels, the total size of what is published, and the next free mark.

    Evaluation ends where more than `budget` is suppressed.
    """
    row_o, member_offsets, member = rows.origin, rows.member_offsets, rows.member
    lost, total, cost, row = 0, 0, 0, 0
    lost_by_size[:] = 0
    while row < len(row_o) and lost <= budget:
        size_here = o_size[o_node[row_o[row]]]
        found, row = _gather(row, rows, o_node, d_node, where, cells, following)
        for cell in range(found):
            reaches = cells[CROWD, cell] >= k
            if len(member) > 0 and reaches and cells[MOST, cell] < k:
                mark += 1
                reaches = _people_of(cells[HEAD, cell], following, member_offsets, member, seen, mark, k) >= k
            size = size_here + d_size[cells[NODE, cell]]
            if reaches:
                total += cells[VOLUME, cell]
                cost += size * cells[VOLUME, cell]
            else:
                lost += cells[VOLUME, cell]
                lost_by_size[size] += cells[VOLUME, cell]
    return lost, total, cost, mark


@kernel
def _bound(total: int, cost: int, lost_by_size: Ints) -> float:
    """Return a lower bound of the mean size once more is published, nothing published is taken back and no size falls."""
    size = 1
    while size < len(lost_by_size) and size * total < cost:
        total += lost_by_size[size]
        cost += size * lost_by_size[size]
        size += 1
    return cost / total


@kernel
def best_levels(
    rows: LevelRows, o_levels: Ints, o_tree: LevelTree, d_levels: Ints, d_tree: LevelTree, k: int, budget: int
) -> tuple[int, int, int]:
    """Find the pair of levels with the least mean size of a published trip among those that suppress at most `budget`.

    `o_levels` and `d_levels` are the most leaves of a node at each level, rising to the whole tree. Returns the numbers of the
    two levels, and how many pairs were evaluated. Of pairs with the same mean the one with the finest origins is taken, and of
    these the one with the finest destinations.

    Suppressed volume falls as either level coarsens, so that the pairs within the budget lie above a staircase, which is
    walked along. The mean size need not rise above it: trips that are published only at a coarser level may be finer
    than the mean. But what is published stays so, and no size falls; the mean of what is published, with all other trips
    that would lower it, is therefore a bound for all pairs that are coarser in both, and these are left out if it is no better.
    """
    member, o_size, d_size = rows.member, o_tree.size, d_tree.size
    n = len(rows.origin)
    seen, mark = np.full(_largest(member) + 1, -1, np.int64), 0
    o_node, d_node = np.empty(o_size[-1], np.int64), np.empty(d_size[-1], np.int64)
    where, cells = np.full(len(d_size), -1, np.int64), np.empty((COLUMNS, n), np.int64)
    following, lost_by_size = np.empty(n, np.int64), np.zeros(o_size[-1] + d_size[-1] + 1, np.int64)
    best, best_o, best_d = np.inf, len(o_levels) - 1, len(d_levels) - 1
    # Levels of destinations from `stair` on keep the budget; those from `limit` on can be no better.
    stair, limit, evaluated = len(d_levels), len(d_levels), 0
    for i in range(len(o_levels)):
        _cut(o_levels[i], o_tree, o_node)
        down, j = True, stair - 1
        while (down and j >= 0) or (not down and j < limit):
            end_if_stopped()
            _cut(d_levels[j], d_tree, d_node)
            lost, total, cost, mark = _evaluate(
                rows, o_node, o_size, d_node, d_size, k, budget, where, cells, following, seen, mark, lost_by_size
            )
            evaluated += 1
            if down and lost <= budget:
                stair = j
                j -= 1
                if j >= 0:
                    continue
            if down:
                down, j = False, stair
                continue
            if cost / total < best:
                best, best_o, best_d = cost / total, i, j
            if _bound(total, cost, lost_by_size) >= best:
                limit = j
            j += 1
    return best_o, best_d, evaluated


@kernel
def _largest(values: Ints) -> int:
    most = -1
    for i in range(len(values)):
        most = max(most, values[i])
    return most


@kernel
def level_boxes(
    rows: LevelRows, o_most: int, o_tree: LevelTree, d_most: int, d_tree: LevelTree
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the boxes of a pair of levels that hold trips: nodes of origin and destination, volume and crowd.

    `o_most` and `d_most` are the most leaves of a node.
    """
    row_o, member_offsets, member, o_size, d_size = (
        rows.origin,
        rows.member_offsets,
        rows.member,
        o_tree.size,
        d_tree.size,
    )
    n = len(row_o)
    seen, mark = np.full(_largest(member) + 1, -1, np.int64), 0
    o_node, d_node = np.empty(o_size[-1], np.int64), np.empty(d_size[-1], np.int64)
    _cut(o_most, o_tree, o_node)
    _cut(d_most, d_tree, d_node)
    where, cells = np.full(len(d_size), -1, np.int64), np.empty((COLUMNS, n), np.int64)
    following = np.empty(n, np.int64)
    box_o, box_d = np.empty(n, np.int64), np.empty(n, np.int64)
    box_volume, box_crowd = np.empty(n, np.int64), np.empty(n, np.int64)
    boxes, row = 0, 0
    while row < n:
        origin = o_node[row_o[row]]
        found, row = _gather(row, rows, o_node, d_node, where, cells, following)
        for cell in range(found):
            people = cells[CROWD, cell]
            if len(member) > 0:
                mark += 1
                people = _people_of(cells[HEAD, cell], following, member_offsets, member, seen, mark, people)
            box_o[boxes], box_d[boxes] = origin, cells[NODE, cell]
            box_volume[boxes], box_crowd[boxes] = cells[VOLUME, cell], people
            boxes += 1
    return box_o[:boxes].copy(), box_d[:boxes].copy(), box_volume[:boxes].copy(), box_crowd[:boxes].copy()
