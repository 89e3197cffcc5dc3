"""Origins that are cut to a target volume, before destinations are looked at."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import OriginTree


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
