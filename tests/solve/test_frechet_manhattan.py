"""The Fréchet/Manhattan distance against the paper's program in plain Python, its definition by brute force, and its bounds."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plain_couplings as plain
import plain_trajectories
import pytest
from examples import tries
from hypothesis import given, settings
from plain_trajectories import distance_matrix

from crowdveil.kernels.trajectory.frechet_manhattan import coupled_points, path_of
from crowdveil.model.arrays import Ints
from crowdveil.registry import find_distance
from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths, make_distance
from crowdveil.testing import paths

CLOSE: dict[str, Any] = {"rel_tol": 1e-9, "abs_tol": 1e-9}


def _plain(data: Paths) -> list[plain_trajectories.Path]:
    return [list(zip(*(c.tolist() for c in data.one(i)), strict=True)) for i in range(len(data))]


def _coupling(distance: FrechetManhattan, i: int, j: int) -> tuple[float, Ints]:
    """The distance of two trajectories and its coupling: points of both that meet, in two columns. With `resampled` points are
    numbered after both were brought to the same moments.
    """
    first, second = path_of(distance.columns, i), path_of(distance.columns, j)
    made, _, pairs = coupled_points(first, second, distance.resampled, distance.exact)
    apart = np.hypot(made[0, pairs[:, 0]] - made[3, pairs[:, 1]], made[1, pairs[:, 0]] - made[4, pairs[:, 1]])
    return float(apart.mean()), pairs


def _walks(n: int, points: int, seed: int) -> Paths:
    """Long crooked ways with points at uneven times."""
    rng = np.random.default_rng(seed)
    x, y = (np.cumsum(rng.standard_normal((n, points)) * 50, axis=1) + rng.uniform(0, 3000, (n, 1)) for _ in range(2))
    t = np.sort(rng.integers(0, 4000, (n, points)), axis=1).astype(np.float64)
    return Paths(x.ravel(), y.ravel(), t.ravel(), np.arange(n + 1) * points)


@settings(max_examples=tries(80), deadline=None)
@given(data=paths(max_paths=3, max_points=7))
def test_one_pass_is_the_papers_programme_to_the_last_bit(data: Paths) -> None:
    """Also in both directions, and with the coupling that it follows."""
    distance, listed = FrechetManhattan(data), _plain(data)
    every = np.arange(len(data))
    for i, a in enumerate(listed):
        found = distance.from_one(i, every)
        for j, b in enumerate(listed):
            value, coupling = plain.one_pass(a, b)
            assert found[j] == value
            # Sums of the same numbers in another order differ by rounding.
            assert math.isclose(distance.from_one(j, np.array([i]))[0], value, **CLOSE)
            mean, pairs = _coupling(distance, i, j)
            assert [tuple(pair) for pair in pairs.tolist()] == coupling
            assert math.isclose(mean, value, **CLOSE)


def test_one_pass_on_long_paths() -> None:
    """Of unequal lengths."""
    long = _walks(3, 75, seed=1)
    data = Paths(long.x, long.y, long.t, np.array([0, 75, 91, 225]))
    distance, listed = FrechetManhattan(data), _plain(data)
    for i in range(3):
        assert distance.from_one(i, np.arange(3)).tolist() == [plain.one_pass(listed[i], b)[0] for b in listed]


@pytest.mark.parametrize("seed", range(6))
def test_one_pass_on_paths_in_parallel(seed: int) -> None:
    """With detours, returns and waits at places of their own."""
    rng = np.random.default_rng(seed)
    ways = []
    for points in rng.integers(60, 90, 3).tolist():
        along = np.sort(rng.uniform(0, 9000, points))
        along[rng.integers(0, points, 3)] -= 1500  # returns
        across = rng.normal(0, 40, points) + 900 * (np.abs(along - rng.uniform(0, 9000)) < 400)
        ways.append(np.column_stack([along, across, 10.0 * np.arange(points)]))
    x, y, t = np.concatenate(ways).T
    data = Paths(x.copy(), y.copy(), t.copy(), np.cumsum([0, *map(len, ways)]))
    distance, listed = FrechetManhattan(data), _plain(data)
    for i in range(3):
        expected = [plain.one_pass(listed[i], b) for b in listed]
        assert distance.from_one(i, np.arange(3)).tolist() == [value for value, _ in expected]
        for j, (_, coupling) in enumerate(expected):
            assert [tuple(pair) for pair in _coupling(distance, i, j)[1].tolist()] == coupling


@settings(max_examples=tries(60), deadline=None)
@given(data=paths(max_paths=3, max_points=5))
def test_exact_is_the_definition_and_never_above_one_pass(data: Paths) -> None:
    exact, one_pass, longest = (
        FrechetManhattan(data, exact=True), FrechetManhattan(data), plain_trajectories.discrete_frechet,
    )  # fmt: skip
    listed, every = _plain(data), np.arange(len(data))
    for i, a in enumerate(listed):
        found = exact.from_one(i, every)
        assert np.all(found <= one_pass.from_one(i, every) + 1e-9)
        for j, b in enumerate(listed):
            assert math.isclose(found[j], plain.exact(a, b), **CLOSE)
            for distance in (exact, one_pass):
                pairs = [tuple(pair) for pair in _coupling(distance, i, j)[1].tolist()]
                assert pairs[0] == (0, 0) and pairs[-1] == (len(a) - 1, len(b) - 1)
                assert all((di, dj) in ((0, 1), (1, 0), (1, 1)) for di, dj in _steps(pairs))
                assert max(plain_trajectories.meters(a[p], b[q]) for p, q in pairs) == longest(a, b)
            assert math.isclose(plain.mean_of(a, b, _coupling(exact, i, j)[1].tolist()), found[j], **CLOSE)


def _steps(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(c - a, d - b) for (a, b), (c, d) in pairwise(pairs)]


def test_one_pass_is_above_the_definition_where_a_cheap_beginning_costs_later() -> None:
    """Both end at the same pair; the cheaper mean up to the pair before is that of the dearer sum."""
    rng = np.random.default_rng(0)
    apart = 0
    for _ in range(200):
        data = Paths(*rng.random((3, 12)), np.array([0, 6, 12]))
        one, exact = (FrechetManhattan(data, exact=e).from_one(0, np.array([1]))[0] for e in (False, True))
        apart += one > exact * (1 + 1e-9)
    assert apart > 10


@settings(max_examples=tries(80), deadline=None)
@given(data=paths(max_paths=3, max_points=6))
def test_paths_are_brought_to_the_same_moments(data: Paths) -> None:
    """As section 4.2 says: equal sizes, own points kept, moments that both have once."""
    from crowdveil.kernels.trajectory.frechet_manhattan import path_of, together

    distance, listed = FrechetManhattan(data, resampled=True), _plain(data)
    for i, a in enumerate(listed):
        for j, b in enumerate(listed):
            first, second = plain.resampled(a, b), plain.resampled(b, a)
            made, own = np.empty((6, len(a) + len(b))), np.empty((2, len(a) + len(b)), np.int64)
            n = together(path_of(distance.columns, i), path_of(distance.columns, j), made, own)
            assert n == len(first) == len(second) < len(a) + len(b)
            for row, twin in ((0, first), (1, second)):
                assert np.allclose(made[3 * row : 3 * row + 3, :n].T, [p for p, _ in twin], rtol=0, atol=1e-9)
                assert [None if x < 0 else x for x in own[row, :n].tolist()] == [number for _, number in twin]
            value, _ = plain.one_pass(made[:3, :n].T.tolist(), made[3:, :n].T.tolist())
            assert distance.from_one(i, np.array([j]))[0] == value
            assert math.isclose(distance.from_one(j, np.array([i]))[0], value, **CLOSE)
            assert math.isclose(_coupling(distance, i, j)[0], distance.from_one(i, np.array([j]))[0], **CLOSE)


@pytest.mark.parametrize("resampled", [False, True])
@settings(max_examples=tries(60), deadline=None)
@given(data=paths(min_paths=2, max_paths=6, max_points=9))
def test_bounds_hold(resampled: bool, data: Paths) -> None:
    _check_bounds(data, resampled)


@pytest.mark.parametrize("resampled", [False, True])
def test_bounds_hold_on_long_paths_and_are_not_trivial(resampled: bool) -> None:
    least = _check_bounds(_walks(30, 40, seed=2), resampled)
    assert np.median(least) > 0.4


@pytest.mark.parametrize("resampled", [False, True])
def test_bounds_hold_where_one_goes_ahead_of_the_other(resampled: bool) -> None:
    """All that meet are 100 m apart, and both go across that: the farthest corners of their slices are not much farther."""
    along, ahead = np.array([0.0, 960, 0, 960]), np.array([0.0, 960, 100, 1060])
    for x, y in ((ahead, along), (along, ahead)):
        data = Paths(x, y, np.tile([0.0, 10], 2), np.array([0, 2, 4]))
        assert FrechetManhattan(data).from_one(0, np.array([1])).tolist() == [100.0]
        _check_bounds(data, resampled)


def _check_bounds(data: Paths, resampled: bool) -> list[float]:
    """The lower bound that boxes give for the mean of any coupling, with the distances; and those under a limit."""
    from crowdveil.kernels.trajectory.frechet_manhattan import distance_lower_bounds, nearest_paths, outer, sliced

    tightness = []
    every, n = np.arange(len(data)), len(data)
    for exact in (False, True):
        distance = FrechetManhattan(data, exact, resampled)
        boxes = sliced(distance.columns)
        whole = outer(boxes)
        for i in range(n):
            found, least = distance.from_one(i, every), np.empty(n)
            distance_lower_bounds(i, every, distance.columns, boxes, whole, resampled, np.inf, least)
            assert np.all(least <= found)
            tightness += (least / np.maximum(found, 1e-300))[every != i].tolist()
            to = every[every != i]
            to = to[np.argsort(least[to], kind="stable")]
            looked, k = np.empty(len(to)), min(3, n)
            assert nearest_paths(i, to, least[to], np.inf, every, k, distance.columns, resampled, exact, looked)
            limit = np.sort(found[to])[k - 2]
            assert np.all((looked == found[to]) | ((looked == np.inf) & (found[to] > limit)))
            squares = float((np.sort(found[to])[: k - 1] ** 2).sum())
            for cap in (squares * 0.9 - 1e-3, squares):
                cap = max(cap, 0.0)
                may = nearest_paths(i, to, least[to], cap, every, k, distance.columns, resampled, exact, looked)
                assert may or cap < squares
    return tightness


def test_it_has_two_names_and_that_of_its_paper() -> None:
    kind = find_distance("FerreiraTrujillo2016")
    assert kind.name == "frechet-manhattan"
    made = [
        find_distance(name).make(_walks(2, 5, seed=3), 0.0) for name in ("frechet-manhattan", "frechet-manhattan-exact")
    ]
    assert [isinstance(d, FrechetManhattan) and (d.exact, d.resampled) for d in made] == [(False, False), (True, False)]


@pytest.mark.realdata
def test_on_cabs_one_pass_is_near_the_definition(realdata: Path) -> None:
    from crowdveil.io.trajectories import read_trajectories

    data = read_trajectories(str(realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"))
    some = np.arange(0, len(data), 9)
    one, exact, longest = (
        distance_matrix(make_distance(data, name), some, some)
        for name in ("frechet-manhattan", "frechet-manhattan-exact", "discrete-frechet")
    )
    assert np.allclose(one, one.T, rtol=1e-12) and np.allclose(exact, exact.T, rtol=1e-12)
    assert np.all(exact <= one * (1 + 1e-12)) and np.all(one <= longest * (1 + 1e-12))
    assert one.sum() < 1.02 * exact.sum()
