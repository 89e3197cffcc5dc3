"""Windows of time and the intervals inside them, by the calendar of the data's time zone or by a table of the day or week."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.intervals import TimeLevels
from crowdveil.model.time_axis import Clock, TimeAxis
from crowdveil.solve.od.time_tree import TimeTree, TimeWindows

Window = Literal["1d", "7d", "all"]
DAY_S, WEEK_S = 86_400, 604_800
_LENGTHS = (60, 300, 900, 1800, 3600, 7200, 14_400, 43_200, DAY_S, WEEK_S)
"""Lengths of the intervals of the calendar, seconds; each level has those that are whole multiples of the level below."""
_MONDAY = 3
"""Days from the Monday before 1970-01-01, a Thursday."""


@dataclass(frozen=True)
class WindowOptions:
    """How time is cut.

    Attributes
    ----------
    window
        Length of a window; no interval crosses windows.
    longest_s
        Longest interval that may be published, seconds; None for any length.
    """

    window: Window
    longest_s: int | None


@dataclass(frozen=True)
class TimeUnits:
    """What of time is not cut into several partitions: time steps, or windows where rows have intervals.

    Attributes
    ----------
    window
        Length of a window; None for time steps.
    tz
        Time zone of windows.
    """

    window: Window | None = None
    tz: str = "UTC"

    def number(self, t: Ints) -> Ints:
        """Return a number of the unit that each time lies in, UTC seconds; of a time step that is its start."""
        if self.window is None:
            return t
        if self.window == "all":
            return np.zeros(len(t), np.int64)
        return _keys(Clock(self.tz).to_wall(t), WEEK_S if self.window == "7d" else DAY_S)


def time_windows(data: Flows, options: WindowOptions, k: int, weight: Fraction) -> TimeWindows:
    """Cut the time of the data into windows, each with a tree of intervals; an hour costs a trip `weight` tiles."""
    step_s = checked_step(data, options)
    starts, ends, wall, window = _slots(data, options.window, step_s, k)
    offsets = (
        np.concatenate([[0], np.flatnonzero(np.diff(window)) + 1, [len(window)]]) if len(window) else np.zeros(1, int)
    )
    place = np.searchsorted(data.t, starts)
    known = place < data.steps
    known[known] = data.t[place[known]] == starts[known]
    lengths = interval_lengths(step_s, options.window, options.longest_s)
    trees = []
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        levels = _levels(wall[low:high], (step_s, *lengths), data.time_levels)
        if _is_whole(options, int(ends[high - 1] - starts[low])):
            levels.append(np.zeros(high - low, np.int64))
        trees.append(TimeTree.of_levels(low, levels))
    per_step = (weight * Fraction(step_s, 3600)).limit_denominator(1000)
    return TimeWindows(starts, ends, np.where(known, place, -1), offsets, tuple(trees), per_step)


def _levels(wall: Ints, lengths: tuple[int, ...], given: TimeLevels | None) -> list[Ints]:
    """Return the intervals that each time step is in, from the shortest to the longest, as a key of each level."""
    if given is None:
        return [_keys(wall, length) for length in lengths]
    begun = _keys(wall, given.period_s)
    second = wall - begun * given.period_s + (_MONDAY * DAY_S if given.period_s == WEEK_S else 0)
    own = [begun * given.period_s + np.searchsorted(starts, second, side="right") for starts in given.starts]
    return [wall, *own, *(_keys(wall, length) for length in lengths if length >= given.period_s)]


def _check_time_levels(given: TimeLevels, step_s: int, options: WindowOptions) -> None:
    """Raise where intervals of a day or week do not fit time steps, windows, or the longest interval."""
    if step_s >= given.period_s or any(np.any(starts % step_s) for starts in given.starts):
        raise InputError(
            Option("time_tree"), f"its intervals must begin with a time step, of {step_s:,} seconds; choose a shorter "
            f"{Option('step')}."
        )  # fmt: skip
    of_week = given.period_s == WEEK_S
    if of_week and options.window == "1d":
        raise InputError(Option("window"), "with a table of the week it must be 7d or all; give one of them.")
    if options.longest_s is not None and options.longest_s < given.period_s:
        least = "7d" if of_week else "24h"
        raise InputError(
            Option("longest"),
            f"with a table of the {'week' if of_week else 'day'} it must be at least {least}; give that, or leave out "
            f"{Option('time_tree')}.",
        )


def longest_interval(data: Flows, options: WindowOptions, k: int) -> int | None:
    """Return the seconds of the longest interval that can be published; None for a window of any length."""
    step_s = checked_step(data, options)
    if options.window == "all" and len(data):
        starts, ends, _, window = _slots(data, options.window, step_s, k)
        longest = np.flatnonzero(window == np.bincount(window - window.min()).argmax() + window.min())
        if _is_whole(options, int(ends[longest[-1]] - starts[longest[0]])):
            return None
    return [step_s, *interval_lengths(step_s, options.window, options.longest_s)][-1]


def _is_whole(options: WindowOptions, seconds: int) -> bool:
    """Return whether a whole window of any length may be published."""
    return options.window == "all" and (options.longest_s is None or seconds <= options.longest_s)


def checked_step(data: Flows, options: WindowOptions) -> int:
    """Return the seconds of a time step; raise where intervals cannot be made of it."""
    step_s = data.step_s
    if step_s is None:
        raise InputError(
            f"intervals of time need time steps, but the data have none; give a column of times and {Option('step', '1h')}."
        )
    if DAY_S % step_s and step_s != WEEK_S:
        raise InputError(
            f"intervals of time need time steps that divide a day, or steps of a week, but these have {step_s:,} seconds; "
            f"choose another {Option('step')}."
        )
    if options.window != "all" and step_s > {"1d": DAY_S, "7d": WEEK_S}[options.window]:
        raise InputError(f"a time step is longer than a window; choose a longer {Option('window')}.")
    if data.time_levels is not None:
        _check_time_levels(data.time_levels, step_s, options)
    return step_s


def interval_lengths(step_s: int, window: Window, longest_s: int | None) -> list[int]:
    """Return the lengths of the intervals of the calendar that are longer than a time step, rising, seconds."""
    limit = {"1d": DAY_S, "7d": WEEK_S, "all": WEEK_S}[window]
    limit = limit if longest_s is None else min(limit, longest_s)
    found, last = [], step_s
    for length in _LENGTHS:
        if last < length <= limit and length % last == 0:
            found.append(length)
            last = length
    return found


def _keys(wall: Ints, length: int) -> Ints:
    """Return the interval of a length that each local time lies in; weeks begin on Monday."""
    keys: Ints = (wall + _MONDAY * DAY_S) // length if length == WEEK_S else wall // length
    return keys


def _slots(data: Flows, window: Window, step_s: int, k: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return start, end, local time and window of every time step of the calendar in the windows of the data.

    Of a period of any length the first and the last day have at least k people: its ends would otherwise show when a few
    people traveled. Days outside it are windows of their own, in which nothing can be published.
    """
    steps, wall = TimeAxis(step_s, data.tz), Clock(data.tz).to_wall(data.t)
    unit = max(step_s, WEEK_S if window == "7d" else DAY_S)
    of_step = _keys(wall, unit)
    used = np.unique(of_step)
    number = used
    if window == "all" and len(used):
        large = [key for key in used.tolist() if _people_at(data, of_step == key) >= k]
        if large:
            between = np.arange(large[0], large[-1] + 1)
            used = np.concatenate([used[used < large[0]], between, used[used > large[-1]]])
            number = np.where((used >= large[0]) & (used <= large[-1]), large[0], used)
    shift = _MONDAY * DAY_S if unit == WEEK_S else 0
    count = unit // step_s
    begins = np.repeat(used * unit - shift, count) + np.tile(np.arange(count) * step_s, len(used))
    numbers = steps.number(begins)
    starts, ends = steps.starts(numbers), steps.starts(numbers + 1)
    real = starts < ends  # clocks that go forward leave out a time step
    return starts[real], ends[real], begins[real], np.repeat(number, count)[real]


def _people_at(data: Flows, steps: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Return the people of consecutive time steps."""
    which = np.flatnonzero(steps)
    return data.people_in_steps(int(which[0]), int(which[-1]) + 1)
