"""Improvement of groups: near groups exchange members where that makes them more compact, block by block of the map."""

from __future__ import annotations

import numpy as np

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.model.arrays import Floats, Ints, take_slices
from crowdveil.solve.trajectory.distances import SpatioTemporal
from crowdveil.solve.trajectory.mdav import exchange_members
from crowdveil.solve.trajectory.microaggregation import group_members

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
