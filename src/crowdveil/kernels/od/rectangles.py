"""Tiles inside rectangles."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def tiles_inside(x: Floats, y: Floats, by_x: Ints, rectangles: Floats) -> tuple[Ints, Ints]:
    """Return the tiles whose places lie in each rectangle, its edges included, as offsets and tiles, rising.

    Parameters
    ----------
    x, y
        Place of each tile.
    by_x
        The tiles in order of x.
    rectangles
        Least and largest x, least and largest y, one rectangle a row.
    """
    sorted_x = x[by_x]
    n = len(rectangles)
    offsets, first = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    for r in range(n):
        first[r] = np.searchsorted(sorted_x, rectangles[r, 0])
        i, count = first[r], 0
        while i < len(by_x) and sorted_x[i] <= rectangles[r, 1]:
            count += rectangles[r, 2] <= y[by_x[i]] <= rectangles[r, 3]
            i += 1
        offsets[r + 1] = offsets[r] + count
    tiles = np.empty(offsets[-1], np.int64)
    for r in range(n):
        i, at = first[r], offsets[r]
        while at < offsets[r + 1]:
            if rectangles[r, 2] <= y[by_x[i]] <= rectangles[r, 3]:
                tiles[at] = by_x[i]
                at += 1
            i += 1
        tiles[offsets[r] : offsets[r + 1]].sort()
    return offsets, tiles
