"""The walk over the tree of destinations of one origin: the nodes above its leaves that hold a crowd.

Of all nodes with the same trips only the lowest matters: it is the smallest, and whatever another can be split into it can be
split into too. So only leaves with trips and the lowest common ancestors of neighboring ones are looked at, whatever the
depth of the tree.
"""

from __future__ import annotations

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints
from crowdveil.kernels.od.structures import CrowdNodes, DestinationTree, LeafLists


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
