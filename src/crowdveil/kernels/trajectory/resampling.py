"""Two paths brought to the same moments, by shares of their own time: where one has a point, the other has one on its line."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints

Points = tuple[Floats, Floats, Floats, Floats]
"""x, y, t and shares of the points of a path."""
Paths = tuple[Floats, Floats, Floats, Floats, Ints]
"""x, y, t and shares of all points, and offsets."""

INSERTED = -1
"""In place of the number of a point that was put in."""


@kernel
def shares(t: Floats, offsets: Ints) -> Floats:
    """Return the share of the time of its trajectory that has passed at each point, 0 at the first and 1 at the last one.
    Points of a trajectory that takes no time are evenly spread, and a single point is at 0. Equal shares are equal numbers.
    """
    found = np.zeros(len(t), np.float64)
    for trajectory in range(len(offsets) - 1):
        low, high = offsets[trajectory], offsets[trajectory + 1]
        took = t[high - 1] - t[low]
        for e in range(low + 1, high):
            found[e] = (t[e] - t[low]) / took if took > 0 else (e - low) / (high - 1 - low)
    return found


@kernel
def path_of(paths: Paths, i: int) -> Points:
    """Return one of the paths."""
    x, y, t, share, offsets = paths
    low, high = offsets[i], offsets[i + 1]
    return x[low:high], y[low:high], t[low:high], share[low:high]


@kernel
def together(first: Points, second: Points, made: Floats, own: Ints) -> int:
    """Bring two paths to the moments of both; returns how many moments there are, at most as many as points.

    `made` gets x, y and t of the first path in its first three rows and those of the second in the others, `own` the numbers of
    their own points, or `INSERTED`. A moment that both have is there once; one that a path has twice, the other gets twice.
    """
    (x1, y1, t1, share1), (x2, y2, t2, share2) = first, second
    p, q = len(x1), len(x2)
    a, b, n = 0, 0, 0
    while a < p or b < q:
        share_a = share1[a] if a < p else np.inf
        share_b = share2[b] if b < q else np.inf
        if share_a <= share_b:
            made[0, n], made[1, n], made[2, n], own[0, n] = x1[a], y1[a], t1[a], a
        else:
            # Between two points, or at the last one, where the path is a single point or the other one stays longer at its end.
            end = min(a, p - 1)
            part = (share_b - share1[a - 1]) / (share1[end] - share1[a - 1]) if end == a else 0.0
            made[0, n] = x1[a - 1] + part * (x1[end] - x1[a - 1])
            made[1, n] = y1[a - 1] + part * (y1[end] - y1[a - 1])
            made[2, n] = t1[a - 1] + part * (t1[end] - t1[a - 1])
            own[0, n] = INSERTED
        if share_b <= share_a:
            made[3, n], made[4, n], made[5, n], own[1, n] = x2[b], y2[b], t2[b], b
        else:
            end = min(b, q - 1)
            part = (share_a - share2[b - 1]) / (share2[end] - share2[b - 1]) if end == b else 0.0
            made[3, n] = x2[b - 1] + part * (x2[end] - x2[b - 1])
            made[4, n] = y2[b - 1] + part * (y2[end] - y2[b - 1])
            made[5, n] = t2[b - 1] + part * (t2[end] - t2[b - 1])
            own[1, n] = INSERTED
        a, b, n = a + (share_a <= share_b), b + (share_b <= share_a), n + 1
    return n


@kernel
def as_they_are(first: Points, second: Points, made: Floats, own: Ints) -> None:
    """Return two paths without new points: they may have different numbers of them."""
    for i in range(len(first[0])):
        made[0, i], made[1, i], made[2, i], own[0, i] = first[0][i], first[1][i], first[2][i], i
    for j in range(len(second[0])):
        made[3, j], made[4, j], made[5, j], own[1, j] = second[0][j], second[1][j], second[2][j], j
