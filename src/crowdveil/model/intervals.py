"""Define intervals of time: the time steps that a row of a release spans, where it may span several."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdveil.model.arrays import Ints, check_lengths, check_offsets, freeze_columns, require


@dataclass(frozen=True, eq=False)
class Intervals:
    """The interval of each row, in slots: time steps of the calendar, with trips or without.

    Attributes
    ----------
    start, end
        Start and end of each slot, seconds since 1970-01-01 UTC, rising. Slots do not overlap.
    offsets
        Slots of each window; no interval crosses windows.
    first, last
        Slots of each row, half-open.
    """

    start: Ints
    end: Ints
    offsets: Ints
    first: Ints
    last: Ints

    def __post_init__(self) -> None:
        freeze_columns(self)
        check_offsets(self.offsets, len(self.start), "intervals")
        check_lengths("intervals", len(self.start), end=self.end)
        check_lengths("intervals", len(self.first), last=self.last)
        ordered = np.all(self.start < self.end) and np.all(self.end[:-1] <= self.start[1:])
        require(bool(ordered), "intervals: time steps must be in order and not overlap.")
        inside = np.all(self.first < self.last) and np.all((self.first >= 0) & (self.last <= len(self.start)))
        require(bool(inside), "intervals: a row spans no time step, or one that does not exist.")

    def __len__(self) -> int:
        return len(self.first)

    @property
    def t(self) -> Ints:
        """Return the start of each row."""
        return self.start[self.first]

    @property
    def until(self) -> Ints:
        """Return the end of each row."""
        return self.end[self.last - 1]

    @property
    def steps(self) -> Ints:
        """Return the number of time steps that each row spans."""
        return self.last - self.first

    @property
    def window_start(self) -> Ints:
        """Return the start of each window."""
        return self.start[self.offsets[:-1]]

    @property
    def window_end(self) -> Ints:
        """Return the end of each window."""
        return self.end[self.offsets[1:] - 1]

    def rows(self, which: Ints) -> Intervals:
        """Return the intervals of some rows, in the order given."""
        return replace(self, first=self.first[which], last=self.last[which])

    def slots_of(self, t: Ints) -> Ints:
        """Return the slot that begins at each time, -1 where none does."""
        if len(self.start) == 0:
            return np.full(len(t), -1, np.int64)
        place = np.minimum(np.searchsorted(self.start, t), len(self.start) - 1)
        return np.where(self.start[place] == t, place, -1)

    def spread(self) -> tuple[Ints, Ints]:
        """Return a slot and a row for each time step that each row spans, in order of slots and of rows."""
        row = np.repeat(np.arange(len(self)), self.steps)
        ends = np.cumsum(self.steps)
        slot = np.arange(len(row)) - np.repeat(ends - self.steps, self.steps) + self.first[row]
        order = np.argsort(slot, kind="stable")
        return slot[order], row[order]
