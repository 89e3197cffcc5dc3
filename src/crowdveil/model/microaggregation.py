"""From groups of trajectories to a release: everybody in a group gets the same trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.model.aggregation import AggregationName, Made, aggregate
from crowdveil.model.arrays import Ints, take_slices
from crowdveil.model.distances import Distance
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


def release_of(
    data: Trajectories,
    distance: Distance,
    group: Ints,
    how: AggregationName,
    rng: np.random.Generator,
    facts: dict[str, Any],
) -> TrajectoryRelease:
    """One copy of the trajectory of its group for each trajectory that has one (not -1), in a random order."""
    kept = np.flatnonzero(group >= 0)
    members = kept[np.argsort(group[kept], kind="stable")]
    sizes = np.bincount(group[kept])
    sizes = sizes[sizes > 0]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    made = aggregate(data, distance, members, offsets, how)
    return release_of_copies(made, members, sizes, rng, facts)


def release_of_copies(
    made: Made, members: Ints, sizes: Ints, rng: np.random.Generator, facts: dict[str, Any]
) -> TrajectoryRelease:
    """One copy of what stands for a group for each of its members, in a random order; `members` are group by group."""
    order = rng.permutation(len(members))
    rows, new = take_slices(made.offsets, np.repeat(np.arange(len(sizes)), sizes)[order])
    return TrajectoryRelease(made.lon[rows], made.lat[rows], made.t[rows], new, source=members[order], facts=facts)
