"""Groups by MDAV against a twin in plain Python, for every way that they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import plain_trajectories as plain
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_trajectories import distance_matrix
from synthetic import make_trajectories, usual_city

from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances import Contemporaries, Distance, Paths, SpatioTemporal, Warped
from crowdveil.solve.trajectory.mdav import Center, Grouping
from crowdveil.testing import paths

Way = Literal["by tree", "unpruned"]
WAYS = pytest.mark.parametrize("way", ["by tree", "unpruned"])


@dataclass(frozen=True)
class Unknown:
    """A distance that the grouping knows nothing of, and so asks for all distances."""

    inner: Distance

    @property
    def paths(self) -> Paths:
        return self.inner.paths

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        return self.inner.between(path, to)

    def from_one(self, i: int, to: Ints) -> Floats:
        return self.inner.from_one(i, to)


def _sets(group: Ints) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(group == g).tolist()) for g in range(int(group.max(initial=-1)) + 1)}


def _groups(distance: Distance, person: Ints, k: int, center: Center, parts: list[Ints], way: Way = "by tree") -> Ints:
    return Grouping(Unknown(distance) if way == "unpruned" else distance, person, k, center).groups(parts)


def _twin(distance: Distance, person: list[int], k: int, center: Center, members: list[int]) -> set[frozenset[int]]:
    every = np.arange(len(person))
    far = distance_matrix(distance, every, every)
    listed = [list(zip(*(c.tolist() for c in distance.paths.one(i)), strict=True)) for i in range(len(person))]

    def from_center(left: list[int]) -> dict[int, float]:
        mean = plain.mean_path([listed[i] for i in left])
        path = tuple(np.array(column, np.float64) for column in zip(*mean, strict=True))
        return dict(zip(left, distance.between(path, np.array(left)).tolist(), strict=True))

    found = plain.mdav(members, lambda i, j: float(far[i, j]), from_center, person, k, center == "remaining")
    return {frozenset(group) for group in found}


people = st.lists(st.integers(0, 20), min_size=16, max_size=16)


@WAYS
@examples(120, deadline=None)
@given(
    data=paths(max_paths=16, max_points=4), crowd=people, many=st.booleans(), k=st.integers(2, 4),
    center=st.sampled_from(["once", "remaining"]), weight=st.sampled_from([0.0, 0.7]),
)  # fmt: skip
def test_groups_are_those_of_the_twin(
    way: Way, data: Paths, crowd: list[int], many: bool, k: int, center: Center, weight: float
) -> None:
    """People with one trajectory or several, and many equal distances."""
    n = len(data)
    person = np.array(crowd[:n]) if many else np.arange(n)
    distance = SpatioTemporal.of(data, weight)
    found = _groups(distance, person, k, center, [np.arange(n)], way)
    assert _sets(found) == _twin(distance, person.tolist(), k, center, list(range(n)))
    if len(set(person.tolist())) >= k:
        assert (found >= 0).all()
        assert all(k <= len({person[i] for i in group}) < 2 * k for group in _sets(found))


@examples(40, deadline=None)
@given(
    data=paths(max_paths=12, max_points=3),
    crowd=people,
    kind=st.sampled_from(["dtw", "discrete-frechet", "frechet", "edr", "lcss"]),
    center=st.sampled_from(["once", "remaining"]),
)
def test_groups_by_warping_are_those_of_the_twin(data: Paths, crowd: list[int], kind: Any, center: Center) -> None:
    distance = Warped(data, kind)
    person = np.array(crowd[: len(data)])
    found = _groups(distance, person, 2, center, [np.arange(len(data))])
    assert _sets(found) == _twin(distance, person.tolist(), 2, center, list(range(len(data))))


@examples(40, deadline=None)
@given(data=paths(max_paths=12, max_points=3), crowd=people)
def test_groups_by_the_graph_stay_in_its_parts(data: Paths, crowd: list[int]) -> None:
    distance = Contemporaries(data)
    person = np.array(crowd[: len(data)])
    parts = distance.components()
    found = _groups(distance, person, 2, "once", parts)
    twins = [_twin(distance, person.tolist(), 2, "once", part.tolist()) for part in parts]
    assert _sets(found) == set().union(*twins)


@WAYS
@examples(40, deadline=None)
@given(data=paths(max_paths=16, max_points=3), crowd=people, cuts=st.sets(st.integers(1, 15), max_size=4))
def test_each_part_is_grouped_as_if_it_were_alone(way: Way, data: Paths, crowd: list[int], cuts: set[int]) -> None:
    """Parts with too few people are left without a group; numbers of groups go on from part to part."""
    n, distance = len(data), SpatioTemporal.of(data, 0.7)
    person = np.array(crowd[:n])
    mixed = np.random.default_rng(0).permutation(n)
    parts = [np.sort(part) for part in np.split(mixed, sorted(c for c in cuts if c < n))]
    found = _groups(distance, person, 2, "once", parts, way)
    assert _sets(found) == set().union(*(_twin(distance, person.tolist(), 2, "once", p.tolist()) for p in parts))
    assert set(found.tolist()) - {-1} == set(range(int(found.max()) + 1))


@pytest.mark.parametrize("center", ["once", "remaining"])
@pytest.mark.parametrize("weight", [0.0, 0.01, 5.0])
def test_bounds_do_not_change_the_groups_of_drives(weight: float, center: Center) -> None:
    """Trajectories as they are recorded, where most distances are never computed."""
    data = make_trajectories(usual_city(3), 400, seed=4)
    distance = SpatioTemporal.of(Paths.of(data), weight)
    parts, asked = [np.arange(len(data))], [0, 0]
    from crowdveil.kernels.trajectory import mdav_tree

    near_people = mdav_tree.near_people

    def counting(*arguments):  # type: ignore[no-untyped-def]
        count = near_people(*arguments)
        asked[0], asked[1] = asked[0] + count, asked[1] + int(np.sum(~arguments[3]))
        return count

    with patch.object(mdav_tree, "near_people", counting):
        found = _groups(distance, data.person, 3, center, parts)
    assert np.array_equal(found, _groups(distance, data.person, 3, center, parts, "unpruned"))
    assert 0 < 4 * asked[0] < asked[1]


@examples(60, deadline=None)
@given(
    data=paths(min_paths=3, max_paths=12, max_points=6),
    weight=st.sampled_from([0.0, 0.7]),
    gone=st.sets(st.integers(0, 11)),
)
def test_bounds_of_nodes_hold_before_and_after_trajectories_are_taken_out(
    data: Paths, weight: float, gone: set[int]
) -> None:
    from crowdveil.kernels.trajectory import mdav_tree as tree

    n, distance = len(data), SpatioTemporal.of(data, weight)
    made = tree.build(distance.metric)
    taken = np.zeros(n, np.bool_)
    for i in [None, *sorted(j for j in gone if j < n - 1)]:
        if i is not None:
            taken[i] = True
            tree.remove(np.array([i]), made, distance.metric, taken)
        own = np.empty(tree.SIDES)
        tree.clear(own)
        tree.add(own, n - 1, distance.metric)
        far = distance.from_one(n - 1, np.arange(n))
        for node in range(1, 2 << made.levels):
            below = [
                j for j in np.flatnonzero(~taken).tolist() if _is_below(node, made.leaf_of[j] + (1 << made.levels))
            ]
            if not below:
                assert tree.lower_bound(own, made.bounds[node], weight) == np.inf
                continue
            assert tree.lower_bound(own, made.bounds[node], weight) <= far[below].min() + 1e-6
            assert tree.upper_bound(own, made.bounds[node], weight) >= far[below].max() - 1e-6


def _is_below(node: int, leaf: int) -> bool:
    while leaf > node:
        leaf //= 2
    return leaf == node


@WAYS
def test_equal_trajectories_are_shared_out_and_nobody_twice(way: Way) -> None:
    """The farthest from the first one is another one, even if all are equal."""
    data = Paths(np.zeros(20), np.zeros(20), np.tile([0.0, 5.0], 10), np.arange(0, 21, 2))
    found = _groups(SpatioTemporal.of(data, 1.0), np.arange(10), 3, "once", [np.arange(10)], way)
    assert sorted(np.bincount(found).tolist()) == [3, 3, 4]


@WAYS
def test_fewer_than_k_people_make_no_group(way: Way) -> None:
    data = Paths(np.arange(4.0), np.zeros(4), np.zeros(4), np.arange(5))
    distance = SpatioTemporal.of(data, 0.0)
    assert _groups(distance, np.array([0, 0, 1, 1]), 3, "once", [np.arange(4)], way).tolist() == [-1] * 4
    assert _groups(distance, np.array([0, 0, 1, 1]), 2, "once", [np.arange(4)], way).tolist() == [0] * 4
    assert _groups(distance, np.zeros(0, np.int64), 2, "once", [], way).tolist() == []


@WAYS
def test_progress_rises_to_the_end(way: Way) -> None:
    data = make_trajectories(usual_city(3), 60, seed=4)
    distance: Distance = SpatioTemporal.of(Paths.of(data), 0.1)
    reported: list[tuple[int, int]] = []
    grouping = Grouping(Unknown(distance) if way == "unpruned" else distance, data.person, 2)
    grouping.groups([np.arange(20), np.arange(20, 60)], lambda done, total: reported.append((done, total)))
    assert reported == sorted(reported) and reported[-1] == (60, 60)
