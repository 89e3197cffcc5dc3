"""Distances of paths from the trajectories of a data set: from one, the least to any, and the largest among them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil import engine
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.kernels.trajectory.mdav_tree import build, farthest_left, nearest_distances
from crowdveil.kernels.trajectory.spatiotemporal import pair_distances
from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances.base import Distance, Paths
from crowdveil.solve.trajectory.distances.spatiotemporal import SpatioTemporal

BLOCK = 256
"""Paths of one task."""
SWEEPS = 8
"""Number of first steps, each to the farthest trajectory from the last one."""
MAX_EXACT = 2_000
"""Most trajectories of which all pairs are compared where a distance has no bounds."""


def same_paths(paths: Paths) -> tuple[Ints, Ints]:
    """Return the first of each set of equal paths, and the position of each path's set among them."""
    number: dict[bytes, int] = {}
    first: list[int] = []
    place = np.empty(len(paths), np.int64)
    points = np.column_stack([paths.x, paths.y, paths.t])
    for i, (low, high) in enumerate(pairwise(paths.offsets.tolist())):
        key = points[low:high].tobytes()
        if key not in number:
            number[key] = len(first)
            first.append(i)
        place[i] = number[key]
    return np.array(first, np.int64), place


@dataclass(frozen=True, eq=False)
class NearestNeighbors:
    """Distances of paths from the trajectories of a data set, by a distance between the latter."""

    distance: Distance
    own: Paths

    def to_each(self, source: Ints) -> Floats:
        """Return the distance of each path from the one trajectory that is named for it."""
        if isinstance(self.distance, SpatioTemporal):
            return self.pairs(self.distance, np.arange(len(self.own)), source)
        if len(source) == 0:
            return np.zeros(0)
        return np.concatenate([self.distance.between(self.own.one(i), source[i : i + 1]) for i in range(len(source))])

    def pairs(self, distance: SpatioTemporal, those: Ints, to: Ints) -> Floats:
        """Return the distance of each of some paths from the trajectory that is named for it."""
        own = self._own(distance)
        found: Any = pair_distances(
            own.paths.points, own.speed, distance.paths.points, distance.speed, distance.weight, those, to
        )
        return np.asarray(found)

    def _own(self, distance: SpatioTemporal) -> SpatioTemporal:
        return SpatioTemporal.of(self.own, distance.weight)

    def least(
        self, those: Ints, to: Ints, begin: Ints, end: Ints, progress: Progress = no_progress
    ) -> tuple[Floats, Ints]:
        """Return the least distance of each of some paths to the trajectories to[begin:end], and how many are at it; infinite
        and 0 where no trajectory can be reached. Blocks of paths run side by side.
        """
        search = (
            self._by_tree(self.distance, those, to, begin, end)
            if isinstance(self.distance, SpatioTemporal)
            else lambda rows: self._of_all(those[rows], to, begin[rows], end[rows])
        )
        blocks = -(-len(those) // BLOCK)
        found = engine.current().map(
            lambda b: search(slice(b * BLOCK, (b + 1) * BLOCK)),
            blocks,
            lambda done, _: progress(min(done * BLOCK, len(those)), len(those)),
        )
        least, count = (np.concatenate([np.zeros(0), *(block[i] for block in found)]) for i in (0, 1))
        return least, count.astype(np.int64)

    def _by_tree(self, distance: SpatioTemporal, those: Ints, to: Ints, begin: Ints, end: Ints) -> Any:
        own, tree = self._own(distance).metric, build(distance.metric)
        rank = np.full(len(distance.paths), -1)
        rank[to] = np.arange(len(to))
        return lambda rows: nearest_distances(own, those[rows], distance.metric, tree, rank, begin[rows], end[rows])

    def _of_all(self, those: Ints, to: Ints, begin: Ints, end: Ints) -> tuple[Floats, Ints]:
        """Return the least distance and its count by a distance without bounds."""
        least, count = np.full(len(those), np.inf), np.zeros(len(those), np.int64)
        for row, i in enumerate(those.tolist()):
            found = self.distance.between(self.own.one(i), to[begin[row] : end[row]])
            least[row] = found.min(initial=np.inf)
            if np.isfinite(least[row]):
                count[row] = np.count_nonzero(found == least[row])
        return least, count


def largest(distance: Distance, progress: Progress = no_progress) -> tuple[float, bool]:
    """Return the largest finite distance between two trajectories of a data set, and whether it is sure to be the largest.

    It is exact with the spatio-temporal distance, by bounds, and with few trajectories. Otherwise the search goes to
    the farthest trajectory from the last one a few times, and may find less.
    """
    n = len(distance.paths)
    if n < 2:
        return 0.0, True
    every, found, here = np.arange(n), 0.0, 0
    if not isinstance(distance, SpatioTemporal) and n <= MAX_EXACT:
        for i in range(n):
            found = max(found, _farthest(distance.from_one(i, every[i:]))[0])
            progress(i + 1, n)
        return found, True
    for _ in range(SWEEPS):
        far, here = _farthest(distance.from_one(here, every))
        found = max(found, far)
    if not isinstance(distance, SpatioTemporal):
        return found, False
    return _by_bounds(distance, found, progress), True


def _farthest(found: Floats) -> tuple[float, int]:
    finite = np.where(np.isfinite(found), found, -1.0)
    place = int(finite.argmax())
    return float(finite[place]), place


def _by_bounds(distance: SpatioTemporal, found: float, progress: Progress) -> float:
    n, tree = len(distance.paths), build(distance.metric)
    none_taken = np.zeros(n, np.bool_)
    for i in range(n):
        found = farthest_left(i, distance.metric, tree, none_taken, found)[0]
        progress(i + 1, n)
    return found
