"""What is missing from a release: trajectories and locations."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.trajectories import Trajectories


def trajectories_removed(compared: TrajectoryComparison) -> Floats:
    """The share of trajectories that are not published."""
    return np.array([1 - len(compared.release) / len(compared.original)])


def locations_removed(compared: TrajectoryComparison) -> Floats:
    """The share of points that are not published."""
    return np.array([1 - compared.release.points / compared.original.points])


MEASURES = (
    Measure(
        "trajectories-removed", "share of trajectories removed", "", "lower", Trajectories, trajectories_removed,
        "How many fewer trajectories are published than there were, of those.",
    ),
    Measure(
        "locations-removed", "share of locations removed", "", "lower", Trajectories, locations_removed,
        "How many fewer points are published than there were, of those; below 0 where more are.",
    ),
)  # fmt: skip
