"""Matrices with their origins given, or cut to a target volume: each origin is the root of a tree of destinations."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.box_arrays import new_nodes
from crowdveil.kernels.od.leaf_sums import add, new_lists, new_sums, take
from crowdveil.kernels.od.structures import DestinationTree, ForestBoxes, MatrixRows, OriginTree, PeoplePairs
from crowdveil.kernels.od.tree_walk import count_people, walk_destinations


@kernel
def best_origins(tree: OriginTree, leaving: Ints, target: float) -> Ints:
    """Cut a tree into the nodes with the least sum of (target − outgoing)²; `leaving` has the trips from each tile.

    A node is split only if all its children are large enough to be published.
    """
    child_offsets, children, first_leaf, leaf_tile = tree.child_offsets, tree.children, tree.first_leaf, tree.leaf_tile
    n = len(first_leaf)
    outgoing = np.empty(n, np.int64)
    best = np.empty(n, np.float64)
    split = np.zeros(n, np.bool_)
    for node in range(n):
        below, total, large = 0.0, 0, True
        for e in range(child_offsets[node], child_offsets[node + 1]):
            below += best[children[e]]
            total += outgoing[children[e]]
            large = large and tree.large_enough[children[e]] != 0
        if child_offsets[node + 1] == child_offsets[node]:
            total = leaving[leaf_tile[first_leaf[node]]]
        outgoing[node] = total
        best[node] = (target - total) ** 2
        if large and child_offsets[node + 1] > child_offsets[node] and below < best[node]:
            best[node] = below
            split[node] = True
    reached = np.zeros(n, np.bool_)
    reached[n - 1] = True
    found = 0
    for node in range(n - 1, -1, -1):
        if not reached[node]:
            continue
        if split[node]:
            reached[node] = False
            for e in range(child_offsets[node], child_offsets[node + 1]):
                reached[children[e]] = True
        else:
            found += 1
    origins = np.empty(found, np.int64)
    found = 0
    for node in range(n):
        if reached[node]:
            origins[found] = node
            found += 1
    return origins


@kernel
def _longer_table(table: Ints, used: int, needed: int) -> Ints:
    """Return a copy of the first `used` columns of a table with room for at least `needed`."""
    longer = np.empty((len(table), max(needed, 2 * table.shape[1])), np.int64)
    for row in range(len(table)):
        for i in range(used):
            longer[row, i] = table[row, i]
    return longer


@kernel
def build_forest(
    origin_tree: OriginTree,
    o_cost: Ints,
    destination_tree: DestinationTree,
    d_cost: Ints,
    rows: MatrixRows,
    pairs: PeoplePairs,
    origins: Ints,
    scale: int,
    k: int,
) -> ForestBoxes:
    """Build the boxes with a crowd of at least k for given origins, each origin the root of a tree of destinations.

    Parameters
    ----------
    o_cost, d_cost
        What each node of origins and of destinations costs a trip.
    pairs
        People by origin, in the order of `origins`.
    origins
        The nodes that are origins, rising, which hold each tile once.
    scale
        What costs are multiplied with.
    """
    row_offsets, row_tile, row_volume, row_crowd = rows
    pair_offsets, pair_person, pair_leaf = pairs
    o_first, o_leaf_tile = origin_tree.first_leaf, origin_tree.leaf_tile
    d_tile_leaf, d_is_leaf = destination_tree.tile_leaf, destination_tree.is_leaf
    leaves, parts = len(destination_tree.anchor), len(origins)
    with_people = len(pair_offsets) > 1
    widest = min(leaves, len(row_tile))
    lists = new_lists(widest + 1)
    sums, marks, words = new_sums(leaves)
    gain = np.zeros(len(d_cost), np.int64)
    stack = np.empty((destination_tree.depth + 2, 6), np.int64)
    nodes = new_nodes(2 * widest + 1)
    table = np.empty((7, max(16, len(row_tile))), np.int64)
    boxes, gone = 0, 0
    for part in range(parts):
        end_if_stopped()
        origin = origins[part]
        total = 0
        end = o_first[origins[part + 1]] if part + 1 < parts else len(o_leaf_tile)
        for i in range(o_first[origin], end):
            tile = o_leaf_tile[i]
            for row in range(np.uintp(row_offsets[tile]), np.uintp(row_offsets[tile + 1])):
                trips = row_volume[row]
                add(sums, marks, words, d_tile_leaf[np.uintp(row_tile[row])], trips, row_crowd[row], 1)
                total += trips
        # Taken even if all flows are rounded to 0 trips: left in the sums, their crowd would be counted for the next origin.
        n = take(sums, marks, words, lists, 0)
        if total == 0:
            continue
        if with_people:
            low, high = pair_offsets[part], pair_offsets[part + 1]
            count_people(pair_person, pair_leaf, low, high, destination_tree, gain)
        found = walk_destinations(lists, 0, n, gain, with_people, destination_tree, k, stack, nodes, 0)
        if found == 0:
            gone += total
            continue
        if boxes + found > table.shape[1]:
            table = _longer_table(table, boxes, boxes + found)
        for i in range(found):
            # Indices are unsigned: others would each be tested for being counted from the end.
            here, at = np.uintp(i), np.uintp(boxes + i)
            node, trips = nodes.node[here], nodes.volume[here]
            table[0, at], table[1, at], table[2, at], table[3, at] = part, node, trips, nodes.crowd[here]
            table[4, at] = (o_cost[origin] + d_cost[np.uintp(node)]) * trips * scale
            table[5, at] = -1 if d_is_leaf[np.uintp(node)] else nodes.lost[here]
            table[6, at] = -1
            child, stop = i - 1, i - nodes.size[here]
            while child > stop:
                table[6, np.uintp(boxes + child)] = boxes + i
                child -= nodes.size[np.uintp(child)]
        boxes += found
    return ForestBoxes(table[:, :boxes], gone)
