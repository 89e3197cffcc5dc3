"""Groups of near trajectories by MDAV, for parts of the data that are small enough for one thread.

The farthest trajectory from the center and the farthest from that one each gather whoever is nearest to them, until k people are
together; again and again, until too few people are left.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.trajectory.aggregation import mean_lengths, mean_trajectories
from crowdveil.kernels.trajectory.mdav_refine import exchange, squares_apart
from crowdveil.kernels.trajectory.spatiotemporal import distances, look_around, mean_speeds, nearest_people

Points = tuple[Floats, Floats, Floats, Ints]
Balls = tuple[Floats, Floats, Floats, Floats, Floats]

LEFT, PEOPLE, GROUPS = 0, 1, 2
"""What is counted: trajectories and people that are left, and groups."""


@kernel
def mean_path(members: Ints, points: Points) -> tuple[Floats, Floats, Floats]:
    """The mean trajectory of some: x, y and t."""
    x, y, t, offsets = points
    one = np.array([0, len(members)])
    made = np.array([0, mean_lengths(members, one, offsets)[0]])
    mean_x, mean_y, mean_t = mean_trajectories(members, one, x, y, t, offsets, made)
    return mean_x, mean_y, mean_t.astype(np.float64)


@kernel
def from_center(members: Ints, points: Points, speed: Floats, weight: float, found: Floats) -> None:
    """How far each is from the mean trajectory of all of them."""
    x, y, t, offsets = points
    mean_x, mean_y, mean_t = mean_path(members, points)
    own_speed = mean_speeds(mean_x, mean_y, mean_t, np.array([0, len(mean_x)]))[0]
    distances(mean_x, mean_y, mean_t, own_speed, weight, members, x, y, t, offsets, speed, found)


@kernel
def around(
    i: int,
    to: Ints,
    points: Points,
    speed: Floats,
    ball: Balls,
    weight: float,
    person: Ints,
    taken: Mask,
    k: int,
    want_farthest: bool,
    found: Floats,
) -> int:
    """Fill `found` with the distances from a trajectory that matter; returns the farthest trajectory, -1 if none is wanted."""
    x, y, t, offsets = points
    _, at, _ = look_around(
        i, weight, to, 0, len(to), taken, x, y, t, offsets, speed, ball, person, k, want_farthest, found
    )
    return to[at] if at >= 0 else -1


@kernel
def enter(members: Ints, person: Ints, taken: Mask, left_of: Ints, counts: Ints) -> None:
    """Make trajectories wait for a group. `left_of` counts those of each person, and is all 0 before and after."""
    for j in members:
        taken[j] = False
        counts[PEOPLE] += left_of[person[j]] == 0
        left_of[person[j]] += 1
    counts[LEFT] += len(members)


@kernel
def settle(members: Ints, person: Ints, taken: Mask, group: Ints, left_of: Ints, counts: Ints) -> None:
    """Make a group of trajectories."""
    for j in members:
        taken[j] = True
        group[j] = counts[GROUPS]
        left_of[person[j]] -= 1
        counts[PEOPLE] -= left_of[person[j]] == 0
    counts[LEFT] -= len(members)
    counts[GROUPS] += 1


@kernel
def leave(members: Ints, person: Ints, taken: Mask, left_of: Ints, counts: Ints) -> None:
    """Let trajectories go without a group."""
    for j in members:
        taken[j] = True
        left_of[person[j]] = 0
    counts[LEFT], counts[PEOPLE] = 0, 0


@kernel
def still_there(alive: Ints, taken: Mask) -> Ints:
    """Those of a list that are not taken."""
    count = 0
    for j in alive:
        count += not taken[j]
    left = np.empty(count, np.int64)
    count = 0
    for j in alive:
        if not taken[j]:
            left[count] = j
            count += 1
    return left


@kernel
def _farthest_left(to: Ints, far: Floats, taken: Mask) -> int:
    best, who = -1.0, -1
    for at in range(len(to)):
        if far[at] > best and not taken[to[at]]:
            best, who = far[at], to[at]
    return who


@kernel
def group_part(
    members: Ints,
    points: Points,
    speed: Floats,
    ball: Balls,
    weight: float,
    person: Ints,
    taken: Mask,
    group: Ints,
    left_of: Ints,
    counts: Ints,
    k: int,
    anew: bool,
) -> None:
    """Put trajectories, rising, into groups; nothing if they have fewer than k people. With `anew` the center is that of those
    that are left, otherwise that of all.
    """
    if len(members) == 0:
        return
    enter(members, person, taken, left_of, counts)
    far, found = np.empty(len(members), np.float64), np.empty(len(members), np.float64)
    from_center(members, points, speed, weight, far)
    # Only this list gets shorter; where the center stays, `all_there` and `far` stay what they were.
    alive, all_there = members.copy(), members.copy()
    while counts[PEOPLE] >= 2 * k:
        if anew:
            alive = still_there(alive, taken)
            all_there = alive
            from_center(alive, points, speed, weight, far)
        first = _farthest_left(all_there, far, taken)
        both = counts[PEOPLE] >= 3 * k
        second = around(first, alive, points, speed, ball, weight, person, taken, k, both, found)
        gathered = nearest_people(found, alive, person, first, taken, second, k)
        settle(gathered, person, taken, group, left_of, counts)
        if both:
            around(second, alive, points, speed, ball, weight, person, taken, k, False, found)
            gathered = nearest_people(found, alive, person, second, taken, -1, k)
            settle(gathered, person, taken, group, left_of, counts)
        if 8 * counts[LEFT] < 7 * len(alive):
            alive = still_there(alive, taken)
    rest = still_there(alive, taken)
    if counts[PEOPLE] >= k:
        settle(rest, person, taken, group, left_of, counts)
    else:
        leave(rest, person, taken, left_of, counts)


@kernel
def group_parts(
    members: Ints,
    part_offsets: Ints,
    points: Points,
    speed: Floats,
    ball: Balls,
    weight: float,
    person: Ints,
    people: int,
    k: int,
    anew: bool,
    most_exchanged: int,
) -> Ints:
    """The group of each member, from 0 on over all parts; -1 where a part has fewer than k people.

    Parameters
    ----------
    members, part_offsets
        The trajectories of each part, rising.
    points, speed, ball, weight
        x, y, t and offsets of all trajectories, their speeds and balls, and what time counts.
    person, people
        The person of each trajectory, below `people`.
    most_exchanged
        In parts of so many members at most, members are exchanged afterwards, to bring groups closer together.
    """
    n = len(points[3]) - 1
    taken, group = np.ones(n, np.bool_), np.full(n, -1, np.int64)
    left_of, counts = np.zeros(people, np.int64), np.zeros(3, np.int64)
    for part in range(len(part_offsets) - 1):
        here = members[part_offsets[part] : part_offsets[part + 1]]
        before = counts[GROUPS]
        group_part(here, points, speed, ball, weight, person, taken, group, left_of, counts, k, anew)
        if len(here) <= most_exchanged and counts[GROUPS] > before + 1:
            _exchange_in(here, points, speed, weight, person, group, left_of, before, counts[GROUPS], k)
    return group[members]


@kernel
def _exchange_in(
    members: Ints,
    points: Points,
    speed: Floats,
    weight: float,
    person: Ints,
    group: Ints,
    number: Ints,
    first: int,
    last: int,
    k: int,
) -> None:
    """Exchange members of the groups from `first` to before `last`. `number` is all 0 before and after."""
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
    exchange(squares_apart(members, points, speed, weight), who, own, last - first, k)
    for i in range(n):
        group[members[i]] = own[i] + first
