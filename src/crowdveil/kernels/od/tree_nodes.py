"""The nodes of destinations that hold a crowd, for each node of a tree of origins, from its leaves up.

For each origin there is a list of the leaves that its trips go to, in rising order, and BEYOND after the last one. With each leaf
is the sum over all leaves before it, with BEYOND the sum over all: the sum over an interval of leaves is a difference of two
entries. The list of a node of origins is merged from those of its children.

Of all nodes of destinations with the same trips only the lowest matters: it is the smallest, and it can be split into whatever
another can be split into. So the walk visits only leaves with trips and the lowest common ancestors of neighboring ones, whatever
the depth of the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints
from crowdveil.kernels.od.structures import (
    CrowdNodes,
    DestinationTree,
    LeafLists,
    MatrixRows,
    OriginTree,
    PeoplePairs,
)  # fmt: skip


@kernel
def ancestor(table: Indices, exponent: Indices, leaves: int, i: int, j: int) -> int:
    """Return the lowest common ancestor of the leaves i < j."""
    n = leaves - 1
    row = exponent[j - i]
    found: int = max(table[row * n + i], table[row * n + j - (1 << row)])
    return found


@kernel
def count_people(person: Ints, leaf: Ints, low: int, high: int, tree: DestinationTree, gain: Ints) -> None:
    """Write down where different people begin to count: sums of `gain` over a subtree are then its people.

    People come in order, each with rising leaves: one at every leaf, less one where its ancestors meet those of the leaf before.
    """
    anchor, table, exponent = tree.anchor, tree.table, tree.exponent
    for i in range(low, high):
        here = anchor[leaf[i]]
        gain[here] += 1
        if i > low and person[i] == person[i - 1]:
            # The anchor of the leaf before is never above both: a node that holds the two leaves and is large enough is not
            # below it.
            meet = here
            if leaf[i] != leaf[i - 1]:
                meet = ancestor(table, exponent, len(anchor), leaf[i - 1], leaf[i])
            gain[max(meet, here)] -= 1


@kernel
def walk_destinations(
    lists: LeafLists,
    low: int,
    high: int,
    gain: Ints,
    with_people: bool,
    tree: DestinationTree,
    k: int,
    stack: Ints,
    nodes: CrowdNodes,
    first: int,
) -> int:
    """Find the nodes above the leaves of one origin that hold a crowd; list them from `first` on, and return where they end.

    The list of its leaves begins at `low` and ends at `high`. Each leaf counts at its anchor: the leaf's own node, or the lowest
    node above it that is large enough to be published. `stack` holds six numbers a node: its number, volume, crowd and cells, the
    volume below that is kept, and where its subtree begins in the list of nodes.
    """
    leaf, volume, crowd, cells = lists
    anchor, table, exponent = tree.anchor, tree.table, tree.exponent
    depth, found = 0, first
    beyond = len(gain)
    # The current node lies below the top of the stack; most are leaves that never get there.
    node = anchor[leaf[low]] if high > low else beyond
    last_leaf, at = 0, low
    sum_volume, sum_crowd, sum_cells, kept, begin = 0, 0, 0, 0, first
    for i in range(low, high + 1):
        here, meet = beyond, beyond  # after the last leaf, up to the root
        if i < high:
            at = i
            this_leaf = leaf[at]
            here = anchor[this_leaf]
            meet = here if i == low else max(ancestor(table, exponent, len(anchor), last_leaf, this_leaf), here)
            last_leaf = this_leaf
        while node < meet:
            if with_people:
                sum_crowd += gain[node]
                gain[node] = 0
            if sum_crowd >= k:
                to = found
                nodes.node[to], nodes.volume[to], nodes.crowd[to] = node, sum_volume, sum_crowd
                nodes.cells[to], nodes.lost[to], nodes.size[to] = sum_cells, sum_volume - kept, found + 1 - begin
                found += 1
                kept = sum_volume
            else:
                kept = 0
            if depth > 0 and stack[depth - 1, 0] <= meet:
                depth -= 1
                node = stack[depth, 0]
                sum_volume += stack[depth, 1]
                sum_crowd += stack[depth, 2]
                sum_cells += stack[depth, 3]
                kept += stack[depth, 4]
                begin = stack[depth, 5]
            else:
                node = meet
        if i == high:
            break
        if node != here:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = node, sum_volume, sum_crowd
            stack[depth, 3], stack[depth, 4], stack[depth, 5] = sum_cells, kept, begin
            depth += 1
            node, sum_volume, sum_crowd, sum_cells, kept, begin = here, 0, 0, 0, 0, found
        after = i + 1
        sum_volume += volume[after] - volume[at]
        if not with_people:
            sum_crowd += crowd[after] - crowd[at]
        sum_cells += cells[after] - cells[at]
    return found


BEYOND = 2**62
"""A number after those of all leaves."""


@kernel
def new_lists(size: int) -> LeafLists:
    """Allocate lists of `size` entries in all; each takes one more than it has leaves."""
    leaf, volume = np.empty(size, np.int64), np.empty(size, np.int64)
    return LeafLists(leaf, volume, np.empty(size, np.int64), np.empty(size, np.int64))


@kernel
def list_leaves(rows: MatrixRows, first: int, last: int, tile_leaf: Ints, lists: LeafLists, low: int) -> int:
    """Write the list of the rows from `first` to before `last`, in order of leaves; return its last entry. It begins at `low`."""
    end, before, volume, crowd, cells = low, -1, 0, 0, 0
    for row in range(first, last):
        leaf = tile_leaf[rows.tile[row]]
        if leaf != before:
            lists.leaf[end], lists.volume[end], lists.crowd[end], lists.cells[end] = leaf, volume, crowd, cells
            before = leaf
            end += 1
        volume += rows.volume[row]
        crowd += rows.crowd[row]
        cells += 1
    lists.leaf[end], lists.volume[end], lists.crowd[end], lists.cells[end] = BEYOND, volume, crowd, cells
    return end


@kernel
def merge_lists(lists: LeafLists, first: int, second: int, spare: LeafLists) -> int:
    """Write the merged list of two over the first of them, which lies before the second; return its last entry."""
    leaf, volume, crowd, cells = lists
    to_leaf, to_volume, to_crowd, to_cells = spare
    i, j, count = first, second, 0
    while True:
        here, other = leaf[i], leaf[j]
        to_leaf[count] = min(here, other)
        to_volume[count] = volume[i] + volume[j]
        to_crowd[count] = crowd[i] + crowd[j]
        to_cells[count] = cells[i] + cells[j]
        if to_leaf[count] == BEYOND:
            break
        i += here <= other
        j += other <= here
        count += 1
    for x in range(count + 1):
        leaf[first + x], volume[first + x] = to_leaf[x], to_volume[x]
        crowd[first + x], cells[first + x] = to_crowd[x], to_cells[x]
    return first + count


class NodeSearch(NamedTuple):
    """Where a search for nodes with a crowd is, and its buffers.

    A stack of lists of leaves, one for each origin whose parent is still to come, and of lists of people: where each begins, and
    in `top` how many there are, where the next one begins and where its people do.
    """

    lists: LeafLists
    spare: LeafLists
    list_start: Ints
    people_start: Ints
    top: Ints
    person: Ints
    person_leaf: Ints
    people_spare: Ints
    gain: Ints
    stack: Ints


@kernel
def begin_nodes(rows: int, people: int, origin_tree: OriginTree, tree: DestinationTree) -> NodeSearch:
    """Allocate what a search for nodes with a crowd needs."""
    origins, leaves, nodes = len(origin_tree.leaf_tile), len(tree.anchor), len(tree.first_node)
    # Lists on the stack have different leaves of origins, and each takes one entry more than it has leaves.
    return NodeSearch(
        new_lists(rows + origins + 1), new_lists(leaves + 1), np.empty(origins + 1, np.int64),
        np.empty(origins + 1, np.int64), np.zeros(3, np.int64), np.empty(people, np.int64), np.empty(people, np.int64),
        np.empty(2 * people, np.int64), np.zeros(nodes, np.int64),
        np.empty((tree.depth + 2, 6), np.int64),
    )  # fmt: skip


@kernel
def _merge_people(person: Ints, leaf: Ints, low: int, middle: int, high: int, spare: Ints) -> int:
    """Merge two lists of (person, leaf) that lie one after the other, each pair once; return the new end."""
    half = len(spare) // 2
    i, j, at = low, middle, 0
    while i < middle or j < high:
        first = j >= high
        if not first and i < middle:
            first = person[i] < person[j] or (person[i] == person[j] and leaf[i] <= leaf[j])
        if first:
            entry = i
            i += 1
        else:
            entry = j
            j += 1
        if at == 0 or spare[at - 1] != person[entry] or spare[half + at - 1] != leaf[entry]:
            spare[at], spare[half + at] = person[entry], leaf[entry]
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

    The rows of each origin are in order of the leaves of their destinations. The nodes of origin a are those from offsets[a] to
    before offsets[a + 1].
    """
    child_offsets, large_enough = origin_tree.child_offsets, origin_tree.large_enough
    tile_leaf, leaves = tree.tile_leaf, len(tree.anchor)
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
            end = list_leaves(rows, rows.offsets[tile], rows.offsets[tile + 1], tile_leaf, search.lists, top)
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
