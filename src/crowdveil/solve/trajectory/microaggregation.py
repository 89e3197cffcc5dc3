"""Microaggregated releases: all members of a group (an equivalence class) get the same trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.model.arrays import Ints, row_slices, take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.aggregation import AggregationName, aggregate
from crowdveil.solve.trajectory.distances import Distance, SpatioTemporal, make_distance
from crowdveil.solve.trajectory.outliers import PublishedGroups, without_outliers


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
    what is nearest to the mean of a group is found by the spatio-temporal distance with this weight of time.
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
