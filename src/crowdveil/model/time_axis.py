"""Calendar arithmetic: local time, time steps, periods of days and weeks, and classes of steps.

Times are seconds since 1970-01-01, in UTC, or in local time as a clock on the wall shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from crowdveil.errors import Option, ParameterError
from crowdveil.model.arrays import Ints, Mask

HOUR_S, DAY_S, WEEK_S = 3_600, 86_400, 604_800
DEFAULT_STEP = "1h"
"""Length of time steps of data with times, if none is given."""

StepClass = Literal["all", "hour-of-day", "hour-of-week", "day-type"]
"""Classes of time steps that share a partition: all of them; those of one hour of the day or of the week; those of working
days, Saturdays and Sundays."""

_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
_LONGEST = 100 * 366 * DAY_S
_A_MONDAY = 4 * DAY_S
"""The first Monday after 1970-01-01, where weeks begin."""
_DAY_TYPES = np.array([0, 0, 0, 0, 0, 1, 2])
"""Working days, Saturday, Sunday."""
_SAMPLE_DAYS = 6


def step_seconds(text: str | int | None) -> int | None:
    """Return the seconds of "15min", "1h", "1d"; None for "all" (one matrix)."""
    if text is None or text == "all":
        return None
    if str(text).strip().strip("0").isdecimal():
        raise ParameterError(
            Option("step"),
            f"Expected a length with its unit, got {text}. Write {text}min for minutes or {text}s for seconds.",
        )
    match = re.fullmatch(r"(\d+)\s*(s|sec|min|m|h|d|w)", str(text).strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= seconds <= _LONGEST:
        raise ParameterError(
            Option("step"), "Expected a length of time such as 15min, 1h or 1d, or all for one matrix."
        )
    return seconds


def period_seconds(text: str) -> int:
    """Return the length of a period in seconds: whole days, such as 1d, 1w or 2w."""
    try:
        seconds = step_seconds(text) or 0
    except ParameterError:
        seconds = 0
    if seconds == 0 or seconds % DAY_S:
        raise ParameterError(Option("fold"), "Expected a period of whole days, such as 1d, 1w or 2w.")
    return seconds


def shortest_step(t: Ints, tz: str) -> int:
    """Return the length of time steps that flows name by their starts: the shortest difference of two, or an hour.

    Differences over a change of clocks count only where there are no others: as they passed if they are shorter than half a day,
    as on the clock if they are longer, since days have 23 to 25 hours.
    """
    t = np.unique(t)
    passed, on_clock = np.diff(t), np.diff(Clock(tz).to_wall(t))
    usual = passed[passed == on_clock]
    some = usual if len(usual) else np.where(passed < DAY_S // 2, passed, on_clock)
    return int(some.min()) if len(some) else HOUR_S


def year_start(year: int) -> int:
    """Return the first second of a year in UTC."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Clock:
    """Local time in a time zone, from and to UTC.

    When clocks go back, the repeated hour is read as the first of the two. When they go forward, a skipped time is read as
    if the clock had not changed.
    """

    tz: str

    def __post_init__(self) -> None:
        _zone(self.tz)

    def shifts(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Return the moments (UTC) from `low` to `high` at which the offset changes, and the offsets around them."""
        return _shifts(self.tz, low // DAY_S - 2, high // DAY_S + 2)

    def to_wall(self, utc: Ints) -> Ints:
        """Convert UTC seconds to local seconds."""
        if len(utc) == 0 or self.tz == "UTC":
            return utc
        moments, offsets = self.shifts(int(utc.min()), int(utc.max()))
        shifted: Ints = utc + offsets[np.searchsorted(moments, utc, side="right")]
        return shifted

    def to_utc(self, wall: Ints) -> Ints:
        """Convert local seconds to UTC seconds."""
        if len(wall) == 0 or self.tz == "UTC":
            return wall
        moments, offsets = self.shifts(int(wall.min()), int(wall.max()))
        turns = moments + np.maximum(offsets[:-1], offsets[1:])
        shifted: Ints = wall - offsets[np.searchsorted(turns, wall, side="right")]
        return shifted

    def later(self, utc: Ints, seconds: int) -> Ints:
        """Return the times, in UTC, at which the clock shows some seconds more than at `utc`."""
        return self.to_utc(self.to_wall(utc) + seconds)

    def turns(self, low: int, high: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return half-open ranges of local time from `low` to `high` that were skipped, and that were repeated."""
        moments, offsets = self.shifts(low, high)
        both = list(zip(moments.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
        skipped = [(at + before, at + after) for at, before, after in both if after > before]
        return skipped, [(at + after, at + before) for at, before, after in both if after < before]

    def odd_times(self, wall: Ints) -> tuple[Mask, Mask]:
        """Return which local times did not exist, and which existed twice."""
        masks = np.zeros((2, len(wall)), bool)
        if len(wall) and self.tz != "UTC":
            for mask, ranges in zip(masks, self.turns(int(wall.min()), int(wall.max())), strict=True):
                if ranges:
                    mask[:] = np.searchsorted(np.array(ranges, np.int64).ravel(), wall, side="right") % 2 == 1
        return masks[0], masks[1]


@dataclass(frozen=True)
class TimeAxis:
    """Time steps of equal length in the local time of a zone; days begin at midnight, weeks on Monday.

    When clocks go back, the repeated hour is one step: data without a zone cannot distinguish the two, and data with a zone
    is treated alike. When they go forward, a skipped step begins and ends at the same moment.

    Attributes
    ----------
    step_s
        Length of a step in seconds of local time.
    tz
        The time zone.
    """

    step_s: int
    tz: str

    @property
    def clock(self) -> Clock:
        """Return the local time of the zone."""
        return Clock(self.tz)

    @property
    def _origin(self) -> int:
        """Local time where the step number 0 begins."""
        return _A_MONDAY if self.step_s % WEEK_S == 0 else 0

    def number(self, wall: Ints) -> Ints:
        """Return the step number of each local time."""
        numbers: Ints = (wall - self._origin) // self.step_s
        return numbers

    def number_at(self, t: Ints) -> Ints:
        """Return the step number of each time in UTC."""
        return self.number(self.clock.to_wall(t))

    def local_starts(self, number: Ints) -> Ints:
        """Return the local time at which each step begins."""
        starts: Ints = number * self.step_s + self._origin
        return starts

    def starts(self, number: Ints) -> Ints:
        """Return the start of each step in UTC."""
        return self.clock.to_utc(self.local_starts(number))

    def ends(self, starts: Ints) -> Ints:
        """Return the end of each step from its start, both in UTC: a day may have 23 or 25 hours."""
        return self.clock.later(starts, self.step_s)

    def between(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Return starts and ends in UTC of the steps that hold the times from `first` to `last`, in UTC, without skipped ones."""
        low, high = self.number_at(np.array([first, last]))
        numbers = np.arange(low, high + 1)
        starts, ends = self.starts(numbers), self.starts(numbers + 1)
        exists = starts < ends
        return starts[exists], ends[exists]

    def folded(self, wall: Ints, known: Ints) -> Ints:
        """Return local times modulo a step, in UTC, in the first step of the local times `known`.

        Clocks change between steps: a folded time keeps its hour on the clock.
        """
        number = self.number(wall)
        starts = self.clock.to_wall(self.starts(np.append(number, self.number(known).min())))
        return self.clock.to_utc(starts[-1] + wall - starts[:-1])


@dataclass(frozen=True)
class TimeUnits:
    """Units of time that no partition cuts: time steps, or local days where rows have intervals.

    Attributes
    ----------
    days
        Whether a unit is a day.
    tz
        Time zone of days.
    """

    days: bool = False
    tz: str = "UTC"

    def number(self, t: Ints) -> Ints:
        """Return a number of the unit that each time lies in, UTC seconds; of a time step that is its start."""
        if not self.days:
            return t
        return TimeAxis(DAY_S, self.tz).number_at(t)


def hour_of_week(wall: Ints) -> Ints:
    """Return the hour of the week of each local time, 0 for the first hour of Monday."""
    hours: Ints = (wall - _A_MONDAY) // HOUR_S % (WEEK_S // HOUR_S)
    return hours


def step_classes(t: Ints, tz: str, by: StepClass) -> Ints:
    """Return the class of each time step, by the local time of its start; `t` are the starts in UTC."""
    if by == "all":
        return np.zeros(len(t), np.int64)
    hours = hour_of_week(Clock(tz).to_wall(t))
    classes: Ints = {"hour-of-day": hours % 24, "hour-of-week": hours, "day-type": _DAY_TYPES[hours // 24]}[by]
    return classes.astype(np.int64)


@lru_cache(maxsize=64)
def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(
            Option("tz"), f"there is no time zone {tz!r}. Give one such as Europe/Paris or UTC."
        ) from None


@lru_cache(maxsize=64)
def _shifts(tz: str, first_day: int, last_day: int) -> tuple[Ints, Ints]:
    def offset(moment: int) -> int:
        bounded = min(max(moment, year_start(1) + DAY_S * 2), year_start(9999))
        delta = datetime.fromtimestamp(bounded, _zone(tz)).utcoffset()
        return int(delta.total_seconds()) if delta is not None else 0

    # Samples find a change if no two lie between them: Recife once moved its clock forward and back within seven days.
    days = range(first_day, last_day + 1 + _SAMPLE_DAYS, _SAMPLE_DAYS)
    seen = [offset(d * DAY_S) for d in days]
    moments, offsets = [], [seen[0]]
    for day, before, after in zip(days, seen, seen[1:], strict=False):
        if before != after:
            low, high = day * DAY_S, (day + _SAMPLE_DAYS) * DAY_S
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            moments.append(high)
            offsets.append(after)
    return np.array(moments, np.int64), np.array(offsets, np.int64)
