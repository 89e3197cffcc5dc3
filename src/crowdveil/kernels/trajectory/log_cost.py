"""Trajectories as sequences of boxes in space and time, put on top of one another at the least log cost.

Two boxes that are matched become one around both, which costs the log of its size; a box without a match is left out, at a
fixed cost s. Matches keep the order of both sequences. Of sequences with p and q boxes the cost is (p + q) s less what all
matches save, 2 s less the log of the size for each: the most that matches can save is found by dynamic programming.

Boxes are the columns of an array with six rows: least and most x, y and t. A point is a box of no size.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats

Costs = tuple[float, float, float]
"""What a box that is left out costs, and what the logs of lengths in space and in time are multiplied by."""


@kernel
def saved(x: float, y: float, t: float, costs: Costs) -> float:
    """Return what a match saves whose box has these lengths."""
    s, of_space, of_time = costs
    return 2.0 * s - (of_space * math.log((1.0 + x) * (1.0 + y)) + of_time * math.log(1.0 + t))


@kernel
def saved_by(a: Floats, i: int, b: Floats, j: int, costs: Costs) -> float:
    """Return what a match of two boxes saves."""
    return saved(
        max(a[1, i], b[1, j]) - min(a[0, i], b[0, j]),
        max(a[3, i], b[3, j]) - min(a[2, i], b[2, j]),
        max(a[5, i], b[5, j]) - min(a[4, i], b[4, j]),
        costs,
    )


@kernel
def best_saving(
    rows: Floats, low: int, high: int, columns: Floats, begin: int, end: int, costs: Costs, line: Floats
) -> float:
    """Return what the best matches of two sequences save: boxes low to high of one, begin to end of the other. `line` is a
    buffer.
    """
    for j in range(end - begin):
        line[j] = 0.0
    before = 0.0
    for i in range(low, high):
        diagonal, before = 0.0, 0.0
        for j in range(end - begin):
            above = line[j]
            before = max(max(diagonal + saved_by(rows, i, columns, begin + j, costs), above), before)
            diagonal = above
            line[j] = before
    return before


@kernel
def put_together(a: Floats, p: int, b: Floats, low: int, high: int, costs: Costs) -> int:
    """Match the first p boxes of a with those of b at the least cost, and put the boxes around each match in place of those of a;
    returns how many there are. Where it costs the same boxes are matched, and otherwise that of a is left out first.
    """
    q = high - low
    best = np.zeros((p + 1, q + 1))
    for i in range(p):
        for j in range(q):
            matched = best[i, j] + saved_by(a, i, b, low + j, costs)
            best[i + 1, j + 1] = max(matched, max(best[i, j + 1], best[i + 1, j]))
    first, second = np.empty(min(p, q), np.int64), np.empty(min(p, q), np.int64)
    i, j, count = p, q, 0
    while i > 0 and j > 0:
        if best[i, j] == best[i - 1, j - 1] + saved_by(a, i - 1, b, low + j - 1, costs):
            i, j = i - 1, j - 1
            first[count], second[count] = i, low + j
            count += 1
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            j -= 1
    # From the first match on, so that a box of a is read before another takes its place.
    for place in range(count):
        i, j = first[count - 1 - place], second[count - 1 - place]
        for axis in range(3):
            least, greatest = min(a[2 * axis, i], b[2 * axis, j]), max(a[2 * axis + 1, i], b[2 * axis + 1, j])
            a[2 * axis, place], a[2 * axis + 1, place] = least, greatest
    return count
