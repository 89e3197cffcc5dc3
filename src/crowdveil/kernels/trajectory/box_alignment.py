"""Bounds of the points of a group of trajectories that are matched with each point of a path, by dynamic time warping."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.structures import Points
from crowdveil.kernels.trajectory.warping import BOTH, FIRST, SECOND, walk_back

MOST_PAIRS = 1 << 26
"""Pairs of points up to which a walk is searched; longer trajectories are matched evenly."""


@kernel
def aligned_bounds(
    members: Ints,
    group_offsets: Ints,
    points: Points,
    path: Points,
    meters_a_second: Floats,
    lon: Floats,
    lat: Floats,
    t: Ints,
) -> tuple[Floats, Floats]:
    """Return the least and the greatest longitude, latitude and time, a row each, of what is matched with each point of a path.

    `points` are those of the trajectories, `path` those of the path of each group. Every point of a member is matched with one or
    more points of the path, in order, and every point of the path with one or more of each member.
    """
    to_x, to_y, to_t, to_offsets = path
    x, y, seconds, offsets = points
    low, high = np.full((3, len(to_x)), np.inf), np.full((3, len(to_x)), -np.inf)
    for g in range(len(group_offsets) - 1):
        begin, end = to_offsets[g], to_offsets[g + 1]
        goal = (to_x[begin:end], to_y[begin:end], to_t[begin:end])
        for e in range(group_offsets[g], group_offsets[g + 1]):
            first, last = offsets[members[e]], offsets[members[e] + 1]
            n, m = last - first, end - begin
            if n * m > MOST_PAIRS:
                pairs = even_walk(n, m)
            else:
                pairs = shortest_walk((x[first:last], y[first:last], seconds[first:last]), goal, meters_a_second[g])
            for at in range(len(pairs)):
                a, b = first + pairs[at, 0], begin + pairs[at, 1]
                low[0, b], high[0, b] = min(low[0, b], lon[a]), max(high[0, b], lon[a])
                low[1, b], high[1, b] = min(low[1, b], lat[a]), max(high[1, b], lat[a])
                low[2, b], high[2, b] = min(low[2, b], float(t[a])), max(high[2, b], float(t[a]))
    return low, high


@kernel
def shortest_walk(
    own: tuple[Floats, Floats, Floats], goal: tuple[Floats, Floats, Floats], meters_a_second: float
) -> Ints:
    """Return the pairs of points of the walk along two paths with the least sum of squared distances; of equal ones that with
    the fewest pairs at its end.
    """
    n, m = len(own[0]), len(goal[0])
    came = np.empty((n, m), np.uint8)
    row = np.full(m, np.inf)
    for i in range(n):
        diagonal = np.inf
        for j in range(m):
            dx, dy = own[0][i] - goal[0][j], own[1][i] - goal[1][j]
            dt = meters_a_second * (own[2][i] - goal[2][j])
            above = row[j]
            before = row[j - 1] if j > 0 else np.inf
            best, step = diagonal, BOTH
            if i == 0 and j == 0:
                best = 0.0
            if above < best:
                best, step = above, FIRST
            if before < best:
                best, step = before, SECOND
            diagonal = above
            row[j] = best + dx * dx + dy * dy + dt * dt
            came[i, j] = step
    return walk_back(came)


@kernel
def even_walk(n: int, m: int) -> Ints:
    """Return pairs of points of two paths at equal shares of their numbers: all points of both, in order."""
    size = max(n, m)
    pairs = np.empty((size, 2), np.int64)
    for at in range(size):
        pairs[at, 0], pairs[at, 1] = at * n // size, at * m // size
    return pairs
