"""Groups of near trajectories, each with at least k people in it: MDAV, with any distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil import engine
from crowdveil.kernels.trajectory.structures import MdavState, Metric, TrajectoryTree
from crowdveil.model.arrays import Floats, Ints, frozen
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.trajectory.distances import Contemporaries, Distance, SpatioTemporal
from crowdveil.threads import thread_count

Center = Literal["once", "remaining"]
CenterAggregation = Literal["mean-trajectory", "closest-trajectory"]
"""What the center of trajectories is: their mean, or the one of them that is nearest to it."""

LARGE = 8192
"""Fewest trajectories of a part that gets a tree: of fewer all are looked at."""
BLOCK = 64
"""Fewest distances of a thread, where there is no tree."""
BATCH = 512
"""Fewest trajectories of a task of small parts."""
MAX_BATCHES = 64
"""Each task makes arrays as long as the data."""
MAX_EXCHANGED = 128
"""Largest part whose groups exchange members: all its distances are needed for that."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """What trajectories are put into groups by.

    Attributes
    ----------
    distance
        How far they are from one another.
    person
        Whom each counts for.
    k
        Fewest people of a group.
    center
        Groups begin with the farthest trajectory from the center: of all (`once`), or of those that are left (`remaining`).
    center_aggregation
        The center: the mean of the trajectories, or the one of them that is nearest to it.
    exchange
        Let groups of a small part exchange members afterwards, where that brings them closer together; with the spatio-temporal
        distance alone.
    """

    distance: Distance
    person: Ints
    k: int
    center: Center = "once"
    exchange: bool = False
    center_aggregation: CenterAggregation = "mean-trajectory"

    def __post_init__(self) -> None:
        """Make the people read-only: kernels are compiled once for those, and again for writable ones."""
        object.__setattr__(self, "person", frozen(self.person, np.int64))

    def groups(self, parts: Sequence[Ints], progress: Progress = no_progress) -> Ints:
        """Return the group of each trajectory, with numbers from 0; -1 if it is in no part, or in one with fewer than k people.

        Parts are lists of trajectories, rising, and no person is in two of them. In each, the farthest trajectory r from the
        center and the farthest one s from r each gather the nearest ones until k people are together, while at least 3k people
        are left; then r alone, while there are 2k. A group takes no more than k people, so that the rest has k to 2k − 1, and
        is one group. Of equal distances the trajectory with the smaller number counts.
        """
        is_small = [self._is_small(part) for part in parts]
        small = [part for part, so in zip(parts, is_small, strict=True) if so]
        large = [part for part, so in zip(parts, is_small, strict=True) if not so]
        total, before = sum(map(len, parts)), sum(map(len, small))
        group = np.full(len(self.person), -1, np.int64)
        if small and isinstance(self.distance, SpatioTemporal):
            self._compiled(self.distance, small, group, lambda done: progress(done, total))
        if large:
            self._step_by_step(large, group, lambda done: progress(before + done, total))
        return group

    def _is_small(self, part: Ints) -> bool:
        """Return whether one thread groups the part fastest."""
        usual = self.center_aggregation == "mean-trajectory"  # the only center that is compiled
        return usual and isinstance(self.distance, SpatioTemporal) and len(part) < LARGE

    @property
    def people(self) -> int:
        """Return a number that all people are below."""
        return int(self.person.max(initial=-1)) + 1

    def _compiled(
        self, distance: SpatioTemporal, parts: list[Ints], group: Ints, progress: Callable[[int], None]
    ) -> None:
        """Group many small parts, in batches on the engine."""
        from crowdveil.kernels.trajectory.mdav import group_parts

        batches = _batches(parts, max(BATCH, len(group) // MAX_BATCHES))
        ends = np.cumsum([0, *(sum(map(len, batch)) for batch in batches)])
        people = self.people

        def task(number: int) -> tuple[Ints]:
            batch = batches[number]
            offsets = np.cumsum([0, *map(len, batch)])
            exchanged = MAX_EXCHANGED if self.exchange else 0
            recenter = self.center == "remaining"
            return (
                group_parts(
                    np.concatenate(batch), offsets, distance.metric, self.person, people, self.k, recenter, exchanged
                ),
            )

        found = engine.current().map(task, len(batches), lambda done, _: progress(int(ends[done])))
        before = 0
        for batch, (groups,) in zip(batches, found, strict=True):
            group[np.concatenate(batch)] = np.where(groups >= 0, groups + before, -1)
            before += int(groups.max(initial=-1)) + 1

    def _step_by_step(self, parts: list[Ints], group: Ints, progress: Callable[[int], None]) -> None:
        """Group large parts, with a tree or with all threads at each step."""
        from crowdveil.kernels.trajectory.mdav import GROUPS, run_mdav

        n, counts, done = len(group), np.zeros(3, np.int64), 0
        counts[GROUPS] = int(group.max(initial=-1)) + 1
        state = MdavState(self.person, np.ones(n, np.bool_), group, np.zeros(self.people, np.int64), counts)
        with ThreadPoolExecutor(thread_count()) as pool:
            for part in parts:
                done += len(part)
                source = self._source(part, pool, progress, done)
                run_mdav(np.array(part, np.int64), source, state, self.k, self.center == "remaining")
                progress(done)

    def _source(
        self, part: Ints, pool: ThreadPoolExecutor, progress: Callable[[int], None], end: int
    ) -> _TreeDistances | _ThreadedDistances:
        """Return what finds the near and the far trajectories of a part."""
        from crowdveil.kernels.trajectory.mdav_tree import build

        if not isinstance(self.distance, SpatioTemporal):
            return _ThreadedDistances(self, progress, end, pool)
        metric = self.distance.metric
        tree = build(np.array(part, np.int64), metric)
        return _TreeDistances(self, progress, end, metric, tree, np.empty_like(part))


def _batches(parts: list[Ints], size: int) -> list[list[Ints]]:
    """Put parts into lists that hold at least `size` trajectories, but for the last."""
    batches: list[list[Ints]] = [[]]
    held = 0
    for part in parts:
        if held >= size:
            batches.append([])
            held = 0
        batches[-1].append(part)
        held += len(part)
    return batches


@dataclass(frozen=True, eq=False)
class _Distances:
    """What distances for `run_mdav` have in common, however they are found.

    `progress` gets how many trajectories are in groups; `end` are when those of the part are.
    """

    grouping: Grouping
    progress: Callable[[int], None]
    end: int

    def fill_center_distances(self, alive: Ints, far: Floats) -> None:
        """Write the distance of each trajectory from the mean of all of them, or from the one nearest to it, in meters."""
        from crowdveil.kernels.trajectory.mdav import mean_path

        distance = self.grouping.distance
        found = distance.between(mean_path(alive, distance.paths.points), alive)
        if self.grouping.center_aggregation == "closest-trajectory":
            found = distance.from_one(int(alive[int(np.argmin(found))]), alive)
        far[: len(alive)] = found

    def report(self, state: MdavState) -> None:
        """Report progress."""
        from crowdveil.kernels.trajectory.mdav import LEFT

        self.progress(self.end - int(state.counts[LEFT]))


@dataclass(frozen=True, eq=False)
class _TreeDistances(_Distances):
    """Distances for `run_mdav` by a tree over the trajectories of a part; the same as without."""

    metric: Metric
    tree: TrajectoryTree
    near: Ints

    def fill_distances(
        self, seed: int, alive: Ints, state: MdavState, farthest: bool, found: Floats
    ) -> tuple[int, Ints]:
        """Return the farthest other trajectory, -1 if it is not wanted, and near ones, with their distances in `found`."""
        from crowdveil.kernels.trajectory import mdav_tree

        self.report(state)
        who = mdav_tree.farthest_left(seed, self.metric, self.tree, state.taken)[0] if farthest else -1
        count, _ = mdav_tree.near_people(
            seed, self.metric, self.tree, state.taken, state.person, self.grouping.k, self.near, found
        )
        return who, self.near[:count]

    def forget(self, members: Ints, state: MdavState) -> None:
        """Take trajectories that got a group out of the tree."""
        from crowdveil.kernels.trajectory.mdav_tree import remove

        remove(members, self.tree, self.metric, state.taken)


@dataclass(frozen=True, eq=False)
class _ThreadedDistances(_Distances):
    """Distances for `run_mdav` without bounds, in blocks on all threads; the result does not depend on the blocks."""

    pool: ThreadPoolExecutor

    def fill_distances(
        self, seed: int, alive: Ints, state: MdavState, farthest: bool, found: Floats
    ) -> tuple[int, Ints]:
        """Return the farthest other trajectory, -1 if it is not wanted; write the distances of all.

        Over a graph the distance to one costs what the distances to all do.
        """
        self.report(state)
        distance, left = self.grouping.distance, np.flatnonzero(~state.taken[alive])
        count = 1 if isinstance(distance, Contemporaries) else min(thread_count(), max(len(left) // BLOCK, 1))
        blocks = np.array_split(left, count)
        far = np.concatenate(list(self.pool.map(lambda block: distance.from_one(seed, alive[block]), blocks)))
        found[: len(alive)] = np.inf
        found[left] = far
        others = np.where(alive[left] == seed, -1.0, far)
        return int(alive[left[int(np.argmax(others))]]) if farthest else -1, alive

    def forget(self, members: Ints, state: MdavState) -> None:
        """Do nothing: what is taken is left out of the next distances."""
