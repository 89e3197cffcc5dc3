"""One trajectory for a group, against its twin in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plain_trajectories as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import ParameterError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import all_aggregations, find_aggregation
from crowdveil.solve.trajectory.aggregation import (
    AGGREGATIONS,
    DECIMALS,
    NAMES,
    AggregationName,
    GroupTrajectories,
    aggregate,
)
from crowdveil.solve.trajectory.distances import Distance, make_distance
from crowdveil.testing import trajectories


def _groups(data: Trajectories, colors: list[int]) -> tuple[Ints, Ints]:
    """Members and offsets of the groups of one color."""
    color = np.array(colors[: len(data)], np.int64)
    members = np.argsort(color, kind="stable")
    sizes = np.bincount(color)
    return members, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[sizes > 0])])


def _of(made: GroupTrajectories, g: int) -> list[tuple[float, float, int]]:
    here = slice(made.offsets[g], made.offsets[g + 1])
    return list(zip(made.lon[here].tolist(), made.lat[here].tolist(), made.t[here].tolist(), strict=True))


def _original(data: Trajectories, i: int) -> list[tuple[float, float, int]]:
    return _of(GroupTrajectories(data.lon, data.lat, data.t, data.offsets), i)


colors = st.lists(st.integers(0, 3), min_size=8, max_size=8)


@settings(max_examples=tries(80), deadline=None)
@given(data=trajectories(), color=colors)
def test_the_mean_is_the_twin_and_its_times_rise(data: Trajectories, color: list[int]) -> None:
    members, offsets = _groups(data, color)
    made = aggregate(data, make_distance(data, "spatiotemporal", 0.5), members, offsets, "mean-trajectory")
    for g in range(len(offsets) - 1):
        twin = _mean(data, [_original(data, i) for i in _evenly(data, members[offsets[g] : offsets[g + 1]])])
        found = _of(made, g)
        assert [p[2] for p in found] == [p[2] for p in twin]
        assert np.allclose([p[:2] for p in found], [p[:2] for p in twin], rtol=0, atol=0.51 * 10**-DECIMALS)
        _rises_within(found, [_original(data, i) for i in members[offsets[g] : offsets[g + 1]].tolist()])
        assert all(round(v, DECIMALS) == v for p in found for v in p[:2])


def _rises_within(found: Sequence[Any], members: Sequence[Sequence[Any]]) -> None:
    """Times are inside those of the members, and rise where there are as many seconds as points."""
    first, last = min(path[0][2] for path in members), max(path[-1][2] for path in members)
    assert first <= found[0][2] and found[-1][2] <= last
    if last - first >= len(found) - 1:
        assert all(a[2] < b[2] for a, b in pairwise(found))


def _evenly(data: Trajectories, members: Ints) -> list[int]:
    """The members, each so often that all people are there equally often: a mean over these gives every person equal weight."""
    whose = data.person[members].tolist()
    times = math.lcm(*map(whose.count, whose))
    return [i for i, one in zip(members.tolist(), whose, strict=True) for _ in range(times // whose.count(one))]


def test_a_person_with_many_trajectories_counts_once() -> None:
    """Three times the same way by one person, and once by another: the mean is in the middle."""
    lon = np.repeat([2.30, 2.30, 2.30, 2.31], 2)
    lat, t, ids = np.tile([48.80, 48.81], 4), np.tile([0, 60], 4), np.arange(4)
    data = Trajectories(lon, lat, t, np.arange(0, 9, 2), ids, np.array([0, 0, 0, 1]), np.arange(2))
    distance = make_distance(data, "spatiotemporal", 0.0)
    for how in ("mean-trajectory", "composed-trajectory"):
        made = aggregate(data, distance, np.arange(4), np.array([0, 4]), how)
        own = 0.0 if how == "mean-trajectory" else 0.0005
        assert np.allclose(np.abs(made.lon - 2.305), own, atol=1e-5)


def _paths_of(data: Trajectories, points: list[tuple[float, float, float]]) -> plain.Path:
    x, y = data.projection.to_plane(np.array([p[0] for p in points]), np.array([p[1] for p in points]))
    start = int(data.t.min())
    return [(a, b, p[2] - start) for a, b, p in zip(x.tolist(), y.tolist(), points, strict=True)]


def _mean(data: Trajectories, here: list[list[tuple[float, float, int]]]) -> list[tuple[float, float, int]]:
    """The plain mean, on the plane: degrees have none. The times are those of the data."""
    start = int(data.t.min())
    flat = plain.mean_path([_paths_of(data, path) for path in here])
    lon, lat = data.projection.to_globe(np.array([p[0] for p in flat]), np.array([p[1] for p in flat]))
    return [(a, b, int(p[2]) + start) for a, b, p in zip(lon.tolist(), lat.tolist(), flat, strict=True)]


@pytest.mark.parametrize("weight", [0.0, 0.8])
@settings(max_examples=tries(60), deadline=None)
@given(data=trajectories(), color=colors)
def test_the_closest_trajectory_is_a_member_and_none_is_closer(
    weight: float, data: Trajectories, color: list[int]
) -> None:
    members, offsets = _groups(data, color)
    made = aggregate(data, make_distance(data, "spatiotemporal", weight), members, offsets, "closest-trajectory")
    for g in range(len(offsets) - 1):
        here = [_original(data, i) for i in members[offsets[g] : offsets[g + 1]].tolist()]
        evenly = [_original(data, i) for i in _evenly(data, members[offsets[g] : offsets[g + 1]])]
        mean = _paths_of(data, _mean(data, evenly))
        assert _of(made, g) in here
        chosen = plain.spatiotemporal(_paths_of(data, _of(made, g)), mean, weight)
        assert all(chosen <= plain.spatiotemporal(_paths_of(data, p), mean, weight) + 1e-6 for p in here)


@pytest.mark.parametrize("weight", [0.0, 0.8])
@settings(max_examples=tries(60), deadline=None)
@given(data=trajectories(), color=colors)
def test_the_closest_locations_are_members_points_at_the_times_of_the_mean(
    weight: float, data: Trajectories, color: list[int]
) -> None:
    members, offsets = _groups(data, color)
    distance = make_distance(data, "spatiotemporal", weight)
    made = aggregate(data, distance, members, offsets, "closest-locations")
    worth = weight * sum(plain.speed(_paths_of(data, _original(data, i))) for i in range(len(data))) / len(data)
    for g in range(len(offsets) - 1):
        here = [_original(data, i) for i in members[offsets[g] : offsets[g + 1]].tolist()]
        evenly = [_original(data, i) for i in _evenly(data, members[offsets[g] : offsets[g + 1]])]
        mean, found = _mean(data, evenly), _of(made, g)
        assert [p[2] for p in found] == [p[2] for p in mean]
        points = [p for path in here for p in path]
        flat = _paths_of(data, points)
        for point, wanted in zip(found, _paths_of(data, mean), strict=True):
            far = [plain.meters(p, wanted) + worth * abs(p[2] - wanted[2]) for p in flat]
            same_place = [d for d, p in zip(far, points, strict=True) if p[:2] == point[:2]]
            assert min(same_place) <= min(far) + 1e-6


@pytest.mark.parametrize("weight", [0.0, 0.8])
@settings(max_examples=tries(60), deadline=None)
@given(data=trajectories(), color=colors)
def test_a_composed_trajectory_has_the_mean_pace_from_near_the_start_of_a_member_that_is_not_the_nearest(
    weight: float, data: Trajectories, color: list[int]
) -> None:
    members, offsets = _groups(data, color)
    distance = make_distance(data, "spatiotemporal", weight)
    made, own = (
        aggregate(data, distance, members, offsets, how) for how in ("composed-trajectory", "closest-trajectory")
    )
    for g in range(len(offsets) - 1):
        here = [_paths_of(data, _original(data, i)) for i in members[offsets[g] : offsets[g + 1]].tolist()]
        nearest, found = _paths_of(data, _of(own, g)), _paths_of(data, _of(made, g))
        assert len(found) == len(nearest)
        evenly = [_paths_of(data, _original(data, i)) for i in _evenly(data, members[offsets[g] : offsets[g + 1]])]
        means = [_along(evenly, len(found), axis) for axis in (0, 1)]
        for i, (*place, _) in enumerate(found):
            for axis, value in enumerate(place):
                assert abs(value - (0.9 * means[axis][i] + 0.1 * nearest[i][axis])) < 1.5
        other = here[1 if len(here) > 1 and here[0] == nearest else 0]
        wanted = _composed_times(evenly, other, len(found))
        assert all(abs(point[2] - second) <= 0.5 + 1e-6 for point, second in zip(found, wanted, strict=True))
        _rises_within(found, here)


def _composed_times(here: list[plain.Path], other: plain.Path, points: int) -> list[float]:
    """Times with the mean pace, from near the start of a member; those that do not rise by a second are moved to do so."""
    pace = _along([[(0.0, 0.0, p[2] - path[0][2]) for p in path] for path in here], points, 2)
    start = 0.8 * other[0][2] + 0.2 * float(np.mean([path[0][2] for path in here]))
    start = min(start, max(path[-1][2] for path in here) - pace[-1])
    rising = [float(start + pace[0])]
    for passed in pace[1:]:
        rising.append(max(float(start + passed), float(np.floor(rising[-1] + 0.5)) + 1))
    first, last = min(path[0][2] for path in here), max(path[-1][2] for path in here)
    return [max(min(t, last - (points - 1 - i)), first) for i, t in enumerate(rising)]


def _along(here: list[plain.Path], points: int, axis: int) -> Floats:
    """Return the mean of a coordinate at equal parts of the way of each path; that of the middle where there is one point."""
    means = []
    for path in here:
        at = np.linspace(0, len(path) - 1, points) if points > 1 else np.full(1, (len(path) - 1) / 2)
        means.append(np.interp(at, np.arange(len(path)), [p[axis] for p in path]))
    found: Floats = np.mean(means, axis=0)
    return found


@pytest.mark.parametrize("how", NAMES.own)
@pytest.mark.parametrize("distance", ["spatiotemporal", "graph", "dtw", "discrete-frechet"])
@settings(max_examples=tries(10), deadline=None)
@given(data=trajectories(), color=colors)
def test_any_aggregation_goes_with_any_distance(
    how: AggregationName, distance: str, data: Trajectories, color: list[int]
) -> None:
    members, offsets = _groups(data, color)
    made = aggregate(data, make_distance(data, distance, 0.5), members, offsets, how)
    assert len(made.offsets) == len(offsets) and (np.diff(made.offsets) > 0).all()


@pytest.mark.parametrize("how", NAMES.own)
def test_no_groups_make_no_trajectories(how: AggregationName) -> None:
    none = Trajectories(*(np.zeros(0) for _ in range(3)), np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(0))
    distance: Distance = make_distance(none, "spatiotemporal", 0.5)
    made = aggregate(none, distance, np.zeros(0, np.int64), np.zeros(1, np.int64), how)
    assert made.offsets.tolist() == [0] and len(made.lon) == 0


def test_aggregations_are_found_by_name_and_alias() -> None:
    assert tuple(all_aggregations()) == NAMES.own
    assert find_aggregation("Mean_trajectory").name == "mean-trajectory"
    assert find_aggregation("Closest_trajectory_to_mean_trajectory").name == "closest-trajectory"
    assert find_aggregation("Closest_locations_to_mean_trajectory").name == "closest-locations"
    assert all(a.summary.endswith(".") and "\n" not in a.summary for a in AGGREGATIONS)
    with pytest.raises(ParameterError, match=r"there is no aggregation median. Known are mean-trajectory, composed"):
        find_aggregation("median")
