"""Time steps: intervals of equal length in local time, in arrays and in SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crowdveil.errors import Option, ParameterError
from crowdveil.io.times import Clock
from crowdveil.model.arrays import Ints

_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_YEAR_1 = -62_135_596_800
_LONGEST = 100 * 366 * 86400
_A_MONDAY = 4 * 86400
"""The first Monday after 1970-01-01, where weeks begin."""


DEFAULT_STEP = "1h"
"""Length of time steps of data with times, if none is given."""


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
        raise ParameterError(Option("step"), "wanted a length of time such as 15min, 1h or 1d, or all for one matrix.")
    return seconds


@dataclass(frozen=True)
class TimeSteps:
    """Steps of `seconds` in local time of `tz`; days begin at midnight, weeks on Monday.

    When clocks go back, the repeated hour is one step: data without a zone cannot distinguish the two, and data with a zone
    is treated alike.
    """

    seconds: int
    tz: str

    @property
    def _anchor(self) -> int:
        """Offset before division: a multiple of the step that makes all years positive and starts weeks on Monday."""
        up = -(_YEAR_1 // self.seconds) * self.seconds + self.seconds
        return up - (_A_MONDAY if self.seconds % 604800 == 0 else 0)

    def number(self, wall: Ints) -> Ints:
        """Return the step number of each local time."""
        numbers: Ints = (wall + self._anchor) // self.seconds
        return numbers

    def number_sql(self, wall: str) -> str:
        """Return SQL for the step number of a local time."""
        return f"(({wall}) + {self._anchor}) // {self.seconds}"

    def starts(self, number: Ints) -> Ints:
        """Return the start of each step in UTC seconds."""
        return Clock(self.tz).to_utc(number * self.seconds - self._anchor)


def ends_of_steps(starts: Ints, seconds: int, tz: str) -> Ints:
    """Return the end of each time step, from its start in UTC seconds: a day may have 23 or 25 hours."""
    steps = TimeSteps(seconds, tz)
    return steps.starts(steps.number(Clock(tz).to_wall(starts)) + 1)


def wall_sql(seconds: str, *, instants: bool, tz: str, low: int, high: int) -> str:
    """Return SQL for the local time. Times without a zone are shifted only where clocks went forward."""
    if instants:
        moments, offsets = Clock(tz).shifts(low, high)
        return f"({seconds}) + {_choose(seconds, moments.tolist(), offsets.tolist())}"
    skipped, _ = Clock(tz).turns(low, high)
    bounds = [bound for both in skipped for bound in both]
    moves = [0, *(move for first, last in skipped for move in (last - first, 0))]
    return f"({seconds}) + {_choose(seconds, bounds, moves)}" if bounds else seconds


def _choose(value: str, bounds: list[int], results: list[int]) -> str:
    """Return SQL for results[i] with bounds[i - 1] <= value < bounds[i], by bisection."""
    if not bounds:
        return str(results[0])
    middle = len(bounds) // 2
    left = _choose(value, bounds[:middle], results[: middle + 1])
    right = _choose(value, bounds[middle + 1 :], results[middle + 1 :])
    return f"CASE WHEN ({value}) < {bounds[middle]} THEN {left} ELSE {right} END"
