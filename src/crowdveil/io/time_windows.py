"""Days as windows of time, and the intervals inside them, by the calendar of the data's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import DAY_S, Clock, TimeAxis
from crowdveil.solve.od.time_tree import TimeTree, TimeWindows

_LENGTHS = (60, 300, 900, 1800, 3600, 7200, 14_400, 43_200, DAY_S)
"""Lengths of the intervals of the calendar, seconds; each level has those that are whole multiples of the level below."""


@dataclass(frozen=True)
class TimeUnits:
    """What of time is not cut into several partitions: time steps, or local days where rows have intervals.

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
        days: Ints = Clock(self.tz).to_wall(t) // DAY_S
        return days


def time_windows(data: Flows, longest_s: int, weight: Fraction) -> TimeWindows:
    """Cut the time of the data into days, each with a tree of intervals; an hour costs a trip `weight` tiles."""
    step_s = checked_step(data)
    starts, ends, wall = _slots(data, step_s)
    day = wall // DAY_S
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(day)) + 1, [len(day)]]) if len(day) else np.zeros(1, int)
    place = np.searchsorted(data.t, starts)
    known = place < data.steps
    known[known] = data.t[place[known]] == starts[known]
    lengths = (step_s, *interval_lengths(step_s, longest_s))
    trees = []
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        trees.append(TimeTree.of_levels(low, [wall[low:high] // length for length in lengths]))
    per_step = (weight * Fraction(step_s, 3600)).limit_denominator(1000)
    return TimeWindows(starts, ends, np.where(known, place, -1), offsets, tuple(trees), per_step)


def longest_interval(data: Flows, longest_s: int) -> int:
    """Return the seconds of the longest interval that can be published."""
    step_s = checked_step(data)
    return [step_s, *interval_lengths(step_s, longest_s)][-1]


def checked_step(data: Flows) -> int:
    """Return the seconds of a time step; raise where intervals cannot be made of it."""
    step_s = data.step_s
    if step_s is None:
        raise InputError(
            f"intervals of time need time steps, but the data have none; give a column of times and {Option('step', '1h')}."
        )
    if DAY_S % step_s:
        raise InputError(
            f"intervals of time need time steps that divide a day, but these have {step_s:,} seconds; choose another "
            f"{Option('step')}."
        )
    return step_s


def interval_lengths(step_s: int, longest_s: int) -> list[int]:
    """Return the lengths of the intervals of the calendar that are longer than a time step, rising, seconds."""
    found, last = [], step_s
    for length in _LENGTHS:
        if last < length <= longest_s and length % last == 0:
            found.append(length)
            last = length
    return found


def _slots(data: Flows, step_s: int) -> tuple[Ints, Ints, Ints]:
    """Return start, end and local time of every time step of the calendar in the days of the data."""
    steps = TimeAxis(step_s, data.tz)
    days = np.unique(Clock(data.tz).to_wall(data.t) // DAY_S)
    count = DAY_S // step_s
    begins = np.repeat(days * DAY_S, count) + np.tile(np.arange(count) * step_s, len(days))
    numbers = steps.number(begins)
    starts, ends = steps.starts(numbers), steps.starts(numbers + 1)
    real = starts < ends  # clocks that go forward leave out a time step
    return starts[real], ends[real], begins[real]
