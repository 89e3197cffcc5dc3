"""Profiles against sums by hand, the calendar that they are means over, and their likeness to the original."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_measures import dense, rebuilt, releases

import crowdveil
from crowdveil.analysis.calendar import Slots
from crowdveil.analysis.profiles import correlations
from crowdveil.errors import InputError, ParameterError
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.testing import flows

MONDAY = 1_767_571_200  # 2026-01-05


def _spread_out(data: Flows, release: FlowRelease, draw: st.DataObject) -> tuple[Flows, FlowRelease]:
    """The same with steps at any hours of a few weeks."""
    hours = sorted(draw.draw(st.sets(st.integers(0, 500), min_size=data.steps, max_size=data.steps)))
    t = MONDAY + 3600 * np.array(hours, np.int64)
    return replace(data, t=t), replace(release, t=t[np.searchsorted(data.t, release.t)])


@given(st.data())
def test_profiles_are_means_of_dense_matrices(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    data, release = _spread_out(data, draw.draw(releases(data)), draw)
    found = crowdveil.profiles(release, original=data, pairs=2)
    hours = ((np.arange(data.t[0], data.t[-1] + 1, 3600) - MONDAY) // 3600) % 168
    times = np.bincount(hours, minlength=168)
    assert found.slots.times.tolist() == times.tolist()
    v, w = np.zeros((168, *[len(data.zones)] * 2)), np.zeros((168, *[len(data.zones)] * 2))
    for step, t in enumerate(data.t):
        slot = (t - MONDAY) // 3600 % 168
        v[slot] += dense(data, step)
        w[slot] += rebuilt(data, release, step)
    there = times > 0
    for i in range(len(found)):
        o, d = (slice(None) if z < 0 else slice(z, z + 1) for z in (found.origin[i], found.destination[i]))
        wanted = [m[there][:, o, d].sum(axis=(1, 2)) / times[there] for m in (w, v)]
        assert found.original is not None
        assert np.nan_to_num(found.volume[i, there]) == pytest.approx(wanted[0])
        # Nothing published is a gap, and so are both bounds; nobody in the original is zero.
        assert np.array_equal(np.isnan(found.volume[i, there]), wanted[0] == 0)
        assert np.array_equal(np.isnan(found.volume[i]), np.isnan(found.lower[i]) & np.isnan(found.upper[i]))
        assert found.original[i, there] == pytest.approx(wanted[1])
        lower, upper = (np.nan_to_num(bound[i, there]) for bound in (found.lower, found.upper))
        assert np.all(lower <= wanted[0] + 1e-9) and np.all(wanted[0] <= upper + 1e-9)
        assert np.isnan(found.volume[i, ~there]).all()
        # Hours without a published row are not compared: nothing is known of them, which is not 0.
        both = wanted[0] > 0
        ours, theirs = wanted[0][both], wanted[1][both]
        assert found.hours_compared[i] == both.sum()
        if theirs.sum():
            assert found.error[i] == pytest.approx(np.abs(ours - theirs).sum() / theirs.sum())
        else:
            assert np.isnan(found.error[i])
        if min(both.sum(), np.ptp(ours) if both.any() else 0, np.ptp(theirs) if both.any() else 0) > 0.01:
            assert found.correlation[i] == pytest.approx(np.corrcoef(ours, theirs)[0, 1])
    # Every zone that anything is known of has its two profiles, and no other.
    seen = (v + w).sum(axis=0)
    assert (found.destination < 0).sum() == np.count_nonzero(seen.sum(axis=1))
    assert (found.origin < 0).sum() == np.count_nonzero(seen.sum(axis=0))


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_correlations_are_numpys(hours: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.poisson(5, (3, hours)) + 0.5, rng.poisson(5, (3, hours)) + 0.25
    a[2] = 7.1  # flat: no correlation
    found = correlations(a, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = [np.corrcoef(x, y)[0, 1] for x, y in zip(a[:2], b[:2], strict=True)]
    assert found[:2] == pytest.approx(wanted, nan_ok=True) and np.isnan(found[2])
    gap = np.full((3, 2), np.nan)
    assert correlations(np.hstack([a, gap]), np.hstack([b, b[:, :2]])) == pytest.approx(found, nan_ok=True)
    assert np.isnan(correlations(gap, gap)).all()


@given(
    st.integers(0, 9000),
    st.integers(1, 700),
    st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu"]),
)
def test_hours_come_up_as_on_the_wall(start: int, length: int, tz: str) -> None:
    """Walk from hour to hour and look at the clock; the hour that is shown twice counts once, as a time step does."""
    begin = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=start)
    local = begin.astimezone(ZoneInfo(tz)).replace(minute=0, second=0)
    first = int(local.timestamp())
    walls = [datetime.fromtimestamp(first + 3600 * i, ZoneInfo(tz)).replace(tzinfo=None) for i in range(length)]
    wanted = np.zeros(168, int)
    for wall in dict.fromkeys(walls):
        wanted[wall.weekday() * 24 + wall.hour] += 1
    empty = np.zeros(0, np.int32)
    t = np.array([first, first + 3600 * (length - 1)], np.int64)[: 1 if length == 1 else 2]
    release = replace(_release(t), tz=tz, origin=empty, destination=empty)
    assert Slots.of([release], "week").times.tolist() == wanted.tolist()


def _release(t: np.ndarray, step_s: int = 3600) -> FlowRelease:
    from crowdveil.model.areas import Areas
    from crowdveil.model.zones import Zones

    none = np.zeros(0, np.int64)
    return FlowRelease(
        Areas.of_tiles(Zones.from_ids(["a", "b:c", "c"]), np.arange(3, dtype=np.int32)), t, np.zeros(len(t) + 1, np.int64),
        none, none, none, none, none, np.zeros(len(t), np.int64), "trips", step_s,
    )  # fmt: skip


def _flows(rows: list[tuple[int, int, int, int]], step_s: int = 3600) -> FlowRelease:
    """Rows (hour after Monday, origin, destination, volume) between single tiles."""
    hour, o, d, v = (np.array(column) for column in zip(*rows, strict=True))
    base = _release(np.unique(MONDAY + 3600 * hour), step_s)
    return replace(base, offsets=np.searchsorted(hour, [*np.unique(hour), 10**9]), origin=o.astype(np.int32),
                   destination=d.astype(np.int32), volume=v, people=v, state=np.zeros(len(v), np.uint8))  # fmt: skip


def test_what_is_selected_and_what_is_large_is_reported() -> None:
    release = _flows([(0, 0, 1, 10), (1, 0, 1, 30), (1, 1, 2, 5), (167, 2, 0, 7), (168, 0, 1, 20)])
    found = crowdveil.profiles(release, select="a, b:c:c,a:b:c")
    assert [found.name(i) for i in range(len(found))] == ["from a", "to a", "b:c → c", "a → b:c"]
    assert found.volume[3, 0] == 15 and found.volume[3, 1] == 30  # Monday 00:00 came up twice
    assert found.trips_a_day[3] == pytest.approx(60 / (169 / 24))
    more = crowdveil.profiles(release, pairs=1)
    assert more.name(len(more) - 1) == "a → b:c"
    # In a week a has 67 trips at its ends, b:c 65 and c 12; a pair is counted by itself.
    assert [p.origin.tolist() for p in [crowdveil.profiles(release, least_trips=9.3)]] == [[0, -1]]
    assert len(crowdveil.profiles(release, least_trips=9.3, select="a:b:c,a")) == 2
    by_day = crowdveil.profiles(release, period="day", select="c:a")
    assert (
        by_day.volume.shape == (1, 24) and by_day.volume[0, 23] == 1 and by_day.table()["hour"][23].as_py() == "23:00"
    )
    assert "day" not in by_day.table().column_names


def test_longer_steps_have_longer_parts() -> None:
    release = _flows([(0, 0, 1, 10), (6, 0, 1, 30), (24, 0, 1, 8)], step_s=6 * 3600)
    found = crowdveil.profiles(release, period="day", select="a:b:c")
    assert (
        np.array_equal(found.volume, [[9.0, 30.0, np.nan, np.nan]], equal_nan=True) and found.slots.name(1) == "06:00"
    )
    days = crowdveil.profiles(_flows([(0, 0, 1, 10), (24, 0, 1, 30)], step_s=86400), select="a:b:c")
    assert days.volume[0, :2].tolist() == [10.0, 30.0] and len(days.slots) == 7 and np.isnan(days.volume[0, 2:]).all()
    quarters = _flows([(0, 0, 1, 10), (1, 0, 1, 4)], step_s=900)
    quarters = replace(quarters, t=np.array([MONDAY, MONDAY + 900]))
    assert crowdveil.profiles(quarters, select="a:b:c").volume[0, 0] == 14


def test_a_week_without_a_row_counts_and_an_hour_without_any_is_a_gap(tmp_path: Path) -> None:
    found = crowdveil.profiles(_flows([(0, 0, 1, 10), (168 * 3, 0, 1, 2)]), select="a:b:c,c")
    assert found.volume[0, 0] == 12 / 4 and np.isnan(found.volume[0, 1:]).all()
    assert found.table()["volume"].null_count == 168 * 3 - 1
    assert any("suppressed or not observed" in line for line in found.lines())
    found.write(tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[2].split(",")[:3] == ["a", "b:c", "Monday"]
    assert ",0," not in (tmp_path / "p.csv").read_text() and ",0.0" not in (tmp_path / "p.csv").read_text()


def test_steps_longer_than_an_hour_that_are_no_whole_hours_have_their_own_slots() -> None:
    """Two weeks of steps of 90 minutes: each of the 112 slots occurs twice, and has the mean of its two steps."""
    t = MONDAY + 5_400 * np.arange(224)
    release = replace(_flows([(i, 0, 1, 20 + i) for i in range(224)]), t=t, step_s=5_400)
    found = crowdveil.profiles(release, select="a:b:c")
    assert found.slots.times.tolist() == [2] * 112
    assert found.volume[0].tolist() == [20 + i + 56 for i in range(112)]
    assert found.slots.name(1) == "Monday 01:30" and found.slots.name(16) == "Tuesday 00:00"


@pytest.mark.parametrize(
    ("change", "options", "error", "said"),
    [
        ({"step_s": None}, {}, InputError, "need time steps"),
        ({"step_s": 86400}, {"period": "day"}, InputError, "but not of a whole day"),
        ({"step_s": 7 * 3600}, {}, InputError, "25,200 seconds"),
        ({}, {"select": "a:x"}, ParameterError, "names none"),
        ({}, {"period": "month"}, ParameterError, "period"),
        ({}, {"least_trips": -1}, ParameterError, "least_trips"),
        ({}, {"to_zones": "h3:16"}, ParameterError, "to_zones: Expected an H3 resolution"),
        ({}, {"to_zones": "grid:1km"}, InputError, "no outlines"),
        ({}, {"weight": "nowhere.csv"}, InputError, "no file nowhere.csv"),
    ],
)
def test_what_cannot_be_is_reported(change: dict[str, Any], options: dict[str, Any], error: type, said: str) -> None:
    release = replace(_flows([(0, 0, 1, 10), (24, 0, 1, 30)]), **change)
    with pytest.raises(error, match=said):
        crowdveil.profiles(release, **options)
