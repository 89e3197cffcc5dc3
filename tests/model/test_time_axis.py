"""Time steps against a plain reading of the calendar, clocks on the wall against `zoneinfo`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import ParameterError
from crowdveil.model.time_axis import Clock, TimeAxis, shortest_step, step_classes, step_seconds

unhurried = settings(deadline=None, max_examples=tries(60))
EPOCH = datetime(1970, 1, 1)
walls = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))
ZONES = sorted(available_timezones())


def whole_seconds(moment: datetime) -> int:
    """Seconds since 1970, of UTC where the zone is known; rounded down, before 1970 too."""
    naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
    return (naive - EPOCH) // timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15min", 900), ("1h", 3600), ("1d", 86400), ("2w", 1209600), ("30 s", 30), (" 5m ", 300),
     ("10sec", 10), ("all", None), (None, None)],
)  # fmt: skip
def test_lengths_are_read(text: str | int | None, seconds: int | None) -> None:
    assert step_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["0h", "abc", "", "-1h", "1.5h", "1y", "h", "1 h 5", 0, -5, "9" * 30 + "h", "101w w", "9999999d"]
)
def test_lengths_that_are_none_are_refused(text: str | int) -> None:
    with pytest.raises(ParameterError, match="step: Expected a length of time"):
        step_seconds(text)


def plain_start(wall: datetime, step: str) -> datetime:
    """When the step of a time on the wall begins, by the calendar."""
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    if step == "1w":
        return midnight - timedelta(days=midnight.weekday())
    if step == "1d":
        return midnight
    return wall.replace(minute=wall.minute // 15 * 15 if step == "15min" else 0, second=0, microsecond=0)


@unhurried
@given(st.lists(walls, min_size=1, max_size=10), st.sampled_from(["15min", "1h", "1d", "1w"]))
def test_steps_begin_where_the_calendar_says(wall: list[datetime], step: str) -> None:
    steps = TimeAxis(step_seconds(step) or 0, "UTC")
    seconds = np.array([(w - EPOCH) // timedelta(seconds=1) for w in wall], np.int64)
    starts = steps.starts(steps.number(seconds))
    assert [EPOCH + timedelta(seconds=s) for s in starts.tolist()] == [plain_start(w, step) for w in wall]


@pytest.mark.parametrize("step", [900, 3600, 86_400, 604_800])
def test_the_shortest_step_is_one_of_the_clock(step: int) -> None:
    """Days of 23 and 25 hours are days."""
    year = TimeAxis(step, "Europe/Paris").starts(np.arange(1_767_225_600 // step, 1_798_761_600 // step))
    assert shortest_step(year, "Europe/Paris") == step
    assert shortest_step(year[:1], "Europe/Paris") == 3600


def test_two_steps_with_a_change_of_clocks_between_them() -> None:
    """At 01:00 UTC on 2026-03-29, clocks in Paris went from 02:00 to 03:00; at the same time on 2026-10-25 back from 03:00."""
    for change in (1_774_746_000, 1_792_890_000):
        assert shortest_step(np.array([change - 3600, change]), "Europe/Paris") == 3600
        days = Clock("Europe/Paris").later(np.array([change - 3600]), 86_400)
        assert shortest_step(np.array([change - 3600, *days]), "Europe/Paris") == 86_400


@pytest.mark.parametrize("text", ["90", 90])
def test_a_bare_number_is_refused_with_the_spellings(text: str | int) -> None:
    with pytest.raises(ParameterError, match="Write 90min for minutes or 90s for seconds"):
        step_seconds(text)


def test_classes_of_time_steps() -> None:
    """Friday 23:00 and Saturday 00:00 in Paris; the clock, not UTC, decides."""
    t = np.array([1_709_330_400, 1_709_334_000])  # 2024-03-01 22:00 and 23:00 UTC
    assert step_classes(t, "Europe/Paris", "hour-of-day").tolist() == [23, 0]
    assert step_classes(t, "Europe/Paris", "hour-of-week").tolist() == [4 * 24 + 23, 5 * 24]
    assert step_classes(t, "Europe/Paris", "day-type").tolist() == [0, 1]
    assert step_classes(t, "UTC", "all").tolist() == [0, 0]


# Clocks. The twin asks zoneinfo for one moment at a time.


def wall_of(utc: int, zone: str) -> int:
    moment = EPOCH.replace(tzinfo=UTC) + timedelta(seconds=utc)
    return whole_seconds(moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None))


def utc_of(wall: int, zone: str) -> int:
    """fold = 0: the first of two equal times, and a time in the gap as if the clock had not been put forward."""
    return whole_seconds((EPOCH + timedelta(seconds=wall)).replace(tzinfo=ZoneInfo(zone), fold=0))


@unhurried
@given(st.sampled_from(ZONES), st.lists(st.integers(-3_000_000_000, 4_000_000_000), min_size=1, max_size=6))
def test_clocks_agree_with_zoneinfo(zone: str, seconds: list[int]) -> None:
    clock, given_seconds = Clock(zone), np.array(seconds, np.int64)
    assert clock.to_wall(given_seconds).tolist() == [wall_of(s, zone) for s in seconds]
    assert clock.to_utc(given_seconds).tolist() == [utc_of(s, zone) for s in seconds]


CHANGES = [
    ("Europe/Paris", 1711846800), ("Europe/Paris", 1729990800), ("America/New_York", 1710054000),
    ("America/New_York", 1730613600), ("Australia/Lord_Howe", 1712415600), ("Australia/Lord_Howe", 1728142200),
    ("America/Sao_Paulo", 1541300400), ("Pacific/Apia", 1325239200), ("Africa/Casablanca", 1710036000),
    ("Antarctica/Troll", 1711846800), ("Asia/Kathmandu", 504901800), ("Europe/Dublin", 1711846800),
]  # fmt: skip
"""Moments at which a clock is put forward or back: by an hour, by half of one, at midnight, by a whole day."""


@pytest.mark.parametrize(("zone", "moment"), CHANGES)
def test_clocks_agree_with_zoneinfo_around_a_change(zone: str, moment: int) -> None:
    assert wall_of(moment, zone) - wall_of(moment - 1, zone) != 1, "the clock changes here"
    clock = Clock(zone)
    around = moment + np.arange(-90_000, 90_000, 450)
    seconds = np.concatenate([around - 1, around])
    assert clock.to_wall(seconds).tolist() == [wall_of(s, zone) for s in seconds.tolist()]
    wall = np.concatenate(
        [seconds + (wall_of(moment - 1, zone) - moment + 1), seconds + (wall_of(moment, zone) - moment)]
    )
    assert clock.to_utc(wall).tolist() == [utc_of(s, zone) for s in wall.tolist()]


@pytest.mark.parametrize("days_before", range(8))
def test_a_clock_that_was_put_forward_and_back_within_a_week(days_before: int) -> None:
    on, back = 970974000, 971575200  # Recife, 8 and 15 October 2000
    seconds = np.arange(on - days_before * 86400, back + 9 * 86400, 3600)
    wanted = [wall_of(s, "America/Recife") for s in seconds.tolist()]
    assert Clock("America/Recife").to_wall(seconds).tolist() == wanted
    assert set((np.array(wanted) - seconds).tolist()) == {-10800, -7200}


def test_every_moment_comes_back_except_the_second_of_two_equal_hours() -> None:
    clock, back = Clock("Europe/Paris"), 1729990800
    seconds = np.arange(back - 7200, back + 7200, 60)
    again = clock.to_utc(clock.to_wall(seconds))
    twice = (seconds >= back) & (seconds < back + 3600)
    assert (again[~twice] == seconds[~twice]).all()
    assert (again[twice] == seconds[twice] - 3600).all()


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../zone.tab", "/etc/localtime", "Europe"])
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(ParameterError, match="tz: there is no time zone"):
        Clock(zone)


@unhurried
@given(
    st.sampled_from(ZONES), st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)), min_size=1, max_size=30)
)
def test_times_that_no_clock_showed_or_that_came_twice(zone: str, walls: list[datetime]) -> None:
    """Against `zoneinfo`: a skipped time changes on the way to UTC and back, and one that comes twice has two moments."""
    tz = ZoneInfo(zone)
    walls = [w.replace(microsecond=0) for w in walls]
    for wall in walls[:2]:  # some times near a change of the clock
        moments, _ = Clock(zone).shifts(whole_seconds(wall), whole_seconds(wall) + 400 * 86400)
        walls += [
            EPOCH + timedelta(seconds=int(m)) + shift
            for m in moments[:2]
            for shift in map(timedelta, (0.0, 0.02, 0.04, -0.02, 0.3, -0.3))
        ]
    walls = [w.replace(microsecond=0) for w in walls]
    skipped = [w.replace(tzinfo=tz).astimezone(UTC).astimezone(tz).replace(tzinfo=None) != w for w in walls]
    moments_of = [{w.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1)} for w in walls]
    twice = [len(both) == 2 and not gone for both, gone in zip(moments_of, skipped, strict=True)]
    found = Clock(zone).odd_times(np.array([whole_seconds(w) for w in walls], np.int64))
    assert found[0].tolist() == skipped
    assert found[1].tolist() == twice
