"""Classical distances between paths: dynamic time warping and the discrete Fréchet distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances.base import Paths


@dataclass(frozen=True, eq=False)
class Warped:
    """The least sum (dynamic time warping) or the least maximum (discrete Fréchet) of meters apart over all walks along both."""

    paths: Paths
    added: bool

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path to trajectories of the data."""
        from crowdveil.kernels.trajectory.warping import warped_distances

        found = np.empty(len(to), np.float64)
        warped_distances(path[0], path[1], to, self.paths.x, self.paths.y, self.paths.offsets, self.added, found)
        return found

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        return self.between(self.paths.one(i), to)

    def from_many(self, those: Ints, to: Ints) -> Floats:
        """Return distances from trajectories of the data to others, a row for each of `those`."""
        return np.array([self.from_one(i, to) for i in those.tolist()]).reshape(len(those), len(to))
