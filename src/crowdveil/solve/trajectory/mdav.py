"""Groups of near trajectories, each with at least k people in it: MDAV, with any distance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crowdveil import engine
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.trajectory.distances import Contemporaries, Distance, SpatioTemporal
from crowdveil.threads import thread_count

Center = Literal["once", "remaining"]
Look = Callable[[int, Ints, Mask, bool], tuple[int, Floats]]
"""From a trajectory, at those of a list that are not taken: the farthest other one if wanted, and distances; those of
trajectories that k people are nearer than may be infinite."""

BLOCK = 4096
"""So many distances at least are worth a thread of their own."""
SLOW_BLOCK = 64
"""The same for distances without bounds."""
BATCH = 512
"""So many trajectories at least in small parts are worth a task of their own."""
MOST_BATCHES = 64
"""Each task makes arrays as long as the data."""
MOST_EXCHANGED = 128
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

    def groups(self, parts: Sequence[Ints], progress: Progress = no_progress) -> Ints:
        """The group of each trajectory, with numbers from 0; -1 if it is in no part, or in one with fewer than k people.

        Parts are lists of trajectories, rising, and nobody in two of them. In each, the farthest trajectory r from the center
        and the farthest one s from r each gather whoever is nearest, until k people are together; while at least 3k people are
        left. Then r alone, while there are 2k. A group takes no more than k people, so that the rest has k to 2k − 1, and is
        one group. Of equal distances the trajectory with the smaller number counts.
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
        """Whether one thread does it best."""
        return isinstance(self.distance, SpatioTemporal) and len(part) < 2 * BLOCK

    @property
    def people(self) -> int:
        """All people are below this number."""
        return int(self.person.max(initial=-1)) + 1

    def _compiled(
        self, distance: SpatioTemporal, parts: list[Ints], group: Ints, progress: Callable[[int], None]
    ) -> None:
        """Many small parts, in batches on the engine."""
        from crowdveil.kernels.trajectory.mdav import group_parts

        batches = _batches(parts, max(BATCH, len(group) // MOST_BATCHES))
        ends = np.cumsum([0, *(sum(map(len, batch)) for batch in batches)])
        people = self.people

        def task(number: int) -> tuple[Ints]:
            batch = batches[number]
            arguments: Any = (
                np.concatenate(batch), np.cumsum([0, *map(len, batch)]), distance.paths.points, distance.speed,
                distance.ball, distance.weight, self.person, people, self.k, self.center == "remaining",
                MOST_EXCHANGED if self.exchange else 0,
            )  # fmt: skip
            return (group_parts(*arguments),)

        found = engine.current().map(task, len(batches), lambda done, _: progress(int(ends[done])))
        before = 0
        for batch, (groups,) in zip(batches, found, strict=True):
            group[np.concatenate(batch)] = np.where(groups >= 0, groups + before, -1)
            before += int(groups.max(initial=-1)) + 1

    def _step_by_step(self, parts: list[Ints], group: Ints, progress: Callable[[int], None]) -> None:
        """Large parts with all threads at each step, or a distance that only Python knows."""
        work, done = _Work(self, group), 0
        with _looking(self) as look:
            for part in parts:
                work.gather(part, look, lambda here, before=done: progress(before + here))  # type: ignore[misc]
                done += len(part)


def _batches(parts: list[Ints], size: int) -> list[list[Ints]]:
    """Parts in lists that hold at least so many trajectories, but for the last."""
    batches: list[list[Ints]] = [[]]
    held = 0
    for part in parts:
        if held >= size:
            batches.append([])
            held = 0
        batches[-1].append(part)
        held += len(part)
    return batches


class _Work:
    """The groups that have been made so far."""

    def __init__(self, grouping: Grouping, group: Ints) -> None:
        from crowdveil.kernels.trajectory.mdav import GROUPS

        self.grouping, self.person = grouping, grouping.person
        self.group = group
        self.taken = np.ones(len(group), np.bool_)
        self.left_of = np.zeros(grouping.people, np.int64)
        self.counts = np.zeros(3, np.int64)
        self.counts[GROUPS] = int(group.max(initial=-1)) + 1
        self.alive = np.zeros(0, np.int64)

    def gather(self, members: Ints, look: Look, progress: Callable[[int], None]) -> None:
        """Put all of a part into groups."""
        from crowdveil.kernels.trajectory.mdav import LEFT, PEOPLE, enter, leave, settle, still_there

        k, once, counts = self.grouping.k, self.grouping.center == "once", self.counts
        enter(members, self.person, self.taken, self.left_of, counts)
        self.alive = np.array(members, np.int64)
        seeds = iter(self._seeds().tolist()) if once and counts[PEOPLE] >= 2 * k else iter(())
        while counts[PEOPLE] >= 2 * k:
            self.alive = still_there(self.alive, self.taken)
            first = next(i for i in seeds if not self.taken[i]) if once else int(self._seeds()[0])
            both = bool(counts[PEOPLE] >= 3 * k)
            second, found = look(first, self.alive, self.taken, both)
            self._make(first, found, second)
            if both:
                _, found = look(second, self.alive, self.taken, False)
                self._make(second, found, -1)
            progress(len(members) - int(counts[LEFT]))
        rest = still_there(self.alive, self.taken)
        if counts[PEOPLE] >= k:
            settle(rest, self.person, self.taken, self.group, self.left_of, counts)
        else:
            leave(rest, self.person, self.taken, self.left_of, counts)
        progress(len(members))

    def _seeds(self) -> Ints:
        """The trajectories that are left, the farthest from their center first."""
        from crowdveil.kernels.trajectory.mdav import mean_path

        distance = self.grouping.distance
        far = distance.between(mean_path(self.alive, distance.paths.points), self.alive)
        return self.alive[np.argsort(-far, kind="stable")]

    def _make(self, seed: int, found: Floats, not_this: int) -> None:
        from crowdveil.kernels.trajectory.mdav import settle
        from crowdveil.kernels.trajectory.spatiotemporal import nearest_people

        gathered = nearest_people(found, self.alive, self.person, seed, self.taken, not_this, self.grouping.k)
        settle(gathered, self.person, self.taken, self.group, self.left_of, self.counts)


@contextmanager
def _looking(grouping: Grouping) -> Iterator[Look]:
    """How to look around with the distance at hand."""
    threads = thread_count()
    with ThreadPoolExecutor(threads) as pool:
        if isinstance(grouping.distance, SpatioTemporal):
            yield _looking_in_blocks(grouping, grouping.distance, pool, threads)
        else:
            yield _looking_at_all(grouping.distance, pool, threads)


def _looking_at_all(distance: Distance, pool: ThreadPoolExecutor, threads: int) -> Look:
    """All distances, in blocks on all threads; over a graph the way to one costs what the ways to all do."""

    def look(i: int, to: Ints, taken: Mask, farthest: bool) -> tuple[int, Floats]:
        blocks = 1 if isinstance(distance, Contemporaries) else min(threads, max(len(to) // SLOW_BLOCK, 1))
        found = np.concatenate(list(pool.map(lambda part: distance.from_one(i, part), np.array_split(to, blocks))))
        others = np.where(taken[to] | (to == i), -1.0, found)
        return int(to[int(np.argmax(others))]) if farthest else -1, found

    return look


def _looking_in_blocks(grouping: Grouping, distance: SpatioTemporal, pool: ThreadPoolExecutor, threads: int) -> Look:
    """Blocks of the list on all threads; what is found does not depend on how it is cut."""
    from crowdveil.kernels.trajectory.spatiotemporal import look_around

    person, k = grouping.person, grouping.k

    def look(i: int, to: Ints, taken: Mask, farthest: bool) -> tuple[int, Floats]:
        found = np.empty(len(to), np.float64)
        blocks = min(threads, max(len(to) // BLOCK, 1))
        cuts = [len(to) * b // blocks for b in range(blocks + 1)]

        def block(b: int) -> Any:
            arguments: Any = (
                i, distance.weight, to, cuts[b], cuts[b + 1], taken, *distance.paths.points, distance.speed,
                distance.ball, person, k, farthest, found,
            )  # fmt: skip
            return look_around(*arguments)

        others = [pool.submit(block, b) for b in range(1, blocks)]
        ends = [block(0), *(other.result() for other in others)]
        _, at, _ = max(ends, key=lambda end: end[0])
        return int(to[at]) if farthest else -1, found

    return look
