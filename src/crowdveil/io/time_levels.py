"""Read a table of the intervals of a day or of a week, such as night, morning peak and weekend."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.io.source import open_source
from crowdveil.model.arrays import Ints, frozen
from crowdveil.model.intervals import TimeLevels

CALENDAR = "calendar"
_DAY_S, _WEEK_S = 86_400, 604_800
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(r"(?:([A-Za-z]+)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?")


def read_time_levels(given: Any) -> TimeLevels | None:
    """Return the starts of the intervals of each level; None for the calendar.

    The table has a row for each start: the local time in the first column, as 06:30, and the name of the interval that begins
    or goes on there in each other column, from the shortest intervals to the longest. Rows one after the other with the same
    name are one interval. Where times name a day, as Mon 06:30, the table is of a week, and intervals may span days.
    """
    if isinstance(given, str) and given == CALENDAR:
        return None
    source = open_source(given)
    table = source.read()
    if table.num_columns < 2 or table.num_rows == 0:
        raise InputError(
            source.name,
            "wanted a column of local times, such as 06:30 or Mon 06:30, and one or more of names of intervals, with a row for "
            "each start.",
        )
    times = [_read_time(str(value), source.name) for value in table.column(0).to_pylist()]
    of_week = times[0][0] is not None
    if any((day is not None) != of_week for day, _ in times):
        raise InputError(source.name, "either every time names a day, such as Mon 06:30, or none does; fill them in.")
    starts = np.array([(day or 0) * _DAY_S + second for day, second in times], np.int64)
    if starts[0] != 0 or np.any(np.diff(starts) <= 0):
        first = "Mon 00:00" if of_week else "00:00"
        raise InputError(source.name, f"times must rise from {first}, each once; put the rows in order.")
    levels: list[Ints] = []
    for column in table.columns[1:]:
        names = column.to_pylist()
        if any(name is None or not str(name).strip() for name in names):
            raise InputError(source.name, "a row has no name of an interval; fill it in.")
        begins = [i == 0 or names[i] != names[i - 1] for i in range(len(names))]
        level = starts[np.array(begins)]
        if levels and not np.all(np.isin(level, levels[-1])):
            raise InputError(
                source.name,
                "intervals of a column must consist of whole ones of the column before; put the longest last.",
            )
        levels.append(frozen(level, np.int64))
    return TimeLevels(_WEEK_S if of_week else _DAY_S, tuple(levels))


def _read_time(text: str, name: str) -> tuple[int | None, int]:
    """Return the day of the week, from Monday (None where none is named), and the seconds after midnight of a local time."""
    match = _TIME.fullmatch(text.strip())
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0) if match else _DAY_S
    named = (match[1] or "").lower() if match else ""
    days = [i for i, day in enumerate(_DAYS) if len(named) >= 3 and day.startswith(named)]
    if seconds >= _DAY_S or (named and not days):
        raise InputError(name, "wanted local times in the first column, such as 06:30 or Mon 06:30.")
    return (days[0] if named else None), seconds
