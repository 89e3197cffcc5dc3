"""Index of points by slabs of time and square cells in each, for searches of near points."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.trajectory.structures import SpaceTimeGrid
from crowdveil.model.arrays import Floats, Ints, group_offsets, index_type

_MAX_CELLS = 2**62
"""Slab, row and column of a cell are one number below this."""


def build_grid(x: Floats, y: Floats, t: Ints, meters: float, seconds: int) -> SpaceTimeGrid:
    """Put points into slabs of `seconds` and cells of `meters`; cells are larger where there would be too many of them."""
    slab, which = _slabs(t, seconds)
    side = max(meters, 1e-3)
    while True:
        # Far points and a small distance make more cells than there are numbers: larger ones find the same.
        wide, high = (int(np.ptp(c) / side) + 4 if len(c) else 4 for c in (x, y))
        if wide * high * max(len(slab), 1) < _MAX_CELLS:
            break
        side *= 2
    number = _line(y, side) * wide
    number += _line(x, side)
    points_before = group_offsets(which, len(slab))
    order = np.lexsort((number, which))
    number = number[order]
    begins = np.append(True, number[1:] != number[:-1])[: len(number)]
    begins[points_before[:-1]] = True
    first = np.flatnonzero(begins)
    slab_offsets = np.searchsorted(first, points_before)
    narrow = order.astype(index_type(len(order)))
    return SpaceTimeGrid(narrow, slab, slab_offsets, number[first], np.append(first, len(number)), wide)


def _slabs(t: Ints, seconds: int) -> tuple[Ints, Ints]:
    """Return the numbers of the slabs that have points, rising, and the place of each point's slab among them."""
    found, which = np.unique(t // seconds, return_inverse=True)
    return found, which


def _line(values: Floats, side: float) -> Ints:
    """Return the row or column of each point, from 1."""
    if not len(values):
        return np.zeros(0, np.int64)
    place = values - values.min()
    place /= side
    line: Ints = np.floor(place, out=place).astype(np.int64)
    line += 1
    return line
