"""Intervals of time that fit the flows, against brute force over all partitions in three dimensions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import problems, with_trees
from plain_time import PlainTime, parts_in_rectangles, parts_in_tree
from release_rows import sorted_rows

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.flows import trips_to_flows
from crowdveil.methods.od.joint import METHOD, JointParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.release import REPORTED, FlowRelease
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.solve.od.assignment import row_of_flows
from crowdveil.solve.od.region_space import RegionExtent, RegionSpace
from crowdveil.solve.od.time_boxes import AdaptiveProblem
from crowdveil.solve.od.time_tree import time_windows

HOUR, DAY = 3600, 86_400
SPLITS = st.sampled_from(["tree", "dyadic"])
OBJECTIVES = st.sampled_from(["generalization", "reconstruction"])
LONGEST = st.sampled_from([24, 4, 2, 1])


@st.composite
def problems_in_hours(draw: st.DrawFn) -> tuple[Flows, Trips]:
    """Trips of a few people in a few hours of one day, between four places in the plane, with two trees over them."""
    flows, trips = draw(problems())
    hours = draw(st.lists(st.sampled_from([0, 1, 2, 3, 6, 13]), min_size=len(trips), max_size=len(trips)))
    zones = Zones(trips.zones.ids, np.array([2.0, 2.1, 2.0, 2.1]), np.array([48.0, 48.0, 48.1, 48.1]), kind="centroids")
    timed = replace(trips, zones=zones, t=HOUR * np.array(hours))
    trees = flows.origin_tree, flows.destination_tree
    assert trees[0] is not None and trees[1] is not None
    return with_trees(trips_to_flows(timed, step="1h", members=True), *trees), timed


def _plain(flows: Flows, trips: Trips, k: int, splits: str, **more: Any) -> PlainTime:
    if splits == "dyadic":
        return PlainTime(trips, k, [parts_in_rectangles(trips.zones)] * 2, **more)
    assert flows.origin_tree is not None and flows.destination_tree is not None
    return PlainTime(trips, k, [parts_in_tree(flows.origin_tree), parts_in_tree(flows.destination_tree)], **more)


@examples(60)
@given(
    problem=problems_in_hours(), k=st.integers(2, 4), p=st.integers(0, 30), q=st.integers(0, 5), splits=SPLITS,
    objective=OBJECTIVES, longest=LONGEST, weight=st.sampled_from(["0", "0.25", "1", "5"]), tiles=st.integers(1, 2),
)  # fmt: skip
def test_an_evaluation_is_the_best_of_all_partitions(
    problem: Any, k: int, p: int, q: int, splits: str, objective: Any, longest: int, weight: str, tiles: int
) -> None:
    flows, trips = problem
    plain = _plain(flows, trips, k, splits, weight=Fraction(weight), cells=objective == "reconstruction", tiles=tiles)
    everything = plain.all(longest)
    make = RegionSpace.rectangles if splits == "dyadic" else RegionSpace.trees
    windows = time_windows(flows, longest * HOUR, Fraction(weight))
    asked = AdaptiveProblem(flows, make(flows, objective, RegionExtent(tiles)), windows, k, objective)
    assert len(windows) == 1
    space = asked.space(0)
    if not everything:
        assert space is None
        return
    assert space is not None and space.total == plain.volume(longest)
    got = space.solve_at(Fraction(p, q) if q else None)[:2]
    if q == 0:
        assert tuple(got[::-1]) == min((s, a) for a, s in everything)
    else:
        assert (q * got[0] + p * got[1], got[1]) == min((q * a + p * s, s) for a, s in everything)


@pytest.mark.parametrize("hours", [(0, 1), (0, 13)])
def test_an_interval_without_a_crowd_in_any_part_can_be_given_up(hours: tuple[int, int]) -> None:
    zones = Zones(np.array(["a", "b"], object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids")
    trips = Trips(zones, np.zeros(2, np.int32), np.ones(2, np.int32), HOUR * np.array(hours))
    flows = trips_to_flows(trips, step="1h", members=True)
    windows = time_windows(flows, 24 * HOUR, Fraction(0))
    space = AdaptiveProblem(flows, RegionSpace.trees(flows), windows, 2, "generalization").space(0)
    assert space is not None
    assert space.solve_at(Fraction(0))[:2] == (0, 2)
    assert space.solve_at(Fraction(3))[:2] == (4, 0)


@examples(40)
@given(
    problem=problems_in_hours(), k=st.integers(2, 4), share=st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), splits=SPLITS,
    weight=st.sampled_from([0.0, 0.25, 5.0]), longest=LONGEST,
)  # fmt: skip
def test_the_budget_is_kept_and_the_cost_is_the_least(
    problem: Any, k: int, share: float, splits: Any, weight: float, longest: int
) -> None:
    flows, trips = problem
    plain = _plain(flows, trips, k, splits, weight=Fraction(repr(weight)))
    everything = plain.all(longest)
    params = JointParams(
        k=k, suppress=f"{100 * share}%", splits=splits, time_partition="adaptive", hour_weight=weight,
        longest=f"{longest}h",
    )  # fmt: skip
    release = run(flows, params, np.random.default_rng(0), no_progress)
    _check_rows(flows, trips, release, k)
    if not everything:
        assert len(release) == 0
        return
    size, unit = release.areas.size, Fraction(repr(weight)).denominator
    tiles = size[release.origin] + size[release.destination]
    cost = ((unit * tiles + int(weight * unit) * (release.steps_spanned - 1)) * release.volume).sum()
    volume = plain.volume(longest)
    suppressed, budget = volume - int(release.volume.sum()), int(share * volume + 1e-9)
    assert suppressed <= budget
    assert cost == min(a for a, s in everything if s <= budget)


def _check_rows(flows: Flows, trips: Trips, release: FlowRelease, k: int) -> None:
    """Every row has the trips and people of its box, at least k of them; no trip is in two rows."""
    assert trips.t is not None
    person = (trips.person if trips.person is not None else np.arange(len(trips))).tolist()
    times = release.t[release.step] if release.intervals is None else release.intervals.t
    ends = times + HOUR * release.steps_spanned
    areas = release.areas
    seen = [0] * len(trips)
    for row in range(len(release)):
        o, d = (
            set(areas.tiles[areas.offsets[x] : areas.offsets[x + 1]].tolist())
            for x in (release.origin[row], release.destination[row])
        )
        inside = [
            i for i in range(len(trips))
            if trips.origin[i] in o and trips.destination[i] in d and times[row] <= trips.t[i] < ends[row]
        ]  # fmt: skip
        assert len(inside) == release.volume[row]
        assert len({person[i] for i in inside}) == release.people[row] >= k
        for i in inside:
            seen[i] += 1
    assert max(seen, default=0) <= 1
    if release.intervals is not None and len(release):
        assert release.intervals.steps.max() > 1 and np.all(np.diff(release.intervals.first[release.state == 0]) >= 0)


@examples(40)
@given(
    problem=problems_in_hours(), k=st.integers(2, 4), splits=SPLITS, objective=OBJECTIVES, empty=st.booleans(),
    tiles=st.integers(1, 2),
)  # fmt: skip
def test_small_flows_are_disjoint_and_of_k_people(
    problem: Any, k: int, splits: Any, objective: Any, empty: bool, tiles: int
) -> None:
    flows, trips = problem
    params = JointParams(
        k=k, suppress="50%", splits=splits, objective=objective, time_partition="adaptive", aggregate_small=True,
        include_empty=empty, min_tiles=tiles, hour_weight=1,
    )  # fmt: skip
    release = run(flows, params, np.random.default_rng(0), no_progress)
    _check_rows(flows, trips, release, k)
    assert release.areas.size.min(initial=tiles) >= tiles


def test_small_flows_of_intervals_are_aggregated() -> None:
    """Of three hours one has too few trips from a to c and to d: together they have k, in that hour."""
    zones = Zones(np.array(list("abcd"), object), np.arange(4) / 10, np.zeros(4), kind="centroids")
    rows = (
        [(0, 1, h) for h in range(3) for _ in range(20)]
        + [(0, 2, 1)] * 3
        + [(0, 3, 1)] * 3
        + [(2, 1, 0), (2, 1, 13)] * 4
    )
    o, d, h = (np.array(c) for c in zip(*rows, strict=True))
    flows = trips_to_flows(Trips(zones, o, d, t=HOUR * h), step="1h", members=True)
    params = JointParams(k=5, suppress="7trips", time_partition="adaptive", aggregate_small=True, hour_weight=0.01)
    release = run(flows, params, np.random.default_rng(0), no_progress)
    small = release.state == REPORTED
    assert small.any() and release.people[small].min() >= 5 and release.intervals is not None


@examples(60)
@given(data=testing.flows(max_steps=1), splits=SPLITS, objective=OBJECTIVES, k=st.integers(2, 8), small=st.booleans())
def test_one_time_step_is_as_before(data: Flows, splits: Any, objective: Any, k: int, small: bool) -> None:
    """Where a window has one time step, the release is that of `steps`, row by row."""
    data = replace(data, step_s=DAY, t=DAY * (data.t // DAY))
    asked: dict[str, Any] = {"k": k, "splits": splits, "objective": objective, "aggregate_small": small}
    both = [
        run(data, JointParams(**asked, time_partition=how), np.random.default_rng(0), no_progress)
        for how in ("steps", "adaptive")
    ]
    assert both[1].intervals is None and sorted_rows(both[0]) == sorted_rows(both[1])
    assert both[0].suppressed.tolist() == both[1].suppressed.tolist()


def test_area_counts_an_hour_as_tiles_of_mean_size() -> None:
    """On squares of one size, areas and numbers of tiles rank all partitions alike."""
    data = _city()
    both = [
        run(
            data,
            JointParams(k=5, objective=objective, time_partition="adaptive"),
            np.random.default_rng(0),
            no_progress,
        )
        for objective in ("generalization", "area")
    ]
    assert [r.intervals is not None for r in both] == [True, True]
    size = [np.average(r.areas.size[r.origin] + r.areas.size[r.destination], weights=r.volume) for r in both]
    hours = [np.average(r.steps_spanned, weights=r.volume) for r in both]
    assert abs(size[0] - size[1]) < 0.05 * size[0] and abs(hours[0] - hours[1]) < 0.05 * hours[0]


def _city() -> Flows:
    """Return trips on a grid of nine squares, many at noon and few at night, over three days."""
    from crowdveil.model.globe import Box
    from crowdveil.model.tessellation import grid_over, grid_zones

    rng = np.random.default_rng(4)
    zones = grid_zones(grid_over(Box(2.0, 48.0, 2.03, 48.02), 800.0))
    n = 4000
    hour = np.clip(rng.normal(13, 5, n), 0, 23).astype(int) + 24 * rng.integers(0, 3, n)
    o, d = (rng.integers(0, len(zones), n) ** 2 // len(zones) for _ in range(2))
    return trips_to_flows(Trips(zones, o, d, t=HOUR * hour, person=rng.integers(0, 900, n)), step="1h", members=True)


@pytest.mark.parametrize("weight", [1, 3, 8])
def test_sparse_hours_are_joined(weight: int) -> None:
    data = _city()
    params = JointParams(k=8, time_partition="adaptive", hour_weight=weight)
    release = run(data, params, np.random.default_rng(0), no_progress)
    steps = run(data, JointParams(k=8), np.random.default_rng(0), no_progress)
    size = [
        np.average(r.areas.size[r.origin] + r.areas.size[r.destination], weights=r.volume) for r in (release, steps)
    ]
    assert release.intervals is not None and len(release.t) == 3 and size[0] < size[1]
    row = row_of_flows(data, release)
    sums = np.zeros(len(release), np.int64)
    np.add.at(sums, row[row >= 0], data.volume[row >= 0])
    assert np.array_equal(sums, release.volume)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"hour_weight": 2}, "time_partition"),
        ({"time_partition": "adaptive", "hour_weight": 0.001}, "two decimals"),
        ({"time_partition": "adaptive", "hour_weight": -1}, "two decimals"),
        ({"time_partition": "adaptive", "longest": "soon"}, "length of time"),
        ({"time_partition": "adaptive", "longest": "7d"}, "at most a day"),
        ({"time_partition": "adaptive", "stable_by": "day-type"}, "time_partition"),
    ],
)
def test_options_that_do_not_fit(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        JointParams.checked(asked)


@pytest.mark.parametrize(
    ("step_s", "said"), [(None, "need time steps"), (7 * HOUR, "divide a day"), (7 * DAY, "divide a day")]
)
def test_time_steps_that_do_not_fit(step_s: int | None, said: str) -> None:
    data = replace(_city().at_steps(np.arange(1)), step_s=step_s)
    with pytest.raises(InputError, match=said):
        run(data, JointParams(time_partition="adaptive"), np.random.default_rng(0), no_progress)


def test_partitions_hold_whole_days() -> None:
    t = np.arange(48) * HOUR
    days = METHOD.time_groups(JointParams(time_partition="adaptive"), t, "UTC")
    assert np.unique(days, return_counts=True)[1].tolist() == [24, 24]


@pytest.mark.parametrize("splits", ["dyadic", "free"])
def test_a_window_without_k_people_is_suppressed_next_to_others(splits: Any) -> None:
    """It has no figures of its own, where refined windows have one more than others."""
    rng, n = np.random.default_rng(1), 2000
    zones = Zones(list("abcd"), np.array([2.0, 2.1, 2.0, 2.1]), np.array([48.0, 48.0, 48.1, 48.1]), kind="centroids")
    ends = rng.integers(0, 4, (2, n)).astype(np.int32)
    trips = Trips(zones, *ends, t=np.where(np.arange(n) < 3, 0, DAY) + HOUR * rng.integers(0, 24, n))
    asked = JointParams(k=10, time_partition="adaptive", splits=splits)
    release = run(trips_to_flows(trips, step="1h"), asked, rng, no_progress)
    first_rows = release.offsets[np.searchsorted(release.t, DAY)]
    assert first_rows == 0 and len(release) > 0 and release.people.min() >= 10
