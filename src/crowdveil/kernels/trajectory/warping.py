"""Classical distances of two paths: dynamic time warping, discrete Fréchet, edits, and the Fréchet distance. Times do not count.

The Fréchet distance of two polylines (Alt and Godau 1995) is found by bisection over their free-space diagram. A point of one
path and a point of the other are free at a distance if they are at most that far apart. A leash of that length is enough if a
walk that never goes back leads through free points from both starts to both ends. In a cell of the diagram, of one leg each, the
free points are convex, so that it is enough to follow which parts of the sides of cells can be reached.
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


PRECISION = 1e-10
"""Largest relative error of a distance."""
EMPTY = (2.0, 0.0)
"""A part of a leg without a point."""


@kernel
def _free_part(x: float, y: float, to_x: Floats, to_y: Floats, leg: int, most: float) -> tuple[float, float]:
    """Return begin and end, from 0 to 1, of the part of a leg that is at most a distance from a point."""
    dx, dy = to_x[leg + 1] - to_x[leg], to_y[leg + 1] - to_y[leg]
    px, py = to_x[leg] - x, to_y[leg] - y
    square, half, rest = dx * dx + dy * dy, px * dx + py * dy, px * px + py * py - most * most
    if square == 0.0:
        return (0.0, 1.0) if rest <= 0 else EMPTY
    inner = half * half - square * rest
    if inner < 0:
        return EMPTY
    root = math.sqrt(inner)
    begin, end = max((-half - root) / square, 0.0), min((-half + root) / square, 1.0)
    return (begin, end) if begin <= end else EMPTY


@kernel
def _passed(part: tuple[float, float], entry: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the reachable section of a side of a cell, from its free part and the reachable opposite and adjacent sides."""
    if other[0] <= other[1]:
        return part
    if entry[0] > entry[1]:
        return EMPTY
    begin = max(part[0], entry[0])
    return (begin, part[1]) if begin <= part[1] else EMPTY


@kernel
def _is_enough(own_x: Floats, own_y: Floats, x: Floats, y: Floats, most: float) -> bool:
    """Return whether a leash of a length is enough; both ends of both paths are at most that far apart."""
    p, q = len(own_x) - 1, len(x) - 1
    reached = np.empty((q, 2))
    start = True
    for j in range(q):
        part = _free_part(own_x[0], own_y[0], x, y, j, most)
        reached[j] = part if start and part[0] == 0.0 else EMPTY
        start = start and part[0] == 0.0 and part[1] == 1.0
    start, below = True, EMPTY
    for i in range(p):
        side = _free_part(x[0], y[0], own_x, own_y, i, most)
        below = side if start and side[0] == 0.0 else EMPTY
        start = start and side[0] == 0.0 and side[1] == 1.0
        for j in range(q):
            left = (reached[j, 0], reached[j, 1])
            right = _free_part(own_x[i + 1], own_y[i + 1], x, y, j, most)
            above = _free_part(x[j + 1], y[j + 1], own_x, own_y, i, most)
            reached[j] = _passed(right, left, below)
            below = _passed(above, below, left)
    return bool(reached[q - 1, 1] == 1.0 or below[1] == 1.0)


@kernel
def continuous_frechet(own_x: Floats, own_y: Floats, x: Floats, y: Floats) -> float:
    """Return the Fréchet distance of two polylines."""
    high = warped_distance(own_x, own_y, x, y, False)
    if len(own_x) == 1 or len(x) == 1:
        return float(high)  # the farthest point of a leg from a point is one of its ends
    start = math.hypot(own_x[0] - x[0], own_y[0] - y[0])
    end = math.hypot(own_x[-1] - x[-1], own_y[-1] - y[-1])
    low = max(start, end)
    if _is_enough(own_x, own_y, x, y, low):
        return float(low)
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if _is_enough(own_x, own_y, x, y, middle):
            high = middle
        else:
            low = middle
    return float(high)
