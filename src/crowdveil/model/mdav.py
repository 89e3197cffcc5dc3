"""Groups of near trajectories, each with at least k people in it: MDAV, with any distance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crowdveil.model.aggregation import mean_path
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.distances import Distance, SpatioTemporal
from crowdveil.model.trajectories import Trajectories

Centre = Literal["once", "remaining"]
Done = Callable[[int], None]
"""Told how many trajectories have got a group, each time that some have."""
Look = Callable[[int, Ints, Mask, bool], tuple[int, Floats]]
"""From a trajectory, at those of a list that are not taken: the farthest one if wanted, and distances; those of trajectories
that k people are nearer than may be infinite."""

BLOCK = 4096
"""So many distances at least are worth a thread of their own."""
AT_ONCE = 100
"""Clusters that are made before progress is told."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """What trajectories are put into groups by.

    Attributes
    ----------
    data
        The trajectories.
    distance
        How far they are from one another.
    person
        Whom each counts for.
    k
        Fewest people of a group.
    centre
        Groups begin with the farthest trajectory from the centre: of all (`once`), or of those that are left (`remaining`).
    """

    data: Trajectories
    distance: Distance
    person: Ints
    k: int
    centre: Centre = "once"

    def groups_of(self, members: Ints, done: Done = lambda count: None) -> Ints:
        """The group of each member, from 0; all -1 if they have fewer than k people.

        The farthest trajectory r from the centre and the farthest one s from r each gather whoever is nearest, until k people
        are together; while at least 3k people are left. Then r alone, while there are 2k, and the rest of k to 2k − 1 is one
        group. Since people can have several trajectories, some may be left with fewer than k people: each of them joins the
        group of its nearest neighbour. Of equal distances the trajectory with the smaller number counts.
        """
        work = _Work(self, members, done)
        if work.people < self.k:
            return work.groups
        if isinstance(self.distance, SpatioTemporal) and self.centre == "once" and len(members) < 2 * BLOCK:
            work.gather_compiled(self.distance)
        else:
            with _looking(self) as look:
                work.gather(look)
        work.settle_rest()
        return work.groups


class _Work:
    """The groups that have been made so far."""

    def __init__(self, grouping: Grouping, members: Ints, done: Done) -> None:
        from crowdveil.kernels.mdav import LEFT, PEOPLE

        n = len(grouping.data)
        self.grouping, self.members, self.done = grouping, members, done
        self.taken = np.ones(n, np.bool_)
        self.taken[members] = False
        self.cluster = np.full(n, -1, np.int64)
        self.left_of = np.bincount(grouping.person[members], minlength=int(grouping.person.max(initial=-1)) + 1)
        self.alive = np.array(members, np.int64)
        self.counts = np.zeros(4, np.int64)
        self.counts[LEFT], self.counts[PEOPLE] = len(members), np.count_nonzero(self.left_of)
        self._place = PEOPLE
        self.told = 0

    @property
    def people(self) -> int:
        """How many people have trajectories without a group."""
        return int(self.counts[self._place])

    @property
    def groups(self) -> Ints:
        """The group of each member."""
        return self.cluster[self.members]

    def gather_compiled(self, distance: SpatioTemporal) -> None:
        """Make groups until fewer than 2k people are left, on this thread."""
        from crowdveil.kernels.mdav import cluster_in_order

        seeds = self._seeds()
        while self.people >= 2 * self.grouping.k:
            arguments: Any = (
                seeds, self.alive, distance.paths.points, distance.speed, distance.ball, distance.weight,
                self.grouping.person, self.taken, self.cluster, self.left_of, self.counts, self.grouping.k, AT_ONCE,
            )  # fmt: skip
            self.alive = cluster_in_order(*arguments)
            self._tell()

    def gather(self, look: Look) -> None:
        """Make groups until fewer than 2k people are left."""
        from crowdveil.kernels.mdav import still_there

        k, once = self.grouping.k, self.grouping.centre == "once"
        seeds = iter(self._seeds().tolist()) if once else iter(())
        while self.people >= 2 * k:
            self.alive = still_there(self.alive, self.taken)
            first = next(i for i in seeds if not self.taken[i]) if once else int(self._seeds()[0])
            both = self.people >= 3 * k
            second, found = look(first, self.alive, self.taken, both)
            self._make(first, found, second)
            if both:
                _, found = look(second, self.alive, self.taken, False)
                self._make(second, found, -1)
            self._tell()

    def settle_rest(self) -> None:
        """What is left is a group, or joins others."""
        from crowdveil.kernels.mdav import settle

        left = np.flatnonzero(~self.taken)
        if self.people >= self.grouping.k:
            settle(left, self.grouping.person, self.taken, self.cluster, self.left_of, self.counts)
        elif len(left):
            settled = self.members[self.taken[self.members]]
            for i in left.tolist():
                nearest = int(np.argmin(self.grouping.distance.from_one(i, settled)))
                self.cluster[i] = self.cluster[settled[nearest]]
        self.counts[0] = 0
        self._tell()

    def _seeds(self) -> Ints:
        """The trajectories that are left, the farthest from their centre first."""
        path = mean_path(self.grouping.data, self.alive)
        far = self.grouping.distance.between(path, self.alive)
        return self.alive[np.argsort(-far, kind="stable")]

    def _make(self, seed: int, found: Floats, not_this: int) -> None:
        from crowdveil.kernels.mdav import settle
        from crowdveil.kernels.spatiotemporal import nearest_people

        person = self.grouping.person
        members = nearest_people(found, self.alive, person, seed, self.taken, not_this, self.grouping.k)[1]
        settle(members, person, self.taken, self.cluster, self.left_of, self.counts)

    def _tell(self) -> None:
        count = len(self.members) - int(self.counts[0])
        self.done(count - self.told)
        self.told = count


@contextmanager
def _looking(grouping: Grouping) -> Iterator[Look]:
    """How to look around with the distance at hand."""
    if not isinstance(grouping.distance, SpatioTemporal):
        yield lambda i, to, taken, farthest: _look_at_all(grouping.distance, i, to, taken, farthest)
        return
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        yield _looking_in_blocks(grouping, grouping.distance, pool, threads)


def _look_at_all(distance: Distance, i: int, to: Ints, taken: Mask, farthest: bool) -> tuple[int, Floats]:
    found = distance.from_one(i, to)
    return int(to[int(np.argmax(np.where(taken[to], -1.0, found)))]) if farthest else -1, found


def _looking_in_blocks(grouping: Grouping, distance: SpatioTemporal, pool: ThreadPoolExecutor, threads: int) -> Look:
    """Blocks of the list on all threads; what is found does not depend on how it is cut."""
    from crowdveil.kernels.spatiotemporal import look_around

    person, k = grouping.person, grouping.k

    def look(i: int, to: Ints, taken: Mask, farthest: bool) -> tuple[int, Floats]:
        match, found = distance.match(distance.paths.one(i)), np.empty(len(to), np.float64)
        own = tuple(float(column[i]) for column in distance.ball)
        blocks = min(threads, max(len(to) // BLOCK, 1))
        cuts = [len(to) * b // blocks for b in range(blocks + 1)]

        def block(b: int) -> Any:
            arguments: Any = (
                match, float(distance.speed[i]), own, distance.weight, to, cuts[b], cuts[b + 1], taken,
                *distance.paths.points, distance.speed, distance.ball, person, int(person[i]), k, farthest, found,
            )  # fmt: skip
            return look_around(*arguments)

        others = [pool.submit(block, b) for b in range(1, blocks)]
        ends = [block(0), *(other.result() for other in others)]
        _, at = max(ends, key=lambda end: end[0])
        return int(to[at]) if farthest else -1, found

    return look
