"""Points by where and when: slabs of time, and square cells in each, so that what is near is looked for near."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.model.arrays import Floats, Ints

_MOST = 2**62
"""Slab, row and column of a cell are one number below this."""


@dataclass(frozen=True, eq=False)
class SpaceTimeGrid:
    """All points that are within `meters` and `seconds` of one lie in its slab or one beside, in its cell or one around.

    Attributes
    ----------
    order
        The point at each place: places are in order of slab, then cell, then point.
    slab
        The number of each slab that has points: time // seconds, rising.
    slab_offsets
        The cells of slab i are slab_offsets[i] to slab_offsets[i + 1].
    cell
        The number of each cell, row · columns + column; rising in a slab.
    cell_offsets
        The points of cell i are at the places cell_offsets[i] to cell_offsets[i + 1].
    columns
        Width of the grid. The outermost ones are empty, so that the neighbors of a cell in its row are numbers beside its own.
    """

    order: Ints
    slab: Ints
    slab_offsets: Ints
    cell: Ints
    cell_offsets: Ints
    columns: int

    @classmethod
    def of(cls, x: Floats, y: Floats, t: Ints, meters: float, seconds: int) -> SpaceTimeGrid:
        """Put points into slabs and cells. Cells may be larger than asked for where there would be too many of them."""
        slab, which = np.unique(t // seconds, return_inverse=True)
        side = max(meters, 1e-3)
        while True:
            # Far points and a small distance make more cells than there are numbers: larger ones find the same.
            wide, high = (int(np.ptp(c) / side) + 4 if len(c) else 4 for c in (x, y))
            if wide * high * max(len(slab), 1) < _MOST:
                break
            side *= 2
        column, row = (np.floor(_from_zero(c) / side).astype(np.int64) + 1 for c in (x, y))
        number = row * wide + column
        key = which * (wide * high) + number
        order = np.argsort(key, kind="stable")
        key = key[order]
        begins = np.flatnonzero(np.diff(key, prepend=-1))
        cell, of_slab = number[order][begins], which[order][begins]
        return cls(
            order,
            slab,
            np.searchsorted(of_slab, np.arange(len(slab) + 1)),
            cell,
            np.append(begins, len(key)),
            wide,
        )


def _from_zero(values: Floats) -> Floats:
    return values - values.min() if len(values) else values
