"""Classical distances between paths: dynamic time warping, Fréchet distances, edit distance and longest common subsequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil.kernels.trajectory.warping import continuous_frechet, edit_distance, warped_distance
from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances.base import Paths

MATCH_M = 100.0
"""Meters in x and in y within which points are equal for edits and common subsequences; an edit counts as much."""


@dataclass(frozen=True, eq=False)
class Warped:
    """Distances of one pair of paths at a time, without their times."""

    paths: Paths
    kind: Literal["dtw", "discrete-frechet", "frechet", "edr", "lcss"]

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path to trajectories of the data."""
        found = [self._one(path[0], path[1], *self.paths.one(i)[:2]) for i in to.tolist()]
        return np.array(found, np.float64)

    def _one(self, own_x: Floats, own_y: Floats, x: Floats, y: Floats) -> float:
        if self.kind == "frechet":
            return continuous_frechet(own_x, own_y, x, y)
        if self.kind in ("edr", "lcss"):
            return MATCH_M * edit_distance(own_x, own_y, x, y, MATCH_M, self.kind == "lcss")
        return warped_distance(own_x, own_y, x, y, self.kind == "dtw")

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        return self.between(self.paths.one(i), to)

    def from_many(self, those: Ints, to: Ints) -> Floats:
        """Return distances from trajectories of the data to others, a row for each of `those`."""
        return np.array([self.from_one(i, to) for i in those.tolist()]).reshape(len(those), len(to))
