"""Clusters of near trajectories: repeatedly the tightest cluster around one of a few pivots across the data.

Nearly no distance is computed to the end: boxes around parts of trajectories show of most that they are too far to be in a
cluster that could be the tightest. The result is that of all distances, on any number of threads.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.engine.threads import thread_count
from crowdveil.errors import InputError, Option
from crowdveil.kernels.trajectory.frechet_manhattan import (
    distance_lower_bounds,
    nearest_paths,
    outer,
    sketch_distances,
    sliced,
)
from crowdveil.kernels.trajectory.spatiotemporal import nearest_people
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.solve.trajectory.distances import FrechetManhattan

LeftOver = Literal["join", "drop"]
PivotPath = Literal["sketched", "exact"]

MAX_FOR_EXACT_PATHS = 2_000
"""Distances of all pairs are needed for them."""
SURE = 1 - 1e-9
"""Sums are reduced by this factor before comparisons, so that the order of their terms does not matter."""
FURTHER = 4.0
"""A cluster is given up only when its squares are sure to sum up to this many times those of the tightest. Looking further costs
little, and the same pivot need not be searched again once tight clusters are rare.
"""


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each trajectory, from 0 on, or -1; the pivot of each cluster; and how many trajectories were left over."""

    cluster: Ints
    pivot: Ints
    left_over: int


@dataclass(frozen=True, eq=False)
class Clustering:
    """Criteria for clusters of trajectories.

    Attributes
    ----------
    distance
        How far they are from one another.
    person
        Whom each counts for.
    k
        Fewest people of a cluster.
    pivots
        How many trajectories, at most, a cluster is tried around before the tightest is taken.
    path
        How pivots between the first and the last one are found; see `Clustering.clusters`.
    """

    distance: FrechetManhattan
    person: Ints
    k: int
    pivots: int
    path: PivotPath = "sketched"

    def clusters(self, left_over: LeftOver, rng: np.random.Generator, progress: Progress = no_progress) -> Clusters:
        """Make clusters while k people are left.

        The first pivot is drawn at random, and the last one is the farthest trajectory from it. With `sketched`, step i of the
        δ − 1 steps between them leads to the trajectory with the least a² / i + b² / (δ − 1 − i), where a and b are its distances
        to both: by the triangle inequality, no path through it has a smaller sum of squares. Distances are estimated from the
        middles of sixteen parts of equal duration. With `exact`, distances are computed, and the pivots are those of the path
        with the smallest sum of squares.
        """
        n = len(self.person)
        cluster, taken = np.full(n, -1, np.int64), np.zeros(n, np.bool_)
        left_of = np.bincount(self.person, minlength=1)
        pivot: list[int] = []
        with ThreadPoolExecutor(thread_count()) as pool:
            work = _Round(self, pool, taken)
            alive = np.arange(n)
            while np.count_nonzero(left_of) >= self.k:
                seed, members = work.tightest(alive, int(alive[rng.integers(len(alive))]))
                cluster[members] = len(pivot)
                taken[members] = True
                np.subtract.at(left_of, self.person[members], 1)
                pivot.append(seed)
                alive = alive[~taken[alive]]
                progress(n - len(alive), n)
            if left_over == "join" and pivot:
                cluster[alive] = list(pool.map(lambda i: work.nearest(i, np.array(pivot)), alive.tolist()))
        progress(n, n)
        return Clusters(cluster, np.array(pivot, np.int64), len(alive))

    @cached_property
    def boxes(self) -> tuple[Floats, Floats]:
        """Return the boxes around the parts of each trajectory, and that around the whole."""
        boxes = sliced(self.distance.columns)
        return boxes, outer(boxes)

    @cached_property
    def all_squares(self) -> Floats:
        """Return the squares of the distances of all pairs, and 0 from a trajectory to itself."""
        n = len(self.person)
        if n > MAX_FOR_EXACT_PATHS:
            raise InputError(
                Option("pivot_path"),
                f"exact takes the distances of all pairs, and so at most {MAX_FOR_EXACT_PATHS:,} trajectories, "
                f"got {n:,}. Use sketched.",
            )
        squares = np.zeros((n, n), np.float64)
        for i in range(n):
            squares[i, i + 1 :] = self.distance.from_one(i, np.arange(i + 1, n)) ** 2
        squares += squares.T
        np.fill_diagonal(squares, np.inf)
        return squares


