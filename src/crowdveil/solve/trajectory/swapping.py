"""Common parts of methods that swap locations: owners of points, and the release of points under new trajectories."""

from __future__ import annotations

import numpy as np

from crowdveil.model.arrays import (
    Indices,
    Ints,
    distinct,
    gather,
    group_offsets,
    index_type,
    number_rows,
    scatter,
)
from crowdveil.model.canonical import tied_times
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


def owners(data: Trajectories, count_trajectories: bool) -> Ints:
    """Return the owner of each trajectory: its person, or itself where trajectories are to count as people."""
    return np.arange(len(data)) if count_trajectories else data.person


def equal_points(data: Trajectories) -> Ints:
    """Number the points, those of one place and time alike."""
    return number_rows(data.lon, data.lat, data.t)


def point_owners(data: Trajectories, owner: Ints) -> Indices | Ints:
    """Return the owner of each point, from that of each trajectory, in numbers of 32 bits where they are enough."""
    return np.repeat(owner.astype(index_type(max(len(data), data.people))), np.diff(data.offsets))


def sure_owners(owner: Indices | Ints, same: Indices | Ints) -> Indices | Ints:
    """Return the owner of each point, -1 where an equal point has another owner: it cannot be attributed then."""
    last = np.full(int(same.max(initial=-1)) + 1, -1, owner.dtype)
    scatter(last, same, owner)
    # An owner that is not the last one at a location and time shares it.
    last[same[gather(last, same) != owner]] = -1
    return gather(last, same)


def sort_left_by_position(data: Trajectories, name: Ints) -> Ints:
    """Return the points with a trajectory, by position: those of one time are published in this order, since any other would
    disclose which of them come from one trajectory.
    """
    left = np.flatnonzero(name >= 0)
    return left[np.lexsort((data.lat[left], data.lon[left]))]


def release_of_points(data: Trajectories, name: Indices | Ints) -> tuple[TrajectoryRelease, Ints]:
    """Make a release of points under their new trajectories (-1: left out), in order of time; and the original point of each
    published one. Points of one time are in order of position, as in `sort_left_by_position`.
    """
    left = np.flatnonzero(name >= 0)
    source, number = distinct(name[left], len(data))
    offsets = group_offsets(number, len(source))
    points: Ints = left[np.lexsort((data.t[left], number))]
    lon, lat, t = data.lon[points], data.lat[points], data.t[points]
    order = tied_times(lon, lat, t, offsets)
    if order is not None:
        points, lon, lat = points[order], lon[order], lat[order]
    point = points.astype(index_type(data.points))
    return TrajectoryRelease(lon, lat, t, offsets, source=source, point=point), points
