"""Sums over rows of a release that may overlap, by cell."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints


@kernel
def sum_levels(
    flow_offsets: Ints,
    origin: Indices,
    destination: Indices,
    row_first: Ints,
    row_last: Ints,
    row_origin: Indices,
    row_destination: Indices,
    level: Floats,
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
) -> tuple[Floats, Floats]:
    """Return the sum of the levels of all rows that hold the cell of each flow, and of each step the sum of squares over all
    cells.

    Flows are sorted by (step, origin, destination); the rows of step s are row_first[s] to row_last[s], in any order; the
    level of a row is what it has in each of its cells. One line of the matrix is added up after the other.
    """
    rebuilt, squares = np.zeros(len(origin)), np.zeros(len(flow_offsets) - 1)
    line, touched = np.zeros(tiles), np.empty(tiles, np.int64)
    for step in range(len(flow_offsets) - 1):
        begin = np.zeros(tiles + 1, np.int64)
        for row in range(row_first[step], row_last[step]):
            for place in range(area_offsets[row_origin[row]], area_offsets[row_origin[row] + 1]):
                begin[area_tiles[place] + 1] += 1
        begin = np.cumsum(begin)
        rows, end = np.empty(begin[tiles], np.int64), begin[:-1].copy()
        for row in range(row_first[step], row_last[step]):
            for place in range(area_offsets[row_origin[row]], area_offsets[row_origin[row] + 1]):
                rows[end[area_tiles[place]]] = row
                end[area_tiles[place]] += 1
        flow, last_flow = flow_offsets[step], flow_offsets[step + 1]
        for tile in range(tiles):
            held = 0
            for i in range(begin[tile], end[tile]):
                area = row_destination[rows[i]]
                if level[rows[i]] == 0:
                    continue
                for place in range(area_offsets[area], area_offsets[area + 1]):
                    # What is 0 has not been touched.
                    if line[area_tiles[place]] == 0:
                        touched[held] = area_tiles[place]
                        held += 1
                    line[area_tiles[place]] += level[rows[i]]
            while flow < last_flow and origin[flow] == tile:
                rebuilt[flow] = line[destination[flow]]
                flow += 1
            for i in range(held):
                squares[step] += line[touched[i]] ** 2
                line[touched[i]] = 0
    return rebuilt, squares
