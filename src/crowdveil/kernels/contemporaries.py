"""How far apart trajectories are while both are on their way: the edges of the graph of contemporaries."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@kernel
def _place_at(moment: float, e: int, high: int, x: Floats, y: Floats, t: Floats) -> tuple[int, float, float]:
    """Where a trajectory is at a moment, on a straight line between its points; `e` is a point not after it."""
    while e + 1 < high and t[e + 1] <= moment:
        e += 1
    if e + 1 == high or t[e] == moment:
        return e, x[e], y[e]
    share = (moment - t[e]) / (t[e + 1] - t[e])
    return e, x[e] + share * (x[e + 1] - x[e]), y[e] + share * (y[e + 1] - y[e])


@kernel
def apart(a: int, b: int, x: Floats, y: Floats, t: Floats, offsets: Ints) -> float:
    """The root mean square distance of two trajectories at all their times in the span that they share, divided by the share of
    the longer one's time that the span is; infinite where they share none.
    """
    low_a, high_a, low_b, high_b = offsets[a], offsets[a + 1], offsets[b], offsets[b + 1]
    begin, end = max(t[low_a], t[low_b]), min(t[high_a - 1], t[high_b - 1])
    longest = max(t[high_a - 1] - t[low_a], t[high_b - 1] - t[low_b])
    if end < begin or (end == begin and longest > 0):
        return np.inf
    share = (end - begin) / longest if longest > 0 else 1.0
    at_a, at_b, next_a, next_b = low_a, low_b, low_a, low_b
    total, count, moment = 0.0, 0, begin
    while True:
        at_a, ax, ay = _place_at(moment, at_a, high_a, x, y, t)
        at_b, bx, by = _place_at(moment, at_b, high_b, x, y, t)
        total += (ax - bx) ** 2 + (ay - by) ** 2
        count += 1
        while next_a < high_a and t[next_a] <= moment:
            next_a += 1
        while next_b < high_b and t[next_b] <= moment:
            next_b += 1
        following = min(t[next_a] if next_a < high_a else np.inf, t[next_b] if next_b < high_b else np.inf)
        if following > end:
            break
        moment = following
    return math.sqrt(total / count) / share


@kernel
def count_neighbours(order: Ints, start: Floats, end: Floats) -> int:
    """How many pairs share a moment, with trajectories in order of their start."""
    count = 0
    for i in range(len(order)):
        j = i + 1
        while j < len(order) and start[order[j]] <= end[order[i]]:
            count += 1
            j += 1
    return count


@kernel
def edges(
    order: Ints, start: Floats, end: Floats, x: Floats, y: Floats, t: Floats, offsets: Ints, pairs: int
) -> tuple[Ints, Ints, Floats]:
    """All pairs of contemporaries and how far apart they are; `pairs` is what `count_neighbours` says."""
    first, second, length = np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.float64)
    count = 0
    for i in range(len(order)):
        j = i + 1
        while j < len(order) and start[order[j]] <= end[order[i]]:
            d = apart(order[i], order[j], x, y, t, offsets)
            if d < np.inf:
                first[count], second[count], length[count] = order[i], order[j], d
                count += 1
            j += 1
    return first[:count].copy(), second[:count].copy(), length[:count].copy()
