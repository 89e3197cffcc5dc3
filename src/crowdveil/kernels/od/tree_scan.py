"""The scan of the tree of destinations of one origin: the nodes that hold a crowd, where crowds of leaves add up.

The same as the walk of `tree_walk`, from the root down: a subtree without a crowd is left out whole, and what goes to a node is
a difference of two running sums. Where people are known a person may go to several leaves, and only the walk can count them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import bits_set, inner_kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import CrowdNodes, DestinationTree, LeafLists


class ScanArrays(NamedTuple):
    """What a scan needs of the tree, and its buffers.

    By node its first leaf, and the node before its subtree. Of a list, bits of its leaves in words of 64, and the position of
    the first leaf of each word. Nodes that were met with a crowd, and where the list of each begins and ends.
    """

    first_leaf: Ints
    before: Ints
    marks: Ints
    position: Ints
    node: Ints
    begin: Ints
    end: Ints


@inner_kernel
def new_scan(tree: DestinationTree) -> ScanArrays:
    """Allocate the arrays of scans of a tree."""
    nodes = len(tree.first_node)
    first_leaf, before = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    leaves = 0
    for d in range(nodes):
        first_leaf[d] = leaves if tree.is_leaf[d] else first_leaf[tree.first_node[d]]
        leaves += tree.is_leaf[d] != 0
        before[d] = tree.first_node[d] - 1
    words = (leaves >> 6) + 1
    marks, position = np.empty(words, np.int64), np.empty(words, np.int64)
    node, begin, end = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    return ScanArrays(first_leaf, before, marks, position, node, begin, end)


@inner_kernel
def _mark(leaf: Ints, low: int, high: int, marks: Ints, position: Ints) -> None:
    """Mark the leaves of a list, and note where each word of marks begins in it."""
    word, bits = 0, 0
    position[0] = low
    for at in range(low, high):
        here = leaf[np.uintp(at)]
        while word < here >> 6:
            marks[np.uintp(word)], bits = bits, 0
            word += 1
            position[np.uintp(word)] = at
        bits |= 1 << (here & 63)
    marks[word] = bits
    for rest in range(word + 1, len(marks)):
        marks[rest], position[rest] = 0, high


@inner_kernel
def _meet(lists: LeafLists, low: int, high: int, tree: DestinationTree, k: int, scan: ScanArrays) -> int:
    """Note the nodes with a crowd that may be published, at the end of the buffers, rising; return where they begin."""
    crowd, anchor, is_leaf = lists.crowd, tree.anchor, tree.is_leaf
    first_leaf, before, marks, position = scan.first_leaf, scan.before, scan.marks, scan.position
    met, node, end = len(scan.node), len(first_leaf) - 1, high
    upper = crowd[high]
    while node >= 0:
        at = np.uintp(node)
        leaf = first_leaf[at]
        word = np.uintp(leaf >> 6)
        begin = position[word] + bits_set(marks[word] & ((1 << (leaf & 63)) - 1))
        lower = crowd[np.uintp(begin)]
        if upper - lower < k or node < anchor[np.uintp(leaf)]:
            node, end, upper = before[at], begin, lower
            continue
        met -= 1
        scan.node[np.uintp(met)], scan.begin[np.uintp(met)], scan.end[np.uintp(met)] = node, begin, end
        if is_leaf[at]:
            end, upper = begin, lower
        node -= 1
    return met


@inner_kernel
def scan_destinations(
    lists: LeafLists,
    low: int,
    high: int,
    tree: DestinationTree,
    k: int,
    scan: ScanArrays,
    nodes: CrowdNodes,
    first: int,
) -> int:
    """Find the nodes above the leaves of one origin that hold a crowd; list them from `first` on, and return where they end.

    Of nodes with the same leaves of the list only the lowest is taken: the one that was listed before has as many. `lost` and
    `size` are not filled.
    """
    if lists.crowd[high] < k:
        return first
    volume, crowd, cells = lists.volume, lists.crowd, lists.cells
    _mark(lists.leaf, low, high, scan.marks, scan.position)
    found, last_node, last_leaves = first, -1, 0
    for at in range(_meet(lists, low, high, tree, k, scan), len(scan.node)):
        node, begin, end = scan.node[np.uintp(at)], scan.begin[np.uintp(at)], scan.end[np.uintp(at)]
        same = (last_leaves == end - begin) & (last_node > scan.before[np.uintp(node)])
        last_node, last_leaves = node, end - begin
        # Without a branch, which could not be predicted: a node that is not taken is written over by the next.
        to, lower, upper = np.uintp(found), np.uintp(begin), np.uintp(end)
        nodes.node[to], nodes.volume[to] = node, volume[upper] - volume[lower]
        nodes.crowd[to], nodes.cells[to] = crowd[upper] - crowd[lower], cells[upper] - cells[lower]
        found += not same
    return found
