"""Aggregation: one trajectory for each group, their mean or the points of the group nearest to it.

In means each member counts with its weight. Weights are fractions, so that a half may come out slightly less.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.spatiotemporal import point_of
from crowdveil.kernels.trajectory.structures import Points

A_HALF = 0.5 + 1e-9


@kernel
def mean_lengths(members: Ints, weight: Floats, group_offsets: Ints, offsets: Ints) -> Ints:
    """Return the mean number of points of the trajectories of each group, a half counting as one."""
    groups = len(group_offsets) - 1
    found = np.empty(groups, np.int64)
    for g in range(groups):
        low, high = group_offsets[g], group_offsets[g + 1]
        points, weights = 0.0, 0.0
        for e in range(low, high):
            points += weight[e] * (offsets[members[e] + 1] - offsets[members[e]])
            weights += weight[e]
        found[g] = int(math.floor(points / weights + A_HALF))
    return found


@kernel
def _raise_times(made_t: Ints, begin: int, end: int, earliest: int, latest: int) -> None:
    """Let times rise by a second from point to point, as far as there is room between the first and the last time of members."""
    for i in range(begin + 1, end):
        made_t[i] = max(made_t[i], made_t[i - 1] + 1)
    for i in range(end - 1, begin - 1, -1):
        made_t[i] = max(min(made_t[i], latest - (end - 1 - i)), earliest)


@kernel
def mean_trajectories(
    members: Ints,
    weight: Floats,
    group_offsets: Ints,
    x: Floats,
    y: Floats,
    t: Ints | Floats,
    offsets: Ints,
    made_offsets: Ints,
) -> tuple[Floats, Floats, Ints]:
    """Return the mean trajectory of each group: x, y and t, each the mean of matching points; times in whole seconds, rising."""
    size = made_offsets[-1]
    made_x, made_y, made_t = np.empty(size, np.float64), np.empty(size, np.float64), np.empty(size, np.int64)
    for g in range(len(group_offsets) - 1):
        low, high = group_offsets[g], group_offsets[g + 1]
        begin = made_offsets[g]
        pairs = made_offsets[g + 1] - begin
        start = t[offsets[members[low]]]
        earliest, latest = start, start
        for e in range(low, high):
            earliest = min(earliest, t[offsets[members[e]]])
            latest = max(latest, t[offsets[members[e] + 1] - 1])
        for i in range(pairs):
            # Sums are of differences from the first member, so that no digit is lost.
            first = offsets[members[low]]
            sum_x, sum_y, sum_t, weights = 0.0, 0.0, 0.0, 0.0
            for e in range(low, high):
                here = offsets[members[e]]
                point = here + point_of(i, offsets[members[e] + 1] - here, pairs)
                sum_x += weight[e] * (x[point] - x[first])
                sum_y += weight[e] * (y[point] - y[first])
                sum_t += weight[e] * (t[point] - start)
                weights += weight[e]
            made_x[begin + i] = x[first] + sum_x / weights
            made_y[begin + i] = y[first] + sum_y / weights
            made_t[begin + i] = start + int(math.floor(sum_t / weights + A_HALF))
        _raise_times(made_t, begin, begin + pairs, int(earliest), int(latest))
    return made_x, made_y, made_t


@kernel
def mean_path(members: Ints, points: Points) -> tuple[Floats, Floats, Floats]:
    """Return x, y and t of the mean trajectory of some, each of which counts the same."""
    x, y, t, offsets = points
    one, made = np.zeros(2, np.int64), np.zeros(2, np.int64)
    weight = np.ones(len(members))
    one[1] = len(members)
    made[1] = mean_lengths(members, weight, one, offsets)[0]
    mean_x, mean_y, mean_t = mean_trajectories(members, weight, one, x, y, t, offsets, made)
    return mean_x, mean_y, mean_t.astype(np.float64)


@kernel
def composed_trajectories(
    members: Ints,
    weight: Floats,
    group_offsets: Ints,
    nearest: Ints,
    x: Floats,
    y: Floats,
    t: Ints,
    offsets: Ints,
    made_offsets: Ints,
    own_share: float,
    start_share: float,
) -> tuple[Floats, Floats, Ints]:
    """Return a trajectory for each group, as long as its `nearest` member: x, y and t, times in whole seconds, rising.

    For each part of the way, between the points, it takes the mean place of the members, moved by `own_share` towards the nearest
    one, and the mean time that they have passed. It begins between the mean start and that of a member, nearer to the member by
    `start_share`: the group's first one that is not its nearest. It ends no later than the last member.
    """
    size = made_offsets[-1]
    made_x, made_y, made_t = np.zeros(size, np.float64), np.zeros(size, np.float64), np.empty(size, np.int64)
    passed = np.zeros(size, np.float64)
    for g in range(len(group_offsets) - 1):
        low, high = group_offsets[g], group_offsets[g + 1]
        begin, end = made_offsets[g], made_offsets[g + 1]
        # Sums are of differences from the first member, so that no digit is lost.
        first = offsets[members[low]]
        latest, starts, weights, one = t[offsets[members[low] + 1] - 1], 0.0, 0.0, members[low]
        earliest = t[first]
        for e in range(high - 1, low - 1, -1):
            here, last = offsets[members[e]], offsets[members[e] + 1] - 1
            earliest, latest = min(earliest, t[here]), max(latest, t[last])
            starts += weight[e] * (t[here] - t[first])
            weights += weight[e]
            if members[e] != nearest[g]:
                one = members[e]
            for i in range(begin, end):
                # A single point stands for the middle of the way.
                at = (last - here) * ((i - begin) / (end - begin - 1) if end - begin > 1 else 0.5)
                before = here + int(at)
                after, rest = min(before + 1, last), at - int(at)
                made_x[i] += weight[e] * ((1 - rest) * (x[before] - x[first]) + rest * (x[after] - x[first]))
                made_y[i] += weight[e] * ((1 - rest) * (y[before] - y[first]) + rest * (y[after] - y[first]))
                passed[i] += weight[e] * ((1 - rest) * (t[before] - t[here]) + rest * (t[after] - t[here]))
        start = start_share * (t[offsets[one]] - t[first]) + (1 - start_share) * starts / weights
        start = min(start, latest - t[first] - passed[end - 1] / weights)
        for i in range(begin, end):
            own = offsets[nearest[g]] + i - begin
            made_x[i] = x[first] + (1 - own_share) * made_x[i] / weights + own_share * (x[own] - x[first])
            made_y[i] = y[first] + (1 - own_share) * made_y[i] / weights + own_share * (y[own] - y[first])
            made_t[i] = t[first] + int(math.floor(start + passed[i] / weights + 0.5))
        _raise_times(made_t, begin, end, earliest, latest)
    return made_x, made_y, made_t


@kernel
def nearest_points(
    members: Ints,
    group_offsets: Ints,
    x: Floats,
    y: Floats,
    t: Floats,
    offsets: Ints,
    made_x: Floats,
    made_y: Floats,
    made_t: Floats,
    made_offsets: Ints,
    meters_a_second: float,
) -> Ints:
    """Find, for each point of a synthetic trajectory, the point of its group that is nearest in space and time; the first of
    equals.
    """
    found = np.empty(made_offsets[-1], np.int64)
    for g in range(len(group_offsets) - 1):
        for i in range(made_offsets[g], made_offsets[g + 1]):
            best, best_point = np.inf, -1
            for e in range(group_offsets[g], group_offsets[g + 1]):
                for point in range(offsets[members[e]], offsets[members[e] + 1]):
                    dx, dy = x[point] - made_x[i], y[point] - made_y[i]
                    d = math.sqrt(dx * dx + dy * dy) + meters_a_second * abs(t[point] - made_t[i])
                    if d < best:
                        best, best_point = d, point
            found[i] = best_point
    return found
