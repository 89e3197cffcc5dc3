"""Histogram of the trip lengths of boxes, without writing out their pairs of tiles."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints


@kernel
def add_lengths(
    step: Ints,
    origin: Indices,
    destination: Indices,
    level: Floats,
    area_offsets: Ints,
    area_tiles: Indices,
    x: Floats,
    y: Floats,
    mark_m: float,
    ruler: Floats,
) -> None:
    """Add `level` at the distance of every pair of tiles of every row to ruler[step], whose marks are `mark_m` apart.

    A distance between two marks counts partly at either, so that means stay exact. One pass over the cells of each
    row: rows share no cell, so there are never more than the pairs of tiles there are.
    """
    last = ruler.shape[1] - 1
    for row in range(len(origin)):
        o, d = origin[row], destination[row]
        for a in range(area_offsets[o], area_offsets[o + 1]):
            x_a, y_a = x[area_tiles[a]], y[area_tiles[a]]
            for b in range(area_offsets[d], area_offsets[d + 1]):
                dx, dy = x[area_tiles[b]] - x_a, y[area_tiles[b]] - y_a
                place = np.sqrt(dx * dx + dy * dy) / mark_m
                mark = min(int(place), last - 1)
                beyond = place - mark
                ruler[step[row], mark] += level[row] * (1.0 - beyond)
                ruler[step[row], mark + 1] += level[row] * beyond
