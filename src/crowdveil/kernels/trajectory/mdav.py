"""MDAV: groups of near trajectories with at least k people each.

The farthest trajectory from the center and the farthest from that one each gather the nearest ones, until k people are together;
again and again, until too few people are left. The loop stands once, in `run_mdav`: compiled for few trajectories and the
spatio-temporal distance, and interpreted where a tree finds them, or distances come from Python.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from crowdveil.kernels._jit import bits_of, instead_of, kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.ordering import merge_sort
from crowdveil.kernels.trajectory.aggregation import mean_lengths, mean_trajectories
from crowdveil.kernels.trajectory.mdav_refine import exchange, squared_distances
from crowdveil.kernels.trajectory.spatiotemporal import distances, look_around, mean_speeds, nearest_people
from crowdveil.kernels.trajectory.structures import MdavState, Metric, Points

LEFT, PEOPLE, GROUPS = 0, 1, 2
"""What `MdavState.counts` holds: trajectories and people that are left, and groups."""


class DistanceSource(Protocol):
    """Distances for the interpreted loop; the compiled one takes a `Metric`."""

    def fill_center_distances(self, alive: Ints, far: Floats) -> None:
        """Write the distance of each trajectory from the mean of all of them, in meters."""
        ...

    def fill_distances(
        self, seed: int, alive: Ints, state: MdavState, farthest: bool, found: Floats
    ) -> tuple[int, Ints]:
        """Return the farthest other trajectory that is not taken, -1 if it is not wanted, and trajectories whose distances are
        the first ones of `found`.

        Distances of trajectories that k people are nearer than may be infinite, or such trajectories left out.
        """
        ...

    def forget(self, members: Ints, state: MdavState) -> None:
        """Take note of trajectories that got a group."""
        ...


@kernel
def mean_path(members: Ints, points: Points) -> tuple[Floats, Floats, Floats]:
    """Return x, y and t of the mean trajectory of some."""
    x, y, t, offsets = points
    one, made = np.zeros(2, np.int64), np.zeros(2, np.int64)
    one[1] = len(members)
    made[1] = mean_lengths(members, one, offsets)[0]
    mean_x, mean_y, mean_t = mean_trajectories(members, one, x, y, t, offsets, made)
    return mean_x, mean_y, mean_t.astype(np.float64)


@kernel
def _center_distances(alive: Ints, metric: Metric, far: Floats) -> None:
    mean_x, mean_y, mean_t = mean_path(alive, metric.points)
    whole = np.zeros(2, np.int64)
    whole[1] = len(mean_x)
    own_speed = mean_speeds(mean_x, mean_y, mean_t, whole)[0]
    distances(mean_x, mean_y, mean_t, own_speed, alive, metric.points, metric.speed, metric.weight, far)


@kernel
def _distances(
    seed: int, alive: Ints, metric: Metric, state: MdavState, k: int, farthest: bool, found: Floats
) -> tuple[int, Ints]:
    _, at, _ = look_around(seed, metric, alive, 0, len(alive), state.taken, state.person, k, farthest, found)
    return alive[at] if at >= 0 else -1, alive


def center_distances(source: Any, alive: Ints, far: Floats) -> None:
    """Write the distance of each trajectory from the mean of all of them, in meters."""
    source.fill_center_distances(alive, far)


def distances_from(
    source: Any, seed: int, alive: Ints, state: MdavState, k: int, farthest: bool, found: Floats
) -> tuple[int, Ints]:
    """Return the farthest other trajectory that is not taken, -1 if it is not wanted, and those that `found` has distances of."""
    second, near = source.fill_distances(seed, alive, state, farthest, found)
    return int(second), near


def forget(source: Any, members: Ints, state: MdavState) -> None:
    """Let a source of distances take note of trajectories that got a group."""
    source.forget(members, state)


# numba compares the signatures of an overload and its implementation to the letter: neither has types.
@instead_of(center_distances)
def _overload_center_distances(source, alive, far):  # type: ignore[no-untyped-def]
    return lambda source, alive, far: _center_distances(alive, source, far)


@instead_of(distances_from)
def _overload_distances_from(source, seed, alive, state, k, farthest, found):  # type: ignore[no-untyped-def]
    return lambda source, seed, alive, state, k, farthest, found: _distances(
        seed, alive, source, state, k, farthest, found
    )


@instead_of(forget)
def _overload_forget(source, members, state):  # type: ignore[no-untyped-def]
    return lambda source, members, state: None


@kernel
def enter(members: Ints, state: MdavState) -> None:
    """Make trajectories wait for a group."""
    person, taken, _, left_of, counts = state
    for j in members:
        taken[j] = False
        counts[PEOPLE] += left_of[person[j]] == 0
        left_of[person[j]] += 1
    counts[LEFT] += len(members)


@kernel
def _settle(members: Ints, state: MdavState) -> None:
    """Make a group of trajectories."""
    person, taken, group, left_of, counts = state
    for j in members:
        taken[j] = True
        group[j] = counts[GROUPS]
        left_of[person[j]] -= 1
        counts[PEOPLE] -= left_of[person[j]] == 0
    counts[LEFT] -= len(members)
    counts[GROUPS] += 1


@kernel
def finish(rest: Ints, state: MdavState, k: int) -> None:
    """Make a group of the trajectories that are left, or leave them without one if they have fewer than k people."""
    if state.counts[PEOPLE] >= k:
        _settle(rest, state)
        return
    for j in rest:
        state.taken[j] = True
        state.left_of[state.person[j]] = 0
    state.counts[LEFT], state.counts[PEOPLE] = 0, 0


@kernel
def gather(seed: int, near: Ints, found: Floats, excluded: int, state: MdavState, k: int) -> Ints:
    """Make a group of a trajectory and those nearest to it, without the excluded one (-1: none), until it has k people."""
    members = nearest_people(found, near, state.person, seed, state.taken, excluded, k)
    _settle(members, state)
    return members


@kernel
def not_taken(alive: Ints, taken: Mask) -> Ints:
    """Return those of a list that are not taken."""
    left, count = np.empty(len(alive), np.int64), 0
    for j in alive:
        if not taken[j]:
            left[count] = j
            count += 1
    return left[:count].copy()


@kernel
def farthest_first(alive: Ints, far: Floats, first_only: bool) -> Ints:
    """Sort trajectories by falling distance, of equal ones the smaller number first; or return the first of them alone."""
    n = len(alive)
    if first_only:
        return np.full(1, alive[np.argmax(far[:n])])
    order, falling = alive.copy(), np.empty(n, np.int64)
    for i in range(n):
        falling[i] = -bits_of(far[i])  # distances are not negative, so that their bits rise with them
    merge_sort(falling, order, 0, n)
    return order


def run_mdav(members: Ints, source: Metric | DistanceSource, state: MdavState, k: int, recenter: bool) -> None:
    """Put the trajectories of a part, rising, into groups; none if they have fewer than k people.

    The farthest trajectory r from the center and the farthest one s from r each gather the nearest ones until k people are
    together, while at least 3k people are left; then r alone, while there are 2k. The rest is one group. With `recenter` the
    center is that of the trajectories that are left, otherwise that of all.
    """
    taken, counts = state.taken, state.counts
    enter(members, state)
    alive, far, found = members.copy(), np.empty(len(members)), np.empty(len(members))
    seeds, at = alive, -1
    while counts[PEOPLE] >= 2 * k:
        if recenter or 8 * counts[LEFT] < 7 * len(alive):
            alive = not_taken(alive, taken)
        if recenter or at < 0:
            center_distances(source, alive, far)
            seeds, at = farthest_first(alive, far, recenter), 0
        while taken[seeds[at]]:
            at += 1
        first, both = seeds[at], counts[PEOPLE] >= 3 * k
        second, near = distances_from(source, first, alive, state, k, both, found)
        forget(source, gather(first, near, found, second, state, k), state)
        if both:
            _, near = distances_from(source, second, alive, state, k, False, found)
            forget(source, gather(second, near, found, -1, state, k), state)
    finish(not_taken(alive, taken), state, k)


_group_part = kernel(run_mdav)


@kernel
def group_parts(
    members: Ints,
    part_offsets: Ints,
    metric: Metric,
    person: Ints,
    people: int,
    k: int,
    recenter: bool,
    most_exchanged: int,
) -> Ints:
    """Return the group of each member, from 0 on over all parts; -1 where a part has fewer than k people.

    Parameters
    ----------
    members, part_offsets
        The trajectories of each part, rising.
    person, people
        The person of each trajectory, below `people`.
    most_exchanged
        Largest part whose groups exchange members afterwards, to bring groups closer together.
    """
    n = len(metric.points.offsets) - 1
    group, counts = np.full(n, -1, np.int64), np.zeros(3, np.int64)
    state = MdavState(person, np.ones(n, np.bool_), group, np.zeros(people, np.int64), counts)
    for part in range(len(part_offsets) - 1):
        here = members[part_offsets[part] : part_offsets[part + 1]]
        before = counts[GROUPS]
        _group_part(here, metric, state, k, recenter)
        if len(here) <= most_exchanged and counts[GROUPS] > before + 1:
            _exchange_in(here, metric, state, before, k)
    found = np.empty(len(members), np.int64)
    for i in range(len(members)):
        found[i] = group[members[i]]
    return found


@kernel
def _exchange_in(members: Ints, metric: Metric, state: MdavState, first: int, k: int) -> None:
    """Exchange members of the groups from `first` on."""
    person, _, group, number, counts = state
    n = len(members)
    own, who = np.empty(n, np.int64), np.empty(n, np.int64)
    people = 0
    for i in range(n):
        p = person[members[i]]
        if number[p] == 0:
            people += 1
            number[p] = people
        who[i], own[i] = number[p] - 1, group[members[i]] - first
    for i in range(n):
        number[person[members[i]]] = 0
    exchange(
        squared_distances(members, metric.points, metric.speed, metric.weight), who, own, counts[GROUPS] - first, k
    )
    for i in range(n):
        group[members[i]] = own[i] + first
