"""Nearest neighbors of flows by the Manhattan distance in four dimensions."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.od.structures import FlowNeighbors

DIMENSIONS = 4
LEAF = 64
"""Most points of a box that is not halved."""
DEEP = 128
"""More than there are levels: boxes are halved by number of points."""
RINGS = 256
"""Parts that the distances from a point are counted in."""
SLACK = 1 + 1e-12
"""So that rounding leaves nothing outside of a radius that was added up."""


@kernel
def _around(points: Floats, start: int, end: int, low: Floats, high: Floats) -> int:
    """Write the box around some points, and return its widest dimension."""
    widest = 0
    for d in range(DIMENSIONS):
        low[d], high[d] = points[d, start], points[d, start]
        for i in range(start + 1, end):
            low[d], high[d] = min(low[d], points[d, i]), max(high[d], points[d, i])
        if high[d] - low[d] > high[widest] - low[widest]:
            widest = d
    return widest


@kernel
def _halve(points: Floats, order: Ints, start: int, end: int, d: int) -> None:
    """Bring the points with the lesser half of the values of a dimension to the front (Hoare's selection)."""
    middle, low, high = (start + end) // 2, start, end - 1
    while low < high:
        pivot, i, j = points[d, (low + high) // 2], low, high
        while i <= j:
            while points[d, i] < pivot:
                i += 1
            while points[d, j] > pivot:
                j -= 1
            if i <= j:
                for e in range(DIMENSIONS):
                    points[e, i], points[e, j] = points[e, j], points[e, i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle > j:
            low = i
        if middle < i:
            high = j


@kernel
def _tree(points: Floats, order: Ints) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Put points into a tree of boxes, each halved in its widest dimension.

    Where the points of a box begin and end, its first child (-1 if it has none; the other one follows), and its edges.
    """
    n = len(order)
    nodes = 4 * (n // LEAF + 1) + 2
    start, end, first_child = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.full(nodes, -1, np.int64)
    low, high = np.empty((nodes, DIMENSIONS)), np.empty((nodes, DIMENSIONS))
    end[0], made, node = n, 1, 0
    while node < made:
        a, b = start[node], end[node]
        widest = _around(points, a, b, low[node], high[node])
        if b - a > LEAF:
            _halve(points, order, a, b, widest)
            start[made], end[made], start[made + 1], end[made + 1] = a, (a + b) // 2, (a + b) // 2, b
            first_child[node] = made
            made += 2
        node += 1
    return start, end, first_child, low, high


@kernel
def _distance(low: Floats, high: Floats, node: int, a: float, b: float, c: float, d: float) -> float:
    """Return the distance from a point to a box."""
    far = max(max(low[node, 0] - a, a - high[node, 0]), 0.0) + max(max(low[node, 1] - b, b - high[node, 1]), 0.0)
    far += max(max(low[node, 2] - c, c - high[node, 2]), 0.0) + max(max(low[node, 3] - d, d - high[node, 3]), 0.0)
    return float(far)


@kernel
def _select(far: Floats, near: Ints, high: int, most: int) -> None:
    """Bring the `most` least of the first `high` pairs of distance and point to the front, in no order."""
    low = 0
    while low < most < high:
        middle, last = low, high - 1
        at = (low + last) // 2
        pivot, point = far[at], near[at]
        far[at], near[at] = far[last], near[last]
        for i in range(low, last):
            f, p = far[i], near[i]
            far[i], near[i] = far[middle], near[middle]
            far[middle], near[middle] = f, p
            middle += f < pivot or (f == pivot and p < point)
        far[last], near[last] = far[middle], near[middle]
        far[middle], near[middle] = pivot, point
        if most <= middle:
            high = middle
        else:
            low = middle + 1


@kernel
def _insertion_sort(far: Floats, near: Ints, n: int) -> None:
    """Sort pairs of distance and point that are nearly in order."""
    for i in range(1, n):
        f, p, at = far[i], near[i], i
        while at > 0 and (f < far[at - 1] or (f == far[at - 1] and p < near[at - 1])):
            far[at], near[at] = far[at - 1], near[at - 1]
            at -= 1
        far[at], near[at] = f, p


@kernel
def nearest_points(place: Floats, chosen: Ints, most: int) -> FlowNeighbors:
    """Find the `most` nearest others of each of the chosen points, among these, the nearest first; there must be that many.

    Of those that are as far the one with the lower number comes first. Points that are not chosen have no neighbors. For a
    point, boxes of a tree are opened the nearer half first, and left closed if they are farther than enough. What is enough is
    known from the neighbor before, and then from how many points were found in each ring around this one.
    """
    n = len(chosen)
    offsets = np.zeros(len(place) + 1, np.int64)
    for i in range(n):
        offsets[chosen[i] + 1] = most
    offsets = np.cumsum(offsets)
    near, far = np.empty(n * most, np.int64), np.empty(n * most)
    order, points = chosen.copy(), np.empty((DIMENSIONS, n))
    for i in range(n):
        for d in range(DIMENSIONS):
            points[d, i] = place[order[i], d]
    start, end, first_child, low, high = _tree(points, order)
    x, y, z, w = points[0], points[1], points[2], points[3]
    stack, waiting = np.empty(DEEP, np.int64), np.empty(DEEP)
    away, inside = np.empty(LEAF), np.empty(RINGS + 1, np.int64)
    found_far, found, ring = np.empty(n + LEAF), np.empty(n + LEAF, np.int64), np.empty(n + LEAF, np.int64)
    by_ring_far, by_ring = np.empty(n), np.empty(n, np.int64)
    radius, before = (high[0] - low[0]).sum(), 0
    for i in range(n):
        a, b, c, d = x[i], y[i], z[i], w[i]
        # Whatever is in reach of the point before is in reach of this one by a detour.
        detour = abs(a - x[before]) + abs(b - y[before]) + abs(c - z[before]) + abs(d - w[before])
        enough = (radius + detour) * SLACK
        width, rings_a_meter = enough / RINGS, RINGS / enough if enough > 0 else 0.0
        inside[:], last, held, within = 0, RINGS, 0, 0
        stack[0], waiting[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if waiting[depth] > enough:
                continue
            child = first_child[node]
            if child >= 0:
                one, two = _distance(low, high, child, a, b, c, d), _distance(low, high, child + 1, a, b, c, d)
                later = two < one
                stack[depth], waiting[depth] = (child, one) if later else (child + 1, two)
                stack[depth + 1], waiting[depth + 1] = (child + 1, two) if later else (child, one)
                depth += 2
                continue
            first, behind, known = start[node], end[node], held
            xs, ys, zs, ws, numbers = (
                x[first:behind],
                y[first:behind],
                z[first:behind],
                w[first:behind],
                order[first:behind],
            )
            for j in range(behind - first):
                away[j] = abs(xs[j] - a) + abs(ys[j] - b) + abs(zs[j] - c) + abs(ws[j] - d)
            for j in range(behind - first):
                found_far[held], found[held] = away[j], numbers[j]
                held += away[j] <= enough
            for j in range(known, held):
                ring[j] = int(found_far[j] * rings_a_meter)
                inside[ring[j]] += 1
                within += ring[j] <= last
            # One more than needed, since the point itself is among those in reach.
            while within - inside[last] > most:
                within -= inside[last]
                last -= 1
                enough = (last + 1) * width * SLACK
        at = 0
        for r in range(RINGS + 1):
            here = inside[r]
            inside[r] = at
            at += here
        for j in range(held):
            at = inside[ring[j]]
            by_ring_far[at], by_ring[at] = found_far[j], found[j]
            inside[ring[j]] = at + 1
        if within > 2 * most + 2:
            # Many are in one ring, such as those of one place.
            _select(by_ring_far, by_ring, within, most + 1)
            within = most + 1
        _insertion_sort(by_ring_far, by_ring, within)
        at, j = offsets[order[i]], 0
        while at < offsets[order[i] + 1]:
            if by_ring[j] != order[i]:
                near[at], far[at] = by_ring[j], by_ring_far[j]
                at += 1
            j += 1
        radius, before = by_ring_far[most], i
    return FlowNeighbors(offsets, near, far)
