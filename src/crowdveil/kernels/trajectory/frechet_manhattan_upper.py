"""Upper bounds of the Fréchet/Manhattan distance of two paths, without the sums of its one pass.

One pass comes to a pair of points c = (i, j) after that of three pairs, the candidates, which has the least mean R; a pair before
c is a candidate if its least longest distance I is at most max(d(c), the least I of the three). Along any coupling, each pair p
before c, this bounds R(c) from above, without a look at other pairs:

- If p is a candidate, the one that is taken has a mean of at most R(p). Otherwise its I is less than I(p), and a mean is never
  above the longest distance. So that mean is at most R(p), or the longest distance up to p.
- The coupling that it belongs to has from max(i, j) to i + j pairs, by which the new d(c) weighs least or most.

`along` finds few pairs that are candidates: those where nothing before was longer than d(c), or than at the first pair,
which every coupling has. `within_longest` computes I of all pairs, which costs a fraction of one pass, and goes back from the
last pair over candidates only. Both follow the coupling that one pass finds between a few points of each path. The exact distance
is never above that of one pass, so that all this holds for it too.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.frechet_manhattan_distance import LANES, one_pass_coupling, side_by_side

PLACES = 16
"""Points of each path that are looked at first."""
MAX_POINTS = 2_000
"""Longer paths are not bounded by `within_longest`, whose buffer grows with the square of points: this many take 64 MiB."""


@kernel
def new_squares(points: int) -> Floats:
    """Allocate the buffer of `within_longest` for paths of at most `points` points, or of `MAX_POINTS`. It must be kept free
    of NaN.
    """
    size = min(points, MAX_POINTS)
    return np.full((2 * size + 1) * (size + 2 + 2 * LANES), np.inf)


@kernel
def rough_way(first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats, few: Floats, way: Ints) -> int:
    """Return a coupling along that of a few points: its pairs go to the two rows of `way`. Returns how many there are."""
    p, q = len(first_x), len(second_x)
    some, others = min(p, PLACES), min(q, PLACES)
    for c in range(some):
        i = c * (p - 1) // max(some - 1, 1)
        few[0, c], few[1, c] = first_x[i], first_y[i]
    for c in range(others):
        j = c * (q - 1) // max(others - 1, 1)
        few[2, c], few[3, c] = second_x[j], second_y[j]
    pairs = one_pass_coupling(few[0, :some], few[1, :some], few[2, :others], few[3, :others])
    way[0, 0], way[1, 0] = 0, 0
    i, j, n = 0, 0, 1
    for e in range(1, len(pairs)):
        to_i, to_j = pairs[e, 0] * (p - 1) // max(some - 1, 1), pairs[e, 1] * (q - 1) // max(others - 1, 1)
        while i < to_i or j < to_j:
            i, j = i + (i < to_i), j + (j < to_j)
            way[0, n], way[1, n] = i, j
            n += 1
    return n


@kernel
def weights(size: int) -> Floats:
    """Return the weight in a mean of each next pair."""
    return 1.0 / (1.0 + np.arange(size).astype(np.float64))


@kernel
def along(
    first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats, way: Ints, n: int, weight: Floats
) -> float:
    """Return an upper bound of the distance of two paths along the first n pairs of `way`. `weight` is from `weights`."""
    dx, dy = first_x[0] - second_x[0], first_y[0] - second_y[0]
    most = math.sqrt(dx * dx + dy * dy)
    longest, beginning = most, most
    for e in range(1, n):
        i, j = way[0, e], way[1, e]
        dx, dy = first_x[i] - second_x[j], first_y[i] - second_y[j]
        d = math.sqrt(dx * dx + dy * dy)
        before = most if longest <= max(d, beginning) else longest
        most = before + (d - before) * weight[max(i, j) if d > before else i + j]
        longest = max(longest, d)
    return float(most)


@kernel
def within_longest(
    first_x: Floats,
    first_y: Floats,
    second_x: Floats,
    second_y: Floats,
    way: Ints,
    n: int,
    weight: Floats,
    work: Floats,
    squares: Floats,
) -> float:
    """Return an upper bound of the distance of two paths along candidates near the first n pairs of `way`, which gets their pairs
    instead.

    Infinite where `squares`, from `new_squares`, is too short for all pairs; `work` is from `new_work`.
    """
    p, q = len(first_x), len(second_x)
    stride = p + 2 + 2 * LANES
    if (p + q) * stride > len(squares):
        return np.inf
    _least_longest_distance(first_x, first_y, second_x, second_y, work, squares, stride)
    wanted = work[5]
    for e in range(n):
        wanted[way[0, e]] = way[1, e]
    i, j, n = p - 1, q - 1, 0
    while True:
        way[0, n], way[1, n] = i, j
        n += 1
        if i == 0 and j == 0:
            break
        here = squares[(i + j + 1) * stride + i + 1]
        nearest, to_i, to_j = np.inf, i, j
        for step in range(3):
            before_i, before_j = i - (step != 2), j - (step != 1)
            if before_i < 0 or before_j < 0 or squares[(before_i + before_j + 1) * stride + before_i + 1] > here:
                continue
            off = abs(wanted[before_i] - before_j)
            if off < nearest:
                nearest, to_i, to_j = off, before_i, before_j
        i, j = to_i, to_j
    most = 0.0
    for e in range(n - 1, -1, -1):
        i, j = way[0, e], way[1, e]
        dx, dy = first_x[i] - second_x[j], first_y[i] - second_y[j]
        d = math.sqrt(dx * dx + dy * dy)
        most += (d - most) * weight[max(i, j) if d > most else i + j]
    return float(most)


@kernel
def _least_longest_distance(
    first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats, work: Floats, squares: Floats, stride: int
) -> None:
    """Compute the square of the least longest distance up to each pair (i, j): row i + j + 1 of `squares`, column i + 1; the
    row and the columns around them are infinite. A diagonal at once, as in `frechet_manhattan_distance.one_pass`.
    """
    p, q = len(first_x), len(second_x)
    a_x, a_y, b_x, b_y, d = work[0], work[1], work[2], work[3], work[4]
    side_by_side(first_x, first_y, second_x, second_y, work)
    squares[:stride] = np.inf
    for s in range(p + q - 1):
        low, high = max(0, s - q + 1), min(p - 1, s) + 1
        n = (high - low + LANES - 1) // LANES * LANES
        back, end = q - 1 - s + low, low + n
        ax, ay, bx, by = a_x[low:end], a_y[low:end], b_x[back : back + n], b_y[back : back + n]
        row = (s + 1) * stride
        squares[row + low], squares[row + end + 1] = np.inf, np.inf
        now = squares[row + low + 1 : row + end + 1]
        for e in range(n):
            dx, dy = ax[e] - bx[e], ay[e] - by[e]
            d[e] = dx * dx + dy * dy
        if s == 0:
            now[:] = d[:n]
            continue
        row -= stride
        first, second = squares[row + low : row + end], squares[row + low + 1 : row + end + 1]
        both = squares[row - stride + low : row - stride + end]
        for e in range(n):
            least = first[e] if first[e] < second[e] else second[e]
            least = both[e] if both[e] < least else least
            now[e] = d[e] if d[e] > least else least
