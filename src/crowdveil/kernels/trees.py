"""Trees as parent arrays: put in post-order, and freed of nodes with one child.

Neither kernel recurses, so that a tree may be as deep as it has nodes (the dendrogram of points on a line is).
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices


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
