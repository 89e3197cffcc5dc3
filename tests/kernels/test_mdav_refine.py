"""Members of groups change places until nothing brings the groups closer; each keeps its people."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_trajectories import distance_matrix

from crowdveil.kernels.trajectory.mdav_refine import MIN_GAIN, exchange, squared_distances
from crowdveil.kernels.trajectory.structures import Points
from crowdveil.solve.trajectory.distances import Paths, SpatioTemporal


def spread(square: np.ndarray, group: list[int]) -> float:
    """From its definition: over all groups, the squared distances of pairs over the size."""
    total = 0.0
    for g in set(group):
        own = [i for i, of in enumerate(group) if of == g]
        total += sum(square[i, j] for i, j in itertools.combinations(own, 2)) / len(own)
    return total


def enough(person: list[int], group: list[int], groups: int, k: int) -> bool:
    return all(len({p for p, g in zip(person, group, strict=True) if g == own}) >= k for own in range(groups))


def neighbors(group: list[int], groups: int) -> list[list[int]]:
    """All that one move or one exchange leads to."""
    made = []
    for i in range(len(group)):
        made += [[*group[:i], g, *group[i + 1 :]] for g in range(groups) if g != group[i]]
    for i, j in itertools.combinations(range(len(group)), 2):
        if group[i] != group[j]:
            other = list(group)
            other[i], other[j] = group[j], group[i]
            made.append(other)
    return made


@given(st.data())
def test_nothing_is_left_to_gain(data: st.DataObject) -> None:
    k, groups = data.draw(st.integers(2, 3)), data.draw(st.integers(2, 3))
    sure = [g for g in range(groups) for _ in range(k)]
    more = data.draw(st.lists(st.integers(0, groups - 1), max_size=3))
    before = sure + more
    n = len(before)
    person = (
        data.draw(st.permutations(range(n))) if data.draw(st.booleans()) else [*range(len(sure)), *([0] * len(more))]
    )
    places = data.draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=n, max_size=n))
    x, y = np.array(places, np.float64).T
    square = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    after = np.array(before, np.int64)
    exchange(square, np.array(person, np.int64), after, groups, k)
    found = after.tolist()
    assert enough(person, found, groups, k)
    assert spread(square, found) <= spread(square, before)
    for other in neighbors(found, groups):
        if enough(person, other, groups, k):
            assert spread(square, other) >= spread(square, found) - 2 * MIN_GAIN


def test_two_in_the_wrong_group_change_places() -> None:
    x = np.array([0.0, 1.0, 100.0, 101.0])
    square = (x[:, None] - x) ** 2
    group = np.array([0, 1, 0, 1])
    exchange(square, np.arange(4), group, 2, 2)
    assert group[0] == group[1] != group[2] == group[3]


def test_squares_are_those_of_the_distance() -> None:
    rng = np.random.default_rng(4)
    offsets = np.array([0, 3, 4, 9, 11])
    x, y, t = rng.uniform(0, 1e4, 11), rng.uniform(0, 1e4, 11), np.sort(rng.uniform(0, 600, 11))
    distance = SpatioTemporal.of(Paths(x, y, t, offsets), 0.3)
    members = np.array([0, 2, 3])
    square = squared_distances(members, Points(x, y, t, offsets), distance.speed.copy(), 0.3)
    np.testing.assert_allclose(square, distance_matrix(distance, members, members) ** 2, atol=1e-6)
