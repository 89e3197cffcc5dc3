"""The published path that runs nearest to each of some trajectories."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def nearest_paths(
    offsets: Ints, x: Floats, y: Floats, low: Ints, high: Ints,
    path_x: Floats, path_y: Floats, path: Ints, paths: int, far: float,
) -> Ints:  # fmt: skip
    """Return the nearest path of each trajectory; -1 where none comes near, or several are equally near.

    A trajectory's points are offsets[i] to offsets[i + 1]; points of paths are in order of time, and those about the time of
    point r are low[r] to high[r]. From each point the distance to the nearest point of each path is taken, `far` at most, and
    added up.
    """
    nearest = np.full(len(offsets) - 1, -1, np.int64)
    seen = np.full(paths, -1, np.int64)
    least = np.empty(paths, np.float64)
    gained = np.zeros(paths, np.float64)
    here = np.empty(paths, np.int64)
    met = np.empty(paths, np.int64)
    for i in range(len(nearest)):
        touched = 0
        for r in range(offsets[i], offsets[i + 1]):
            n = 0
            for j in range(low[r], high[r]):
                square = (path_x[j] - x[r]) ** 2 + (path_y[j] - y[r]) ** 2
                if square >= far * far:
                    continue
                apart = math.sqrt(square)
                p = path[j]
                if seen[p] != r:
                    seen[p] = r
                    least[p] = apart
                    here[n] = p
                    n += 1
                elif apart < least[p]:
                    least[p] = apart
            for j in range(n):
                if gained[here[j]] == 0.0:
                    met[touched] = here[j]
                    touched += 1
                gained[here[j]] += far - least[here[j]]
        best = 0.0
        for j in range(touched):
            if gained[met[j]] > best:
                best = gained[met[j]]
                nearest[i] = met[j]
            elif gained[met[j]] == best:
                nearest[i] = -1
        for j in range(touched):
            gained[met[j]] = 0.0
    return nearest
