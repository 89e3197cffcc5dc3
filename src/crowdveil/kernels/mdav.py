"""Groups of near trajectories by MDAV, for trajectories that are few enough for one thread.

The farthest trajectory from the centre and the farthest from that one each gather whoever is nearest to them, until k people are
together; again and again, until too few people are left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel
from crowdveil.kernels.spatiotemporal import look_around, matches, nearest_people

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Points = tuple[Floats, Floats, Floats, Ints]
Balls = tuple[Floats, Floats, Floats, Floats, Floats]

LEFT, PEOPLE, CLUSTERS, NEXT = 0, 1, 2, 3
"""What is counted: trajectories and people that are left, clusters, and the next one to look at in the order of seeds."""


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
    lengths: Mask,
    k: int,
    want_farthest: bool,
    found: Floats,
) -> int:
    """Fill `found` with the distances from a trajectory that matter; returns the farthest trajectory, -1 if none is wanted."""
    x, y, t, offsets = points
    low, high = offsets[i], offsets[i + 1]
    match = matches(x[low:high], y[low:high], t[low:high], len(lengths) - 1, lengths)
    own = (ball[0][i], ball[1][i], ball[2][i], ball[3][i], ball[4][i])
    _, at = look_around(
        match,
        speed[i],
        own,
        weight,
        to,
        0,
        len(to),
        taken,
        x,
        y,
        t,
        offsets,
        speed,
        ball,
        person,
        person[i],
        k,
        want_farthest,
        found,
    )
    return to[at] if at >= 0 else -1


@kernel
def settle(members: Ints, person: Ints, taken: Mask, cluster: Ints, left_of: Ints, counts: Ints) -> None:
    """Make a cluster of trajectories."""
    for j in members:
        taken[j] = True
        cluster[j] = counts[CLUSTERS]
        left_of[person[j]] -= 1
        if left_of[person[j]] == 0:
            counts[PEOPLE] -= 1
    counts[LEFT] -= len(members)
    counts[CLUSTERS] += 1


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
def cluster_in_order(
    seeds: Ints,
    alive: Ints,
    points: Points,
    speed: Floats,
    ball: Balls,
    weight: float,
    person: Ints,
    taken: Mask,
    cluster: Ints,
    left_of: Ints,
    counts: Ints,
    k: int,
    most: int,
) -> Ints:
    """Make clusters until fewer than 2k people are left, or `most` were made; returns the trajectories that are left.

    Parameters
    ----------
    seeds
        The trajectories in the order in which clusters begin: the farthest from the centre first.
    alive
        Those that are left, rising.
    points, speed, ball, weight
        x, y, t and offsets of all trajectories, their speeds and balls, and what time counts.
    person, taken, cluster, left_of, counts
        The person of each trajectory, whether it is in a cluster and in which, how many a person has left, and what is counted.
    """
    offsets = points[3]
    longest = 0
    for j in alive:
        longest = max(longest, offsets[j + 1] - offsets[j])
    lengths = np.zeros(longest + 1, np.bool_)
    for j in alive:
        lengths[offsets[j + 1] - offsets[j]] = True
    found = np.empty(len(alive), np.float64)
    made = 0
    while counts[PEOPLE] >= 2 * k and made < most:
        while taken[seeds[counts[NEXT]]]:
            counts[NEXT] += 1
        first = seeds[counts[NEXT]]
        both = counts[PEOPLE] >= 3 * k
        second = around(first, alive, points, speed, ball, weight, person, taken, lengths, k, both, found)
        members = nearest_people(found, alive, person, first, taken, second, k)[1]
        settle(members, person, taken, cluster, left_of, counts)
        made += 1
        if both:
            around(second, alive, points, speed, ball, weight, person, taken, lengths, k, False, found)
            members = nearest_people(found, alive, person, second, taken, -1, k)[1]
            settle(members, person, taken, cluster, left_of, counts)
            made += 1
        if 8 * counts[LEFT] < 7 * len(alive):
            alive = still_there(alive, taken)
    return still_there(alive, taken)
