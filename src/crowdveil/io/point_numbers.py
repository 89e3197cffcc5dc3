"""Number the points of two tables, equal ones alike: for checkers, with numpy alone."""

from __future__ import annotations

import numpy as np

from crowdveil.model.arrays import Floats, Ints

Columns = tuple[Ints, Floats, Floats]
"""Time, latitude and longitude of each point."""


def number_points(first: Columns, second: Columns) -> tuple[Ints, Ints]:
    """Return a number for each point of two tables, equal for points of one location and time."""
    columns = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    order = np.lexsort(columns)
    differs = np.zeros(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        values = column[order]
        differs |= values[1:] != values[:-1]
    numbers = np.zeros(len(order), np.int64)
    numbers[order[1:]] = np.cumsum(differs)
    return numbers[: len(first[0])], numbers[len(first[0]) :]
