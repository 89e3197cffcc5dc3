"""Nearest trajectories by the spatio-temporal distance, and the two that are farthest apart.

The distance is that of `kernels.trajectory.spatiotemporal`. Balls around trajectories settle most pairs, and others are given up
as soon as some of their points are far enough apart.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.spatiotemporal import SURE, SURE_M, squares
from crowdveil.kernels.trajectory.structures import Metric, Points


@kernel
def pair_distance(own: Points, i: int, other: Points, j: int, worth: float, enough: float) -> float:
    """Return the distance of two trajectories, infinite if its square is sure to be above `enough`."""
    own_x, own_y, own_t, own_offsets = own
    x, y, t, offsets = other
    own_low, low = own_offsets[i], offsets[j]
    p, q = own_offsets[i + 1] - own_low, offsets[j + 1] - low
    pairs = (p + q + 1) // 2
    total = squares(own_x, own_y, own_t, own_low, p, x, y, t, low, q, worth, enough * pairs)
    return math.sqrt(total / pairs)


@kernel
def pair_distances(
    own: Points, own_speed: Floats, other: Points, speed: Floats, weight: float, those: Ints, to: Ints
) -> Floats:
    """Return the distance of each of `those` from the trajectory of the same row in `to`, in meters."""
    found = np.empty(len(those), np.float64)
    for row in range(len(those)):
        i, j = those[row], to[row]
        found[row] = pair_distance(own, i, other, j, weight * (own_speed[i] + speed[j]) / 2, np.inf)
    return found


@kernel
def _ends(points: Points) -> tuple[Floats, Ints]:
    """Return first and last x, y and t of each trajectory, adjacent in memory for fast access; and its number of points."""
    x, y, t, offsets = points
    n = len(offsets) - 1
    ends, size = np.empty((n, 6), np.float64), np.empty(n, np.int64)
    for j in range(n):
        first, last = offsets[j], offsets[j + 1] - 1
        ends[j, 0], ends[j, 1], ends[j, 2] = x[first], y[first], t[first]
        ends[j, 3], ends[j, 4], ends[j, 5] = x[last], y[last], t[last]
        size[j] = last - first + 1
    return ends, size


@kernel
def nearest_distances(
    own_metric: Metric, those: Ints, guess: Floats, metric: Metric, to: Ints, begin: Ints, end: Ints
) -> tuple[Floats, Ints]:
    """Return the least distance from each of `those` to to[begin:end], and how many are at it.

    `guess` is a distance that is there, so that the least one is not above it; infinite where none is known.
    """
    own, own_speed, (own_mx, own_my, own_r, own_mt, own_half), _ = own_metric
    other, speed, (middle_x, middle_y, radius, middle_t, half_t), weight = metric
    least, count = np.full(len(those), np.inf), np.zeros(len(those), np.int64)
    own_ends, own_size = _ends(own)
    ends, size = _ends(other)
    for row in range(len(those)):
        i = those[row]
        mine = own_ends[i]
        best, ties, limit = np.inf, 0, guess[row]
        for at in range(begin[row], end[row]):
            j = to[at]
            dx, dy = own_mx[i] - middle_x[j], own_my[i] - middle_y[j]
            worth = weight * (own_speed[i] + speed[j]) / 2
            around, span = own_r[i] + radius[j], own_half[i] + half_t[j]
            late = abs(own_mt[i] - middle_t[j])
            bound = max(math.sqrt(dx * dx + dy * dy) - around, 0.0) + worth * max(late - span, 0.0)
            if bound > limit * SURE + SURE_M:
                continue
            # The ends are in every distance of two pairs or more: most are given up before their points are looked at.
            dx, dy = mine[3] - ends[j, 3], mine[4] - ends[j, 4]
            d = math.sqrt(dx * dx + dy * dy) + worth * abs(mine[5] - ends[j, 5])
            total = d * d
            pairs = (own_size[i] + size[j] + 1) // 2
            if pairs > 1:
                dx, dy = mine[0] - ends[j, 0], mine[1] - ends[j, 1]
                d = math.sqrt(dx * dx + dy * dy) + worth * abs(mine[2] - ends[j, 2])
                total += d * d
            if total > limit * limit * SURE * pairs * SURE:
                continue
            here = pair_distance(own, i, other, j, worth, limit * limit * SURE)
            if here < best:
                best, ties = here, 1
                limit = min(limit, here)
            elif here == best and here < np.inf:
                ties += 1
        least[row], count[row] = best, ties
    return least, count


@kernel
def farthest_pair(metric: Metric, low: int, high: int, sure: float) -> tuple[float, int]:
    """Return the largest distance between a trajectory from `low` to `high` and one with a larger number, or `sure` if that is
    more; and how many distances were computed.
    """
    points, speed, (middle_x, middle_y, radius, middle_t, half_t), weight = metric
    best, computed = sure, 0
    for i in range(low, high):
        for j in range(i + 1, len(speed)):
            dx, dy = middle_x[i] - middle_x[j], middle_y[i] - middle_y[j]
            worth = weight * (speed[i] + speed[j]) / 2
            most = math.sqrt(dx * dx + dy * dy) + radius[i] + radius[j]
            most += worth * (abs(middle_t[i] - middle_t[j]) + half_t[i] + half_t[j])
            if most * SURE + SURE_M <= best:
                continue
            computed += 1
            best = max(best, pair_distance(points, i, points, j, worth, np.inf))
    return best, computed
