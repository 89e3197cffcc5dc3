"""All boxes of a matrix over two trees that hold a crowd, and how each can be split.

A box is a pair of nodes of the tree of origins and the tree of destinations. Of all boxes with the same trips only the
tightest matters: it has the smallest areas, and whatever another can be split into it can be split into too.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import (
    BY_DESTINATION,
    BY_ORIGIN,
    BoxArrays,
    CrowdNodes,
    DestinationTree,
    MatrixRows,
    OriginTree,
    PeoplePairs,
    Splits,
    cut_boxes,
    new_boxes,
    new_nodes,
    new_splits,
)  # fmt: skip
from crowdveil.kernels.od.tree_nodes import begin_nodes, find_nodes


@kernel
def _more_nodes(nodes: CrowdNodes, needed: int) -> CrowdNodes:
    """Return copies of nodes with room for more."""
    return CrowdNodes(
        grow(nodes.node, needed), grow(nodes.volume, needed), grow(nodes.crowd, needed), grow(nodes.cells, needed),
        grow(nodes.lost, needed), grow(nodes.size, needed),
    )  # fmt: skip


@kernel
def _most_links(offsets: Ints, child_offsets: Ints) -> int:
    """Return how many links there may be: of each node one to a box of each child of its origin, and one to it by destination."""
    links = 0
    for a in range(len(child_offsets) - 1):
        links += (offsets[a + 1] - offsets[a]) * (child_offsets[a + 1] - child_offsets[a] + 1)
    return links


@kernel
def _join_nodes(
    nodes: CrowdNodes,
    offsets: Ints,
    origin_tree: OriginTree,
    destination_tree: DestinationTree,
    o_cost: Ints,
    d_cost: Ints,
    origins_first: bool,
    boxes: BoxArrays,
    splits: Splits,
    cost: Ints,
    box_of: Ints,
) -> int:
    """Make the boxes of all nodes with a crowd and their splits; return the number of those of the whole map.

    `box_of` is filled with the box of each node, its own one or that of a child of its origin with the same trips. All arrays
    have room for all nodes.
    """
    child_offsets, child_nodes, d_low = origin_tree.child_offsets, origin_tree.children, destination_tree.first_node
    link, d_is_leaf = splits.link, destination_tree.is_leaf
    made, split, links, most_children = 0, 0, 0, 0
    for a in range(len(child_offsets) - 1):
        most_children = max(most_children, child_offsets[a + 1] - child_offsets[a])
    start_of, next_of = np.empty(most_children + 1, np.int64), np.empty(most_children + 1, np.int64)
    end_of = np.empty(most_children + 1, np.int64)
    for a in range(len(child_offsets) - 1):
        first, last = offsets[a], offsets[a + 1]
        children = child_offsets[a + 1] - child_offsets[a]
        for c in range(children):
            child = child_nodes[child_offsets[a] + c]
            start_of[c], end_of[c] = offsets[child], offsets[child + 1]
            # With origins first the last node alone is split by origin, and all nodes of a child come before it.
            next_of[c] = end_of[c] if origins_first else start_of[c]
        for i in range(first, last):
            at, to = i, made
            node, here = nodes.node[at], nodes.volume[at]
            low = d_low[node]
            # By origin: of each child, the box of its trips to this node.
            same, first_link, kept = -1, links, 0
            by_origin = children > 0 and (not origins_first or i == last - 1)
            if by_origin:
                for c in range(children):
                    # A node that holds a crowd of a child holds one of its parent: none of the child is passed over.
                    e = next_of[c]
                    e += (e < end_of[c]) & (nodes.node[e] == node)
                    next_of[c] = e
                    before = max(e, 1) - 1
                    inside = (e > start_of[c]) & (nodes.node[before] >= low)
                    volume_there, box = nodes.volume[before], box_of[before]
                    link[links] = box
                    links += inside
                    kept += volume_there if inside else 0
                    same = box if inside & (volume_there == here) else same
            # By destination: the nodes below that are in no other below.
            child, kept_below, links_below = i - 1, 0, links
            while child >= first and nodes.node[child] >= low:
                link[links_below] = box_of[child]
                links_below += 1
                kept_below += nodes.volume[child]
                child -= nodes.size[child]
            nodes.size[at] = i - child
            if same >= 0 and not origins_first:
                links = first_link
                box_of[at] = same
                continue
            boxes.origin[to], boxes.destination[to], boxes.volume[to] = a, node, here
            boxes.crowd[to], boxes.cells[to] = nodes.crowd[at], nodes.cells[at]
            cost[to] = (o_cost[a] + d_cost[node]) * here
            if by_origin:
                splits.kind[split], splits.lost[split] = BY_ORIGIN, here - kept
                split += 1
                splits.link_offsets[split] = links
            if not d_is_leaf[node]:
                links = links_below
                splits.kind[split], splits.lost[split] = BY_DESTINATION, here - kept_below
                split += 1
                splits.link_offsets[split] = links
            box_of[at] = made
            made += 1
            splits.offsets[made] = split
    end = offsets[len(child_offsets) - 1]
    return box_of[end - 1] + 1 if end > 0 else 0


@kernel
def build_boxes(
    rows: MatrixRows,
    pairs: PeoplePairs | None,
    origin_tree: OriginTree,
    destination_tree: DestinationTree,
    o_cost: Ints,
    d_cost: Ints,
    origins_first: bool,
    k: int,
) -> tuple[BoxArrays, Splits, Ints]:
    """Build all boxes of a matrix with a crowd of at least k, their splits, and what the nodes of each cost times its trips.

    The rows of each origin tile are in order of the leaves of their destinations. `o_cost` and `d_cost` are by node. `pairs` are
    by leaf of origins, None where people are not known. With `origins_first` an origin can only be split while its destinations
    are not; a box then stays with its origin even if all its trips are from one child. Boxes that a box can be split into come
    before it; the last one has all trips.
    """
    people = 0 if pairs is None else len(pairs.person)
    origins, leaves = len(origin_tree.large_enough), len(destination_tree.anchor)
    search = begin_nodes(len(rows.tile), people, origin_tree, destination_tree)
    offsets = np.zeros(origins + 1, np.int64)
    # Room for nearly all matrices: unwritten entries take no memory, and copies for more room take time.
    nodes = new_nodes(8 * len(rows.tile) + 2 * leaves)
    a = 0
    while a < origins:
        a = find_nodes(a, rows, pairs, origin_tree, destination_tree, k, search, offsets, nodes)
        if a < origins:
            nodes = _more_nodes(nodes, offsets[a] + 2 * leaves)
    count = offsets[origins]
    boxes, cost, box_of = new_boxes(count), np.empty(count, np.int64), np.empty(count, np.int64)
    splits = new_splits(count, 2 * count, _most_links(offsets, origin_tree.child_offsets))
    found = _join_nodes(
        nodes, offsets, origin_tree, destination_tree, o_cost, d_cost, origins_first, boxes, splits, cost, box_of
    )
    kept, kept_splits = cut_boxes(boxes, splits, found)
    return kept, kept_splits, cost[:found]
