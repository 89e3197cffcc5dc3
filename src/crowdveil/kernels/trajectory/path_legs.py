"""Legs and paths in circles: at some time, or all the time, of an interval; and stays in a circle.

A leg is (x, y, t) of the point that it leaves and (x, y, t) of the one that it leads to. Circles and intervals are closed. A path
is where straight lines between its points lead, at even speed, from its first time to its last; where points share a time, it is
at all of them then. Comparisons are of sums and products alone, without a division: on whole numbers that are not too large they
are exact.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.trajectory.structures import Points


@kernel
def _sometime(
    x0: float, y0: float, t0: float, x1: float, y1: float, t1: float, square: float, begin: float, end: float
) -> bool:
    """Return whether a leg is in the circle around the origin at some time from `begin` to `end`; it must have one of these
    times.

    Its squared distance at u seconds after its first time, times the square of its duration, is a parabola in u.
    """
    lasts = t1 - t0
    if lasts == 0.0:
        return bool(x0 * x0 + y0 * y0 <= square or x1 * x1 + y1 * y1 <= square)
    vx, vy = x1 - x0, y1 - y0
    a = vx * vx + vy * vy
    b = (x0 * vx + y0 * vy) * lasts
    c = (x0 * x0 + y0 * y0 - square) * lasts * lasts
    low, high = max(begin - t0, 0.0), min(end - t0, lasts)
    if (a * low + 2.0 * b) * low + c <= 0.0 or (a * high + 2.0 * b) * high + c <= 0.0:
        return True
    return bool(a * low < -b < a * high and a * c <= b * b)


@kernel
def _at(x0: float, y0: float, t0: float, x1: float, y1: float, t1: float, square: float, when: float) -> bool:
    """Return whether a leg that takes time is in the circle around the origin at a time that it has."""
    lasts, gone = t1 - t0, when - t0
    x, y = x0 * lasts + (x1 - x0) * gone, y0 * lasts + (y1 - y0) * gone
    return bool(x * x + y * y <= square * lasts * lasts)


@kernel
def _always(
    x: Floats, y: Floats, t: Floats, low: int, high: int, cx: float, cy: float, square: float, begin: float, end: float
) -> bool:
    """Return whether the path of the points `low` to `high` - 1, which is in a circle at `begin`, is there at every time until
    `end`.

    A circle is convex: a leg is inside if both of its ends are, so only the points between and the end are looked at.
    """
    if t[low] > begin or t[high - 1] < end:
        return False
    i = low + np.searchsorted(t[low:high], begin)
    while i < high and t[i] <= end:
        dx, dy = x[i] - cx, y[i] - cy
        if dx * dx + dy * dy > square:
            return False
        i += 1
    if i == high or t[i - 1] == end:
        return True
    return _at(x[i - 1] - cx, y[i - 1] - cy, t[i - 1], x[i] - cx, y[i] - cy, t[i], square, end)


@kernel
def sometime(
    legs: Floats, rows: Ints, asked: Ints, x: Floats, y: Floats, radius: Floats, begin: Floats, end: Floats
) -> Mask:
    """Return whether each leg of `rows` is in the circle of its query at some time of the interval."""
    found = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        leg, q = legs[rows[i]], asked[i]
        found[i] = (
            leg[2] <= end[q]
            and leg[5] >= begin[q]
            and _sometime(
                leg[0] - x[q], leg[1] - y[q], leg[2], leg[3] - x[q], leg[4] - y[q], leg[5], radius[q] * radius[q],
                begin[q], end[q],
            )
        )  # fmt: skip
    return found


@kernel
def always(
    points: Points, paths: Ints, asked: Ints, x: Floats, y: Floats, radius: Floats, begin: Floats, end: Floats
) -> Mask:
    """Return whether each of `paths`, which is in the circle of its query when the interval begins, is there at every time of
    it.
    """
    px, py, pt, offsets = points
    found = np.empty(len(paths), np.bool_)
    for i in range(len(paths)):
        q, low, high = asked[i], offsets[paths[i]], offsets[paths[i] + 1]
        found[i] = _always(px, py, pt, low, high, x[q], y[q], radius[q] * radius[q], begin[q], end[q])
    return found


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
