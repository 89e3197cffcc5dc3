"""Couplings of two paths: the Fréchet/Manhattan distance. Times do not count.

A coupling walks along both paths from both first points to both last ones, by one step on either or both. Of those with the least
longest distance between two points that meet, the distance is the least mean of what is between points that meet.

The one pass of the paper holds for each pair of points (i, j) the least longest distance I, and of one coupling up to there the
sum M, the length L and the mean R = M / L. A pair may come after (i − 1, j − 1), (i − 1, j) or (i, j − 1): of those with
I ≤ max(d, least I) it comes after the one with the least R; of equal ones after the shortest, so that both paths are treated
alike; of equal ones after the first of these three.

A coupling goes on from pairs whose I is at most that of the next pair, so that a pair whose I is above that of the last one is
in no coupling that leads there. The longest distance of any coupling is an upper bound of that: pairs farther apart are passed
over, which leaves a narrow band of pairs of two paths that run in parallel. Nothing else changes by it.

The exact way looks at the pairs within the least longest distance alone. There, of all couplings, that with the least sum of
d − λ is found, λ is set to its mean, and so on until no mean is less (Dinkelbach).
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import dividing_kernel, kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.warping import BOTH, FIRST, SECOND, walk_back, warped_distance

LANES = 16
"""Pairs that are computed at once: diagonals are filled up to a multiple with pairs that are infinitely far apart."""
CHECK_EVERY = 8
"""Diagonals from one check of whether a limit can still be kept to the next."""
SLACK_M = 1e-6
"""Sums must be this much above what is allowed before they are given up, for each pair: more than rounding ever makes of them."""
SURE = 1 + 1e-9
"""The band of pairs is taken this much wider than it is, so that rounding never makes it narrower."""
ROWS = 18


@kernel
def side_by_side(first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats, work: Floats) -> None:
    """Write two paths into the first rows of `work`, the second one reversed, so that a diagonal of pairs is a run of both;
    behind their ends they are infinitely far apart.
    """
    p, q = len(first_x), len(second_x)
    a_x, a_y, b_x, b_y = work[0], work[1], work[2], work[3]
    for i in range(p):
        a_x[i], a_y[i] = first_x[i], first_y[i]
    for j in range(q):
        b_x[j], b_y[j] = second_x[q - 1 - j], second_y[q - 1 - j]
    for e in range(LANES):
        a_x[p + e], a_y[p + e], b_x[q + e], b_y[q + e] = np.inf, np.inf, -np.inf, -np.inf


@kernel
def new_work(points: int) -> Floats:
    """Allocate the buffer of `one_pass` for paths of at most `points` points."""
    return np.empty((ROWS, points + 2 + 4 * LANES), np.float64)


@kernel
def longest_allowed(first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats) -> float:
    """Return an upper bound of the least longest distance: that of two couplings, one spread evenly over both paths, and one
    that goes on to the nearest pair of three.
    """
    p, q = len(first_x), len(second_x)
    n, even = max(p, q), 0.0
    for e in range(n):
        i, j = e * (p - 1) // max(n - 1, 1), e * (q - 1) // max(n - 1, 1)
        dx, dy = first_x[i] - second_x[j], first_y[i] - second_y[j]
        even = max(even, dx * dx + dy * dy)
    dx, dy = first_x[0] - second_x[0], first_y[0] - second_y[0]
    i, j, nearest = 0, 0, dx * dx + dy * dy
    while (i < p - 1 or j < q - 1) and nearest < even:
        least, to_i, to_j = np.inf, i, j
        for step in range(3):
            next_i, next_j = i + (step != SECOND), j + (step != FIRST)
            if next_i < p and next_j < q:
                dx, dy = first_x[next_i] - second_x[next_j], first_y[next_i] - second_y[next_j]
                square = dx * dx + dy * dy
                if square < least:
                    least, to_i, to_j = square, next_i, next_j
        i, j, nearest = to_i, to_j, max(nearest, least)
    return math.sqrt(min(even, nearest)) * SURE


@dividing_kernel
def one_pass(
    first_x: Floats,
    first_y: Floats,
    second_x: Floats,
    second_y: Floats,
    limit: float,
    rest_first: Floats,
    rest_second: Floats,
    work: Floats,
) -> float:
    """Return the mean of the coupling that one pass finds; infinite as soon as it is sure to be above a finite limit.

    Pairs with the same i + j depend on earlier ones only, so that a whole diagonal is computed at once; in loops over few arrays,
    since the compiler makes no lanes of others.

    Parameters
    ----------
    first_x, first_y, second_x, second_y
        The points of both paths.
    limit, rest_first, rest_second
        What is asked; and the least that a sum of d − limit can grow by after each point of the first, and of the second path.
        They are not looked at without a limit.
    work
        From `new_work`.
    """
    p, q = len(first_x), len(second_x)
    a_x, a_y, b_x, b_y = work[0], work[1], work[2], work[3]
    side_by_side(first_x, first_y, second_x, second_y, work)
    # Three diagonals of I, M, L and R. A pair (i, j) is at i + 1: what comes before the first point is infinite.
    for row in range(6, ROWS):
        for i in range(p + 2 + 4 * LANES):
            work[row, i] = np.inf
    allowed = longest_allowed(first_x, first_y, second_x, second_y)
    now, one_ago, two_ago = 6, 10, 14
    # The pairs of the last two diagonals that the band has.
    low_1, high_1, low_2, high_2 = 0, 1, p, 0
    for s in range(p + q - 1):
        low, high = max(0, s - q + 1), min(p - 1, s) + 1
        if s > 0:
            low, high = max(low, min(low_1, low_2 + 1)), min(high, max(high_1, high_2) + 1)
        n = (high - low + LANES - 1) // LANES * LANES
        back, end = q - 1 - s + low, low + n
        ax, ay, bx, by = a_x[low:end], a_y[low:end], b_x[back : back + n], b_y[back : back + n]
        d, choice = work[4, :n], work[5, :n]
        for e in range(n):
            dx, dy = ax[e] - bx[e], ay[e] - by[e]
            d[e] = math.sqrt(dx * dx + dy * dy)
        longest, total = work[now, low + 1 : end + 1], work[now + 1, low + 1 : end + 1]
        length, mean = work[now + 2, low + 1 : end + 1], work[now + 3, low + 1 : end + 1]
        if s == 0:
            longest[0], total[0], length[0], mean[0] = d[0], d[0], 1.0, d[0]
            now, one_ago, two_ago = two_ago, now, one_ago
            continue
        both_i, first_i, second_i = work[two_ago, low:end], work[one_ago, low:end], work[one_ago, low + 1 : end + 1]
        for e in range(n):
            least = first_i[e] if first_i[e] < second_i[e] else second_i[e]
            least = both_i[e] if both_i[e] < least else least
            longest[e] = d[e] if d[e] > least else least
        # What other diagonals left around these pairs is not theirs.
        work[now, low] = np.inf
        work[now, end + 1 : end + 1 + 2 * LANES] = np.inf
        both_l, first_l = work[two_ago + 2, low:end], work[one_ago + 2, low:end]
        both_r, first_r = work[two_ago + 3, low:end], work[one_ago + 3, low:end]
        second_l, second_r = work[one_ago + 2, low + 1 : end + 1], work[one_ago + 3, low + 1 : end + 1]
        for e in range(n):
            most, l_both, l_first, l_second = longest[e], both_l[e], first_l[e], second_l[e]
            r_both = both_r[e] if both_i[e] <= most else np.inf
            r_first = first_r[e] if first_i[e] <= most else np.inf
            r_second = second_r[e] if second_i[e] <= most else np.inf
            better = (r_first < r_both) | ((r_first == r_both) & (l_first < l_both))
            r, shortest = r_first if better else r_both, l_first if better else l_both
            which = 1.0 if better else 0.0
            better = (r_second < r) | ((r_second == r) & (l_second < shortest))
            choice[e] = 2.0 if better else which
        both_m, first_m, second_m = (
            work[two_ago + 1, low:end],
            work[one_ago + 1, low:end],
            work[one_ago + 1, low + 1 : end + 1],
        )
        for e in range(n):
            which, m_both, m_first, m_second = choice[e], both_m[e], first_m[e], second_m[e]
            m = m_first if which == 1.0 else m_both
            total[e] = (m_second if which == 2.0 else m) + d[e]
        for e in range(n):
            which, l_both, l_first, l_second = choice[e], both_l[e], first_l[e], second_l[e]
            m = l_first if which == 1.0 else l_both
            length[e] = (l_second if which == 2.0 else m) + 1.0
        for e in range(n):
            mean[e] = total[e] / length[e]
        low_2, high_2, low_1, high_1 = low_1, high_1, low, high
        while low_1 < high_1 and longest[low_1 - low] > allowed:
            low_1 += 1
        while high_1 > low_1 and longest[high_1 - 1 - low] > allowed:
            high_1 -= 1
        if low_1 == high_1:
            low_1, high_1 = p, 0
        now, one_ago, two_ago = two_ago, now, one_ago
        if limit < np.inf and s % CHECK_EVERY == 0:
            band = low_1, high_1
            least = _growth_lower_bound(s, band, limit, rest_first, rest_second, work[one_ago + 1], work[one_ago + 2])
            if least > SLACK_M * (p + q):
                # A step on both paths passes over a diagonal.
                band = low_2, high_2
                before = _growth_lower_bound(
                    s - 1, band, limit, rest_first, rest_second, work[two_ago + 1], work[two_ago + 2]
                )
                if before > SLACK_M * (p + q):
                    return np.inf
    return float(work[one_ago + 3, p])


@kernel
def _growth_lower_bound(
    s: int, band: tuple[int, int], limit: float, rest_first: Floats, rest_second: Floats, total: Floats, length: Floats
) -> float:
    """Return the least that the sum of d − limit can come to over couplings by the pairs of a diagonal that the band has."""
    least = np.inf
    for i in range(band[0], band[1]):
        least = min(least, total[i + 1] - limit * length[i + 1] + rest_first[i] + rest_second[s - i])
    return float(least)


@dividing_kernel
def one_pass_coupling(first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats) -> Ints:
    """Return the coupling that one pass finds, row by row; its mean is the result of `one_pass`."""
    p, q = len(first_x), len(second_x)
    choice = np.zeros((p, q), np.uint8)
    longest, total = np.full(q + 1, np.inf), np.full(q + 1, np.inf)
    length, mean = np.full(q + 1, np.inf), np.full(q + 1, np.inf)
    allowed = longest_allowed(first_x, first_y, second_x, second_y)
    # Of the row before: the columns that the band has, and the last one with any value.
    begin, end, last = 0, 0, 0
    for i in range(p):
        i_both, m_both, l_both, r_both = np.inf, np.inf, np.inf, np.inf
        low, next_begin, next_end = begin, q, 0
        longest[low] = np.inf
        for j in range(low, q):
            dx, dy = first_x[i] - second_x[j], first_y[i] - second_y[j]
            d = math.sqrt(dx * dx + dy * dy)
            i_first, m_first, l_first, r_first = longest[j + 1], total[j + 1], length[j + 1], mean[j + 1]
            if i == 0 and j == 0:
                longest[1], total[1], length[1], mean[1] = d, d, 1.0, d
            else:
                most = max(d, min(min(i_first, longest[j]), i_both))
                m, size, r, which = m_both, l_both, r_both if i_both <= most else np.inf, BOTH
                if i_first <= most and (r_first < r or (r_first == r and l_first < size)):
                    m, size, r, which = m_first, l_first, r_first, FIRST
                if longest[j] <= most and (mean[j] < r or (mean[j] == r and length[j] < size)):
                    m, size, r, which = total[j], length[j], mean[j], SECOND
                choice[i, j] = which
                longest[j + 1], total[j + 1], length[j + 1] = most, m + d, size + 1.0
                mean[j + 1] = total[j + 1] / length[j + 1]
            i_both, m_both, l_both, r_both = i_first, m_first, l_first, r_first
            if longest[j + 1] <= allowed:
                next_begin, next_end = min(next_begin, j), j + 1
            elif j >= end:
                break
        longest[j + 2 : last + 2] = np.inf
        begin, end, last = next_begin, next_end, j
    return walk_back(choice)


@dividing_kernel
def exact_coupling(first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats) -> tuple[float, Ints]:
    """Return the least mean over the couplings with the least longest distance, and one that has it."""
    p, q = len(first_x), len(second_x)
    apart, choice = np.empty((p, q), np.float64), np.zeros((p, q), np.uint8)
    for i in range(p):
        for j in range(q):
            dx, dy = first_x[i] - second_x[j], first_y[i] - second_y[j]
            apart[i, j] = math.sqrt(dx * dx + dy * dy)
    most = warped_distance(first_x, first_y, second_x, second_y, False)
    best, pairs = np.inf, np.zeros((0, 2), np.int64)
    # The first λ is above every mean, so that the first round finds the longest coupling that is not dear.
    price = most
    growth = np.empty(q + 1, np.float64)
    while True:
        growth[:] = np.inf
        for i in range(p):
            both = np.inf
            for j in range(q):
                first, second = growth[j + 1], growth[j]
                if apart[i, j] > most:
                    growth[j + 1] = np.inf
                elif i == 0 and j == 0:
                    growth[1] = apart[0, 0] - price
                else:
                    least, which = both, BOTH
                    if first < least:
                        least, which = first, FIRST
                    if second < least:
                        least, which = second, SECOND
                    choice[i, j] = which
                    growth[j + 1] = least + (apart[i, j] - price)
                both = first
            growth[0] = np.inf
        found = walk_back(choice)
        total = 0.0
        for e in range(len(found)):
            total += apart[found[e, 0], found[e, 1]]
        mean = total / len(found)
        if not mean < best:
            return best, pairs
        best, pairs, price = mean, found, mean
