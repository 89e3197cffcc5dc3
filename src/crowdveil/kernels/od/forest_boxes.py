"""Matrices with their origins given, or cut to a target volume: each origin is the root of a tree of destinations."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.leaf_sums import add, no_sums, take
from crowdveil.kernels.od.tree_walk import count_people, walk_destinations


@kernel
def best_origins(
    leaving: Ints,
    target: float,
    child_offsets: Ints,
    children: Ints,
    first_leaf: Ints,
    leaf_tile: Ints,
) -> Ints:
    """The nodes that a tree is cut into for the least sum of (target − outgoing)²: a node, or its children's best.

    `leaving` has the trips from each tile, `first_leaf` the first leaf of each node, `leaf_tile` the tile of each leaf.
    """
    n = len(first_leaf)
    outgoing = np.empty(n, np.int64)
    best = np.empty(n, np.float64)
    split = np.zeros(n, np.bool_)
    for node in range(n):
        below, total = 0.0, 0
        for e in range(child_offsets[node], child_offsets[node + 1]):
            below += best[children[e]]
            total += outgoing[children[e]]
        if child_offsets[node + 1] == child_offsets[node]:
            total = leaving[leaf_tile[first_leaf[node]]]
        outgoing[node] = total
        best[node] = (target - total) ** 2
        if child_offsets[node + 1] > child_offsets[node] and below < best[node]:
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
    row_offsets: Ints,
    row_tile: Indices,
    row_volume: Ints,
    row_crowd: Ints,
    pair_offsets: Ints,
    pair_person: Ints,
    pair_leaf: Ints,
    origins: Ints,
    o_first: Ints,
    o_leaf_tile: Ints,
    o_cost: Ints,
    d_tile_leaf: Ints,
    anchor: Ints,
    table: Indices,
    exponent: Indices,
    d_depth: int,
    d_is_leaf: Ints,
    d_cost: Ints,
    scale: int,
    k: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """The boxes with a crowd of at least k for given origins, each origin the root of a tree of destinations.

    Parameters
    ----------
    row_offsets, row_tile, row_volume, row_crowd
        By origin tile: the destination tile of each row, its trips, and its crowd where crowds add up.
    pair_offsets, pair_person, pair_leaf
        By origin who went to which leaf, in order of person and leaf; empty where people are not known.
    origins, o_first, o_leaf_tile, o_cost
        The nodes that are origins, rising, which hold each tile once; of the tree of origins the first leaf of each node, the
        tile of each leaf, and what each node costs a trip.
    d_tile_leaf, anchor, table, exponent, d_depth, d_is_leaf, d_cost
        The tree of destinations: the leaf of each tile, the lowest node above each leaf that may be published, what common
        ancestors are looked up in, its depth, which nodes are leaves, and what each costs a trip.
    scale
        What costs are multiplied with.

    Returns
    -------
    origin, destination node, volume, crowd and cost of each box; the volume that splitting it gives up, -1 where it cannot be
    split; the box above it, -1 at the top; and the volume of each origin that is in no box. Boxes come after those below them.
    """
    leaves, parts = len(anchor), len(origins)
    rows = len(row_tile)
    with_people = len(pair_offsets) > 1
    widest = min(leaves, rows)
    leaf, volume = np.empty(widest, np.int64), np.empty(widest, np.int64)
    crowd, cells = np.empty(widest, np.int64), np.empty(widest, np.int64)
    sums, marks, words = no_sums(leaves)
    gain = np.zeros(len(d_cost), np.int64)
    stack = np.empty(6 * (d_depth + 2), np.int64)
    out = np.empty(6 * (2 * widest + 1), np.int64)
    size = max(16, rows // 2)
    box_part, box_node, box_volume = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_crowd, box_lost, box_above = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_cost = np.empty(size, np.int64)
    gone = np.zeros(parts, np.int64)
    boxes = 0
    for part in range(parts):
        origin = origins[part]
        total = 0
        end = o_first[origins[part + 1]] if part + 1 < parts else len(o_leaf_tile)
        for i in range(o_first[origin], end):
            tile = o_leaf_tile[i]
            for row in range(row_offsets[tile], row_offsets[tile + 1]):
                add(sums, marks, words, d_tile_leaf[row_tile[row]], row_volume[row], row_crowd[row], 1)
                total += row_volume[row]
        # Taken even if all flows are rounded to 0 trips: left in the sums, their crowd would be counted for the next origin.
        n = take(sums, marks, words, leaf, volume, crowd, cells, 0)
        if total == 0:
            continue
        if with_people:
            low, high = pair_offsets[part], pair_offsets[part + 1]
            count_people(pair_person, pair_leaf, low, high, anchor, table, exponent, gain)
        found = walk_destinations(
            leaf, volume, crowd, cells, 0, n, gain, with_people, anchor, table, exponent, k, stack, out
        )
        if found == 0:
            gone[part] = total
            continue
        box_part, box_node = grow(box_part, boxes + found), grow(box_node, boxes + found)
        box_volume, box_crowd = grow(box_volume, boxes + found), grow(box_crowd, boxes + found)
        box_lost, box_above = grow(box_lost, boxes + found), grow(box_above, boxes + found)
        box_cost = grow(box_cost, boxes + found)
        for i in range(found):
            node = out[6 * i]
            box_part[boxes + i], box_node[boxes + i] = part, node
            box_volume[boxes + i], box_crowd[boxes + i] = out[6 * i + 1], out[6 * i + 2]
            box_cost[boxes + i] = (o_cost[origin] + d_cost[node]) * out[6 * i + 1] * scale
            box_lost[boxes + i] = -1 if d_is_leaf[node] else out[6 * i + 4]
            box_above[boxes + i] = -1
            child, stop = i - 1, i - out[6 * i + 5]
            while child > stop:
                box_above[boxes + child] = boxes + i
                child -= out[6 * child + 5]
        boxes += found
    return (
        box_part[:boxes],
        box_node[:boxes],
        box_volume[:boxes],
        box_crowd[:boxes],
        box_cost[:boxes],
        box_lost[:boxes],
        box_above[:boxes],
        gone,
    )
