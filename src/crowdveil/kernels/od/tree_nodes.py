"""The nodes of destinations that hold a crowd, for each node of a tree of origins, from its leaves up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.leaf_sums import add, merge_lists, new_lists, new_sums, take
from crowdveil.kernels.od.structures import (
    CrowdNodes,
    DestinationTree,
    LeafLists,
    MatrixRows,
    OriginTree,
    PeoplePairs,
)  # fmt: skip
from crowdveil.kernels.od.tree_walk import count_people, walk_destinations


class NodeSearch(NamedTuple):
    """Where a search for nodes with a crowd is, and its buffers.

    A stack of lists of leaves, one for each origin whose parent is still to come, and of lists of people: where each begins, and
    in `top` how many there are, where the next one begins and where its people do. Sums by leaf with their marks.
    """

    lists: LeafLists
    spare: LeafLists
    list_start: Ints
    people_start: Ints
    top: Ints
    person: Ints
    person_leaf: Ints
    people_spare: Ints
    sums: Ints
    marks: Ints
    words: Ints
    gain: Ints
    stack: Ints


@kernel
def begin_nodes(rows: int, people: int, origin_tree: OriginTree, tree: DestinationTree) -> NodeSearch:
    """Allocate what a search for nodes with a crowd needs."""
    origins, leaves, nodes = len(origin_tree.leaf_tile), len(tree.anchor), len(tree.first_node)
    sums, marks, words = new_sums(leaves)
    # Lists on the stack have different leaves of origins, and each takes one entry more than it has leaves.
    return NodeSearch(
        new_lists(rows + origins + 1), new_lists(leaves + 1), np.empty(origins + 1, np.int64),
        np.empty(origins + 1, np.int64), np.zeros(3, np.int64), np.empty(people, np.int64), np.empty(people, np.int64),
        np.empty(2 * people, np.int64), sums, marks, words, np.zeros(nodes, np.int64),
        np.empty((tree.depth + 2, 6), np.int64),
    )  # fmt: skip


@kernel
def _merge_people(person: Ints, leaf: Ints, low: int, middle: int, high: int, spare: Ints) -> int:
    """Merge two lists of (person, leaf) that lie one after the other, each pair once; returns the new end."""
    half = len(spare) // 2
    i, j, at = low, middle, 0
    while i < middle or j < high:
        first = j >= high
        if not first and i < middle:
            first = person[i] < person[j] or (person[i] == person[j] and leaf[i] <= leaf[j])
        if first:
            take = i
            i += 1
        else:
            take = j
            j += 1
        if at == 0 or spare[at - 1] != person[take] or spare[half + at - 1] != leaf[take]:
            spare[at], spare[half + at] = person[take], leaf[take]
            at += 1
    for x in range(at):
        person[low + x], leaf[low + x] = spare[x], spare[half + x]
    return low + at


@kernel
def _merge_children(depth: int, children: int, start: Ints, lists: LeafLists, spare: LeafLists) -> int:
    """Merge the last lists of the stack, from position `depth` on, in pairs and pairs of pairs; return where the list ends."""
    left, end = depth, 0
    for c in range(children):
        start[left] = start[depth + c]
        left += 1
        # As many merges as c + 1 can be halved: lists of about the same number of children are merged.
        pairs = c + 1 if c + 1 < children else 1 << 62
        while pairs & 1 == 0 and left > depth + 1:
            left -= 1
            pairs >>= 1
            end = merge_lists(lists, start[left - 1], start[left], spare)
    return end


@kernel
def _merge_people_of_children(depth: int, children: int, people_top: int, search: NodeSearch) -> int:
    """Merge the last lists of people of the stack, from position `depth` on; return where the list ends."""
    person, person_leaf, start = search.person, search.person_leaf, search.people_start
    low = start[depth]
    end: int = low
    for c in range(children):
        begin = start[depth + c]
        n = (start[depth + c + 1] if c + 1 < children else people_top) - begin
        for x in range(n):
            person[end + x] = person[begin + x]
            person_leaf[end + x] = person_leaf[begin + x]
        end = _merge_people(person, person_leaf, low, end, end + n, search.people_spare)
    return end


@kernel
def find_nodes(
    first: int,
    rows: MatrixRows,
    pairs: PeoplePairs | None,
    origin_tree: OriginTree,
    tree: DestinationTree,
    k: int,
    search: NodeSearch,
    offsets: Ints,
    nodes: CrowdNodes,
) -> int:
    """List the nodes of destinations that hold a crowd, for the origins from `first` on; return the first without room for its
    nodes, or the number of origins.

    The nodes of origin a are those from offsets[a] to before offsets[a + 1].
    """
    child_offsets, large_enough = origin_tree.child_offsets, origin_tree.large_enough
    tile_leaf, leaves, one = tree.tile_leaf, len(tree.anchor), int(np.int64(1))
    depth, top, people_top = search.top[0], search.top[1], search.top[2]
    for a in range(first, len(large_enough)):
        if offsets[a] + 2 * leaves > len(nodes.node):
            search.top[0], search.top[1], search.top[2] = depth, top, people_top
            return a
        children = child_offsets[a + 1] - child_offsets[a]
        if children == 0:
            place = origin_tree.first_leaf[a]
            tile = origin_tree.leaf_tile[place]
            search.list_start[depth], search.people_start[depth] = top, people_top
            for row in range(rows.offsets[tile], rows.offsets[tile + 1]):
                leaf = tile_leaf[rows.tile[row]]
                add(search.sums, search.marks, search.words, leaf, rows.volume[row], rows.crowd[row], one)
            end = take(search.sums, search.marks, search.words, search.lists, top)
            if pairs is not None:
                for e in range(pairs.offsets[place], pairs.offsets[place + 1]):
                    search.person[people_top], search.person_leaf[people_top] = pairs.person[e], pairs.leaf[e]
                    people_top += 1
        else:
            depth -= children
            end = _merge_children(depth, children, search.list_start, search.lists, search.spare)
            if pairs is not None:
                people_top = _merge_people_of_children(depth, children, people_top, search)
        low, people_low, top = search.list_start[depth], search.people_start[depth], end + 1
        depth += 1
        found = offsets[a]
        if large_enough[a]:
            if pairs is not None:
                count_people(search.person, search.person_leaf, people_low, people_top, tree, search.gain)
            found = walk_destinations(
                search.lists, low, end, search.gain, pairs is not None, tree, k, search.stack, nodes, found
            )
        offsets[a + 1] = found
    return len(large_enough)
