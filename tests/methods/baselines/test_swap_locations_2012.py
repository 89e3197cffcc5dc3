from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_swaps import Point, swap_in_groups

from crowdveil.engine.progress import no_progress
from crowdveil.errors import ParameterError
from crowdveil.io.trajectories import read_trajectories
from crowdveil.methods.base import Facts
from crowdveil.methods.baselines import swap_locations_2012 as method
from crowdveil.methods.baselines.swap_locations_2012 import SwapLocations2012Params, run
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline
from crowdveil.solve.trajectory.distances import make_distance
from crowdveil.solve.trajectory.mdav import Grouping
from crowdveil.solve.trajectory.swapping import owners
from crowdveil.testing import trajectories

Row = tuple[float, float, int]


def _release(data: Trajectories, seed: int = 5, **parameters: Any) -> TrajectoryRelease:
    return run(data, SwapLocations2012Params(**parameters), np.random.default_rng(seed), no_progress)


def _rows(data: Trajectories | TrajectoryRelease) -> list[list[Row]]:
    rows = list(zip(data.lon.tolist(), data.lat.tolist(), data.t.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def _seeds(data: Trajectories, group: np.ndarray, order: np.ndarray, turn: np.ndarray) -> list[int]:
    whose = data.trajectory.tolist()
    return sorted(
        (i for i in range(data.points) if group[whose[i]] >= 0),
        key=lambda i: (group[whose[i]], order[whose[i]], turn[i]),
    )


@given(
    data=trajectories(),
    k=st.integers(2, 4),
    groups=st.lists(st.integers(-1, 2), min_size=8, max_size=8),
    meters=st.sampled_from([None, 300.0, 1000.0, 4000.0]),
    seconds=st.sampled_from([None, 0, 60, 300]),
    alone=st.booleans(),
    permutation=st.sampled_from(["any", "circle"]),
)
def test_is_the_plain_twin(
    data: Trajectories,
    k: int,
    groups: list[int],
    meters: float | None,
    seconds: int | None,
    alone: bool,
    permutation: Literal["any", "circle"],
) -> None:
    """Groups of any kind, with fewer than k people too, which then swap nothing."""
    k = max(k, 3) if permutation == "circle" else k
    group, owner = np.array(groups[: len(data)]), owners(data, alone)
    rng = np.random.default_rng(5)
    order, turn, draw = rng.permutation(len(data)), rng.permutation(data.points), rng.random(data.points)
    (x, y), whose = data.xy, data.trajectory.tolist()
    points = [
        Point(i, whose[i], int(owner[whose[i]]), float(x[i]), float(y[i]), int(data.t[i]), float(draw[i]))
        for i in range(data.points)
    ]
    limits = (math.inf if meters is None else meters, math.inf if seconds is None else seconds)
    wanted = swap_in_groups(points, groups, _seeds(data, group, order, turn), k, *limits, permutation == "circle")
    params = SwapLocations2012Params(k=k, space_threshold_m=meters, time_threshold_s=seconds, permutation=permutation)
    given_to = method._swapped(data, params, owner, group, np.random.default_rng(5))
    assert given_to.tolist() == [wanted.get(i, -1) for i in range(data.points)]
    for point, to in wanted.items():
        assert group[whose[point]] == group[to]
        assert permutation == "any" or owner[whose[point]] != owner[to]


@given(data=trajectories(), k=st.integers(2, 3))
def test_sets_have_k_people_of_one_group_and_every_trajectory_gets_what_it_gives(data: Trajectories, k: int) -> None:
    release = _release(data, k=k)
    rows = [row for path in _rows(data) for row in path]
    if len(set(rows)) < len(rows):
        return  # equal points do not show who gave which
    whose = {row: i for i, path in enumerate(_rows(data)) for row in path}
    graph = make_distance(data, "graph")
    group = Grouping(graph, data.person, k).groups(graph.components())  # type: ignore[attr-defined]
    gave = dict.fromkeys(release.source.tolist(), 0)
    points_of: dict[int, int] = {}
    for to, path in zip(release.source.tolist(), _rows(release), strict=True):
        for row in path:
            gave[whose[row]] += 1
            assert group[whose[row]] == group[to] >= 0
            points_of[int(group[to])] = points_of.get(int(group[to]), 0) + 1
    assert gave == dict(zip(release.source.tolist(), np.diff(release.offsets).tolist(), strict=True))
    assert all(points % k == 0 for points in points_of.values())


def _walks(*lengths: int) -> Trajectories:
    """People who walk side by side, all from the same moment on."""
    t = np.concatenate([np.arange(n) * 10 for n in lengths])
    lat = np.repeat(np.arange(len(lengths)) * 0.001, lengths)
    people = np.arange(len(lengths))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Trajectories(t * 1e-4, lat, t, offsets, people, people, people)


@pytest.mark.parametrize("seed", range(5))
def test_a_group_of_k_keeps_what_its_shortest_has(seed: int) -> None:
    release = _release(_walks(4, 9, 6), seed=seed, k=3)
    assert np.diff(release.offsets).tolist() == [4, 4, 4]


def test_more_people_than_k_keep_more() -> None:
    """Five people, k = 3: sets of three are made until fewer than three have a location left."""
    counts = {_release(_walks(2, 6, 6, 6, 6), seed=seed, k=3).points for seed in range(20)}
    assert min(counts) > 6 and all(points % 3 == 0 for points in counts)


def test_thresholds() -> None:
    """The walks are 111 m and 10 s apart: one neighbor on each side within 150 m, and none within 100 m."""
    data = _walks(5, 5, 5)
    assert _release(data, k=2, space_threshold_m=100.0).points == 0
    assert _release(data, k=2, space_threshold_m=150.0).points > 0
    assert _release(data, k=3, space_threshold_m=150.0, time_threshold_s=0).points <= 15
    release = _release(data, k=3, time_threshold_s=0)
    assert release.points == 15 and sorted(release.t.tolist()) == sorted(data.t.tolist())


def test_a_location_without_a_set_is_in_no_other() -> None:
    """Three in a row, each within reach of the next: the one in the middle has a set, unless an end was drawn first and went."""
    counts = {_release(_walks(1, 1, 1), seed=seed, k=3, space_threshold_m=150.0).points for seed in range(30)}
    assert counts == {0, 3}


def test_all_circles_are_equally_likely() -> None:
    """Of four people there are six circles."""
    data, seen = _walks(1, 1, 1, 1), {}
    for seed in range(600):
        release = _release(data, seed=seed, k=4, permutation="circle")
        key = tuple(release.lat[np.argsort(release.source)].tolist())
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 6 and min(seen.values()) > 60


def test_all_permutations_are_equally_likely_by_default() -> None:
    data, seen = _walks(1, 1, 1), {}
    for seed in range(600):
        release = _release(data, seed=seed, k=3)
        key = tuple(release.lat[np.argsort(release.source)].tolist())
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 6 and min(seen.values()) > 60


def test_two_in_a_circle_are_refused() -> None:
    with pytest.raises(ParameterError) as refusal:
        SwapLocations2012Params.checked({"k": 2, "permutation": "circle"})
    assert str(refusal.value).startswith("parameters: Expected k of at least 3 with permutation = circle, since")


def test_what_is_guaranteed_of_own_points() -> None:
    data = _walks(2, 2, 2)
    for permutation, guaranteed in (("any", ["original-points"]), ("circle", ["original-points", "no-own-points"])):
        found = method.guarantees(SwapLocations2012Params(permutation=permutation), Facts.of(data))
        assert [guarantee.name for guarantee in found] == guaranteed


def test_those_without_contemporaries_are_left_out() -> None:
    """Two walk at one time, one a day later: k = 2 leaves the latter out."""
    data = _walks(3, 3, 3)
    later = Trajectories(data.lon, data.lat, data.t + np.repeat([0, 0, 86_400], 3), data.offsets, *[np.arange(3)] * 3)
    assert sorted(_release(later, k=2).source.tolist()) == [0, 1]


@pytest.mark.realdata
def test_cabs(realdata: Path, tmp_path: Path) -> None:
    source = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    data = read_trajectories(source)
    for permutation in ("any", "circle"):
        parameters = {"k": 4, "permutation": permutation}
        result = pipeline.run(
            pipeline.Request(
                "swap-locations-2012",
                source,
                tmp_path / permutation,
                parameters,
                options={"attack": False, "report": False},
            )
        )
        release = result.release
        assert 0.6 < len(release) / len(data) < 1 and 0.3 < release.points / data.points < 1
        measured = result.manifest["method"]["facts"]["measured"]
        assert measured["found_percent"] < 40 and measured["true_points_percent"] < 60
