"""Classes of time steps by the local hour and day: those that share a partition of the map."""

from __future__ import annotations

import numpy as np

from crowdveil.io.times import Clock
from crowdveil.model.arrays import Ints
from crowdveil.model.partition import StepClass

_DAY, _HOUR = 86_400, 3_600
_DAY_TYPES = np.array([0, 0, 0, 0, 0, 1, 2])
"""Working days, Saturday, Sunday; a week begins on Monday."""


def step_classes(t: Ints, tz: str, by: StepClass) -> Ints:
    """Return the class of each time step, by the local time of its start."""
    if by == "all":
        return np.zeros(len(t), np.int64)
    local = Clock(tz).to_wall(t)
    weekday = (local // _DAY + 3) % 7  # 1970-01-01 was a Thursday
    hour = local % _DAY // _HOUR
    found: Ints = {"hour-of-day": hour, "hour-of-week": 24 * weekday + hour, "day-type": _DAY_TYPES[weekday]}[by]
    return found.astype(np.int64)
