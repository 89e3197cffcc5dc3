"""How near or far paths can be by the Fréchet/Manhattan distance, from boxes around parts of them.

Each path is cut into slices of equal shares of its time, and each slice has a box around it. Of a coupling it holds that each
point of the first path is in one pair by which the first path goes on, and that the other pairs are each of another point of the
second path. So its mean is at least the least of (sum of a_i over all i + sum of b_j over some j) / (number of both), where a_i
is how far point i is from all of the second path, or less, and b_j likewise. With boxes in place of points that is found without
a look at the points; and since couplings go forward on both paths, the slices that go with those of the first path go forward
too.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.frechet_manhattan import SURE, SURE_M, Paths, Points, path_of

SLICES = 16
LEFT, RIGHT, BELOW, ABOVE = 0, 1, 2, 3


@kernel
def slice_of(share: float) -> int:
    """Return the slice that a share of a path's time is in."""
    return min(int(share * SLICES), SLICES - 1)


@kernel
def sliced(paths: Paths) -> Floats:
    """Return the boxes around the slices of each path, each a part of the line through its points: left, right, below and
    above.
    """
    x, y, _, share, offsets = paths
    n = len(offsets) - 1
    boxes = np.empty((n, 4, SLICES), np.float64)
    for i in range(n):
        box = boxes[i]
        box[LEFT], box[RIGHT], box[BELOW], box[ABOVE] = np.inf, -np.inf, np.inf, -np.inf
        low, high = offsets[i], offsets[i + 1]
        for e in range(low, high):
            _widen(box, slice_of(share[e]), x[e], y[e])
        for e in range(low + 1, high):
            # Every border that a leg passes is the end of one slice and the beginning of the next.
            for c in range(1, SLICES):
                border = c / SLICES
                if share[e - 1] <= border <= share[e] and share[e - 1] < share[e]:
                    part = (border - share[e - 1]) / (share[e] - share[e - 1])
                    bx, by = x[e - 1] + part * (x[e] - x[e - 1]), y[e - 1] + part * (y[e] - y[e - 1])
                    _widen(box, c - 1, bx, by)
                    _widen(box, c, bx, by)
        if high - low == 1:
            box[LEFT], box[RIGHT], box[BELOW], box[ABOVE] = x[low], x[low], y[low], y[low]
    return boxes


@kernel
def _widen(box: Floats, c: int, x: float, y: float) -> None:
    box[LEFT, c], box[RIGHT, c] = min(box[LEFT, c], x), max(box[RIGHT, c], x)
    box[BELOW, c], box[ABOVE, c] = min(box[BELOW, c], y), max(box[ABOVE, c], y)


@kernel
def outer(boxes: Floats) -> Floats:
    """Return the box around all slices of each path."""
    found = np.empty((len(boxes), 4), np.float64)
    for i in range(len(boxes)):
        found[i, LEFT], found[i, RIGHT] = boxes[i, LEFT].min(), boxes[i, RIGHT].max()
        found[i, BELOW], found[i, ABOVE] = boxes[i, BELOW].min(), boxes[i, ABOVE].max()
    return found


@kernel
def sketch_distances(i: int, to: Ints, boxes: Floats, found: Floats) -> None:
    """Estimate the distances of paths from one of them: the mean between the middles of the boxes of equal slices."""
    middle_x, middle_y = boxes[i, LEFT] + boxes[i, RIGHT], boxes[i, BELOW] + boxes[i, ABOVE]
    for at in range(len(to)):
        box = boxes[to[at]]
        total = 0.0
        for c in range(SLICES):
            dx, dy = middle_x[c] - box[LEFT, c] - box[RIGHT, c], middle_y[c] - box[BELOW, c] - box[ABOVE, c]
            total += math.sqrt(dx * dx + dy * dy)
        found[at] = total / (2 * SLICES)


