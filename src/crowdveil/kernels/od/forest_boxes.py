"""Matrices with their origins given, or cut to a target volume: each origin is the root of a tree of destinations."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.box_arrays import new_nodes
from crowdveil.kernels.od.leaf_sums import add, new_lists, new_sums, take
from crowdveil.kernels.od.structures import DestinationTree, ForestBoxes, MatrixRows, OriginTree, PeoplePairs
from crowdveil.kernels.od.tree_walk import count_people, walk_destinations


@kernel
def best_origins(leaving: Ints, target: float, tree: OriginTree) -> Ints:
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
def build_forest(
    rows: MatrixRows,
    pairs: PeoplePairs,
    origins: Ints,
    origin_tree: OriginTree,
    o_cost: Ints,
    destination_tree: DestinationTree,
    d_cost: Ints,
    scale: int,
    k: int,
) -> ForestBoxes:
    """Build the boxes with a crowd of at least k for given origins, each origin the root of a tree of destinations.

    Parameters
    ----------
    pairs
        People by origin, in the order of `origins`.
    origins
        The nodes that are origins, rising, which hold each tile once.
    o_cost, d_cost
        What each node of origins and of destinations costs a trip.
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
    size = max(16, len(row_tile) // 2)
    box_part, box_node, box_volume = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_crowd, box_lost, box_above = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_cost = np.empty(size, np.int64)
    gone = np.zeros(parts, np.int64)
    boxes = 0
    for part in range(parts):
        end_if_stopped()
        origin = origins[part]
        total = 0
        end = o_first[origins[part + 1]] if part + 1 < parts else len(o_leaf_tile)
        for i in range(o_first[origin], end):
            tile = o_leaf_tile[i]
            for row in range(row_offsets[tile], row_offsets[tile + 1]):
                add(sums, marks, words, d_tile_leaf[row_tile[row]], row_volume[row], row_crowd[row], 1)
                total += row_volume[row]
        # Taken even if all flows are rounded to 0 trips: left in the sums, their crowd would be counted for the next origin.
        n = take(sums, marks, words, lists, 0)
        if total == 0:
            continue
        if with_people:
            low, high = pair_offsets[part], pair_offsets[part + 1]
            count_people(pair_person, pair_leaf, low, high, destination_tree, gain)
        found = walk_destinations(lists, 0, n, gain, with_people, destination_tree, k, stack, nodes, 0)
        if found == 0:
            gone[part] = total
            continue
        if boxes + found > len(box_part):
            box_part, box_node = grow(box_part, boxes + found), grow(box_node, boxes + found)
            box_volume, box_crowd = grow(box_volume, boxes + found), grow(box_crowd, boxes + found)
            box_lost, box_above = grow(box_lost, boxes + found), grow(box_above, boxes + found)
            box_cost = grow(box_cost, boxes + found)
        for i in range(found):
            node, here = nodes.node[i], nodes.volume[i]
            box_part[boxes + i], box_node[boxes + i] = part, node
            box_volume[boxes + i], box_crowd[boxes + i] = here, nodes.crowd[i]
            box_cost[boxes + i] = (o_cost[origin] + d_cost[node]) * here * scale
            box_lost[boxes + i] = -1 if d_is_leaf[node] else nodes.lost[i]
            box_above[boxes + i] = -1
            child, stop = i - 1, i - nodes.size[i]
            while child > stop:
                box_above[boxes + child] = boxes + i
                child -= nodes.size[child]
        boxes += found
    return ForestBoxes(
        box_part[:boxes], box_node[:boxes], box_volume[:boxes], box_crowd[:boxes],
        box_cost[:boxes], box_lost[:boxes], box_above[:boxes], gone,
    )  # fmt: skip
