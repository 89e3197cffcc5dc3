"""Aggregation: one trajectory for each group, their mean or the points of the group nearest to it."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.spatiotemporal import point_of


@kernel
def mean_lengths(members: Ints, group_offsets: Ints, offsets: Ints) -> Ints:
    """Return the mean number of points of the trajectories of each group, a half counting as one."""
    groups = len(group_offsets) - 1
    found = np.empty(groups, np.int64)
    for g in range(groups):
        low, high = group_offsets[g], group_offsets[g + 1]
        points = 0
        for e in range(low, high):
            points += offsets[members[e] + 1] - offsets[members[e]]
        found[g] = (2 * points + high - low) // (2 * (high - low))
    return found


@kernel
def mean_trajectories(
    members: Ints, group_offsets: Ints, x: Floats, y: Floats, t: Ints | Floats, offsets: Ints, made_offsets: Ints
) -> tuple[Floats, Floats, Ints]:
    """Return the mean trajectory of each group: x, y and t, each the mean of matching points; times in whole seconds, rising."""
    size = made_offsets[-1]
    made_x, made_y, made_t = np.empty(size, np.float64), np.empty(size, np.float64), np.empty(size, np.int64)
    for g in range(len(group_offsets) - 1):
        low, high = group_offsets[g], group_offsets[g + 1]
        begin = made_offsets[g]
        pairs = made_offsets[g + 1] - begin
        start = t[offsets[members[low]]]
        for i in range(pairs):
            # Sums are of differences from the first member, so that no digit is lost.
            first = offsets[members[low]]
            sum_x, sum_y, sum_t = 0.0, 0.0, 0.0
            for e in range(low, high):
                here = offsets[members[e]]
                point = here + point_of(i, offsets[members[e] + 1] - here, pairs)
                sum_x += x[point] - x[first]
                sum_y += y[point] - y[first]
                sum_t += t[point] - start
            made_x[begin + i] = x[first] + sum_x / (high - low)
            made_y[begin + i] = y[first] + sum_y / (high - low)
            made_t[begin + i] = start + int(math.floor(sum_t / (high - low) + 0.5))
            if i > 0:
                made_t[begin + i] = max(made_t[begin + i], made_t[begin + i - 1] + 1)
    return made_x, made_y, made_t


@kernel
def composed_trajectories(
    members: Ints,
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
        latest, starts, one = t[offsets[members[low] + 1] - 1], 0.0, members[low]
        for e in range(high - 1, low - 1, -1):
            here, last = offsets[members[e]], offsets[members[e] + 1] - 1
            latest = max(latest, t[last])
            starts += t[here] - t[first]
            if members[e] != nearest[g]:
                one = members[e]
            for i in range(begin, end):
                # A single point stands for the middle of the way.
                at = (last - here) * ((i - begin) / (end - begin - 1) if end - begin > 1 else 0.5)
                before = here + int(at)
                after, rest = min(before + 1, last), at - int(at)
                made_x[i] += (1 - rest) * (x[before] - x[first]) + rest * (x[after] - x[first])
                made_y[i] += (1 - rest) * (y[before] - y[first]) + rest * (y[after] - y[first])
                passed[i] += (1 - rest) * (t[before] - t[here]) + rest * (t[after] - t[here])
        count = high - low
        start = start_share * (t[offsets[one]] - t[first]) + (1 - start_share) * starts / count
        start = min(start, latest - t[first] - passed[end - 1] / count)
        for i in range(begin, end):
            own = offsets[nearest[g]] + i - begin
            made_x[i] = x[first] + (1 - own_share) * made_x[i] / count + own_share * (x[own] - x[first])
            made_y[i] = y[first] + (1 - own_share) * made_y[i] / count + own_share * (y[own] - y[first])
            made_t[i] = t[first] + int(math.floor(start + passed[i] / count + 0.5))
            if i > begin:
                made_t[i] = max(made_t[i], made_t[i - 1] + 1)
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
