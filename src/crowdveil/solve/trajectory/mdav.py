"""Groups of near trajectories, each with at least k people in it: MDAV, with any distance, and exchanges of members."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.kernels.trajectory import mdav_tree
from crowdveil.kernels.trajectory.aggregation import mean_path
from crowdveil.kernels.trajectory.mdav_refine import exchange, squared_distances
from crowdveil.kernels.trajectory.mdav_tree import build, remove
from crowdveil.kernels.trajectory.spatiotemporal import nearest_people
from crowdveil.model.arrays import Floats, Ints, Mask, take_slices
from crowdveil.solve.trajectory.distances import Distance, SpatioTemporal
from crowdveil.solve.trajectory.microaggregation import group_members

Center = Literal["once", "remaining"]
CenterAggregation = Literal["mean-trajectory", "closest-trajectory"]
"""The center of trajectories: their mean, or the trajectory nearest to it."""

MAX_EXCHANGED = 128
"""Largest part whose groups exchange members: all its distances are needed for that."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Criteria for groups of trajectories.

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

    def groups(self, parts: Sequence[Ints], progress: Progress = no_progress) -> Ints:
        """Return the group of each trajectory, with numbers from 0; -1 if it is in no part, or in one with fewer than k people.

        Parts are lists of trajectories, rising, and each counts its own people. In each, the farthest trajectory r from the
        center and the farthest one s from r each gather the nearest ones until k people are together, while at least 3k people
        are left; then r alone, while there are 2k. A group takes no more than k people, so the rest has k to 2k − 1, and
        is one group. Of equal distances the trajectory with the smaller number counts.
        """
        group, before, total = np.full(len(self.person), -1, np.int64), 0, sum(map(len, parts))
        count = 0
        for part in parts:
            own = self._of_part(part, partial(_report, progress, before, total))
            group[part] = np.where(own >= 0, own + count, -1)
            count += int(own.max(initial=-1)) + 1
            before += len(part)
            progress(before, total)
        return group

    def _of_part(self, part: Ints, progress: Callable[[int], None]) -> Ints:
        """Return the group of each trajectory of a part."""
        k, person = self.k, np.unique(self.person[part], return_inverse=True)[1]
        group, taken, left_of = np.full(len(part), -1, np.int64), np.zeros(len(part), np.bool_), np.bincount(person)
        distance = self.distance
        search = _Tree(distance, part) if isinstance(distance, SpatioTemporal) else _Search(distance, part)
        count, people, grouped = 0, len(left_of), 0
        seeds: Iterator[int] = iter(())
        while people >= 2 * k:
            if count == 0 or self.center == "remaining":
                left = np.flatnonzero(~taken)
                far = search.from_center(left, self.center_aggregation)
                seeds = iter(left[np.argsort(-far, kind="stable")].tolist())
            first = next(i for i in seeds if not taken[i])
            both = people >= 3 * k
            second, near, found = search.around(first, taken, person, k, both)
            for seed, excluded in ((first, second), (second, -1)) if both else ((first, -1),):
                if seed != first:
                    _, near, found = search.around(seed, taken, person, k, False)
                members = nearest_people(found, near, person, seed, taken, excluded, k)
                group[members], taken[members] = count, True
                np.subtract.at(left_of, person[members], 1)
                people -= int(np.count_nonzero(left_of[np.unique(person[members])] == 0))
                count, grouped = count + 1, grouped + len(members)
                search.forget(members, taken)
            progress(grouped)
        if people >= k:
            group[~taken] = count
        if self.exchange and count > 0 and len(part) <= MAX_EXCHANGED and isinstance(search.distance, SpatioTemporal):
            exchange_members(search.distance, np.arange(len(part)), person, group, k)
        return group


