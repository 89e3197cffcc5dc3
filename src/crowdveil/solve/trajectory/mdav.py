"""Groups of near trajectories, each with at least k people in it: MDAV, with any distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil import engine
from crowdveil.kernels.trajectory.structures import MdavState, Metric
from crowdveil.model.arrays import Floats, Ints, Mask, frozen
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.trajectory.distances import Contemporaries, Distance, SpatioTemporal
from crowdveil.threads import thread_count

Center = Literal["once", "remaining"]

BLOCK = 4096
"""Fewest distances of a thread."""
SLOW_BLOCK = 64
"""The same for distances without bounds."""
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
    exchange
        Let groups of a small part exchange members afterwards, where that brings them closer together; with the spatio-temporal
        distance alone.
    """

    distance: Distance
    person: Ints
    k: int
    center: Center = "once"
    exchange: bool = False

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
        return isinstance(self.distance, SpatioTemporal) and len(part) < 2 * BLOCK

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
        """Group large parts with all threads at each step, or with a distance that has no kernel."""
        from crowdveil.kernels.trajectory.mdav import GROUPS, run_mdav

        n, counts, done = len(group), np.zeros(3, np.int64), 0
        counts[GROUPS] = int(group.max(initial=-1)) + 1
        state = MdavState(self.person, np.ones(n, np.bool_), group, np.zeros(self.people, np.int64), counts)
        with ThreadPoolExecutor(thread_count()) as pool:
            for part in parts:
                done += len(part)
                source = _ThreadedDistances(self, pool, done, progress)
                run_mdav(np.array(part, np.int64), source, state, self.k, self.center == "remaining")
                progress(done)


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
class _ThreadedDistances:
    """Distances for `run_mdav`, in blocks of the list on all threads; the result does not depend on the blocks.

    `progress` gets how many trajectories are in groups; at the end of the part `end` are.
    """

    grouping: Grouping
    pool: ThreadPoolExecutor
    end: int
    progress: Callable[[int], None]

    def fill_center_distances(self, alive: Ints, far: Floats) -> None:
        """Write the distance of each trajectory from the mean of all of them, in meters."""
        from crowdveil.kernels.trajectory.mdav import mean_path

        distance = self.grouping.distance
        far[: len(alive)] = distance.between(mean_path(alive, distance.paths.points), alive)

    def fill_distances(self, seed: int, alive: Ints, state: MdavState, farthest: bool, found: Floats) -> int:
        """Write distances from a trajectory; return the farthest other one that is not taken, -1 if it is not wanted."""
        from crowdveil.kernels.trajectory.mdav import LEFT

        self.progress(self.end - int(state.counts[LEFT]))
        distance = self.grouping.distance
        if isinstance(distance, SpatioTemporal):
            return self._pruned(distance.metric, seed, alive, state, farthest, found)
        return self._unpruned(distance, seed, alive, state.taken, farthest, found)

    def _blocks(self, items: Ints, size: int) -> list[Ints]:
        return np.array_split(items, min(thread_count(), max(len(items) // size, 1)))

    def _unpruned(self, distance: Distance, seed: int, alive: Ints, taken: Mask, farthest: bool, found: Floats) -> int:
        """Compute all distances; over a graph the distance to one costs what the distances to all do."""
        left = np.flatnonzero(~taken[alive])
        blocks = [left] if isinstance(distance, Contemporaries) else self._blocks(left, SLOW_BLOCK)
        far = np.concatenate(list(self.pool.map(lambda block: distance.from_one(seed, alive[block]), blocks)))
        found[: len(alive)] = np.inf
        found[left] = far
        others = np.where(alive[left] == seed, -1.0, far)
        return int(alive[left[int(np.argmax(others))]]) if farthest else -1

    def _pruned(self, metric: Metric, seed: int, alive: Ints, state: MdavState, farthest: bool, found: Floats) -> int:
        """Compute the distances that matter, by the bounds of the spatio-temporal distance."""
        from crowdveil.kernels.trajectory.spatiotemporal import look_around

        def search(block: Ints) -> tuple[float, int, int]:
            low, high = int(block[0]), int(block[-1]) + 1
            return look_around(
                seed, metric, alive, low, high, state.taken, state.person, self.grouping.k, farthest, found
            )

        first, *more = self._blocks(np.arange(len(alive)), BLOCK)
        others = [self.pool.submit(search, block) for block in more]
        ends = [search(first), *(other.result() for other in others)]
        _, at, _ = max(ends, key=lambda end: end[0])
        return int(alive[at]) if farthest else -1
