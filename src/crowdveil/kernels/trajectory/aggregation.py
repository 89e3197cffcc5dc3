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
def composed_times(
    members: Ints, group_offsets: Ints, nearest: Ints, t: Ints, offsets: Ints, made_offsets: Ints, share: float
) -> Ints:
    """Return the times of a trajectory for each group, in whole seconds, rising.

    For each part of the way it takes the mean time of the members. It begins between the mean start and that of a member, nearer
    to the member by `share`: the group's first one that is not its `nearest`. It ends no later than the last member.
    """
    found = np.empty(made_offsets[-1], np.int64)
    for g in range(len(group_offsets) - 1):
        low, high = group_offsets[g], group_offsets[g + 1]
        begin = made_offsets[g]
        pairs = made_offsets[g + 1] - begin
        # Sums are of differences from the first member, so that no digit is lost.
        first = t[offsets[members[low]]]
        latest, starts, one = t[offsets[members[low] + 1] - 1], 0.0, -1
        passed = np.zeros(pairs, np.float64)
        for e in range(low, high):
            here, last = offsets[members[e]], offsets[members[e] + 1] - 1
            latest = max(latest, t[last])
            starts += t[here] - first
            if one < 0 and members[e] != nearest[g]:
                one = members[e]
            for i in range(pairs):
                at = i * (last - here) / (pairs - 1) if pairs > 1 else 0.0
                before = here + int(at)
                rest = at - int(at)
                after = min(before + 1, last)
                passed[i] += (1 - rest) * (t[before] - t[here]) + rest * (t[after] - t[here])
        size = high - low
        if one < 0:
            one = members[low]
        start = share * (t[offsets[one]] - first) + (1 - share) * starts / size
        start = min(start, latest - first - passed[pairs - 1] / size)
        for i in range(pairs):
            found[begin + i] = first + int(math.floor(start + passed[i] / size + 0.5))
            if i > 0:
                found[begin + i] = max(found[begin + i], found[begin + i - 1] + 1)
    return found


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
