"""Swap locations inside groups of trajectories: each set has one location of each of k owners (SwapLocations of 2012)."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.ordering import sort_by


@kernel
def nearer(a: int, b: int, s: int, x: Floats, y: Floats, t: Ints) -> bool:
    """Return whether location a is nearer to s than b is: in space, then in time, then by number."""
    of_a, of_b = (x[a] - x[s]) ** 2 + (y[a] - y[s]) ** 2, (x[b] - x[s]) ** 2 + (y[b] - y[s]) ** 2
    if of_a != of_b:
        return bool(of_a < of_b)
    late_a, late_b = abs(t[a] - t[s]), abs(t[b] - t[s])
    if late_a != late_b:
        return bool(late_a < late_b)
    return a < b


@kernel
def _take_out(point: int, j: int, offsets: Ints, left: Ints, slot: Ints, at: Ints) -> None:
    """Take a location out of those of its trajectory that are left: the last of them moves to where it was."""
    left[j] -= 1
    other = slot[offsets[j] + left[j]]
    slot[at[point]] = other
    at[other] = at[point]


@kernel
def permute_locations(
    seeds: Ints, seed_offsets: Ints, members: Ints, member_offsets: Ints, k: int, within_m: float, within_s: float, circle: bool,
    x: Floats, y: Floats, t: Ints, offsets: Ints, trajectory: Ints, owner: Ints, owners: int, draw: Floats,
) -> Ints:  # fmt: skip
    """Return the trajectory that each location goes to, -1 where it goes to none.

    The seeds of a group are taken in the order that is given. A seed that is left takes, of each other owner in the group, the
    nearest location that is left and within the thresholds, and of these the nearest k - 1; if there are fewer it goes to
    none. All are put in the order of their draws. With `circle` each is given to the trajectory of the next, the last to
    the first: no trajectory keeps its own. Without, the seed is given to the trajectory of the first, the nearest to that of the
    second, and so on: all permutations are equally likely.

    Parameters
    ----------
    seeds, seed_offsets
        All locations of each group, in the order in which they form sets.
    members, member_offsets
        The trajectories of each group.
    within_m, within_s
        Largest distances of the locations of a set from the seed.
    owner, owners
        The owner of each trajectory, below `owners`.
    draw
        A random number for each location.
    """
    n = len(x)
    given, slot, at = np.full(n, -1, np.int64), np.arange(n), np.arange(n)
    left = offsets[1:] - offsets[:-1]
    seen, best = np.full(owners, -1, np.int64), np.empty(owners, np.int64)
    others, keys = np.empty(owners, np.int64), np.empty(k, np.float64)
    chosen, drawn = np.empty(k, np.int64), np.empty(k, np.int64)
    for g in range(len(member_offsets) - 1):
        for number in range(seed_offsets[g], seed_offsets[g + 1]):
            s = seeds[number]
            home = trajectory[s]
            if given[s] >= 0:
                continue
            people = 0
            for e in range(member_offsets[g], member_offsets[g + 1]):
                j = members[e]
                who = owner[j]
                if who == owner[home]:
                    continue
                for i in range(offsets[j], offsets[j] + left[j]):
                    p = slot[i]
                    if (x[p] - x[s]) ** 2 + (y[p] - y[s]) ** 2 > within_m * within_m or abs(t[p] - t[s]) > within_s:
                        continue
                    if seen[who] != number:
                        seen[who] = number
                        best[who] = p
                        others[people] = who
                        people += 1
                    elif nearer(p, best[who], s, x, y, t):
                        best[who] = p
            if people < k - 1:
                _take_out(s, home, offsets, left, slot, at)
                continue
            chosen[0] = s
            for place in range(1, k):
                first = place - 1
                for i in range(place, people):
                    if nearer(best[others[i]], best[others[first]], s, x, y, t):
                        first = i
                chosen[place] = best[others[first]]
                others[first] = others[place - 1]
            for i in range(k):
                keys[i], drawn[i] = draw[chosen[i]], chosen[i]
            sort_by(keys, drawn, k)
            for i in range(k):
                if circle:
                    given[drawn[i]] = trajectory[drawn[(i + 1) % k]]
                else:
                    given[chosen[i]] = trajectory[drawn[i]]
                _take_out(chosen[i], trajectory[chosen[i]], offsets, left, slot, at)
    return given
