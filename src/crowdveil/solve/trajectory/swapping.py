"""Common parts of methods that swap locations: owners of points, and the release of points under new trajectories."""

from __future__ import annotations

import numpy as np

from crowdveil.model.arrays import Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


def owners(data: Trajectories, count_trajectories: bool) -> Ints:
    """Return the owner of each trajectory: its person, or itself where trajectories are to count as people."""
    return np.arange(len(data)) if count_trajectories else data.person


def equal_points(data: Trajectories) -> Ints:
    """Number the points, those of one place and time alike."""
    order = np.lexsort((data.t, data.lat, data.lon))
    differ = np.zeros(len(order), np.bool_)
    for column in (data.lon, data.lat, data.t):
        values = column[order]
        differ[1:] |= values[1:] != values[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(differ)
    return number


def sure_owners(owner: Ints, same: Ints) -> Ints:
    """Return the owner of each point, -1 where an equal point has another owner: it cannot be attributed then."""
    count = int(same.max(initial=-1)) + 1
    least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(least, same, owner)
    np.maximum.at(most, same, owner)
    return np.where(least[same] == most[same], owner, -1)


def sort_left_by_position(data: Trajectories, name: Ints) -> Ints:
    """Return the points with a trajectory, by position: those of one time are published in this order, since any other would
    disclose which of them come from one trajectory.
    """
    left = np.flatnonzero(name >= 0)
    return left[np.lexsort((data.lat[left], data.lon[left]))]


def release_of_points(data: Trajectories, name: Ints) -> tuple[TrajectoryRelease, Ints]:
    """Make a release of points under their new trajectories (-1: left out), in order of time; and the original point of each
    published one.
    """
    from crowdveil.kernels.ordering import group_offsets, rows_by_group_and_time

    left = sort_left_by_position(data, name)
    source, number = np.unique(name[left], return_inverse=True)
    offsets = group_offsets(number.astype(np.int64), len(source))
    rows, _ = rows_by_group_and_time(number.astype(np.int64), data.t[left], offsets)
    points = left[rows]
    return TrajectoryRelease(data.lon[points], data.lat[points], data.t[points], offsets, source=source), points
