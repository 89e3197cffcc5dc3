"""The Fréchet/Manhattan distance: couplings of two paths, distances from one path to many, their bounds, and means.

A coupling walks along both paths from both first points to both last ones, by one step on either or both. Among those with the
least longest distance between two points that meet, the distance is the least mean distance between points that meet. Times do
not count, but paths may be brought to the same moments first: where one has a point, the other gets one on its line.

The one pass of the paper keeps for each pair of points (i, j) the least longest distance I, and of one coupling up to there
the sum M, the length L and the mean R = M / L. A pair may come after (i − 1, j − 1), (i − 1, j) or (i, j − 1): of those with
I ≤ max(d, least I) it comes after the one with the least R; of equal ones after the shortest, so that both paths are treated
alike; of equal ones after the first of these three.

The exact search looks only at pairs within the least longest distance. There, of all couplings, that with the least sum of
d − λ is found, λ is set to its mean, and so on until no mean is less (Dinkelbach).

For lower bounds each path is cut into slices of equal shares of its time, and each slice has a box around it. In a coupling each
point of the first path is in one pair by which the first path goes on, and the other pairs are each of another point of the
second path. So its mean is at least the least of (sum of a_i over all i + sum of b_j over some j) / (number of both), where a_i
is at most the distance of point i from all of the second path, and b_j likewise. Boxes in place of points give such a bound
without a look at the points; and since couplings go forward on both paths, so do the slices that go with those of the first path.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Bytes, Floats, Ints
from crowdveil.kernels.trajectory.spatiotemporal import SURE, SURE_M, remember
from crowdveil.kernels.trajectory.warping import BOTH, FIRST, SECOND, walk_back, warped_distance

Points = tuple[Floats, Floats, Floats, Floats]
"""x, y, t and shares of the points of a path."""
Paths = tuple[Floats, Floats, Floats, Floats, Ints]
"""x, y, t and shares of all points, and offsets."""
INSERTED = -1
"""In place of the number of a point that was put in."""


@kernel
def shares(t: Floats, offsets: Ints) -> Floats:
    """Return the share of the time of its trajectory that has passed at each point, 0 at the first and 1 at the last one.
    Points of a trajectory that takes no time are evenly spread, and a single point is at 0. Equal shares are equal numbers.
    """
    found = np.zeros(len(t), np.float64)
    for trajectory in range(len(offsets) - 1):
        low, high = offsets[trajectory], offsets[trajectory + 1]
        duration = t[high - 1] - t[low]
        for e in range(low + 1, high):
            found[e] = (t[e] - t[low]) / duration if duration > 0 else (e - low) / (high - 1 - low)
    return found


@kernel
def path_of(paths: Paths, i: int) -> Points:
    """Return one of the paths."""
    x, y, t, share, offsets = paths
    low, high = offsets[i], offsets[i + 1]
    return x[low:high], y[low:high], t[low:high], share[low:high]


@kernel
def together(first: Points, second: Points, made: Floats, own: Ints) -> int:
    """Bring two paths to the moments of both; returns how many moments there are, at most as many as points.

    `made` gets x, y and t of the first path in its first three rows and those of the second in the others, `own` the numbers of
    their own points, or `INSERTED`. A moment that both have is there once; one that a path has twice, the other gets twice.
    """
    (x1, y1, t1, share1), (x2, y2, t2, share2) = first, second
    p, q = len(x1), len(x2)
    a, b, n = 0, 0, 0
    while a < p or b < q:
        share_a = share1[a] if a < p else np.inf
        share_b = share2[b] if b < q else np.inf
        if share_a <= share_b:
            made[0, n], made[1, n], made[2, n], own[0, n] = x1[a], y1[a], t1[a], a
        else:
            # Between two points, or at the last one, where the path is a single point or the other one stays longer at its end.
            end = min(a, p - 1)
            part = (share_b - share1[a - 1]) / (share1[end] - share1[a - 1]) if end == a else 0.0
            made[0, n] = x1[a - 1] + part * (x1[end] - x1[a - 1])
            made[1, n] = y1[a - 1] + part * (y1[end] - y1[a - 1])
            made[2, n] = t1[a - 1] + part * (t1[end] - t1[a - 1])
            own[0, n] = INSERTED
        if share_b <= share_a:
            made[3, n], made[4, n], made[5, n], own[1, n] = x2[b], y2[b], t2[b], b
        else:
            end = min(b, q - 1)
            part = (share_a - share2[b - 1]) / (share2[end] - share2[b - 1]) if end == b else 0.0
            made[3, n] = x2[b - 1] + part * (x2[end] - x2[b - 1])
            made[4, n] = y2[b - 1] + part * (y2[end] - y2[b - 1])
            made[5, n] = t2[b - 1] + part * (t2[end] - t2[b - 1])
            own[1, n] = INSERTED
        a, b, n = a + (share_a <= share_b), b + (share_b <= share_a), n + 1
    return n


@kernel
def copy_points(first: Points, second: Points, made: Floats, own: Ints) -> None:
    """Write two paths without new points; they may have different numbers of points."""
    for i in range(len(first[0])):
        made[0, i], made[1, i], made[2, i], own[0, i] = first[0][i], first[1][i], first[2][i], i
    for j in range(len(second[0])):
        made[3, j], made[4, j], made[5, j], own[1, j] = second[0][j], second[1][j], second[2][j], j


@kernel
def _bring_together(own: Points, other: Points, resampled: bool, made: Floats, number: Ints) -> tuple[int, int]:
    """Write both paths into `made`, brought to the same moments if wanted; return how many points each has."""
    if resampled:
        n = together(own, other, made, number)
        return n, n
    copy_points(own, other, made, number)
    return len(own[0]), len(other[0])


@kernel
def one_pass(first_x: Floats, first_y: Floats, second_x: Floats, second_y: Floats) -> tuple[float, Bytes]:
    """Return the mean of the coupling that one pass finds, and the pair before each."""
    p, q = len(first_x), len(second_x)
    choice = np.zeros((p, q), np.uint8)
    longest, total = np.full(q + 1, np.inf), np.full(q + 1, np.inf)
    length, mean = np.full(q + 1, np.inf), np.full(q + 1, np.inf)
    for i in range(p):
        i_both, m_both, l_both, r_both = np.inf, np.inf, np.inf, np.inf
        longest[0] = np.inf
        for j in range(q):
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
                    m, size, which = total[j], length[j], SECOND
                choice[i, j] = which
                longest[j + 1], total[j + 1], length[j + 1] = most, m + d, size + 1.0
                mean[j + 1] = total[j + 1] / length[j + 1]
            i_both, m_both, l_both, r_both = i_first, m_first, l_first, r_first
    return float(mean[q]), choice


@kernel
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


@kernel
def _pair(own: Points, other: Points, resampled: bool, exact: bool, made: Floats, number: Ints) -> float:
    """Return the distance of two paths."""
    p, q = _bring_together(own, other, resampled, made, number)
    if exact:
        return exact_coupling(made[0, :p], made[1, :p], made[3, :q], made[4, :q])[0]
    return one_pass(made[0, :p], made[1, :p], made[3, :q], made[4, :q])[0]


@kernel
def coupled_distances(own: Points, to: Ints, paths: Paths, resampled: bool, exact: bool, found: Floats) -> None:
    """Write the distances from a path to those in `to`."""
    offsets, q = paths[4], 0
    for j in to:
        q = max(q, offsets[j + 1] - offsets[j])
    size = len(own[0]) + q
    made, number = np.empty((6, size)), np.empty((2, size), np.int64)
    for at in range(len(to)):
        found[at] = _pair(own, path_of(paths, to[at]), resampled, exact, made, number)


@kernel
def coupled_points(first: Points, second: Points, resampled: bool, exact: bool) -> tuple[Floats, Ints, Ints]:
    """Return two paths and their coupling: x, y, t of both, the numbers of their own points, and which meet."""
    size = len(first[0]) + len(second[0])
    made, number = np.empty((6, size)), np.empty((2, size), np.int64)
    p, q = _bring_together(first, second, resampled, made, number)
    if exact:
        return made, number, exact_coupling(made[0, :p], made[1, :p], made[3, :q], made[4, :q])[1]
    return made, number, walk_back(one_pass(made[0, :p], made[1, :p], made[3, :q], made[4, :q])[1])


@kernel
def nearest_paths(
    i: int, to: Ints, least: Floats, most: float, person: Ints, k: int, paths: Paths, resampled: bool, exact: bool,
    found: Floats,
) -> bool:  # fmt: skip
    """Write distances from a path to others, given in the order of their lower bounds, until k people are nearer than all that
    follow; the rest are infinite. Return whether the squares of the distances of the k − 1 nearest people may sum up to `most`;
    as soon as they may not, the search ends.
    """
    found[:] = np.inf
    own, offsets = path_of(paths, i), paths[4]
    longest = 0
    for j in to:
        longest = max(longest, offsets[j + 1] - offsets[j])
    made, number = np.empty((6, len(own[0]) + longest)), np.empty((2, len(own[0]) + longest), np.int64)
    near_d, near_person = np.full(k, np.inf), np.full(k, -1, np.int64)
    near_d[0], near_person[0] = 0.0, person[i]
    people = 1
    for at in range(len(to) + 1):
        next_least = least[at] if at < len(to) else np.inf
        squares = 0.0
        for place in range(1, k):
            squares += min(near_d[place], next_least) ** 2
        if squares > most * SURE + SURE_M:
            return False
        if next_least > near_d[k - 1] or at == len(to):
            break
        found[at] = _pair(own, path_of(paths, to[at]), resampled, exact, made, number)
        if found[at] < near_d[k - 1]:
            people = remember(near_d, near_person, people, found[at], person[to[at]])
    return True


@kernel
def mean_of_cluster(
    pivot: int, others: Ints, weight: Floats, paths: Paths, resampled: bool, exact: bool
) -> tuple[Floats, Floats, Floats]:
    """Return x, y and t of a trajectory for a cluster, with a point for each of its pivot's.

    A place and a time are means over all members, each the mean of its points that meet the pivot's; `weight` is that of
    the pivot and of each other. A member's later points never meet an earlier point of the pivot, so that times do not fall.
    """
    x, y, t, share = path_of(paths, pivot)
    p = len(x)
    total, own, met = np.zeros((3, p)), np.zeros((3, p)), np.zeros(p, np.int64)
    for member in range(len(others)):
        made, number, pairs = coupled_points((x, y, t, share), path_of(paths, others[member]), resampled, exact)
        own[:], met[:] = 0.0, 0
        for e in range(len(pairs)):
            at, point = number[0, pairs[e, 0]], pairs[e, 1]
            if at >= 0:
                # Sums are of differences, so that no digit is lost.
                own[0, at] += made[3, point] - x[at]
                own[1, at] += made[4, point] - y[at]
                own[2, at] += made[5, point] - t[at]
                met[at] += 1
        for axis in range(3):
            total[axis] += weight[member + 1] * own[axis] / met
    total /= weight.sum()
    mean_t = t + total[2]
    for at in range(1, p):
        mean_t[at] = max(mean_t[at], mean_t[at - 1])  # equal ones may be apart by rounding
    return x + total[0], y + total[1], mean_t


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
    """Write estimates of the distances of paths from one of them: the mean between the middles of the boxes of equal slices."""
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
    """Write lower bounds of the distances of the slices of a path from those of another."""
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
        # The cost of this column or an earlier one, so that it never rises from column to column.
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
def _outer_distance(outer_boxes: Floats, i: int, j: int) -> float:
    dx = max(max(outer_boxes[i, LEFT] - outer_boxes[j, RIGHT], outer_boxes[j, LEFT] - outer_boxes[i, RIGHT]), 0.0)
    dy = max(max(outer_boxes[i, BELOW] - outer_boxes[j, ABOVE], outer_boxes[j, BELOW] - outer_boxes[i, ABOVE]), 0.0)
    return math.sqrt(dx * dx + dy * dy)


@kernel
def distance_lower_bounds(
    i: int, to: Ints, paths: Paths, boxes: Floats, outer_boxes: Floats, resampled: bool, limit: float, found: Floats
) -> None:
    """Write lower bounds of the distances of paths from one of them; infinite where a bound is above the limit."""
    apart, turned = np.empty((SLICES, SLICES)), np.empty((SLICES, SLICES))
    counts, near, so_far = np.empty((2, SLICES), np.int64), np.empty(SLICES), np.empty(SLICES)
    own = path_of(paths, i)
    for at in range(len(to)):
        j = to[at]
        least = _outer_distance(outer_boxes, i, j)
        if least <= limit * SURE + SURE_M:
            between_boxes(boxes[i], boxes[j], apart)
            _count(own, path_of(paths, j), resampled, counts)
            least = max(least, _lower_bound_of(apart, counts[0], counts[1], near, so_far))
            for a in range(SLICES):
                for b in range(SLICES):
                    turned[b, a] = apart[a, b]
            least = max(least, _lower_bound_of(turned, counts[1], counts[0], near, so_far))
        found[at] = max(least / SURE - SURE_M, 0.0) if least <= limit * SURE + SURE_M else np.inf
