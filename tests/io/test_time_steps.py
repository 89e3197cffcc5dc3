"""TimeSteps of time, in arrays and in SQL, against a plain reading of the calendar."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb
import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import ParameterError
from crowdveil.io.time_steps import TimeSteps, step_seconds, wall_sql
from crowdveil.io.times import Clock

unhurried = settings(deadline=None, max_examples=tries(60))
EPOCH = datetime(1970, 1, 1)
walls = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))


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
    with pytest.raises(ParameterError, match="step: wanted a length of time"):
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
    steps = TimeSteps(step_seconds(step) or 0, "UTC")
    seconds = np.array([(w - EPOCH) // timedelta(seconds=1) for w in wall], np.int64)
    starts = steps.starts(steps.number(seconds))
    assert [EPOCH + timedelta(seconds=s) for s in starts.tolist()] == [plain_start(w, step) for w in wall]


@unhurried
@given(st.lists(st.integers(-60_000_000_000, 200_000_000_000), min_size=1, max_size=9), st.integers(1, 10**7))
def test_sql_numbers_steps_as_arrays_do(wall: list[int], length: int) -> None:
    steps = TimeSteps(length, "UTC")
    asked = ", ".join(f"({w})" for w in wall)
    sql = f"SELECT {steps.number_sql('w')} FROM (VALUES {asked}) v(w)"
    assert [n for (n,) in duckdb.sql(sql).fetchall()] == steps.number(np.array(wall)).tolist()


@unhurried
@given(
    st.sampled_from(["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC", "Asia/Gaza"]),
    st.lists(st.integers(-90_000, 90_000), min_size=1, max_size=12),
    st.booleans(),
)
def test_sql_has_the_same_local_time_as_the_clock(zone: str, around: list[int], instants: bool) -> None:
    clock = Clock(zone)
    moments, offsets = clock.shifts(1_300_000_000, 1_740_000_000)
    # Times near every change: as moments, or as a clock that was not put forward would show them.
    near = np.concatenate([moments if instants else moments + offsets[:-1], [1_600_000_000]])
    given_seconds = (near[:, None] + np.array(around)).ravel()
    seconds = given_seconds.tolist()
    sql = wall_sql("s", instants=instants, tz=zone, low=min(seconds), high=max(seconds))
    asked = ", ".join(f"({s})" for s in seconds)
    local = [w for (w,) in duckdb.sql(f"SELECT {sql} FROM (VALUES {asked}) v(s)").fetchall()]
    assert local == clock.to_wall(given_seconds if instants else clock.to_utc(given_seconds)).tolist()


@pytest.mark.parametrize("text", ["90", 90])
def test_a_bare_number_is_refused_with_the_spellings(text: str | int) -> None:
    with pytest.raises(ParameterError, match="Write 90min for minutes or 90s for seconds"):
        step_seconds(text)