class _Round:
    """Finding one cluster after another.

    Attributes
    ----------
    taken
        Who is in a cluster already.
    known
        A lower bound of the sum of squared distances to the nearest people around each, or 0. It never gets less, since fewer and
        fewer are left; the sum over all members may, where people have several trajectories.
    found
        The last cluster that was found around some, and its sum of squares: it is the same as long as all members are left.
    """

    def __init__(self, clustering: Clustering, pool: ThreadPoolExecutor, taken: Mask) -> None:
        n = len(clustering.person)
        self.clustering, self.pool, self.taken = clustering, pool, taken
        self.distance = clustering.distance
        self.boxes, self.whole = clustering.boxes
        self.single, self.none_taken = np.arange(n), np.zeros(n, np.bool_)
        self.known = np.zeros(n, np.float64)
        self.found: dict[int, tuple[float, Ints]] = {}

    def tightest(self, alive: Ints, first: int) -> tuple[int, Ints]:
        """Return the tightest of the clusters around pivots, the first of equal ones: its pivot, and its members, rising."""
        pivots = self._pivots(alive, first)
        rough = [self._sketched(i, alive) for i in pivots]
        # Those that look tight come first: the others are mostly given up early then. The order does not change the result.
        near = min(self.clustering.k, len(alive)) - 1
        order = np.argsort([np.sort(np.partition(row, near)[: near + 1] ** 2).sum() for row in rough], kind="stable")
        least = [min((self.found[i][0] for i in pivots if self._as_before(i)), default=np.inf)]
        lock = threading.Lock()

        def around(at: int) -> tuple[float, int, Ints]:
            squares, members = self._around(pivots[at], alive, least[0])
            with lock:
                least[0] = min(least[0], squares)
            return squares, at, members

        _, at, members = min(self.pool.map(around, order.tolist()), key=lambda found: found[:2])
        return pivots[at], members

    def _around(self, i: int, alive: Ints, most: float) -> tuple[float, Ints]:
        """Return the cluster around a pivot and its sum of squares; no member, and an infinite sum, if that is sure to be above
        `most`.
        """
        k, person = self.clustering.k, self.clustering.person
        if self._as_before(i):
            return self.found[i]
        if self.known[i] > most:
            return np.inf, alive[:0]
        members, far = self._gather(i, alive, person, k, FURTHER * most)
        if len(members) == 0:
            self.known[i] = FURTHER * most
            return np.inf, members
        order = np.argsort(far, kind="stable")
        _, nearest = np.unique(person[members[order]], return_index=True)
        self.known[i] = SURE * float((far[order[nearest]] ** 2).sum())
        self.found[i] = float((far**2).sum()), members
        return self.found[i]

    def _as_before(self, i: int) -> bool:
        """Return whether the cluster around a pivot is known, with no member of it taken."""
        return i in self.found and not self.taken[self.found[i][1]].any()

    def nearest(self, i: int, pivots: Ints) -> int:
        """Return the nearest of some pivots, the first in number of equal ones."""
        both, _ = self._gather(i, np.append(pivots, i), self.single, 2, np.inf)
        return int(np.flatnonzero(pivots == both[both != i][0])[0])

    def _pivots(self, alive: Ints, first: int) -> list[int]:
        wanted = min(self.clustering.pivots, len(alive))
        if wanted == 1:
            return [first]
        exact = self.clustering.path == "exact"
        from_first = self.clustering.all_squares[first, alive] if exact else self._sketched(first, alive)
        last = int(alive[int(np.argmax(np.where(alive == first, -1.0, from_first)))])
        if wanted == 2:
            return [first, last]
        if exact:
            return self._exact_path(alive, first, last, wanted)
        from_last = self._sketched(last, alive)
        free = (alive != first) & (alive != last)
        between = []
        for step in range(1, wanted - 1):
            way = np.where(free, from_first**2 / step + from_last**2 / (wanted - 1 - step), np.inf)
            at = int(np.argmin(way))
            between.append(int(alive[at]))
            free[at] = False
        return [first, *between, last]

    def _exact_path(self, alive: Ints, first: int, last: int, wanted: int) -> list[int]:
        """Return the path with the least sum of squares; a trajectory that it comes by twice is one pivot."""
        squares = self.clustering.all_squares[np.ix_(alive, alive)]
        cost, predecessors = squares[int(np.flatnonzero(alive == first)[0])], []
        for _ in range(wanted - 2):
            ways = cost[:, None] + squares
            predecessors.append(np.argmin(ways, axis=0))
            cost = np.min(ways, axis=0)
        at = int(np.flatnonzero(alive == last)[0])
        way = [last]
        for before in reversed(predecessors):
            at = int(before[at])
            way.append(int(alive[at]))
        return list(dict.fromkeys([first, *reversed(way)]))

    def _sketched(self, i: int, to: Ints) -> Floats:
        found = np.empty(len(to), np.float64)
        sketch_distances(i, to, self.boxes, found)
        return found

    def _gather(self, i: int, among: Ints, person: Ints, k: int, most: float) -> tuple[Ints, Floats]:
        """Return the nearest trajectories until k people are together, `i` included, rising, and their distances; none if the
        squares are sure to sum up to more than `most`.
        """
        to = among[among != i]
        least, found = np.empty(len(to), np.float64), np.empty(len(to), np.float64)
        columns, boxes, whole = self.distance.columns, self.boxes, self.whole
        distance_lower_bounds(i, to, columns, boxes, whole, self.distance.resampled, most**0.5, least)
        order = np.argsort(least, kind="stable")
        to, least = to[order], least[order]
        how = self.distance.resampled, self.distance.exact
        if not nearest_paths(i, to, least, most, person, k, columns, *how, found):
            return to[:0], found[:0]
        members = np.sort(nearest_people(found, to, person, i, self.none_taken, -1, k))
        far = np.zeros(len(self.single), np.float64)
        far[to] = found
        return members, far[members]
