"""The nearest of many points by the sum of differences in four dimensions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DIMENSIONS = 4
LEAF = 12
"""Most points of a box that is not halved."""
DEEP = 128
"""More than there are levels: boxes are halved by number of points."""


@kernel
def _around(points: Floats, start: int, end: int, low: Floats, high: Floats) -> int:
    """Write the box around some points, and return its widest dimension."""
    widest = 0
    for d in range(DIMENSIONS):
        low[d], high[d] = points[start, d], points[start, d]
        for i in range(start + 1, end):
            low[d], high[d] = min(low[d], points[i, d]), max(high[d], points[i, d])
        if high[d] - low[d] > high[widest] - low[widest]:
            widest = d
    return widest


@kernel
def _distance(low: Floats, high: Floats, point: Floats) -> float:
    """From a point to a box."""
    far = 0.0
    for d in range(DIMENSIONS):
        far += max(low[d] - point[d], 0.0) + max(point[d] - high[d], 0.0)
    return far


@kernel
def _keep(distances: Floats, points: Ints, held: int, most: int, far: float, point: int) -> int:
    """Keep a point among the nearest, the farthest of which stands first and goes if there are too many."""
    if held < most:
        i = held
        while i > 0 and distances[(i - 1) // 2] < far:
            distances[i], points[i] = distances[(i - 1) // 2], points[(i - 1) // 2]
            i = (i - 1) // 2
        distances[i], points[i] = far, point
        return held + 1
    i = 0
    while 2 * i + 1 < most:
        child = 2 * i + 1
        if child + 1 < most and distances[child + 1] > distances[child]:
            child += 1
        if distances[child] <= far:
            break
        distances[i], points[i] = distances[child], points[child]
        i = child
    distances[i], points[i] = far, point
    return held


@kernel
def nearest_points(place: Floats, most: int) -> Ints:
    """The `most` nearest others of each point, in no order; there must be so many.

    Points are put into a tree of boxes, each halved in its widest dimension. For a point, boxes are opened the nearer
    half first, and left closed if they are no nearer than the farthest point that is kept.
    """
    n = len(place)
    order, points = np.arange(n), place.copy()
    nodes = 4 * (n // LEAF + 1) + 2
    start, end, first_child = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.full(nodes, -1, np.int64)
    low, high = np.empty((nodes, DIMENSIONS)), np.empty((nodes, DIMENSIONS))
    end[0], made, node = n, 1, 0
    while node < made:
        a, b = start[node], end[node]
        widest = _around(points, a, b, low[node], high[node])
        if b - a > LEAF:
            by_value = np.argsort(points[a:b, widest], kind="mergesort")
            order[a:b] = order[a:b][by_value]
            points[a:b] = points[a:b][by_value]
            middle = (a + b) // 2
            start[made], end[made], start[made + 1], end[made + 1] = a, middle, middle, b
            first_child[node] = made
            made += 2
        node += 1
    found = np.empty((n, most), np.int64)
    distances, stack, waiting = np.empty(most), np.empty(DEEP, np.int64), np.empty(DEEP)
    for i in range(n):
        point, mine, held = points[i], found[order[i]], 0
        stack[0], waiting[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if held == most and waiting[depth] >= distances[0]:
                continue
            child = first_child[node]
            if child >= 0:
                near, far = _distance(low[child], high[child], point), _distance(low[child + 1], high[child + 1], point)
                swap = far < near
                stack[depth], waiting[depth] = (child, near) if swap else (child + 1, far)
                stack[depth + 1], waiting[depth + 1] = (child + 1, far) if swap else (child, near)
                depth += 2
                continue
            for j in range(start[node], end[node]):
                away = 0.0
                for d in range(DIMENSIONS):
                    away += abs(points[j, d] - point[d])
                if j != i and (held < most or away < distances[0]):
                    held = _keep(distances, mine, held, most, away, order[j])
    return found


@kernel
def both_ways(found: Ints) -> tuple[Ints, Ints]:
    """Neighbours of each point as offsets and points: those found, and those that it was found by; some are both."""
    n, most = found.shape
    offsets = np.zeros(n + 1, np.int64)
    offsets[1:] = most
    for i in range(n):
        for j in range(most):
            offsets[found[i, j] + 1] += 1
    offsets = np.cumsum(offsets)
    near, end = np.empty(2 * n * most, np.int64), offsets[:-1].copy()
    for i in range(n):
        for j in range(most):
            other = found[i, j]
            near[end[i]], near[end[other]] = other, i
            end[i] += 1
            end[other] += 1
    return offsets, near
