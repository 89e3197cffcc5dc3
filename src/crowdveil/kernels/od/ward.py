"""Merge positions by Ward's method, so that near-ties do not depend on noise in the positions."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


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
