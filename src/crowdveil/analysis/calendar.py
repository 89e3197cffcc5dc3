"""Hours of the day and of the week: which of them a time step lies in, and how often each came up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil.analysis.estimates import Groups
from crowdveil.errors import InputError, Option
from crowdveil.io.steps import Steps
from crowdveil.io.times import Clock
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import FlowRelease

Period = Literal["week", "day"]
HOUR_S, DAY_S = 3600, 86400
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
GAPS = "suppressed or not observed"
"""What an hour is that nothing was published of; no zero, since nobody can tell."""
_A_MONDAY = 4 * DAY_S
"""The first Monday after 1970-01-01: weeks begin there."""


@dataclass(frozen=True, eq=False)
class Slots:
    """The hours of a day or of a week on the clock of the release; longer where its time steps are longer.

    Attributes
    ----------
    period
        What comes round again.
    slot_s
        Length of a slot in seconds.
    times
        How often each slot came up between the first and the last time step.
    """

    period: Period
    slot_s: int
    tz: str
    times: Ints

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, releases: list[FlowRelease], period: Period) -> Slots:
        """The slots of one release, or of several with the same time steps."""
        first = releases[0]
        if first.step_s is None or not any(len(r.t) for r in releases):
            raise InputError(
                f"hours need time steps, but the release has none; make one with times and {Option('step', '1h')}."
            )
        slot_s = max(first.step_s, HOUR_S)
        if DAY_S % slot_s or slot_s % first.step_s or (period == "day" and slot_s == DAY_S):
            raise InputError(
                f"hours of a {period} need time steps that divide an hour or a {'day' if period == 'day' else 'week'}, "
                f"but those of the release have {first.step_s:,} seconds; make one with {Option('step', '1h')}."
            )
        t = np.concatenate([r.t for r in releases])
        count = (DAY_S if period == "day" else 7 * DAY_S) // slot_s
        never = cls(period, slot_s, first.tz, np.zeros(count, np.int64))
        came_up = never.of_times(_all_slots(t, slot_s, first.tz))
        return cls(period, slot_s, first.tz, np.bincount(came_up, minlength=count))

    def of_times(self, t: Ints) -> Ints:
        """The slot of each time (UTC)."""
        wall = Clock(self.tz).to_wall(t)
        slots: Ints = (wall - _A_MONDAY) // self.slot_s % len(self)
        return slots

    def groups(self, release: FlowRelease) -> Groups:
        """Time steps by their slot."""
        return Groups(self.of_times(release.t), len(self))

    @property
    def weeks(self) -> float:
        """How many weeks lie between the first and the last time step."""
        return float(self.times.sum() * self.slot_s / (7 * DAY_S))

    @property
    def hour(self) -> Floats:
        """The hour of the day that each slot begins at."""
        return np.arange(len(self)) * self.slot_s % DAY_S / HOUR_S

    @property
    def weekday(self) -> Ints | None:
        """The day of each slot, 0 for Monday; None where days are not told apart."""
        return None if self.period == "day" else np.arange(len(self)) * self.slot_s // DAY_S

    def name(self, slot: int) -> str:
        """Such as "Monday 08:00"."""
        day = "" if self.weekday is None else f"{DAYS[self.weekday[slot]]} "
        return f"{day}{_clock(self.hour[slot])}"

    def columns(self) -> dict[str, list[str]]:
        """Day, where days are told apart, and time of each slot, for a table."""
        days = {} if self.weekday is None else {"day": [DAYS[day] for day in self.weekday]}
        return {**days, "hour": [_clock(hour) for hour in self.hour]}


def _clock(hour: float) -> str:
    return f"{int(hour):02d}:{round(60 * (hour % 1)):02d}"


def _all_slots(t: Ints, slot_s: int, tz: str) -> Ints:
    """Every slot between the first and the last time, by its start; an hour that the clock left out did not come up."""
    steps = Steps(slot_s, tz)
    low, high = steps.number(Clock(tz).to_wall(np.array([t.min(), t.max()])))
    return np.unique(steps.starts(np.arange(low, high + 1)))
