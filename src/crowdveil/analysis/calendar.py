"""Hours of the day and of the week: the hour of a time step, and the number of times each hour occurred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from crowdveil.analysis.estimates import Groups
from crowdveil.errors import InputError, Option, Text
from crowdveil.io.times import time_column
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import DAY_S, HOUR_S, WEEK_S, TimeAxis

Period = Literal["week", "day"]
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
GAPS = "suppressed or not observed"
"""Label of an hour without published trips, which need not be 0."""


@dataclass(frozen=True, eq=False)
class Slots:
    """The hours of a day or week in the release's time zone; longer if its time steps are longer.

    Attributes
    ----------
    period
        The period that repeats.
    slot_s
        Length of a slot in seconds.
    times
        Number of occurrences of each slot between the first and the last time step.
    """

    period: Period
    slot_s: int
    tz: str
    times: Ints

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, releases: list[FlowRelease], period: Period) -> Slots:
        """Return the slots of one release, or of several with equal time steps."""
        first = releases[0]
        if first.step_s is None or not any(len(r.t) for r in releases):
            raise InputError(
                Text(
                    "hours need time steps, but the release has none. Make a release with times and {step}.",
                    step=Option("step", "1h"),
                )
            )
        slot_s = max(first.step_s, HOUR_S)
        if DAY_S % slot_s or slot_s % first.step_s or (period == "day" and slot_s == DAY_S):
            raise InputError(
                Text(
                    "hours of a {period} need time steps that divide an hour, or longer ones that divide a day{but}, got "
                    "{seconds:,} seconds. Make a release with {step}.",
                    period=period,
                    but=" (but not of a whole day)" if period == "day" else "",
                    seconds=first.step_s,
                    step=Option("step", "1h"),
                )
            )
        t = np.concatenate([r.step_starts for r in releases])
        count = (DAY_S if period == "day" else WEEK_S) // slot_s
        empty = cls(period, slot_s, first.tz, np.zeros(count, np.int64))
        occurred = empty.of_times(_all_slots(t, slot_s, first.tz))
        return cls(period, slot_s, first.tz, np.bincount(occurred, minlength=count))

    def of_times(self, t: Ints) -> Ints:
        """Return the slot of each time (UTC)."""
        week = TimeAxis(WEEK_S, self.tz)
        wall = week.clock.to_wall(t)
        slots: Ints = (wall - week.local_starts(week.number(wall))) // self.slot_s % len(self)
        return slots

    def groups(self, release: FlowRelease) -> Groups:
        """Return the time steps of a release grouped by slot."""
        return Groups(self.of_times(release.step_starts), len(self))

    @property
    def weeks(self) -> float:
        """Weeks between the first and the last time step."""
        return float(self.times.sum() * self.slot_s / WEEK_S)

    @property
    def hour(self) -> Floats:
        """Hour of the day at which each slot begins."""
        return np.arange(len(self)) * self.slot_s % DAY_S / HOUR_S

    @property
    def weekday(self) -> Ints | None:
        """Day of each slot, 0 for Monday; None for a period of a day."""
        return None if self.period == "day" else np.arange(len(self)) * self.slot_s // DAY_S

    def name(self, slot: int) -> str:
        """Return the name of a slot, such as "Monday 08:00"."""
        day = "" if self.weekday is None else f"{DAYS[self.weekday[slot]]} "
        return f"{day}{_clock(self.hour[slot])}"

    def columns(self) -> dict[str, list[str]]:
        """Return day (for a period of a week) and hour of each slot, for a table."""
        days = {} if self.weekday is None else {"day": [DAYS[day] for day in self.weekday]}
        return {**days, "hour": [_clock(hour) for hour in self.hour]}


def when_columns(release: FlowRelease, slots: Slots | None, number: Ints) -> dict[str, Any]:
    """Return the columns of a table that name slots by their numbers; without `slots`, the time steps of a release."""
    if slots is None:
        return {"t": time_column(release.step_starts, release.tz, as_text=False).take(pa.array(number))}
    return {name: pa.array(words, pa.string()).take(pa.array(number)) for name, words in slots.columns().items()}


def _clock(hour: float) -> str:
    return f"{int(hour):02d}:{round(60 * (hour % 1)):02d}"


def _all_slots(t: Ints, slot_s: int, tz: str) -> Ints:
    """Return the start of every slot between the first and the last time; an hour that clocks skipped does not occur."""
    starts, _ = TimeAxis(slot_s, tz).between(int(t.min()), int(t.max()))
    return starts
