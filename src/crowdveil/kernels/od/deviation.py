"""Deviation of the cells of a box from its mean: the loss when its volume is spread evenly over them."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import BoxArrays, MatrixRows


@kernel
def deviations(
    boxes: BoxArrays,
    rows: MatrixRows,
    steps: int,
    scale: int,
    o_offsets: Ints,
    o_tiles: Ints,
    d_offsets: Ints,
    d_tiles: Ints,
) -> Ints:
    """Sum |volume − mean| over the cells of each box, times `scale`, to the nearest whole number.

    A cell is a pair of tiles in one of `steps` time steps, and a row one cell. `o_offsets` and `o_tiles` are the tiles of each
    region of origins, `d_offsets` and `d_tiles` those of destinations. Where the mean is at most 1 no cell with a trip lies
    below it, and the sum follows from the number of such cells. Deviations above and below the mean are equal, so
    that the cells above it are enough.
    """
    origin, destination, volume, cells = boxes.origin, boxes.destination, boxes.volume, boxes.cells
    row_offsets, row_tile, row_volume = rows.offsets, rows.tile, rows.volume
    found = np.empty(len(origin), np.int64)
    inside = np.full(len(row_offsets), -1, np.int64)
    for i in range(len(origin)):
        a, b, v = origin[i], destination[i], volume[i]
        # Products stay below the number of rows times that of cells, whatever the volumes are.
        all_cells = (o_offsets[a + 1] - o_offsets[a]) * (d_offsets[b + 1] - d_offsets[b]) * steps
        whole, part = divmod(v, all_cells)
        if v <= all_cells:
            above, count = v, cells[i]
        else:
            for e in range(d_offsets[b], d_offsets[b + 1]):
                inside[d_tiles[e]] = i
            above, count = 0, 0
            for e in range(o_offsets[a], o_offsets[a + 1]):
                for row in range(row_offsets[o_tiles[e]], row_offsets[o_tiles[e] + 1]):
                    if inside[row_tile[row]] == i and row_volume[row] > whole:
                        above += row_volume[row]
                        count += 1
        # 2 · (above − count · v / cells), rounded; both factors are whole and not negative.
        means, rest = divmod(count * part, all_cells)
        nearest = (all_cells // 2 - 2 * scale * rest) // all_cells
        found[i] = 2 * scale * (above - count * whole - means) + nearest
    return found
