"""The distance between trajectories in space and time, from one trajectory to many.

Two trajectories with p and q points are compared by h = (p + q) / 2 pairs of points (a half counts as one), spread evenly over
both, so that first points meet and last points meet. A pair is as far apart as its places, plus what the time between them is
worth: λ times the mean speed of the two. The distance is the root of the mean square over the pairs.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.trajectory.structures import Points

SURE, SURE_M = 1 + 1e-9, 1e-6
"""Bounds are widened by this share and these meters, so that rounding never makes them too narrow; differences of far larger
numbers lose more digits."""


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
def point_of(i: int, points: int, pairs: int) -> int:
    """Return the point of a trajectory with `points` points that is in pair `i` of `pairs`."""
    if pairs == 1:
        return 0
    return (2 * i * (points - 1) + pairs - 1) // (2 * (pairs - 1))


@kernel
def pair_distance(own: Points, i: int, other: Points, j: int, worth: float, enough: float) -> float:
    """Return the distance of two trajectories, infinite if its square is above `enough`; a second is worth some meters."""
    own_x, own_y, own_t, own_offsets = own
    x, y, t, offsets = other
    p, q = own_offsets[i + 1] - own_offsets[i], offsets[j + 1] - offsets[j]
    pairs = (p + q + 1) // 2
    total = 0.0
    for pair in range(pairs):
        a, b = own_offsets[i] + point_of(pair, p, pairs), offsets[j] + point_of(pair, q, pairs)
        dx, dy = own_x[a] - x[b], own_y[a] - y[b]
        d = math.sqrt(dx * dx + dy * dy) + worth * abs(own_t[a] - t[b])
        total += d * d
        if total > enough * pairs:
            return np.inf
    return math.sqrt(total / pairs)


@kernel
def pair_distances(
    own: Points, own_speed: Floats, other: Points, speed: Floats, weight: float, those: Ints, to: Ints
) -> Floats:
    """Return the distance of each of `those` from the trajectory of the same row in `to`, in meters."""
    found = np.empty(len(those), np.float64)
    for row in range(len(those)):
        i, j = those[row], to[row]
        found[row] = pair_distance(own, i, other, j, weight * (own_speed[i] + speed[j]) / 2, np.inf)
    return found


@kernel
def distances(own: Points, own_speed: float, to: Ints, points: Points, speed: Floats, weight: float) -> Floats:
    """Return the distances from a trajectory, the first of `own`, to those in `to`, in meters."""
    found = np.empty(len(to), np.float64)
    for at in range(len(to)):
        worth = weight * (own_speed + speed[to[at]]) / 2
        found[at] = pair_distance(own, 0, points, to[at], worth, np.inf)
    return found


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
    order = np.argsort(to)
    order = order[np.argsort(found[order], kind="mergesort")]
    members, among = np.empty(len(to) + 1, np.int64), np.empty(k, np.int64)
    members[0], among[0] = own, person[own]
    count, end, people = 1, 1, 1
    for at in order:
        j = to[at]
        if people == k or found[at] == np.inf:
            break
        if skip[j] or j == own or j == not_this:
            continue
        members[count] = j
        count += 1
        if not np.any(among[:people] == person[j]):
            among[people] = person[j]
            people += 1
            end = count
    return members[:end].copy()
