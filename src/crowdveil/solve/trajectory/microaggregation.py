"""Microaggregated releases: all members of a group (an equivalence class) get the same trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.model.arrays import Floats, Ints, row_slices, take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.aggregation import AggregationName, GroupTrajectories, aggregate
from crowdveil.solve.trajectory.distances import Distance


def release_groups(
    data: Trajectories,
    distance: Distance,
    group: Ints,
    how: AggregationName,
    facts: dict[str, Any],
    figures: Floats | None = None,
) -> TrajectoryRelease:
    """Publish one copy of the trajectory of its group for each trajectory that has one (not -1)."""
    members, offsets = group_members(group)
    made = aggregate(data, distance, members, offsets, how)
    return release_copies(made, members, offsets, facts, figures)


def group_members(group: Ints) -> tuple[Ints, Ints]:
    """Return the trajectories of each group, and where each group begins and ends; those without one (-1) are in none."""
    kept = np.flatnonzero(group >= 0)
    members = kept[np.argsort(group[kept], kind="stable")]
    sizes = np.bincount(group[kept])
    sizes = sizes[sizes > 0]
    return members, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def release_copies(
    made: GroupTrajectories, members: Ints, offsets: Ints, facts: dict[str, Any], figures: Floats | None = None
) -> TrajectoryRelease:
    """Make a release with the trajectory of its group for each member, in the order of the data."""
    order = np.argsort(members)
    rows, new = take_slices(made.offsets, row_slices(offsets)[order])
    return TrajectoryRelease(
        made.lon[rows], made.lat[rows], made.t[rows], new, source=members[order], facts=facts, figures=figures
    )
