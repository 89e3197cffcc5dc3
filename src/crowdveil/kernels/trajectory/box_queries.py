"""How many trajectories of boxes are possibly in a circle at some time of an interval, or at every time of it."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints

WEST, EAST, SOUTH, NORTH, BEGIN, END = range(6)


@kernel
def possible_counts(
    bounds: Floats, offsets: Ints, sizes: Ints, x: Floats, y: Floats, radius: Floats, begin: Floats, end: Floats
) -> tuple[Ints, Ints]:
    """Return, for each query, the members of classes of which some box whose times meet the interval meets the circle, and of
    which all such boxes do and the boxes span the interval.

    `bounds` has six rows: least and greatest x, y and t. Boxes of class c are bounds[:, offsets[c]:offsets[c + 1]].
    """
    some, every = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    around = whole_bounds(bounds, offsets)
    for q in range(len(x)):
        for c in range(len(sizes)):
            if around[BEGIN, c] > end[q] or around[END, c] < begin[q]:
                continue
            if not meets(around, c, x[q], y[q], radius[q]):
                continue
            one, all_ = False, True
            for b in range(offsets[c], offsets[c + 1]):
                if bounds[BEGIN, b] > end[q] or bounds[END, b] < begin[q]:
                    continue
                if meets(bounds, b, x[q], y[q], radius[q]):
                    one = True
                else:
                    all_ = False
            if one:
                some[q] += sizes[c]
                if all_ and around[BEGIN, c] <= begin[q] and around[END, c] >= end[q]:
                    every[q] += sizes[c]
    return some, every


@kernel
def whole_bounds(bounds: Floats, offsets: Ints) -> Floats:
    """Return the bounds around all boxes of each class."""
    found = np.empty((6, len(offsets) - 1), np.float64)
    for c in range(len(offsets) - 1):
        for side in range(6):
            best = bounds[side, offsets[c]]
            for b in range(offsets[c] + 1, offsets[c + 1]):
                best = min(best, bounds[side, b]) if side % 2 == 0 else max(best, bounds[side, b])
            found[side, c] = best
    return found


@kernel
def meets(bounds: Floats, b: int, x: float, y: float, radius: float) -> bool:
    """Return whether a closed circle meets a box."""
    dx = max(bounds[WEST, b] - x, 0.0, x - bounds[EAST, b])
    dy = max(bounds[SOUTH, b] - y, 0.0, y - bounds[NORTH, b])
    return bool(dx * dx + dy * dy <= radius * radius)
