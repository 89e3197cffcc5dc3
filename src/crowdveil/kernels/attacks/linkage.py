"""The path that runs nearest to each of some trajectories, and the points that come near one of them."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask

_ONE, _TWO, _THREE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_SHIFT, _MIDDLE = np.uint64(40), 1 << 20
_SLACK = 1 + 1e-6
"""Cells are larger than the distance by more than what is rounded."""


@kernel
def _place(column: int, row: int, slab: int, size: int) -> int:
    """Return the place of a cell in a table of a power of two of places."""
    mixed = np.uint64(column) * _ONE + np.uint64(row) * _TWO + np.uint64(slab) * _THREE
    return int((mixed ^ (mixed >> _SHIFT)) & np.uint64(size - 1))


@kernel
def mark_near(
    rows: Ints, x: Floats, y: Floats, t: Ints, start: int, meters: float, seconds: int, marked: Mask, near: Mask
) -> None:
    """Mark in `near` the points that may be within some meters and seconds of one of `rows`: all of those, and few others.

    No time is before `start`. `marked` is an empty table of a power of two of places for cells near those points; two cells may
    share a place.
    """
    in_space, in_time, size = 1 / (meters * _SLACK), 1 / (seconds * _SLACK), len(marked)
    for i in rows:
        column, row = int(x[i] * in_space + _MIDDLE), int(y[i] * in_space + _MIDDLE)
        slab = int((t[i] - start) * in_time) + 1
        for c in range(column - 1, column + 2):
            for r in range(row - 1, row + 2):
                for s in range(slab - 1, slab + 2):
                    marked[_place(c, r, s, size)] = True
    for i in range(len(x)):
        column, row = int(x[i] * in_space + _MIDDLE), int(y[i] * in_space + _MIDDLE)
        near[i] = marked[_place(column, row, int((t[i] - start) * in_time) + 1, size)]


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
