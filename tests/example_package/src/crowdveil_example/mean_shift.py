"""A measure: how far the mean position of all locations moved."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.trajectories import Trajectories


def shift(compared: TrajectoryComparison) -> Floats:
    """Return the distance of the mean positions of both."""
    before, after = compared.paths, compared.published
    return np.array([np.hypot(before.x.mean() - after.x.mean(), before.y.mean() - after.y.mean())])


MEASURE = Measure(
    "mean-shift", "shift of the mean position", "m", "lower", Trajectories, shift, "Meters between the mean positions."
)
