"""The rows of a matrix by origin: one walk over them."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints


@kernel
def rows_by_origin(origin: Indices, volume: Ints, tiles: int) -> tuple[Ints, Ints, int]:
    """Return the offsets by tile of rows in order of their origin, the volume that leaves each tile, and that of all."""
    offsets, leaving = np.empty(tiles + 1, np.int64), np.empty(tiles, np.int64)
    row, trips = 0, 0
    for tile in range(tiles):
        offsets[tile] = row
        total = 0
        while row < len(origin) and origin[row] == tile:
            total += volume[row]
            row += 1
        leaving[tile] = total
        trips += total
    offsets[tiles] = row
    return offsets, leaving, trips
