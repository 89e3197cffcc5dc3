"""Mean trajectory of a cluster: each point of its pivot is averaged with the points of others that it meets."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.frechet_manhattan_pairs import coupled_points
from crowdveil.kernels.trajectory.resampling import Paths, path_of


@kernel
def mean_of_cluster(
    pivot: int, others: Ints, paths: Paths, resampled: bool, exact: bool
) -> tuple[Floats, Floats, Floats]:
    """Return x, y and t of a trajectory for a cluster, with a point for each of its pivot's.

    A place is the mean of the pivot's point and all points of others that meet it. A time is the mean of the times of all
    members, each the mean of its points there: a member's later points never meet an earlier point of the pivot, so that times
    do not fall.
    """
    x, y, t, share = path_of(paths, pivot)
    p = len(x)
    sum_x, sum_y, met = np.zeros(p), np.zeros(p), np.zeros(p, np.int64)
    sum_t, own_t, own_met = np.zeros(p), np.zeros(p), np.zeros(p, np.int64)
    for other in others:
        made, number, pairs = coupled_points((x, y, t, share), path_of(paths, other), resampled, exact)
        own_t[:], own_met[:] = 0.0, 0
        for e in range(len(pairs)):
            at, there = number[0, pairs[e, 0]], pairs[e, 1]
            if at >= 0:
                # Sums are of differences, so that no digit is lost.
                sum_x[at] += made[3, there] - x[at]
                sum_y[at] += made[4, there] - y[at]
                own_t[at] += made[5, there] - t[at]
                met[at] += 1
                own_met[at] += 1
        for at in range(p):
            sum_t[at] += own_t[at] / own_met[at]
    mean_t = t + sum_t / (len(others) + 1)
    for at in range(1, p):
        mean_t[at] = max(mean_t[at], mean_t[at - 1])  # equal ones may be apart by rounding
    return x + sum_x / (met + 1), y + sum_y / (met + 1), mean_t
