"""Distances by walks along both paths, without their times: Fréchet/Manhattan, and the classical ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from crowdveil.kernels.trajectory.frechet_manhattan import coupled_distances, path_of, shares
from crowdveil.kernels.trajectory.warping import continuous_frechet, edit_distance, warped_distance
from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances.base import Paths


@dataclass(frozen=True, eq=False)
class FrechetManhattan:
    """Meters between points that meet, in the mean of a coupling; times do not count.

    Attributes
    ----------
    paths
        The trajectories.
    exact
        The least mean of all couplings with the least longest distance, which is the definition. Otherwise that of the coupling
        that one pass of the paper's program finds: it has the least longest distance too, but not always the least mean.
    resampled
        Whether two paths are brought to the same moments first: where one has a point, at a share of its time, the other gets one
        on the straight line between its own.

    Notes
    -----
    The text of the paper says that a pair of points may follow on all pairs before it that lead to an optimal coupling, and that
    its M is the least M / L of them. Its program (lines 17 to 29) lets it follow on all whose longest distance is at
    most its own, or else on those with the least one, and adds its own distance to the M of that with the least M / L: only that
    gives a mean, and so it is done here.

    Both choose by the mean up to the pair before, which need not lead to the least mean of the whole, and among couplings with
    the least longest distance up to there, where the definition asks for the least one of the whole. So one pass is never below
    the definition, and sometimes above it. The paper does not say which of two equal M / L is taken: here the shorter coupling,
    so that the distance is the same in both directions.
    """

    paths: Paths
    exact: bool = False
    resampled: bool = False

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats, Ints]:
        """Return x, y, t and shares of time of all points, and offsets."""
        x, y, t, offsets = self.paths.points
        return x, y, t, shares(t, offsets), offsets

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path to trajectories of the data."""
        return self._distances(self._points(path), to)

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        return self._distances(path_of(self.columns, i), to)

    def _points(self, path: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats, Floats]:
        x, y, t = (np.asarray(column, np.float64) for column in path)
        return x, y, t, shares(t, np.array([0, len(t)]))

    def _distances(self, path: tuple[Floats, Floats, Floats, Floats], to: Ints) -> Floats:
        found = np.empty(len(to), np.float64)
        coupled_distances(path, to, self.columns, self.resampled, self.exact, found)
        return found


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
