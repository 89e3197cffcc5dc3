"""Walks along two paths, and the classical distances by them: dynamic time warping, discrete Fréchet and edits. Times do not
count.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Bytes, Floats, Ints

BOTH, FIRST, SECOND = 0, 1, 2
"""Which path went on to come to a pair of points: both, or only one of them."""


@kernel
def warped_distance(own_x: Floats, own_y: Floats, x: Floats, y: Floats, added: bool) -> float:
    """Return the least sum of distances over a walk along both paths, if `added` (dynamic time warping), or the least longest
    one (discrete Fréchet).
    """
    p = len(own_x)
    row = np.full(p, np.inf)
    for b in range(len(x)):
        diagonal = np.inf
        for a in range(p):
            dx, dy = own_x[a] - x[b], own_y[a] - y[b]
            d = math.sqrt(dx * dx + dy * dy)
            above = row[a]
            before = row[a - 1] if a > 0 else np.inf
            best = min(min(above, before), diagonal)
            if a == 0 and b == 0:
                best = 0.0
            diagonal = above
            row[a] = d + best if added else max(d, best)
    return float(row[p - 1])


@kernel
def edit_distance(own_x: Floats, own_y: Floats, x: Floats, y: Floats, reach: float, common: bool) -> float:
    """Return the share of points that are inserted, deleted or replaced to turn one path into the other, of the points of the
    longer one; or, if `common`, the share of points of the shorter one that are not in the longest common subsequence.

    Points are equal if they are at most `reach` apart in x and in y.
    """
    p, q = len(own_x), len(x)
    row = np.zeros(p + 1) if common else np.arange(p + 1) * 1.0
    for b in range(q):
        diagonal = row[0]
        row[0] = 0.0 if common else b + 1.0
        for a in range(p):
            equal = abs(own_x[a] - x[b]) <= reach and abs(own_y[a] - y[b]) <= reach
            above = row[a + 1]
            if common:
                row[a + 1] = diagonal + 1.0 if equal else max(above, row[a])
            else:
                row[a + 1] = min(diagonal + (0.0 if equal else 1.0), min(above, row[a]) + 1.0)
            diagonal = above
    return float(1.0 - row[p] / min(p, q) if common else row[p] / max(p, q))


@kernel
def walk_back(choice: Bytes) -> Ints:
    """Return the walk that choices lead to, in two columns: points of the first and of the second path that meet, in their
    order.
    """
    i, j = choice.shape[0] - 1, choice.shape[1] - 1
    pairs = np.empty((i + j + 1, 2), np.int64)
    at = i + j
    pairs[at, 0], pairs[at, 1] = i, j
    while i > 0 or j > 0:
        which = choice[i, j]
        i, j = i - (which != SECOND), j - (which != FIRST)
        at -= 1
        pairs[at, 0], pairs[at, 1] = i, j
    return pairs[at:]
