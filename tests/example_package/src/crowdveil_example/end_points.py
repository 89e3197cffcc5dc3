"""A distance: meters between the first points of two trajectories, plus those between the last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances import DistanceKind, Paths


@dataclass(frozen=True, eq=False)
class EndPoints:
    """Distances between the end points of trajectories."""

    paths: Paths

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path to trajectories of the data."""
        x, y, _ = path
        paths, first, last = self.paths, self.paths.offsets[to], self.paths.offsets[to + 1] - 1
        return np.hypot(paths.x[first] - x[0], paths.y[first] - y[0]) + np.hypot(
            paths.x[last] - x[-1], paths.y[last] - y[-1]
        )

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        return self.between(self.paths.one(i), to)


DISTANCE = DistanceKind(
    "end-points", lambda paths, weight: EndPoints(paths), "Meters between first points, plus last ones."
)
