"""Index of points by slabs of time and square cells in each, for searches of near points."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.trajectory.structures import SpaceTimeGrid
from crowdveil.model.arrays import Floats, Ints

_MAX_CELLS = 2**62
"""Slab, row and column of a cell are one number below this."""


def build_grid(x: Floats, y: Floats, t: Ints, meters: float, seconds: int) -> SpaceTimeGrid:
    """Put points into slabs of `seconds` and cells of `meters`; cells are larger where there would be too many of them."""
    slab, which = np.unique(t // seconds, return_inverse=True)
    side = max(meters, 1e-3)
    while True:
        # Far points and a small distance make more cells than there are numbers: larger ones find the same.
        wide, high = (int(np.ptp(c) / side) + 4 if len(c) else 4 for c in (x, y))
        if wide * high * max(len(slab), 1) < _MAX_CELLS:
            break
        side *= 2
    column, row = (np.floor(_from_zero(c) / side).astype(np.int64) + 1 for c in (x, y))
    number = row * wide + column
    key = which * (wide * high) + number
    order = np.argsort(key, kind="stable")
    key = key[order]
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    cell, of_slab = number[order][begins], which[order][begins]
    slab_offsets = np.searchsorted(of_slab, np.arange(len(slab) + 1))
    return SpaceTimeGrid(order, slab, slab_offsets, cell, np.append(begins, len(key)), wide)


def _from_zero(values: Floats) -> Floats:
    return values - values.min() if len(values) else values
