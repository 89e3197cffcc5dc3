"""Refinement of MDAV groups by exchanging members, for small parts.

How far a group is spread is the sum of squared distances of its pairs over its size: in the plane, the squared distances to its
mean. A member goes to another group, or changes places with a member of it, if both groups together are spread less then.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.spatiotemporal import pair_distance
from crowdveil.kernels.trajectory.structures import Points

MIN_GAIN = 1e-6
"""Least gain, in square meters, so that rounding cannot make two members change places forever."""
ROUNDS = 20
"""Rounds of exchange: nearly all of the gain is in the first three."""


@kernel
def squared_distances(members: Ints, points: Points, speed: Floats, weight: float) -> Floats:
    """Return the squared distance of each pair of members."""
    n = len(members)
    square = np.zeros((n, n), np.float64)
    for i in range(n):
        for j in range(i + 1, n):
            worth = weight * (speed[members[i]] + speed[members[j]]) / 2
            square[i, j] = pair_distance(points, members[i], points, members[j], worth, np.inf) ** 2
            square[j, i] = square[i, j]
    return square


@kernel
def _move(i: int, to: int, square: Floats, person: Ints, group: Ints, apart: Floats, size: Ints, counts: Ints) -> None:
    """Put a member into another group. `apart`: squared distances from each member to each group, summed; `counts`: how many
    trajectories of each person are in each group.
    """
    old = group[i]
    for j in range(len(group)):
        apart[j, old] -= square[i, j]
        apart[j, to] += square[i, j]
    counts[old, person[i]] -= 1
    counts[to, person[i]] += 1
    size[old] -= 1
    size[to] += 1
    group[i] = to


@kernel
def _people(counts: Ints, group: int) -> int:
    count = 0
    for number in counts[group]:
        count += number > 0
    return count


@kernel
def exchange(square: Floats, person: Ints, group: Ints, groups: int, k: int) -> None:
    """Move and exchange members until nothing makes groups closer; each group keeps at least k people.

    `group` has a number below `groups` for each member and is changed; people are numbers below the number of members.
    """
    n = len(group)
    apart, spread = np.zeros((n, groups), np.float64), np.zeros(groups, np.float64)
    size, counts, people = np.zeros(groups, np.int64), np.zeros((groups, n), np.int64), np.zeros(groups, np.int64)
    for i in range(n):
        size[group[i]] += 1
        counts[group[i], person[i]] += 1
        for j in range(n):
            apart[i, group[j]] += square[i, j]
    for i in range(n):
        spread[group[i]] += apart[i, group[i]] / 2
    for g in range(groups):
        people[g] = _people(counts, g)
    for _ in range(ROUNDS):
        changed = False
        for i in range(n):
            a, p = group[i], person[i]
            best, to, other = -MIN_GAIN, -1, -1
            alone_a = counts[a, p] == 1
            if people[a] - alone_a >= k:
                less = (spread[a] - apart[i, a]) / (size[a] - 1) - spread[a] / size[a]
                for c in range(groups):
                    gain = less + (spread[c] + apart[i, c]) / (size[c] + 1) - spread[c] / size[c]
                    if c != a and gain < best:
                        best, to = gain, c
            for j in range(n):
                c, q = group[j], person[j]
                if c == a:
                    continue
                gain = (apart[j, a] - apart[i, a] - square[i, j]) / size[a]
                gain += (apart[i, c] - apart[j, c] - square[i, j]) / size[c]
                if gain < best and (
                    p == q
                    or (
                        people[a] - alone_a + (counts[a, q] == 0) >= k
                        and people[c] - (counts[c, q] == 1) + (counts[c, p] == 0) >= k
                    )
                ):
                    best, to, other = gain, c, j
            if to < 0:
                continue
            changed = True
            spread[a] -= apart[i, a]
            spread[to] += apart[i, to]
            _move(i, to, square, person, group, apart, size, counts)
            if other >= 0:
                spread[to] -= apart[other, to]
                spread[a] += apart[other, a]
                _move(other, a, square, person, group, apart, size, counts)
            people[a], people[to] = _people(counts, a), _people(counts, to)
        if not changed:
            break