def _report(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


class _Search:
    """Distances between the trajectories of a part, which have numbers from 0 here."""

    def __init__(self, distance: Distance, part: Ints) -> None:
        self.distance, self.number = distance, part

    def from_center(self, left: Ints, aggregation: CenterAggregation) -> Floats:
        """Return the distance of some trajectories from the mean of them, or from the one nearest to it, in meters."""
        trajectories = self.number[left]
        found = self.distance.between(mean_path(trajectories, self.distance.paths.points), trajectories)
        if aggregation == "closest-trajectory":
            found = self.distance.from_one(int(trajectories[int(np.argmin(found))]), trajectories)
        return found

    def around(self, seed: int, taken: Mask, person: Ints, k: int, farthest: bool) -> tuple[int, Ints, Floats]:
        """Return the farthest other trajectory that is not taken, -1 if it is not wanted; and others with their distances, among
        which are all that k people are not nearer than.
        """
        left = np.flatnonzero(~taken)
        found = self.distance.from_one(int(self.number[seed]), self.number[left])
        return int(left[int(np.argmax(np.where(left == seed, -1.0, found)))]) if farthest else -1, left, found

    def forget(self, members: Ints, taken: Mask) -> None:
        """Take note of trajectories that got a group."""


class _Tree(_Search):
    """The same distances by a tree."""

    distance: SpatioTemporal

    def __init__(self, distance: SpatioTemporal, part: Ints) -> None:
        super().__init__(distance.part(part), np.arange(len(part)))
        self.tree = build(self.distance.metric)
        self.near, self.found = np.empty(len(part), np.int64), np.empty(len(part))

    def around(self, seed: int, taken: Mask, person: Ints, k: int, farthest: bool) -> tuple[int, Ints, Floats]:
        """Return the farthest other trajectory, and near ones with their distances."""
        metric = self.distance.metric
        who = mdav_tree.farthest_left(seed, metric, self.tree, taken, -1.0)[1] if farthest else -1
        count = mdav_tree.near_people(seed, metric, self.tree, taken, person, k, self.near, self.found)
        return who, self.near[:count], self.found[:count]

    def forget(self, members: Ints, taken: Mask) -> None:
        """Take trajectories that got a group out of the tree."""
        remove(members, self.tree, self.distance.metric, taken)


def exchange_members(distance: SpatioTemporal, members: Ints, person: Ints, group: Ints, k: int) -> None:
    """Let groups, from 0 on, exchange members where that brings them closer together; `group` is changed."""
    square = squared_distances(members, distance.paths.points, distance.speed, distance.weight)
    exchange(square, person, group, int(group.max()) + 1, k)


BLOCK = 128
"""Most trajectories of a block: all its distances are computed."""
TURN = 2.399963
"""Radians by which the map is turned for each round, so that blocks have other borders: the golden angle never repeats."""


def improve_groups(
    distance: SpatioTemporal, group: Ints, person: Ints, k: int, rounds: int, progress: Progress = no_progress
) -> Ints:
    """Return the group of each trajectory (-1: none) after some rounds of exchange; each group keeps at least k people.

    In a round groups are divided into blocks of near ones, by halving along the widest of two directions of the map and time.
    In a block a trajectory moves to another group, or two change places, as long as the sum over groups of the squared distances
    of their pairs over their size gets smaller. Every round lowers that sum or leaves it, over all groups.
    """
    group = group.copy()
    for number in range(rounds):
        before = group.copy()
        blocks = _blocks(*_centers(distance, group, number * TURN), BLOCK)
        members, offsets = group_members(before)
        for block in blocks:
            if len(block) > 1:
                here = np.sort(members[take_slices(offsets, block)[0]])
                _exchange(distance, group, person, k, block, here)
        progress(number + 1, rounds)
        if np.array_equal(group, before) and number > 0:
            break
    return group


def _centers(distance: SpatioTemporal, group: Ints, angle: float) -> tuple[Floats, Ints]:
    """Return the mean of the middles of each group's trajectories, a row each: two directions of the map and time, in meters; and
    the number of its members.
    """
    paths, kept = distance.paths, np.flatnonzero(group >= 0)
    x, y, t = (
        (np.minimum.reduceat(column, paths.offsets[:-1]) + np.maximum.reduceat(column, paths.offsets[:-1])) / 2
        for column in (paths.x, paths.y, paths.t)
    )
    worth = distance.weight * float(distance.speed.mean()) if len(distance.speed) else 0.0
    east, north = np.cos(angle), np.sin(angle)
    columns = (
        east * x + north * y,
        east * y - north * x,
        worth * t,
    )
    sizes = np.bincount(group[kept])
    means = [np.bincount(group[kept], column[kept]) / np.maximum(sizes, 1) for column in columns]
    return np.column_stack(means), sizes


def _blocks(centers: Floats, sizes: Ints, most: int) -> list[Ints]:
    """Return the groups of each block, rising: halved along the widest column until at most `most` members are left."""
    waiting, blocks = [np.flatnonzero(sizes)], []
    while waiting:
        block = waiting.pop()
        if len(block) < 2 or sizes[block].sum() <= most:
            blocks.append(np.sort(block))
            continue
        here = centers[block]
        order = block[np.argsort(here[:, int(np.argmax(np.ptp(here, axis=0)))], kind="stable")]
        waiting += [order[: len(order) // 2], order[len(order) // 2 :]]
    return blocks


def _exchange(distance: SpatioTemporal, group: Ints, person: Ints, k: int, block: Ints, members: Ints) -> None:
    """Let the groups of a block exchange their members; `group` is changed."""
    who, own = np.unique(person[members], return_inverse=True)[1], np.searchsorted(block, group[members])
    exchange_members(distance, members, who, own, k)
    group[members] = block[own]
