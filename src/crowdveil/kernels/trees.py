"""Trees as parent arrays: put in post-order, and freed of nodes with one child; and the merges of Ward's method.

No kernel recurses, so that a tree may be as deep as it has nodes (the dendrogram of points on a line is).
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints


@kernel
def post_order(parent: Indices) -> Indices:
    """Return the nodes below the root, children before parents, the children of a node in rising order of number.

    `parent` has -1 at exactly one node, the root. Nodes on a circle, or hanging from one, are never reached: the
    answer is shorter than `parent` exactly if there are any.
    """
    n = len(parent)
    first_child = np.full(n, -1, np.int32)
    next_sibling = np.full(n, -1, np.int32)
    root = 0
    for node in range(n - 1, -1, -1):
        above = parent[node]
        if above < 0:
            root = node
        else:
            next_sibling[node] = first_child[above]
            first_child[above] = node
    # Filled from the back: the root comes last, and before it the whole subtree of its last child.
    order = np.empty(n, np.int32)
    stack = np.empty(n, np.int32)
    stack[0] = root
    height = 1
    place = n
    while height > 0:
        height -= 1
        node = stack[height]
        place -= 1
        order[place] = node
        child = first_child[node]
        while child >= 0:
            stack[height] = child
            height += 1
            child = next_sibling[child]
    return order[place:]


@kernel
def collapse(parent: Indices, order: Indices) -> tuple[Indices, Indices, Indices, Indices]:
    """Return the tree without the nodes that have one child, numbered in post-order.

    `order` is the `post_order` of all nodes. Returns, for each node that stays: its old number, its parent's new
    number (-1 at the root), and the half-open range [first, last) of its leaves.
    """
    n = len(parent)
    children = np.zeros(n, np.int32)
    for node in order:
        if parent[node] >= 0:
            children[parent[node]] += 1
    # From the root down, so that a chain of dropped nodes is crossed in one step each.
    above = np.full(n, -1, np.int32)
    for i in range(n - 1, -1, -1):
        node = order[i]
        up = parent[node]
        if up >= 0:
            above[node] = above[up] if children[up] == 1 else up
    number = np.full(n, -1, np.int32)
    kept = 0
    for node in order:
        if children[node] != 1:
            number[node] = kept
            kept += 1
    old = np.empty(kept, np.int32)
    new_parent = np.full(kept, -1, np.int32)
    size = np.zeros(kept, np.int32)
    last = np.empty(kept, np.int32)
    leaves = 0
    for node in order:
        i = number[node]
        if i < 0:
            continue
        old[i] = node
        if children[node] == 0:
            size[i] = 1
            leaves += 1
        last[i] = leaves
        if above[node] >= 0:
            new_parent[i] = number[above[node]]
            size[new_parent[i]] += size[i]
    return old, new_parent, last - size, last


@kernel
def ward_merges(x: Floats, y: Floats, tie: float) -> Ints:
    """Return the merges of positions 0, 1, …: the two merged nodes, numbered on after the positions, and the first position.

    A merge costs the increase of the sum of squared distances to the means. Two clusters are merged if their cost is at most
    `tie` times the least cost of either of them; a cluster that has a choice takes the one with the first position. Without ties
    (`tie` is 1) this is Ward's tree: a pair that is cheapest for both stays so, whatever else is merged.
    """
    n = len(x)
    x, y, size, node, first = x.copy(), y.copy(), np.ones(n), np.arange(n), np.arange(n)
    merges = np.empty((n - 1, 3), np.int64)
    made, left = 0, n
    while left > 1:
        least = np.full(left, np.inf)
        for i in range(left):
            for j in range(i + 1, left):
                cost = _cost(x, y, size, i, j)
                least[i] = min(least[i], cost)
                least[j] = min(least[j], cost)
        taken, gone = np.zeros(left, np.bool_), np.zeros(left, np.bool_)
        for i in range(left):
            for j in range(i + 1, left):
                if taken[i]:
                    break
                if taken[j] or _cost(x, y, size, i, j) > tie * min(least[i], least[j]):
                    continue
                both = size[i] + size[j]
                x[i] = (x[i] * size[i] + x[j] * size[j]) / both
                y[i] = (y[i] * size[i] + y[j] * size[j]) / both
                size[i] = both
                merges[made, 0], merges[made, 1], merges[made, 2] = node[i], node[j], first[i]
                node[i] = n + made
                made += 1
                taken[i] = taken[j] = gone[j] = True
        kept = np.flatnonzero(~gone)
        x, y, size, node, first = x[kept], y[kept], size[kept], node[kept], first[kept]
        left = len(kept)
    return merges


@kernel
def _cost(x: Floats, y: Floats, size: Floats, i: int, j: int) -> float:
    """Return the cost of a merge."""
    apart = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
    return float(size[i] * size[j] / (size[i] + size[j]) * apart)
