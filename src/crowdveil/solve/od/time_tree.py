"""Trees over time: days as windows of time, and the intervals that a day can be cut into, by the calendar of the data's zone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from crowdveil.errors import InputError, Option, Text
from crowdveil.model.arrays import Ints, frozen, row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.intervals import Intervals
from crowdveil.model.time_axis import DAY_S, TimeAxis

_LENGTHS = (60, 300, 900, 1800, 3600, 7200, 14_400, 43_200, DAY_S)
"""Lengths of the intervals of the calendar, seconds; each level has those that are whole multiples of the level below."""


@dataclass(frozen=True, eq=False)
class TimeTree:
    """The intervals of one window, each after the intervals that it consists of.

    Attributes
    ----------
    first, last
        Slots of each interval, half-open. A slot is one time step of the calendar, with trips or without.
    child_offsets, children
        The intervals that each interval can be split into.
    tops
        The longest intervals that may be published, in order; together they are the window.
    """

    first: Ints
    last: Ints
    child_offsets: Ints
    children: Ints
    tops: Ints

    @classmethod
    def of_levels(cls, low: int, levels: list[Ints]) -> TimeTree:
        """Build the tree of the slots from `low` on; each level has a key for each slot, and slots with equal keys are joined.

        Keys of a level must differ wherever those of the next one do.
        """
        count = len(levels[0])
        first, last, tops = list(range(count)), list(range(1, count + 1)), list(range(count))
        offsets, children = [0] * (count + 1), []
        for keys in levels:
            joined: list[int] = []
            groups: list[list[int]] = []
            for node in tops:
                if groups and keys[first[groups[-1][0]]] == keys[first[node]]:
                    groups[-1].append(node)
                else:
                    groups.append([node])
            for group in groups:
                if len(group) == 1:
                    joined.append(group[0])
                    continue
                joined.append(len(first))
                first.append(first[group[0]])
                last.append(last[group[-1]])
                children += group
                offsets.append(len(children))
            tops = joined
        arrays = (
            low + np.array(first, np.int64),
            low + np.array(last, np.int64),
            np.array(offsets),
            np.array(children),
            tops,
        )
        return cls(*(frozen(a, np.int64) for a in arrays))

    def __len__(self) -> int:
        return len(self.first)

    def parts(self, node: int) -> Ints:
        """Return the intervals that an interval can be split into."""
        return self.children[self.child_offsets[node] : self.child_offsets[node + 1]]


@dataclass(frozen=True, eq=False)
class TimeWindows:
    """The windows that a data set is cut into, each with its tree.

    Attributes
    ----------
    start, end
        Start and end of each slot of all windows, UTC seconds; slots of a window follow one another.
    step
        The time step of the data that each slot is; -1 where the data have none.
    offsets
        Slots of each window.
    trees
        The tree of each window.
    step_weight
        Cost of each time step after the first for a trip, in tiles.
    """

    start: Ints
    end: Ints
    step: Ints
    offsets: Ints
    trees: tuple[TimeTree, ...]
    step_weight: Fraction

    def __len__(self) -> int:
        return len(self.trees)

    def of_steps(self, steps: int) -> Ints:
        """Return the window of each time step of the data, of which there are `steps`."""
        window = np.full(steps, -1, np.int64)
        known = self.step >= 0
        window[self.step[known]] = row_slices(self.offsets)[known]
        return window

    def intervals(self, first: Ints, last: Ints) -> Intervals:
        """Return the intervals of rows, from the slots of each, half-open."""
        return Intervals(self.start, self.end, self.offsets, first, last)

    def steps_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the time steps of the data in a range of slots, half-open."""
        steps = self.step[first:last]
        steps = steps[steps >= 0]
        return (int(steps[0]), int(steps[-1]) + 1) if len(steps) else (0, 0)


def time_windows(data: Flows, longest_s: int, weight: Fraction) -> TimeWindows:
    """Cut the time of the data into days, each with a tree of intervals; an hour costs a trip `weight` tiles."""
    step_s = checked_step(data.step_s)
    starts, ends, wall = _slots(data, step_s)
    day = TimeAxis(DAY_S, data.tz).number(wall)
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


def longest_interval(step_s: int | None, longest_s: int) -> int:
    """Return the seconds of the longest interval that can be published."""
    step_s = checked_step(step_s)
    return [step_s, *interval_lengths(step_s, longest_s)][-1]


def checked_step(step_s: int | None) -> int:
    """Return the seconds of a time step; raise where intervals cannot be made of it."""
    if step_s is None:
        raise InputError(
            Text(
                "intervals of time need time steps, but the data have none. Give a column of times and {step}.",
                step=Option("step", "1h"),
            )
        )
    if DAY_S % step_s:
        raise InputError(
            Text(
                "intervals of time need time steps that divide a day, but these have {step_s:,} seconds. Choose another "
                "{step}.",
                step_s=step_s,
            )
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
    steps, days = TimeAxis(step_s, data.tz), TimeAxis(DAY_S, data.tz)
    midnights = days.local_starts(np.unique(days.number_at(data.t)))
    begins = (midnights[:, None] + np.arange(0, DAY_S, step_s)).ravel()
    numbers = steps.number(begins)
    starts, ends = steps.starts(numbers), steps.starts(numbers + 1)
    real = starts < ends  # clocks that go forward leave out a time step
    return starts[real], ends[real], begins[real]
