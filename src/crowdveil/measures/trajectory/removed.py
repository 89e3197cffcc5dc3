"""Measure the share of trajectories and locations missing from a release."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.trajectories import Trajectories


def trajectories_removed(compared: TrajectoryComparison) -> Floats:
    """Return the share of trajectories that are not published."""
    source = compared.release.source
    left = len(compared.release) if source is None else len(np.unique(source))
    return np.array([1 - left / len(compared.original)])


def locations_removed(compared: TrajectoryComparison) -> Floats:
    """Return the share of points that are not published."""
    return np.array([1 - compared.release.points / compared.original.points])


MEASURES = (
    Measure(
        "trajectories-removed", "share of trajectories removed", "", "lower", Trajectories, trajectories_removed,
        "Share of the original trajectories that are not published.",
    ),
    Measure(
        "locations-removed", "share of locations removed", "", "lower", Trajectories, locations_removed,
        "Share of the original points by which the release has fewer; below 0 where it has more.",
    ),
)  # fmt: skip
