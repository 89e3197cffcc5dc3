"""Intervals of time that fit the flows, against brute force over all partitions in three dimensions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
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
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.flows import trips_to_flows
from crowdveil.io.time_levels import read_time_levels
from crowdveil.io.time_windows import WindowOptions, time_windows
from crowdveil.methods.od.joint import METHOD, JointParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.intervals import TimeLevels
from crowdveil.model.release import REPORTED, FlowRelease
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.progress import no_progress
from crowdveil.run import pipeline, releases
from crowdveil.solve.od.assignment import row_of_flows
from crowdveil.solve.od.region_space import RegionExtent, RegionSpace
from crowdveil.solve.od.time_boxes import AdaptiveProblem

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
    windows = time_windows(flows, WindowOptions("1d", longest * HOUR), k, Fraction(weight))
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
    windows = time_windows(flows, WindowOptions("1d", 24 * HOUR), 2, Fraction(0))
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
    params = JointParams(k=5, suppress_trips=7, time_partition="adaptive", aggregate_small=True, hour_weight=0.01)
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
        ({"time_partition": "stable", "window": "7d"}, "time_partition"),
        ({"time_partition": "adaptive", "stable_by": "day-type"}, "time_partition"),
    ],
)
def test_options_that_do_not_fit(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        JointParams.checked(asked)


@pytest.mark.parametrize(
    ("step_s", "said"), [(None, "need time steps"), (7 * HOUR, "divide a day"), (7 * DAY, "longer than")]
)
def test_time_steps_that_do_not_fit(step_s: int | None, said: str) -> None:
    data = replace(_city().at_steps(np.arange(1)), step_s=step_s)
    with pytest.raises(InputError, match=said):
        run(data, JointParams(time_partition="adaptive"), np.random.default_rng(0), no_progress)


def test_the_ends_of_a_period_have_k_people() -> None:
    """One trip three days before all others: no interval begins on its day."""
    data = _city()
    zones = data.zones
    early = Flows.from_rows(
        zones, np.array([-3 * DAY]), np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int64), step_s=HOUR
    )
    both = Flows.from_rows(
        zones, np.concatenate([early.t[early.step], data.t[data.step]]), np.concatenate([early.origin, data.origin]),
        np.concatenate([early.destination, data.destination]), np.concatenate([early.volume, data.volume]), step_s=HOUR,
    )  # fmt: skip
    params = JointParams(k=500, time_partition="adaptive", window="all", longest="all", hour_weight=0)
    release = run(both, params, np.random.default_rng(0), no_progress)
    assert release.intervals is not None and release.intervals.t.min() == 0 and release.step_table().num_rows == 1


def test_partitions_hold_whole_windows() -> None:
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


TABLE = "time,period,half\n00:00,night,early\n06:00,morning,early\n09:00,midday,late\n16:00,evening,late\n20:00,night,late\n"


def test_a_table_of_the_day(tmp_path: Path) -> None:
    """Intervals are those of the table, whole days, or single time steps."""
    path = tmp_path / "day.csv"
    path.write_text(TABLE)
    data = replace(_city(), time_levels=read_time_levels(path))
    release = run(
        data, JointParams(k=8, time_partition="adaptive", hour_weight=1), np.random.default_rng(0), no_progress
    )
    assert release.intervals is not None
    spans = {(a % 24, a % 24 + n) for a, n in zip(release.intervals.t // HOUR, release.intervals.steps, strict=True)}
    named = {(0, 6), (6, 9), (9, 16), (16, 20), (20, 24), (0, 9), (9, 24), (0, 24)}
    assert spans <= named | {(h, h + 1) for h in range(24)} and spans & named
    assert read_time_levels("calendar") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time\n00:00\n", "one or more"),
        ("time,a\n01:00,x\n", "rise from 00:00"),
        ("time,a\n00:00,x\n00:00,y\n", "rise from 00:00"),
        ("time,a\n00:00,x\n25:00,y\n", "such as 06:30"),
        ("time,a,b\n00:00,x,p\n05:00,x,q\n", "whole ones"),
        ("time,a\n00:00,x\n05:00,\n", "fill it in"),
        ("time,a\nTue 00:00,x\n", "rise from Mon 00:00"),
        ("time,a\nMon 00:00,x\n05:00,y\n", "names a day"),
        ("time,a\nDay 00:00,x\n", "Mon 06:30"),
    ],
)
def test_tables_of_the_day_that_are_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "day.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_time_levels(path)


@pytest.mark.parametrize(
    ("starts", "longest", "said"), [([0, 5400], "24h", "begin with"), ([0, 7200], "4h", "at least 24h")]
)
def test_tables_of_the_day_that_do_not_fit(starts: list[int], longest: str, said: str) -> None:
    data = replace(_city(), time_levels=TimeLevels(86_400, (np.array(starts),)))
    with pytest.raises(InputError, match=said):
        run(data, JointParams(time_partition="adaptive", longest=longest), np.random.default_rng(0), no_progress)


WEEK_TABLE = (
    "time,part,days\nMon 00:00,work,working days\nFri 16:00,evening,working days\nSat 00:00,Saturday,weekend\n"
    "Sunday 00:00,Sunday,weekend\n"
)


def _two_weeks(rng: np.random.Generator) -> Flows:
    """A few trips of two weeks from Monday, 2023-01-02."""
    city, n = _city(), 260
    hour = rng.integers(0, 14 * 24, n)
    ends = (rng.integers(0, len(city.zones), n) for _ in range(2))
    trips = Trips(city.zones, *ends, t=1_672_617_600 + HOUR * hour, person=np.arange(n))
    return trips_to_flows(trips, step="1h", members=True)


@pytest.mark.parametrize("window", ["7d", "all"])
def test_a_table_of_the_week(tmp_path: Path, window: Any) -> None:
    """Intervals are those of the table, whole weeks, or hours; the written release keeps k and its budget in each window."""
    path = tmp_path / "week.csv"
    path.write_text(WEEK_TABLE)
    data = replace(_two_weeks(np.random.default_rng(4)), time_levels=read_time_levels(path))
    asked = {"k": 12, "time_partition": "adaptive", "hour_weight": 0.05, "window": window, "longest": "7d"}
    pipeline.run(pipeline.Request("joint", data, tmp_path / "out", asked, options={"attack": False, "report": False}))
    assert all(finding.holds for _, finding in releases.verify(tmp_path / "out", data))
    release = run(data, JointParams(**asked), np.random.default_rng(0), no_progress)
    assert release.intervals is not None
    begun = (release.intervals.t - 1_672_617_600) // HOUR % 168
    spans = set(zip(begun.tolist(), (begun + release.intervals.steps).tolist(), strict=True))
    named = {(0, 112), (112, 120), (0, 120), (120, 144), (144, 168), (120, 168), (0, 168)}
    assert spans <= named | {(h, h + 1) for h in range(168)} and len(spans & named) > 1
    assert int(release.intervals.steps.max()) > 24


@pytest.mark.parametrize(
    ("given", "said"),
    [({"longest": "7d"}, "must be 7d or all"), ({"window": "7d"}, "at least 7d")],
)
def test_a_table_of_the_week_needs_a_window_of_a_week(tmp_path: Path, given: Any, said: str) -> None:
    path = tmp_path / "week.csv"
    path.write_text(WEEK_TABLE)
    data = replace(_city(), time_levels=read_time_levels(path))
    with pytest.raises(InputError, match=said):
        run(data, JointParams(time_partition="adaptive", **given), np.random.default_rng(0), no_progress)
