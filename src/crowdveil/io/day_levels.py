"""Read a table of the intervals of a day, such as night, morning peak and midday."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.io.source import open_source
from crowdveil.model.arrays import Ints, frozen

CALENDAR = "calendar"
_DAY_S = 86_400


def read_day_levels(given: Any) -> tuple[Ints, ...] | None:
    """Return the starts of the intervals of each level, in seconds after midnight; None for the calendar.

    The table has a row for each start: the local time in the first column, as 06:30, and the name of the interval that begins
    or goes on there in each other column, from the shortest intervals to the longest. Rows one after the other with the same
    name are one interval.
    """
    if isinstance(given, str) and given == CALENDAR:
        return None
    source = open_source(given)
    table = source.read()
    if table.num_columns < 2 or table.num_rows == 0:
        raise InputError(
            source.name,
            "wanted a column of local times, such as 06:30, and one or more of names of intervals, with a row for each start.",
        )
    starts = np.array([_seconds(str(value), source.name) for value in table.column(0).to_pylist()], np.int64)
    if starts[0] != 0 or np.any(np.diff(starts) <= 0):
        raise InputError(source.name, "times must rise from 00:00, each once; put the rows in order.")
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
    return tuple(levels)


def _seconds(text: str, name: str) -> int:
    """Return the seconds after midnight of a local time."""
    match = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", text.strip())
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0) if match else _DAY_S
    if seconds >= _DAY_S:
        raise InputError(name, "wanted local times in the first column, such as 06:30.")
    return seconds
