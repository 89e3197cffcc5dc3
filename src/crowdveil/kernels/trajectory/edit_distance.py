"""Edit distance on real sequences (EDR): how many points must be inserted, deleted or replaced to match two trajectories."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.structures import Points


@kernel
def matches(points: Points, a: int, b: int, meters: float, seconds: float) -> bool:
    """Return whether two points are within a tolerance of each other: east, north and in time, each by itself."""
    near = abs(points.x[a] - points.x[b]) <= meters and abs(points.y[a] - points.y[b]) <= meters
    return bool(near and abs(points.t[a] - points.t[b]) <= seconds)


@kernel
def edit_distances(points: Points, one: int, to: Ints, meters: float, seconds: float) -> Ints:
    """Return the edit distance of one trajectory to each of some others."""
    found = np.empty(len(to), np.int64)
    begin, end = points.offsets[one], points.offsets[one + 1]
    row = np.empty(end - begin + 1, np.int64)
    for at in range(len(to)):
        low, high = points.offsets[to[at]], points.offsets[to[at] + 1]
        apart = points.t[low] - points.t[end - 1] > seconds or points.t[begin] - points.t[high - 1] > seconds
        if apart:  # no point has a match
            found[at] = max(end - begin, high - low)
            continue
        for j in range(len(row)):
            row[j] = j
        for i in range(low, high):
            diagonal = row[0]
            row[0] += 1
            for j in range(1, len(row)):
                replaced = diagonal + (0 if matches(points, i, begin + j - 1, meters, seconds) else 1)
                diagonal = row[j]
                row[j] = min(replaced, min(row[j], row[j - 1]) + 1)
        found[at] = row[len(row) - 1]
    return found


@kernel
def matched_points(points: Points, one: int, other: int, meters: float, seconds: float) -> Ints:
    """Return, for each point of one trajectory, the point of another that it is matched with at the least edit distance; -1 where
    it has none. Of equal alignments it is the one with the latest matches.
    """
    begin, end = points.offsets[one], points.offsets[one + 1]
    low, high = points.offsets[other], points.offsets[other + 1]
    n, m = end - begin, high - low
    table = np.empty((n + 1, m + 1), np.int32)
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                table[i, j] = i + j
                continue
            same = matches(points, begin + i - 1, low + j - 1, meters, seconds)
            table[i, j] = min(table[i - 1, j - 1] + (0 if same else 1), min(table[i - 1, j], table[i, j - 1]) + 1)
    found = np.full(n, -1, np.int64)
    i, j = n, m
    while i > 0 and j > 0:
        same = matches(points, begin + i - 1, low + j - 1, meters, seconds)
        if table[i, j] == table[i - 1, j - 1] + (0 if same else 1):
            i, j = i - 1, j - 1
            if same:
                found[i] = low + j
        elif table[i, j] == table[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return found


@kernel
def translated(
    points: Points, members: Ints, pivot: int, meters: float, seconds: float, radius: float, draws: Floats
) -> tuple[Floats, Floats]:
    """Return x and y of each member, a row each, at the times of the pivot: points within a radius of the common center.

    The center of a point of the pivot is the mean of it and of all points matched with it. A matched point is moved to the circle
    around the center if it is outside; where there is none, a point of the disk is taken, by two draws from 0 to 1 for each.
    """
    begin = points.offsets[pivot]
    n = points.offsets[pivot + 1] - begin
    matched = np.empty((len(members), n), np.int64)
    for e in range(len(members)):
        if members[e] == pivot:
            matched[e] = np.arange(begin, begin + n)
        else:
            matched[e] = matched_points(points, pivot, members[e], meters, seconds)
    x, y = np.empty((len(members), n), np.float64), np.empty((len(members), n), np.float64)
    for i in range(n):
        center_x, center_y, count = 0.0, 0.0, 0
        for e in range(len(members)):
            if matched[e, i] >= 0:
                # Sums are of differences from the pivot, so that no digit is lost.
                center_x += points.x[matched[e, i]] - points.x[begin + i]
                center_y += points.y[matched[e, i]] - points.y[begin + i]
                count += 1
        center_x = points.x[begin + i] + center_x / count
        center_y = points.y[begin + i] + center_y / count
        for e in range(len(members)):
            at = matched[e, i]
            if at >= 0:
                dx, dy = points.x[at] - center_x, points.y[at] - center_y
                share = min(1.0, radius / max(np.sqrt(dx * dx + dy * dy), 1e-9))
            else:
                angle = 2 * np.pi * draws[0, e, i]
                dx, dy, share = np.cos(angle), np.sin(angle), radius * np.sqrt(draws[1, e, i])
            x[e, i], y[e, i] = center_x + share * dx, center_y + share * dy
    return x, y
