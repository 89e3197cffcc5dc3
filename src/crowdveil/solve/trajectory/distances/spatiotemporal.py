"""The distance in space and time, and the weight of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import shapely

from crowdveil.kernels.trajectory.mdav_tree import build, time_shares
from crowdveil.kernels.trajectory.spatiotemporal import distances, mean_speeds
from crowdveil.kernels.trajectory.structures import Metric, Points, TrajectoryTree
from crowdveil.model.arrays import Floats, Ints, frozen, take_slices
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.distances.base import Paths

SAMPLED_PAIRS = 200_000
"""Pairs that are enough for the mean distance of all."""
WEIGHTS = (5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Weights that `auto` chooses from, falling. The choice is published: one of a dozen reveals almost nothing about the data."""
TIME_SHARE = 1 / 7
"""Largest share of time in the distance to the nearest neighbor, for the median trajectory."""
TREE_WEIGHT = 0.2
"""Weight at which trajectories are put into a tree; its bounds hold for all weights."""
SAMPLED_NEIGHBORS = 200
"""Trajectories whose nearest neighbors are enough to choose a weight."""
SAMPLED_BLOCKS = 8
"""Parts of that sample; the weight may be decided after each."""


@dataclass(frozen=True, eq=False)
class SpatioTemporal:
    """Evenly matched points, in meters, with time at the mean speed of the two, times `weight` (0 is space alone)."""

    paths: Paths
    weight: float
    speed: Floats
    """The mean speed of each trajectory, meters a second."""

    @classmethod
    def of(cls, paths: Paths, weight: float) -> SpatioTemporal:
        """Return the distance between the trajectories of a data set."""
        return cls(paths, weight, frozen(mean_speeds(*paths.points), np.float64))

    @cached_property
    def metric(self) -> Metric:
        """Return the distance as kernels take it."""
        return Metric(self.paths.points, self.speed, self.weight)

    def part(self, members: Ints) -> SpatioTemporal:
        """Return the distance between some of the trajectories, which get numbers from 0."""
        rows, offsets = take_slices(self.paths.offsets, members)
        x, y, t = (column[rows] for column in (self.paths.x, self.paths.y, self.paths.t))
        return SpatioTemporal(Paths(x, y, t, offsets), self.weight, frozen(self.speed[members], np.float64))

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path to trajectories of the data."""
        own = Points(*path, np.array([0, len(path[0])]))
        return distances(own, mean_speeds(*own)[0], to, self.paths.points, self.speed, self.weight)

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        own = Points(*self.paths.one(i), np.array([0, self.paths.offsets[i + 1] - self.paths.offsets[i]]))
        return distances(own, self.speed[i], to, self.paths.points, self.speed, self.weight)


def time_weight(data: Trajectories, wanted: str | float, rng: np.random.Generator) -> float:
    """Return the weight λ of time in the spatio-temporal distance: as given, chosen from a list, or computed to six digits.

    `auto`: the largest of `WEIGHTS` at which time has at most `TIME_SHARE` of the distance between nearest neighbors.
    `mobidatalab`: D / (V · T), the largest distance and the longest time between points of the data and the mean speed.
    `mean-ratio`: the mean distance in space over the mean distance in time, at the mean speed, of pairs of trajectories.
    """
    if not isinstance(wanted, str):
        return float(wanted)
    if data.points == 0:
        return 0.0
    distance = SpatioTemporal.of(Paths.of(data), 0.0)
    if wanted == "auto":
        return _balanced(distance, data.person)
    if wanted == "mobidatalab":
        speed, longest = float(distance.speed.mean()), float(np.ptp(distance.paths.t))
        found = _diameter(distance.paths) / (speed * longest) if speed > 0 and longest > 0 else 0.0
    else:
        found = _mean_ratio(distance, rng)
    return float(f"{found:.6g}")


def published_weight(wanted: str | float, weight: float) -> float:
    """Return the weight for the manifest: one digit of a formula's result, since more may give away the farthest point."""
    return float(f"{weight:.1g}") if wanted in ("mobidatalab", "mean-ratio") else weight


def _balanced(distance: SpatioTemporal, person: Ints) -> float:
    """Return the largest weight in the list at which time has a small share of the distance between nearest neighbors.

    A neighbor is another person's, unless all trajectories are of one person. The sample is spread evenly over the trajectories,
    which are in the order of hashes of their content.
    """
    n = len(distance.paths)
    whose = person if np.any(person != person[0]) else np.arange(n)
    some = np.arange(min(n, SAMPLED_NEIGHBORS)) * n // min(n, SAMPLED_NEIGHBORS)
    tree = build(distance.metric._replace(weight=TREE_WEIGHT))
    for weight in WEIGHTS:
        if _is_time_small(some, distance.metric._replace(weight=weight), tree, whose):
            return weight
    return WEIGHTS[-1]


def _is_time_small(some: Ints, metric: Metric, tree: TrajectoryTree, person: Ints) -> bool:
    """Decide whether time has at most `TIME_SHARE` of the distance to the nearest neighbor, for the median of some trajectories.

    Once more than half of them are on one side, the median is, and the rest is not looked at.
    """
    shares: Floats = np.empty(0, np.float64)
    for block in np.array_split(some, SAMPLED_BLOCKS):
        shares = np.append(shares, time_shares(block, metric, tree, person))
        small = np.count_nonzero(shares <= TIME_SHARE)
        if 2 * small > len(some):
            return True
        if 2 * (len(shares) - small) > len(some):
            return False
    return bool(np.median(shares) <= TIME_SHARE)


def _diameter(paths: Paths) -> float:
    """Return the largest distance between two points."""
    hull = shapely.get_coordinates(shapely.convex_hull(shapely.multipoints(np.column_stack([paths.x, paths.y]))))
    apart = np.hypot(*(hull[:, None, axis] - hull[None, :, axis] for axis in (0, 1)))
    return float(apart.max(initial=0.0))


def _mean_ratio(distance: SpatioTemporal, rng: np.random.Generator) -> float:
    """Return the mean distance in space over the mean one in time, over all pairs of trajectories or a sample of them."""
    n = len(distance.paths)
    if n < 2:
        return 0.0
    every = np.arange(n)
    some = every if n * (n - 1) <= SAMPLED_PAIRS else np.sort(rng.choice(n, max(SAMPLED_PAIRS // n, 2), replace=False))
    nowhere = np.zeros_like(distance.paths.x)
    only_time = SpatioTemporal(replace(distance.paths, x=nowhere, y=nowhere), 1.0, distance.speed)
    space = sum(float(distance.from_one(i, every).sum()) for i in some.tolist())
    time = sum(float(only_time.from_one(i, every).sum()) for i in some.tolist())
    return space / time if time > 0 else 0.0
