"""Each distance against its twin in plain Python."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import plain_couplings
import plain_trajectories as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_trajectories import distance_matrix

from crowdveil.errors import InputError, ParameterError
from crowdveil.kernels.trajectory.mdav_tree import build, time_shares
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import all_distances, find_distance
from crowdveil.solve.trajectory.distances import (
    DISTANCES,
    NAMES,
    Contemporaries,
    Distance,
    Paths,
    SpatioTemporal,
    contemporaries,
    make_distance,
    published_weight,
    time_weight,
)
from crowdveil.solve.trajectory.distances.spatiotemporal import (
    TIME_SHARE,
    WEIGHTS,
    _balanced,
    _diameter,
    _is_time_small,
)
from crowdveil.testing import paths, trajectories

CLOSE: dict[str, Any] = {"rel_tol": 1e-9, "abs_tol": 1e-6}


def _plain(found: Paths) -> list[plain.Path]:
    return [list(zip(*(c.tolist() for c in found.one(i)), strict=True)) for i in range(len(found))]


def _twins(name: str, listed: list[plain.Path], weight: float) -> list[list[float]]:
    one = {
        "spatiotemporal": lambda a, b: plain.spatiotemporal(a, b, weight),
        "dtw": plain.dtw,
        "discrete-frechet": plain.discrete_frechet,
        "frechet": plain.frechet,
        "edr": plain.edr,
        "lcss": plain.lcss,
        "frechet-manhattan": lambda a, b: plain_couplings.one_pass(a, b)[0],
        "frechet-manhattan-exact": plain_couplings.exact,
    }
    return plain.graph(listed) if name == "graph" else [[one[name](a, b) for b in listed] for a in listed]


def _distance(name: str, data: Paths, weight: float) -> Distance:
    return find_distance(name).make(data, weight)


@pytest.mark.parametrize("name", NAMES.own)
@settings(max_examples=tries(60), deadline=None)
@given(data=paths(max_paths=5, max_points=4), weight=st.sampled_from([0.0, 0.5, 3.0]))
def test_every_distance_is_its_twin_and_symmetric(name: str, data: Paths, weight: float) -> None:
    distance, every = _distance(name, data, weight), np.arange(len(data))
    twins = _twins(name, _plain(data), weight)
    found = distance_matrix(distance, every, every)
    for i in range(len(data)):
        for j in range(len(data)):
            assert math.isclose(found[i, j], twins[i][j], **CLOSE), (i, j)
            assert math.isclose(found[i, j], found[j, i], **CLOSE), (i, j)
        assert np.array_equal(distance.from_one(i, every), found[i])
        assert math.isclose(found[i, i], 0.0, **CLOSE)


@pytest.mark.parametrize("name", ["edr", "lcss"])
@settings(max_examples=tries(60), deadline=None)
@given(data=paths(max_paths=4, max_points=5), spacing=st.sampled_from([30.0, 60.0, 100.0, 101.0]))
def test_points_are_equal_within_100_meters(name: str, data: Paths, spacing: float) -> None:
    apart = Paths(spacing * data.x, spacing * data.y, data.t, data.offsets)
    every = np.arange(len(apart))
    assert np.allclose(
        distance_matrix(_distance(name, apart, 0.0), every, every), _twins(name, _plain(apart), 0.0), rtol=1e-12
    )


@settings(max_examples=tries(60), deadline=None)
@given(data=paths(max_paths=2, min_paths=2))
def test_the_frechet_distance_is_the_discrete_one_of_many_points(data: Paths) -> None:
    """With the legs cut into n parts it is longer by at most a part of the longest leg."""
    parts = 20
    share = np.arange(parts) / parts
    columns: list[list[Any]] = [[], [], []]
    for i in range(2):
        for column, values in zip(columns, data.one(i), strict=True):
            column.append(np.append((values[:-1, None] + share * np.diff(values)[:, None]).ravel(), values[-1]))
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in columns[0]])])
    cut = Paths(*(np.concatenate(column) for column in columns), offsets)
    found, discrete = (
        make_distance(p, n).from_one(0, np.array([1]))[0] for p, n in ((data, "frechet"), (cut, "discrete-frechet"))
    )
    assert found - 1e-6 <= discrete <= found + 6 / parts


@pytest.mark.parametrize("name", NAMES.own)
@settings(max_examples=tries(40), deadline=None)
@given(data=paths(max_paths=5, max_points=4, min_paths=2))
def test_a_path_that_is_not_in_the_data_is_as_far_as_if_it_were(name: str, data: Paths) -> None:
    """The last one is taken out; for the graph it is no way between the others, but a way from itself."""
    last = len(data) - 1
    end = data.offsets[last]
    fewer = Paths(data.x[:end], data.y[:end], data.t[:end], data.offsets[:-1])
    others = np.arange(last)
    found = _distance(name, fewer, 0.5).between(data.one(last), others)
    assert np.allclose(found, _distance(name, data, 0.5).from_one(last, others), rtol=1e-12, atol=1e-9)


def test_points_on_opposite_sides_of_the_globe_are_refused() -> None:
    """They have no place on one plane, and without distances groups would never be finished."""
    # On both sides of Greenwich and of the date line, so that no half of the globe holds them all; the middle of their public
    # box lies on the equator.
    data = replace(_on_the_equator([180.0, -180, 0, -1e-9]), lat=np.array([0.05, -0.05, 0, 0]))
    with pytest.raises(InputError, match=r"^trajectories: positions on opposite sides of the globe .*\.$"):
        Paths.of(data)


def test_180_degrees_east_and_west_are_one_place() -> None:
    paths = Paths.of(_on_the_equator([180.0, -180, 180, -180]))
    assert np.allclose(paths.x, paths.x[0], atol=1e-6) and np.allclose(paths.y, paths.y[0], atol=1e-6)


def _on_the_equator(lon: list[float]) -> Trajectories:
    """Trajectories of one point each."""
    n = len(lon)
    each = np.arange(n)
    return Trajectories(np.array(lon), np.zeros(n), np.zeros(n), np.arange(n + 1), each, each, each)


def test_an_example_by_hand() -> None:
    """Two points a and three of b: three pairs, the first of a with the first of b, then the last of a twice."""
    data = Paths(
        np.array([0.0, 10, 0, 4, 10]), np.array([0.0, 0, 3, 3, 3]), np.array([0.0, 10, 0, 4, 20]), np.array([0, 2, 5])
    )
    found = SpatioTemporal.of(data, 2.0).from_one(0, np.array([1]))[0]
    # Speeds are 1 and the mean of 4/4 and 6/16; (2 + 3) / 2 = 2.5 counts as 3 pairs, the middle one at point 1 of a and of b.
    worth = 2.0 * (1.0 + (1.0 + 0.375) / 2) / 2
    pairs = [3.0, math.hypot(6, 3) + worth * 6, 3.0 + worth * 10]
    assert math.isclose(found, math.sqrt(sum(d * d for d in pairs) / 3))


def test_the_graph_goes_over_contemporaries() -> None:
    """0 and 2 share no time, but both share some with 1; 3 is alone; 4 stands where 0 is: an edge of no length."""
    listed = [
        [(0, 0, 0), (0, 0, 10)],
        [(3, 0, 0), (3, 0, 30)],
        [(7, 0, 20), (7, 0, 30)],
        [(0, 0, 40)],
        [(0, 0, 0), (0, 0, 10)],
    ]
    data = Paths(
        *(np.array([p[c] for path in listed for p in path], np.float64) for c in range(3)),
        np.concatenate([[0], np.cumsum([len(path) for path in listed])]),
    )
    graph = Contemporaries(data)
    # 0 to 1: 3 m, for a third of the time of 1. 1 to 2: 4 m, likewise.
    assert graph.from_one(0, np.arange(5)).tolist() == [0.0, 9.0, 21.0, math.inf, 0.0]
    assert [part.tolist() for part in graph.components()] == [[0, 1, 2, 4], [3]]


def test_too_many_contemporaries_are_refused_in_one_sentence() -> None:
    data = Paths(np.zeros(8), np.zeros(8), np.tile([0.0, 9.0], 4), np.arange(0, 9, 2))
    with (
        patch.object(contemporaries, "MAX_EDGES", 5),
        pytest.raises(InputError, match=r"^6 pairs .* may have at most 5\. .*\.$"),
    ):
        Contemporaries(data).from_one(0, np.arange(4))


@settings(deadline=None)
@given(data=trajectories())
def test_the_weight_of_mobidatalab_is_d_over_v_and_t(data: Trajectories) -> None:
    listed = _plain(Paths.of(data))
    points = [p for path in listed for p in path]
    widest = max(plain.meters(a, b) for a in points for b in points)
    longest = max(p[2] for p in points) - min(p[2] for p in points)
    mean_speed = sum(map(plain.speed, listed)) / len(listed)
    wanted = widest / (mean_speed * longest) if mean_speed > 0 and longest > 0 else 0.0
    found = time_weight(data, "mobidatalab", np.random.default_rng(0))
    assert math.isclose(found, wanted, rel_tol=1e-5)
    assert math.isclose(_diameter(Paths.of(data)), widest, **CLOSE)
    assert found == float(f"{found:.6g}")


@settings(deadline=None)
@given(data=trajectories())
def test_the_mean_ratio_is_space_over_time_of_all_pairs(data: Trajectories) -> None:
    listed = _plain(Paths.of(data))
    nowhere = [[(0.0, 0.0, p[2]) for p in path] for path in listed]
    space = sum(plain.spatiotemporal(a, b, 0.0) for a in listed for b in listed)
    time = 0.0
    for a, flat_a in zip(listed, nowhere, strict=True):
        for b, flat_b in zip(listed, nowhere, strict=True):
            with patch.object(plain, "speed", lambda path, here=(a, b): sum(map(SPEED, here)) / 2):
                time += plain.spatiotemporal(flat_a, flat_b, 1.0)
    found = time_weight(data, "mean-ratio", np.random.default_rng(0))
    assert math.isclose(found, space / time if time > 0 else 0.0, rel_tol=1e-5)


SPEED = plain.speed


@settings(max_examples=tries(60), deadline=None)
@given(data=trajectories(max_trajectories=7))
def test_auto_is_the_largest_weight_at_which_time_has_a_small_share_of_the_distance_to_neighbors(
    data: Trajectories,
) -> None:
    """Neighbors are of other people, unless there is one person."""
    listed, n = _plain(Paths.of(data)), len(data)
    whose = data.person.tolist() if len(set(data.person.tolist())) > 1 else list(range(n))

    def shares(i: int, weight: float) -> list[float]:
        """Return the share of each neighbor that is the nearest, up to rounding."""
        far = {j: plain.spatiotemporal(listed[i], listed[j], weight) for j in range(n) if whose[j] != whose[i]}
        nearest = [j for j in far if far[j] <= min(far.values()) * (1 + 1e-9)]
        found = [1 - plain.spatiotemporal(listed[i], listed[j], 0.0) / far[j] if far[j] else 0.0 for j in nearest]
        return found or [0.0]

    def median(of: Callable[[list[float]], float], weight: float) -> float:
        return statistics.median(of(shares(i, weight)) for i in range(n))

    found = time_weight(data, "auto", np.random.default_rng(0))
    assert found in WEIGHTS
    assert median(min, found) <= TIME_SHARE + 1e-9 or found == min(WEIGHTS)
    assert all(median(max, weight) >= TIME_SHARE - 1e-9 for weight in WEIGHTS if weight > found)


def test_auto_of_an_example_by_hand() -> None:
    """Pairs 70 m and 10 s apart, at 1 m/s: the time is worth 5, 10 and 20 m with the weights 0.5, 1 and 2, a 7th at most to 1."""
    x, t = [], []
    for pair in range(3):
        for side in range(2):
            begin = 1e5 * pair + 70 * side
            x += [begin, begin + 10]
            t += [10.0 * side, 10.0 * side + 10]
    data = Paths(np.array(x), np.zeros(12), np.array(t), np.arange(0, 13, 2))
    assert _balanced(SpatioTemporal.of(data, 0.0), np.arange(6)) == 1.0


def test_a_part_of_the_sample_decides_only_what_all_of_it_would() -> None:
    rng = np.random.default_rng(5)
    x, y, t = rng.uniform(0, 3000, 160), rng.uniform(0, 3000, 160), np.sort(rng.uniform(0, 900, 160))
    distance, person = SpatioTemporal.of(Paths(x, y, t, np.arange(0, 161, 4)), 0.0), np.arange(40)
    tree = build(distance.metric)
    decided = set()
    for weight in np.geomspace(0.001, 5, 60).tolist():
        metric = distance.metric._replace(weight=weight)
        small = bool(np.median(time_shares(np.arange(40), metric, tree, person)) <= TIME_SHARE)
        assert _is_time_small(np.arange(40), metric, tree, person) == small
        decided.add(small)
    assert decided == {False, True}


def test_one_far_point_hardly_changes_what_the_manifest_says() -> None:
    """The formula of MobiDataLab gives away the largest distance, if its result is published to six digits."""

    def weights(far: float) -> tuple[float, float]:
        lon = np.concatenate([np.tile([0.0, 0.01], 20), [far, far + 0.01]])
        n = len(lon) // 2
        t = np.tile([0, 100], n) + np.repeat(np.arange(n), 2)
        data = Trajectories(lon, np.zeros(2 * n), t, np.arange(0, 2 * n + 1, 2), *[np.arange(n)] * 3)
        found = time_weight(data, "mobidatalab", np.random.default_rng(0))
        assert time_weight(data, "auto", np.random.default_rng(0)) in WEIGHTS
        return found, published_weight("mobidatalab", found)

    (a, shown_a), (b, shown_b) = weights(1.02), weights(1.03)
    assert a != b and shown_a == shown_b
    assert published_weight(0.123456, 0.123456) == 0.123456


def test_a_given_weight_is_taken_as_it_is() -> None:
    none = Trajectories(*(np.zeros(0) for _ in range(3)), np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(0))
    assert time_weight(none, 0.00657901067783612, np.random.default_rng(0)) == 0.00657901067783612
    assert time_weight(none, "mobidatalab", np.random.default_rng(0)) == 0.0
    assert time_weight(none, "mean-ratio", np.random.default_rng(0)) == 0.0


@settings(max_examples=tries(10), deadline=None)
@given(data=trajectories())
def test_distances_are_found_by_name_and_alias(data: Trajectories) -> None:
    assert tuple(all_distances()) == NAMES.own
    assert find_distance("Martinez2021").name == "spatiotemporal"
    assert find_distance("DomingoTrujillo2012").name == "graph"
    assert all(kind.summary.endswith(".") and "\n" not in kind.summary for kind in DISTANCES)
    assert isinstance(make_distance(data, "Martinez2021", 0.0), SpatioTemporal)
    with pytest.raises(ParameterError, match=r"there is no distance Manhattan. Known are spatiotemporal, graph, dtw"):
        find_distance("Manhattan")


@settings(max_examples=tries(200))
@given(paths(), st.sampled_from((0.0, 0.2, 5.0)), st.integers(1, 4))
def test_shares_of_time_are_those_of_the_nearest_of_all_others(data: Paths, weight: float, people: int) -> None:
    """Bounds of a tree leave out none, whatever weight it was made with: all distances are computed here."""
    far, space = SpatioTemporal.of(data, weight), SpatioTemporal.of(data, 0.0)
    every, person = np.arange(len(data)), np.arange(len(data)) % people
    expected = []
    for own in every.tolist():
        apart = np.where(person == person[own], np.inf, far.from_one(own, every))
        at = int(np.argmin(apart))
        known = np.isfinite(apart[at]) and apart[at] > 0
        expected.append(1 - space.from_one(own, every)[at] / apart[at] if known else 0.0)
    assert np.array_equal(time_shares(every, far.metric, build(space.metric), person), expected)
