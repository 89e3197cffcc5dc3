"""A tree of boxes over the legs of paths, and what it is asked: who is in a circle at some time, or all the time, of an interval.

A leg is (x, y, t) of the point that it leaves and (x, y, t) of the one that it leads to. A box is (least x, greatest x, least y,
greatest y, first t, last t). Circles and intervals are closed. A path is where straight lines between its points lead, at even
speed, from its first time to its last; where points share a time, it is at all of them then. Comparisons are of sums and products
alone, without a division: on whole numbers that are not too large they are exact.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints
from crowdveil.kernels.ordering import first_from

FAN = 8
"""Children of a node."""
LEGS = 32
"""Legs of a leaf."""
DEEPEST = 24
"""Levels of a tree: more than any memory can hold leaves for."""
OUTSIDE, BOTH, INSIDE = 0, 1, 2


@kernel
def leaf_boxes(legs: Floats) -> Floats:
    """Return the boxes around every `LEGS` legs in a row."""
    n = (len(legs) + LEGS - 1) // LEGS
    boxes = np.empty((n, 6))
    for i in range(n):
        b = boxes[i]
        b[0::2], b[1::2] = np.inf, -np.inf
        for j in range(i * LEGS, min((i + 1) * LEGS, len(legs))):
            for side in range(3):
                b[2 * side] = min(b[2 * side], legs[j, side], legs[j, side + 3])
                b[2 * side + 1] = max(b[2 * side + 1], legs[j, side], legs[j, side + 3])
    return boxes


@kernel
def parent_boxes(boxes: Floats) -> Floats:
    """Return the boxes around every `FAN` boxes in a row."""
    n = (len(boxes) + FAN - 1) // FAN
    parents = np.empty((n, 6))
    for i in range(n):
        p = parents[i]
        p[:] = boxes[i * FAN]
        for j in range(i * FAN + 1, min((i + 1) * FAN, len(boxes))):
            for side in range(0, 6, 2):
                p[side] = min(p[side], boxes[j, side])
                p[side + 1] = max(p[side + 1], boxes[j, side + 1])
    return parents


@kernel
def _relation(box: Floats, x: float, y: float, square: float, begin: float, end: float) -> int:
    """Return how a box lies to a cylinder (a circle, for some time): OUTSIDE, or INSIDE, or BOTH in part."""
    if box[4] > end or box[5] < begin:
        return OUTSIDE
    left, right, down, up = box[0] - x, box[1] - x, box[2] - y, box[3] - y
    dx, dy = max(left, -right, 0.0), max(down, -up, 0.0)
    if dx * dx + dy * dy > square:
        return OUTSIDE
    dx, dy = max(-left, right), max(-down, up)
    if box[4] >= begin and box[5] <= end and dx * dx + dy * dy <= square:
        return INSIDE
    return BOTH


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
    i = first_from(t, low, high, begin)
    while i < high and t[i] <= end:
        dx, dy = x[i] - cx, y[i] - cy
        if dx * dx + dy * dy > square:
            return False
        i += 1
    if i == high or t[i - 1] == end:
        return True
    return _at(x[i - 1] - cx, y[i - 1] - cy, t[i - 1], x[i] - cx, y[i] - cy, t[i], square, end)


@kernel
def _open(levels: Ints, nodes: Ints, levels_of: Ints) -> int:
    """Put the nodes of the top level on a stack, and return its size."""
    top = len(levels) - 2
    for node in range(levels[top + 1] - levels[top]):
        nodes[node], levels_of[node] = node, top
    return int(levels[top + 1] - levels[top])


@kernel
def _expand(levels: Ints, nodes: Ints, levels_of: Ints, size: int, node: int, level: int) -> int:
    """Put the children of a node on a stack, and return its size."""
    for child in range(node * FAN, min((node + 1) * FAN, levels[level] - levels[level - 1])):
        nodes[size], levels_of[size] = child, level - 1
        size += 1
    return size


@kernel
def counts_sometime(
    legs: Floats,
    path: Indices,
    paths: int,
    boxes: Floats,
    levels: Ints,
    cx: Floats,
    cy: Floats,
    radius: Floats,
    begin: Floats,
    end: Floats,
) -> Ints:
    """Count, for each circle and interval, the paths of `paths` that are inside at some time.

    `boxes` are those of all levels, leaves first; level i begins at levels[i]. All legs in a box that lies inside count without a
    look at them; of the others only those are looked at whose path was not found by one of the former.
    """
    counts = np.zeros(len(cx), np.int64)
    found = np.full(paths, -1, np.int32)
    nodes, levels_of = np.empty(DEEPEST * FAN, np.int64), np.empty(DEEPEST * FAN, np.int64)
    left = np.empty(levels[1], np.int64)
    for q in range(len(cx)):
        x, y, r, since, until = cx[q], cy[q], radius[q], begin[q], end[q]
        square, lefts, count = r * r, 0, 0
        size = _open(levels, nodes, levels_of)
        while size > 0:
            size -= 1
            node, level = nodes[size], levels_of[size]
            lies = _relation(boxes[levels[level] + node], x, y, square, since, until)
            if lies == INSIDE:
                below = LEGS * FAN**level
                for i in range(node * below, min((node + 1) * below, len(path))):
                    if found[path[i]] != q:
                        found[path[i]] = q
                        count += 1
            elif lies == BOTH and level > 0:
                size = _expand(levels, nodes, levels_of, size, node, level)
            elif lies == BOTH:
                left[lefts] = node
                lefts += 1
        for leaf in left[:lefts]:
            for i in range(leaf * LEGS, min((leaf + 1) * LEGS, len(path))):
                if found[path[i]] == q or legs[i, 5] < since or legs[i, 2] > until:
                    continue
                x0, y0, x1, y1 = legs[i, 0] - x, legs[i, 1] - y, legs[i, 3] - x, legs[i, 4] - y
                if min(x0, x1) > r or max(x0, x1) < -r or min(y0, y1) > r or max(y0, y1) < -r:
                    continue
                if _sometime(x0, y0, legs[i, 2], x1, y1, legs[i, 5], square, since, until):
                    found[path[i]] = q
                    count += 1
        counts[q] = count
    return counts


@kernel
def counts_always(
    legs: Floats,
    path: Indices,
    px: Floats,
    py: Floats,
    pt: Floats,
    offsets: Ints,
    boxes: Floats,
    levels: Ints,
    cx: Floats,
    cy: Floats,
    radius: Floats,
    begin: Floats,
    end: Floats,
) -> Ints:
    """Count, for each circle and interval, the paths (of points px, py, pt) that are inside at every time.

    Only those can be that are inside when the interval begins: these are looked for in the tree, and followed until it ends.
    """
    counts = np.zeros(len(cx), np.int64)
    looked_at = np.full(len(offsets) - 1, -1, np.int32)
    nodes, levels_of = np.empty(DEEPEST * FAN, np.int64), np.empty(DEEPEST * FAN, np.int64)
    for q in range(len(cx)):
        x, y, since, until = cx[q], cy[q], begin[q], end[q]
        square, count = radius[q] * radius[q], 0
        size = _open(levels, nodes, levels_of)
        while size > 0:
            size -= 1
            node, level = nodes[size], levels_of[size]
            if _relation(boxes[levels[level] + node], x, y, square, since, since) == OUTSIDE:
                continue
            if level > 0:
                size = _expand(levels, nodes, levels_of, size, node, level)
                continue
            for i in range(node * LEGS, min((node + 1) * LEGS, len(path))):
                p = path[i]
                if legs[i, 2] > since or legs[i, 5] < since or looked_at[p] == q:
                    continue
                x0, y0, x1, y1 = legs[i, 0] - x, legs[i, 1] - y, legs[i, 3] - x, legs[i, 4] - y
                if _sometime(x0, y0, legs[i, 2], x1, y1, legs[i, 5], square, since, since):
                    looked_at[p] = q
                    if _always(px, py, pt, offsets[p], offsets[p + 1], x, y, square, since, until):
                        count += 1
        counts[q] = count
    return counts
