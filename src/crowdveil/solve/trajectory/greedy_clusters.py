"""Greedy clusters of trajectories within a radius around pivots, with a share that is left out (Never Walk Alone)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import trips_within
from crowdveil.progress import Progress

FIRST_RADIUS, GROWTH = 0.1, 1.5
"""Radius of the first round, as a share of the largest distance, and its growth from round to round."""
FEW = 64
"""Nearest trajectories that are sorted first: most clusters need no more."""
MOST_KEPT = 50_000_000
"""Distances that are kept for the next round."""


@dataclass(eq=False)
class GreedyClusters:
    """Clusters of at least k people around pivots.

    Attributes
    ----------
    distances
        Trajectory → its distances to all, from 0 to 1.
    person
        The owner of each trajectory.
    k
        Smallest number of people of a cluster.
    """

    distances: Callable[[int], Floats]
    person: Ints
    k: int
    _kept: dict[int, Floats] = field(default_factory=dict, repr=False)

    def clusters(self, left_out: float, rng: np.random.Generator, progress: Progress) -> list[tuple[int, Ints]]:
        """Return the pivot and the members of each cluster; at most the share `left_out` of all is in none.

        Each round has a larger radius, until no more than that share is left out. At the radius 1 no one is.
        """
        n, radius = len(self.person), FIRST_RADIUS
        allowed = trips_within(left_out, n)
        first = int(rng.integers(n)) if n else 0
        while n:
            found, missing = self._round(radius, first, progress)
            if missing <= allowed or radius >= 1:
                return found
            radius = min(1.0, radius * GROWTH)
        return []

    def _round(self, radius: float, first: int, progress: Progress) -> tuple[list[tuple[int, Ints]], int]:
        """Return the clusters of one radius, and how many trajectories are in none."""
        n = len(self.person)
        free, active = np.ones(n, np.bool_), np.ones(n, np.bool_)
        pivots: list[int] = []
        members: list[list[int]] = []
        pivot = first
        while active.any():
            far = self._from(pivot)
            chosen = self._nearest(pivot, far, free, radius)
            active[pivot] = False
            if chosen is not None:
                pivots.append(pivot)
                members.append(chosen.tolist())
                free[chosen] = active[chosen] = False
            # The next pivot is the farthest one from the last.
            if active.any():
                pivot = int(np.argmax(np.where(active, far, -1.0)))
            progress(n - int(active.sum()), n)
        missing = self._join(pivots, members, free, radius)
        return [(p, np.sort(np.array(m, np.int64))) for p, m in zip(pivots, members, strict=True)], missing

    def _nearest(self, pivot: int, far: Floats, free: Mask, radius: float) -> Ints | None:
        """Return the pivot and the nearest free trajectories until there are k people; None where the radius is too small."""
        near = np.flatnonzero(free & (far <= radius))
        if len(near) > FEW:
            # With all of equal distances; if they have too few people, all are looked at.
            some = near[far[near] <= np.partition(far[near], FEW)[FEW]]
            found = self._until_k(pivot, far, some)
            if found is not None:
                return found
        return self._until_k(pivot, far, near)

    def _until_k(self, pivot: int, far: Floats, near: Ints) -> Ints | None:
        """Return the pivot and the nearest of some trajectories until there are k people; None where there are fewer."""
        order = near[np.lexsort((near, far[near], near != pivot))]
        new = np.zeros(len(order), np.bool_)
        new[np.unique(self.person[order], return_index=True)[1]] = True
        reached = np.flatnonzero(np.cumsum(new) >= self.k)
        return order[: reached[0] + 1] if len(reached) else None

    def _join(self, pivots: list[int], members: list[list[int]], free: Mask, radius: float) -> int:
        """Let each free trajectory join the cluster with the nearest pivot within the radius; return how many have none."""
        rest = np.flatnonzero(free)
        if not len(rest) or not pivots:
            return len(rest)
        far = np.stack([self._from(pivot)[rest] for pivot in pivots])
        nearest = np.argmin(far, axis=0)
        for i, (trajectory, cluster) in enumerate(zip(rest.tolist(), nearest.tolist(), strict=True)):
            if far[cluster, i] <= radius:
                members[cluster].append(trajectory)
        return int((far.min(axis=0) > radius).sum())

    def _from(self, pivot: int) -> Floats:
        """Return the distances of a trajectory to all; they are kept while there is space for them."""
        if pivot in self._kept:
            return self._kept[pivot]
        found = self.distances(pivot)
        if (len(self._kept) + 1) * len(self.person) <= MOST_KEPT:
            self._kept[pivot] = found
        return found