@kernel
def _count(own: Points, other: Points, resampled: bool, counts: Ints) -> None:
    """Count the points of both paths in each slice once they are brought to the same moments."""
    counts[:] = 0
    a, b, p, q = own[3], other[3], len(own[3]), len(other[3])
    if not resampled:
        for i in range(p):
            counts[0, slice_of(a[i])] += 1
        for j in range(q):
            counts[1, slice_of(b[j])] += 1
        return
    i, j = 0, 0
    while i < p or j < q:
        share_a = a[i] if i < p else np.inf
        share_b = b[j] if j < q else np.inf
        counts[0, slice_of(min(share_a, share_b))] += 1
        i, j = i + (share_a <= share_b), j + (share_b <= share_a)
    counts[1] = counts[0]


@kernel
def between_boxes(own: Floats, other: Floats, apart: Floats) -> None:
    """Return a lower bound of the distance of each slice of a path from each of another."""
    for a in range(SLICES):
        left, right, below, above = own[LEFT, a], own[RIGHT, a], own[BELOW, a], own[ABOVE, a]
        others_left, others_right, others_below, others_above = other[LEFT], other[RIGHT], other[BELOW], other[ABOVE]
        row = apart[a]
        for b in range(SLICES):
            dx = max(max(others_left[b] - right, left - others_right[b]), 0.0)
            dy = max(max(others_below[b] - above, below - others_above[b]), 0.0)
            row[b] = math.sqrt(dx * dx + dy * dy)


@kernel
def _lower_bound_of(apart: Floats, rows: Ints, columns: Ints, near: Floats, so_far: Floats) -> float:
    """Return the least mean that a coupling can have, given lower bounds of the distances of slices (rows and columns), and how
    many points each has. `near` gets the distance of each column from all rows.
    """
    near[:] = np.inf
    so_far[:] = 0.0
    points = 0
    for a in range(SLICES):
        if rows[a] == 0:
            continue
        points += rows[a]
        # What it costs to have come to this column or an earlier one; so it never rises from column to column.
        now = np.inf
        for b in range(SLICES):
            d = apart[a, b]
            near[b] = min(near[b], d)
            now = min(now, so_far[b] + rows[a] * d)
            so_far[b] = now
    # All rows are paid for; columns are only added where that lowers the mean. The very first column is in the first pair.
    total, size = so_far[SLICES - 1], points
    mean = total / size
    while True:
        total, size = so_far[SLICES - 1], points
        for b in range(SLICES):
            if near[b] < mean:
                more = columns[b] - (b == 0)
                total += more * near[b]
                size += more
        lower = total / size
        if not lower < mean:
            return float(mean)
        mean = lower


@kernel
def _outer_distance(whole: Floats, i: int, j: int) -> float:
    dx = max(max(whole[i, LEFT] - whole[j, RIGHT], whole[j, LEFT] - whole[i, RIGHT]), 0.0)
    dy = max(max(whole[i, BELOW] - whole[j, ABOVE], whole[j, BELOW] - whole[i, ABOVE]), 0.0)
    return math.sqrt(dx * dx + dy * dy)


@kernel
def distance_lower_bounds(
    i: int, to: Ints, paths: Paths, boxes: Floats, whole: Floats, resampled: bool, limit: float, found: Floats
) -> None:
    """Return a lower bound of the distance of paths from one of them; infinite where that is above the limit."""
    apart, turned = np.empty((SLICES, SLICES)), np.empty((SLICES, SLICES))
    counts, near, so_far = np.empty((2, SLICES), np.int64), np.empty(SLICES), np.empty(SLICES)
    own = path_of(paths, i)
    for at in range(len(to)):
        j = to[at]
        least = _outer_distance(whole, i, j)
        if least <= limit * SURE + SURE_M:
            between_boxes(boxes[i], boxes[j], apart)
            _count(own, path_of(paths, j), resampled, counts)
            least = max(least, _lower_bound_of(apart, counts[0], counts[1], near, so_far))
            for a in range(SLICES):
                for b in range(SLICES):
                    turned[b, a] = apart[a, b]
            least = max(least, _lower_bound_of(turned, counts[1], counts[0], near, so_far))
        found[at] = max(least / SURE - SURE_M, 0.0) if least <= limit * SURE + SURE_M else np.inf
