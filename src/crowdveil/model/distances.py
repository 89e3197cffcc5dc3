"""How far trajectories are from one another: the distances that methods and measures can use, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints, frozen
from crowdveil.model.trajectories import Trajectories

DistanceName = Literal["spatiotemporal", "graph", "dtw", "discrete-frechet"]
MOST_EDGES = 60_000_000
"""More pairs of contemporaries than this do not fit into memory."""
SAMPLED_PAIRS = 200_000
"""So many pairs are enough for the mean distance of all."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Trajectories in planar metres and seconds since the first point of the data, as kernels take them."""

    x: Floats
    y: Floats
    t: Floats
    offsets: Ints

    @classmethod
    def of(cls, data: Trajectories) -> Paths:
        """The paths of a data set."""
        start = int(data.t.min()) if data.points else 0
        x, y, t = (frozen(column, np.float64) for column in (*data.xy, data.t - start))
        return cls(x, y, t, data.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def points(self) -> tuple[Floats, Floats, Floats, Ints]:
        """x, y, t and offsets."""
        return self.x, self.y, self.t, self.offsets

    def one(self, i: int) -> tuple[Floats, Floats, Floats]:
        """x, y and t of a trajectory."""
        here = slice(self.offsets[i], self.offsets[i + 1])
        return self.x[here], self.y[here], self.t[here]


class Distance(Protocol):
    """Distances from one trajectory to many."""

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """From any path, given as x, y and t, to trajectories of the data."""
        ...

    def from_one(self, i: int, to: Ints) -> Floats:
        """From a trajectory of the data to others."""
        ...


@dataclass(frozen=True, eq=False)
class SpatioTemporal:
    """Evenly matched points, in metres, with time at the mean speed of the two, times `weight` (0 is space alone)."""

    paths: Paths
    weight: float
    speed: Floats
    """The mean speed of each trajectory, metres a second."""

    @classmethod
    def of(cls, paths: Paths, weight: float) -> SpatioTemporal:
        """The distance between the trajectories of a data set."""
        from crowdveil.kernels.spatiotemporal import mean_speeds

        return cls(paths, weight, frozen(mean_speeds(*paths.points), np.float64))

    @cached_property
    def ball(self) -> tuple[Floats, ...]:
        """Middle, radius, and middle and half of the time of each trajectory."""
        from crowdveil.kernels.spatiotemporal import balls

        return tuple(frozen(a, np.float64) for a in balls(*self.paths.points))

    @cached_property
    def lengths(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which numbers of points there are."""
        counts = np.diff(self.paths.offsets)
        there = np.zeros(int(counts.max(initial=0)) + 1, np.bool_)
        there[counts] = True
        return frozen(there, np.bool_)

    def match(self, path: tuple[Floats, Floats, Floats]) -> Any:
        """The points of a path that meet those of others, by the number of points of these."""
        from crowdveil.kernels.spatiotemporal import matches

        return matches(*path, len(self.lengths) - 1, self.lengths)

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """From any path to trajectories of the data."""
        from crowdveil.kernels.spatiotemporal import mean_speeds

        own = mean_speeds(*path, frozen([0, len(path[0])], np.int64))[0]
        return self._distances(self.match(path), float(own), to)

    def from_one(self, i: int, to: Ints) -> Floats:
        """From a trajectory of the data to others."""
        return self._distances(self.match(self.paths.one(i)), float(self.speed[i]), to)

    def _distances(self, match: Any, own_speed: float, to: Ints) -> Floats:
        from crowdveil.kernels.spatiotemporal import distances

        found = np.empty(len(to), np.float64)
        distances(match, own_speed, self.weight, to, *self.paths.points, self.speed, found)
        return found


@dataclass(frozen=True, eq=False)
class Warped:
    """Dynamic time warping, or the discrete Fréchet distance; space alone, in metres."""

    paths: Paths
    added: bool

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """From any path to trajectories of the data."""
        from crowdveil.kernels.warping import warped_distances

        found = np.empty(len(to), np.float64)
        warped_distances(path[0], path[1], to, self.paths.x, self.paths.y, self.paths.offsets, self.added, found)
        return found

    def from_one(self, i: int, to: Ints) -> Floats:
        """From a trajectory of the data to others."""
        return self.between(self.paths.one(i), to)


@dataclass(frozen=True, eq=False)
class Contemporaries:
    """The shortest way over trajectories that are on their way at the same time; infinite where there is none.

    Two trajectories that share a span of time are as far apart as their places in it, on straight lines between their points:
    the root mean square over all their times in it, divided by the share of the longer one's time that it is.
    """

    paths: Paths

    @cached_property
    def graph(self) -> Any:
        """The edges as a sparse matrix, each once."""
        return _graph(self.paths)

    def components(self) -> Ints:
        """Of each trajectory the number of the part of the graph that it is in: only within a part there is a way."""
        from scipy.sparse.csgraph import connected_components

        part: Ints = connected_components(self.graph, directed=False)[1].astype(np.int64)
        return part

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """From any path to trajectories of the data."""
        own = self.paths
        offsets = np.append(own.offsets, own.offsets[-1] + len(path[0]))
        x, y, t = (np.concatenate([a, b]) for a, b in zip((own.x, own.y, own.t), path, strict=True))
        return _ways(_graph(Paths(x, y, t, offsets)), len(own), to)

    def from_one(self, i: int, to: Ints) -> Floats:
        """From a trajectory of the data to others."""
        return _ways(self.graph, i, to)


def _graph(paths: Paths) -> Any:
    from scipy.sparse import coo_array

    from crowdveil.kernels.contemporaries import count_neighbours, edges

    start, end = paths.t[paths.offsets[:-1]], paths.t[paths.offsets[1:] - 1]
    order = np.argsort(start, kind="stable")
    pairs = int(count_neighbours(order, start, end))
    if pairs > MOST_EDGES:
        raise InputError(
            f"distance: the graph of contemporaries has {pairs:,} pairs, and at most {MOST_EDGES:,} can be held; use the "
            "spatiotemporal distance, or fewer trajectories."
        )
    first, second, length = edges(order, start, end, *paths.points, pairs)
    return coo_array((length, (first, second)), shape=(len(paths), len(paths))).tocsr()


def _ways(graph: Any, i: int, to: Ints) -> Floats:
    from scipy.sparse.csgraph import dijkstra

    found: Floats = dijkstra(graph, directed=False, indices=i)[to]
    return found


def time_weight(data: Trajectories, wanted: str | float, rng: np.random.Generator) -> float:
    """What time counts in the spatio-temporal distance, λ.

    `document`: D / (V · T), the largest distance and the longest time between points of the data and the mean speed.
    `mean-ratio`: the mean distance in space over the mean distance in time, at the mean speed, of pairs of trajectories.
    """
    if not isinstance(wanted, str):
        return float(wanted)
    if data.points == 0:
        return 0.0
    distance = SpatioTemporal.of(Paths.of(data), 0.0)
    if wanted == "document":
        speed, longest = float(distance.speed.mean()), float(distance.paths.t.max())
        return _diameter(distance.paths) / (speed * longest) if speed > 0 and longest > 0 else 0.0
    return _mean_ratio(distance, rng)


def _diameter(paths: Paths) -> float:
    """The largest distance between two points."""
    import shapely

    hull = shapely.get_coordinates(shapely.convex_hull(shapely.multipoints(np.column_stack([paths.x, paths.y]))))
    apart = np.hypot(*(hull[:, None, axis] - hull[None, :, axis] for axis in (0, 1)))
    return float(apart.max(initial=0.0))


def _mean_ratio(distance: SpatioTemporal, rng: np.random.Generator) -> float:
    """Mean distance in space over the mean one in time, over all pairs of trajectories or as many as a sample takes."""
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


def make_distance(data: Trajectories, name: DistanceName, weight: float) -> Distance:
    """A distance by its name; `weight` is what time counts in the spatio-temporal one."""
    paths = Paths.of(data)
    if name == "spatiotemporal":
        return SpatioTemporal.of(paths, weight)
    if name == "graph":
        return Contemporaries(paths)
    return Warped(paths, added=name == "dtw")
