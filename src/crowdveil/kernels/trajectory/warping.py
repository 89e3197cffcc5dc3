"""Walks along two paths, and the classical distances by them: dynamic time warping and discrete Fréchet. Times do not count."""

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
def warped_distances(
    own_x: Floats, own_y: Floats, to: Ints, x: Floats, y: Floats, offsets: Ints, added: bool, found: Floats
) -> None:
    """Write the distances from one path to those in `to`."""
    for at in range(len(to)):
        there = slice(offsets[to[at]], offsets[to[at] + 1])
        found[at] = warped_distance(own_x, own_y, x[there], y[there], added)


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
