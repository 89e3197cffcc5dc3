"""Microaggregated releases: all members of a group get one trajectory; the worst groups are suppressed within a budget."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdveil.model.arrays import Floats, Ints, Mask, row_slices, take_slices
from crowdveil.model.flows import trips_within
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.aggregation import AggregationName, GroupTrajectories, aggregate, plane_paths
from crowdveil.solve.trajectory.distances import Distance, Paths, SpatioTemporal, make_distance
from crowdveil.solve.trajectory.distances.nearest import NearestNeighbors


class PublishedGroups(NamedTuple):
    """Groups and the trajectory that is published for each; members of group g are members[offsets[g]:offsets[g + 1]]."""

    made: GroupTrajectories
    members: Ints
    offsets: Ints


def without_outliers(data: Trajectories, groups: PublishedGroups, share: float, weight: float = 0.0) -> PublishedGroups:
    """Return the groups that are left when those with the largest distortion are suppressed.

    Groups are suppressed whole, so that each of the others keeps its people, and those that are suppressed have k people
    together, if there are any. Their trajectories, with those that are in no group, are at most `share` of all. `weight` is that
    of time in the distortion; 0 is space alone.
    """
    budget = trips_within(share, len(data)) - (len(data) - len(groups.members))
    sizes = np.diff(groups.offsets)
    if budget < sizes.min(initial=budget + 1):
        return groups
    suppressed = largest_within(_distortion(data, groups, weight), sizes, budget)
    return _without(groups, suppressed)


def _distortion(data: Trajectories, groups: PublishedGroups, weight: float) -> Floats:
    """Return the mean squared distance of the members of each group from their published trajectory."""
    distance = SpatioTemporal.of(Paths.of(data), weight)
    near = NearestNeighbors(distance, plane_paths(data, groups.made))
    far = near.pairs(distance, row_slices(groups.offsets), groups.members)
    return np.add.reduceat(far * far, groups.offsets[:-1]) / np.diff(groups.offsets)


def largest_within(distortion: Floats, sizes: Ints, budget: int) -> Mask:
    """Return the groups to suppress: by falling distortion, of equal ones the first, each that still fits into the budget."""
    suppressed = np.zeros(len(sizes), np.bool_)
    for g in np.argsort(-distortion, kind="stable").tolist():
        if sizes[g] <= budget:
            suppressed[g] = True
            budget -= int(sizes[g])
    return suppressed


def _without(groups: PublishedGroups, suppressed: Mask) -> PublishedGroups:
    """Return the groups that are not suppressed, in their order."""
    made, left = groups.made, np.flatnonzero(~suppressed)
    rows, offsets = take_slices(made.offsets, left)
    at, member_offsets = take_slices(groups.offsets, left)
    published = GroupTrajectories(made.lon[rows], made.lat[rows], made.t[rows], offsets)
    return PublishedGroups(published, groups.members[at], member_offsets)


def release_groups(
    data: Trajectories,
    distance: Distance,
    group: Ints,
    how: AggregationName,
    facts: dict[str, Any],
    *,
    suppress: float = 0.0,
    time_weight: float | None = None,
) -> TrajectoryRelease:
    """Publish one copy of the trajectory of its group for each trajectory that has one (not -1).

    Up to a share `suppress` of the trajectories is suppressed, in whole groups with the largest distortion. With `time_weight`
    the members nearest to the mean of a group are found by the spatio-temporal distance with this weight of time.
    """
    members, offsets = group_members(group)
    nearest = distance if time_weight is None else make_distance(distance.paths, "spatiotemporal", time_weight)
    made = aggregate(data, nearest, members, offsets, how)
    groups = PublishedGroups(made, members, offsets)
    weight = distance.weight if isinstance(distance, SpatioTemporal) else 0.0
    return release_copies(without_outliers(data, groups, suppress, weight), facts)


def group_members(group: Ints) -> tuple[Ints, Ints]:
    """Return the trajectories of each group, and where each group begins and ends; those without one (-1) are in none."""
    kept = np.flatnonzero(group >= 0)
    members = kept[np.argsort(group[kept], kind="stable")]
    sizes = np.bincount(group[kept])
    sizes = sizes[sizes > 0]
    return members, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def release_copies(groups: PublishedGroups, facts: dict[str, Any]) -> TrajectoryRelease:
    """Make a release with the trajectory of its group for each member, in the order of the data."""
    made, members, offsets = groups
    order = np.argsort(members)
    rows, new = take_slices(made.offsets, row_slices(offsets)[order])
    return TrajectoryRelease(made.lon[rows], made.lat[rows], made.t[rows], new, source=members[order], facts=facts)
