"""The distance between trajectories in space and time, from one trajectory to many.

Of two trajectories with p and q points, h = (p + q) / 2 pairs of points are taken (a half counts as one), spread evenly over
both, so that first points meet and last points meet. A pair is as far apart as its places, plus what the time between them is
worth: λ times the mean speed of the two. The distance is the root of the mean square over the pairs.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.trajectory.structures import Balls, Metric, Points

SURE, SURE_M = 1 + 1e-9, 1e-6
"""Bounds are taken this much wider than they are, so that rounding never makes them narrower: a share, and meters for those that
are differences of far larger numbers."""


@kernel
def mean_speeds(x: Floats, y: Floats, t: Floats, offsets: Ints) -> Floats:
    """Return the mean speed of the legs of each trajectory; a leg that takes no time has speed 0, and so has a single point."""
    n = len(offsets) - 1
    speed = np.zeros(n, np.float64)
    for i in range(n):
        low, high = offsets[i], offsets[i + 1]
        total = 0.0
        for e in range(low + 1, high):
            took = t[e] - t[e - 1]
            if took > 0:
                total += math.sqrt((x[e] - x[e - 1]) ** 2 + (y[e] - y[e - 1]) ** 2) / took
        if high - low > 1:
            speed[i] = total / (high - low - 1)
    return speed


@kernel
def balls(x: Floats, y: Floats, t: Floats, offsets: Ints) -> Balls:
    """Return a ball around each trajectory: its middle, its radius, and the middle and the half of its time."""
    n = len(offsets) - 1
    middle_x, middle_y, radius = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.float64)
    middle_t, half_t = np.empty(n, np.float64), np.empty(n, np.float64)
    for i in range(n):
        low, high = offsets[i], offsets[i + 1]
        least_x, most_x, least_y, most_y = x[low], x[low], y[low], y[low]
        for e in range(low + 1, high):
            least_x, most_x = min(least_x, x[e]), max(most_x, x[e])
            least_y, most_y = min(least_y, y[e]), max(most_y, y[e])
        middle_x[i], middle_y[i] = (least_x + most_x) / 2, (least_y + most_y) / 2
        farthest = 0.0
        for e in range(low, high):
            farthest = max(farthest, (x[e] - middle_x[i]) ** 2 + (y[e] - middle_y[i]) ** 2)
        radius[i] = math.sqrt(farthest)
        middle_t[i], half_t[i] = (t[low] + t[high - 1]) / 2, (t[high - 1] - t[low]) / 2
    return Balls(middle_x, middle_y, radius, middle_t, half_t)


@kernel
def point_of(i: int, points: int, pairs: int) -> int:
    """Return the point of a trajectory with `points` points that is in pair `i` of `pairs`."""
    if pairs == 1:
        return 0
    return (2 * i * (points - 1) + pairs - 1) // (2 * (pairs - 1))


@kernel
def squares(
    own_x: Floats, own_y: Floats, own_t: Floats, own_low: int, p: int,
    x: Floats, y: Floats, t: Floats, low: int, q: int, worth: float, enough: float,
) -> float:  # fmt: skip
    """Sum the squares over the pairs of two trajectories, of p points from `own_low` and of q from `low`; infinite as soon as
    the sum is sure to be above `enough`.
    """
    pairs = (p + q + 1) // 2
    # The ends are mostly what is farthest apart: they come first, and are added last, as if they were in their place.
    a, b = own_low + p - 1, low + q - 1
    dx, dy = own_x[a] - x[b], own_y[a] - y[b]
    d = math.sqrt(dx * dx + dy * dy) + worth * abs(own_t[a] - t[b])
    last = d * d
    # The points of the next pair are those of `point_of`, by adding in place of dividing: at most two further on.
    whole = 2 * max(pairs - 1, 1)
    a, b, over_a, over_b = own_low, low, whole // 2, whole // 2
    total = 0.0
    for _ in range(pairs - 1):
        dx, dy = own_x[a] - x[b], own_y[a] - y[b]
        d = math.sqrt(dx * dx + dy * dy) + worth * abs(own_t[a] - t[b])
        total += d * d
        if total + last > enough:
            break
        over_a += 2 * (p - 1)
        ahead = (over_a >= whole) + (over_a >= 2 * whole)
        a += ahead
        over_a -= ahead * whole
        over_b += 2 * (q - 1)
        ahead = (over_b >= whole) + (over_b >= 2 * whole)
        b += ahead
        over_b -= ahead * whole
    return np.inf if total + last > enough else total + last


@kernel
def distances(
    own_x: Floats,
    own_y: Floats,
    own_t: Floats,
    own_speed: float,
    to: Ints,
    points: Points,
    speed: Floats,
    weight: float,
    found: Floats,
) -> None:
    """Write the distances from a trajectory that is given by its points to those in `to`, in meters."""
    x, y, t, offsets = points
    p = len(own_x)
    for at in range(len(to)):
        j = to[at]
        low = offsets[j]
        q = offsets[j + 1] - low
        worth = weight * (own_speed + speed[j]) / 2
        total = squares(own_x, own_y, own_t, 0, p, x, y, t, low, q, worth, np.inf)
        found[at] = math.sqrt(total / ((p + q + 1) // 2))


@kernel
def look_around(
    own: int,
    metric: Metric,
    to: Ints,
    low_at: int,
    high_at: int,
    skip: Mask,
    person: Ints,
    k: int,
    want_farthest: bool,
    found: Floats,
) -> tuple[float, int, int]:
    """Write the distances from `own` to those of `to` from `low_at` to `high_at` that matter; others are infinite.

    These are the farthest one, and all that are so near that k people are not nearer. Returns the farthest distance, its
    position in `to`, the first of equal ones, and how many distances were computed to the end.

    A trajectory is settled by its ball where the bounds of the ball are enough, and given up as soon as its pairs are. `own`
    itself is neither near nor far: of equal trajectories another one is the farthest.
    """
    (x, y, t, offsets), speed, (middle_x, middle_y, radius, middle_t, half_t), weight = metric
    own_low = offsets[own]
    p = offsets[own + 1] - own_low
    own_speed, own_mx, own_my, own_r = speed[own], middle_x[own], middle_y[own], radius[own]
    own_mt, own_half = middle_t[own], half_t[own]
    near_d, near_person = np.full(k, np.inf), np.full(k, -1, np.int64)
    near_d[0], near_person[0] = 0.0, person[own]
    people, limit = 1, np.inf if k > 1 else 0.0
    farthest, farthest_at, computed = -1.0, -1, 0
    for at in range(low_at, high_at):
        found[at] = np.inf
        j = to[at]
        if skip[j] or j == own:
            continue
        worth = weight * (own_speed + speed[j]) / 2
        dx, dy = own_mx - middle_x[j], own_my - middle_y[j]
        apart, around = math.sqrt(dx * dx + dy * dy), own_r + radius[j]
        late, span = abs(own_mt - middle_t[j]), own_half + half_t[j]
        least = max(apart - around, 0.0) + worth * max(late - span, 0.0)
        most = apart + around + worth * (late + span)
        may_be_near = least <= limit * SURE + SURE_M
        may_be_far = want_farthest and most * SURE > farthest
        if not (may_be_near or may_be_far):
            continue
        low = offsets[j]
        q = offsets[j + 1] - low
        pairs = (p + q + 1) // 2
        enough = np.inf if may_be_far else limit * limit * pairs * SURE
        total = squares(x, y, t, own_low, p, x, y, t, low, q, worth, enough)
        if total == np.inf:
            continue
        here = math.sqrt(total / pairs)
        found[at] = here
        computed += 1
        if want_farthest and here > farthest:
            farthest, farthest_at = here, at
        if here < limit:
            people = remember(near_d, near_person, people, here, person[j])
            if people == k:
                limit = near_d[k - 1]
    return farthest, farthest_at, computed


@kernel
def remember(near_d: Floats, near_person: Ints, people: int, d: float, who: int) -> int:
    """Insert a person into a list of the nearest people by distance; return how many are in it."""
    place = -1
    for i in range(people):
        if near_person[i] == who:
            if near_d[i] <= d:
                return people
            place = i
            break
    if place < 0:
        place = min(people, len(near_d) - 1)
        people = min(people + 1, len(near_d))
    while place > 0 and near_d[place - 1] > d:
        near_d[place], near_person[place] = near_d[place - 1], near_person[place - 1]
        place -= 1
    near_d[place], near_person[place] = d, who
    return people


@kernel
def nearest_people(found: Floats, to: Ints, person: Ints, own: int, skip: Mask, not_this: int, k: int) -> Ints:
    """Return the nearest trajectories until k people are among them, `own` first; by distance, then number."""
    near_d, near_j = np.full(k, np.inf), np.full(k, -1, np.int64)
    near_d[0], near_j[0] = -1.0, own
    people = 1
    for at in range(len(to)):
        d, j = found[at], to[at]
        if d == np.inf or skip[j] or j == own or j == not_this:
            continue
        if people == k and (d > near_d[k - 1] or (d == near_d[k - 1] and j > near_j[k - 1])):
            continue
        place = -1
        for i in range(people):
            if person[near_j[i]] == person[j]:
                place = i
                break
        if place >= 0:
            if near_d[place] < d or (near_d[place] == d and near_j[place] < j):
                continue
        else:
            place = min(people, k - 1)
            people = min(people + 1, k)
        while place > 0 and (near_d[place - 1] > d or (near_d[place - 1] == d and near_j[place - 1] > j)):
            near_d[place], near_j[place] = near_d[place - 1], near_j[place - 1]
            place -= 1
        near_d[place], near_j[place] = d, j
    last_d, last_j = near_d[people - 1], near_j[people - 1]
    members, count = np.empty(len(to) + 1, np.int64), 1
    members[0] = own
    for at in range(len(to)):
        d, j = found[at], to[at]
        if skip[j] or j == own or j == not_this:
            continue
        if d < last_d or (d == last_d and j <= last_j):
            members[count] = j
            count += 1
    return members[:count].copy()
