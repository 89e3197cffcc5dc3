"""Distances of trajectories while both are on their way: the edges of the graph of contemporaries."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def _place_at(moment: float, e: int, high: int, x: Floats, y: Floats, t: Floats) -> tuple[int, float, float]:
    """Return the position of a trajectory at a moment, on a straight line between its points; `e` is a point not after it."""
    while e + 1 < high and t[e + 1] <= moment:
        e += 1
    if e + 1 == high or t[e] == moment:
        return e, x[e], y[e]
    share = (moment - t[e]) / (t[e + 1] - t[e])
    return e, x[e] + share * (x[e + 1] - x[e]), y[e] + share * (y[e + 1] - y[e])


@kernel
def apart(xa: Floats, ya: Floats, ta: Floats, xb: Floats, yb: Floats, tb: Floats) -> float:
    """Return the root mean square distance of two trajectories at all their times in the span that they share, divided by the
    share of the longer one's time that the span is; infinite where they share none.
    """
    begin, end = max(ta[0], tb[0]), min(ta[-1], tb[-1])
    longest = max(ta[-1] - ta[0], tb[-1] - tb[0])
    if end < begin or (end == begin and longest > 0):
        return np.inf
    share = (end - begin) / longest if longest > 0 else 1.0
    at_a, at_b, next_a, next_b = 0, 0, 0, 0
    total, count, moment = 0.0, 0, begin
    while True:
        at_a, ax, ay = _place_at(moment, at_a, len(ta), xa, ya, ta)
        at_b, bx, by = _place_at(moment, at_b, len(tb), xb, yb, tb)
        total += (ax - bx) ** 2 + (ay - by) ** 2
        count += 1
        while next_a < len(ta) and ta[next_a] <= moment:
            next_a += 1
        while next_b < len(tb) and tb[next_b] <= moment:
            next_b += 1
        following = min(ta[next_a] if next_a < len(ta) else np.inf, tb[next_b] if next_b < len(tb) else np.inf)
        if following > end:
            break
        moment = following
    return math.sqrt(total / count) / share


@kernel
def _apart_in(a: int, b: int, x: Floats, y: Floats, t: Floats, offsets: Ints) -> float:
    first, second = slice(offsets[a], offsets[a + 1]), slice(offsets[b], offsets[b + 1])
    return apart(x[first], y[first], t[first], x[second], y[second], t[second])


@kernel
def apart_from(own_x: Floats, own_y: Floats, own_t: Floats, x: Floats, y: Floats, t: Floats, offsets: Ints) -> Floats:
    """Return the distance of each trajectory from one that is given by its points."""
    found = np.empty(len(offsets) - 1, np.float64)
    for b in range(len(found)):
        other = slice(offsets[b], offsets[b + 1])
        found[b] = apart(own_x, own_y, own_t, x[other], y[other], t[other])
    return found


@kernel
def count_neighbors(order: Ints, start: Floats, end: Floats) -> int:
    """Count the pairs that share a moment, with trajectories in order of their start."""
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
    """Return all pairs of contemporaries and their distances; `pairs` is the result of `count_neighbors`."""
    first, second, length = np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.float64)
    count = 0
    for i in range(len(order)):
        j = i + 1
        while j < len(order) and start[order[j]] <= end[order[i]]:
            d = _apart_in(order[i], order[j], x, y, t, offsets)
            if d < np.inf:
                first[count], second[count], length[count] = order[i], order[j], d
                count += 1
            j += 1
    return first[:count].copy(), second[:count].copy(), length[:count].copy()
