"""Stays of trajectories: runs of points near their first point that last long enough."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def stays(x: Floats, y: Floats, t: Ints, offsets: Ints, radius_m: float, duration_s: int) -> tuple[Ints, Ints, Ints]:
    """Return trajectory, first point and the point after the last of each stay.

    From a point on, following points belong to its run as long as they are within the radius of it. A run that lasts long
    enough is a stay, and the search goes on after it; otherwise it goes on from the next point.
    """
    trajectory, first, last = np.empty(len(t), np.int64), np.empty(len(t), np.int64), np.empty(len(t), np.int64)
    n = 0
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        while at < end:
            after = at + 1
            while after < end and (x[after] - x[at]) ** 2 + (y[after] - y[at]) ** 2 <= radius_m * radius_m:
                after += 1
            if t[after - 1] - t[at] >= duration_s:
                trajectory[n], first[n], last[n] = i, at, after
                n += 1
                at = after
            else:
                at += 1
    return trajectory[:n], first[:n], last[:n]
