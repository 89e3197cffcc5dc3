"""Assignment of original flows to rows of a release."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints

NONE, SEVERAL = -1, -2
"""What a table from tile to row has where no row holds a tile, and where several do."""


@kernel
def assign_rows(
    flow_offsets: Ints,
    origin: Indices,
    destination: Indices,
    row_first: Ints,
    row_last: Ints,
    row_origin: Indices,
    row_destination: Indices,
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
) -> tuple[Ints, int]:
    """Return the row of each flow, -1 where there is none; and the number of flows that lie in more than one.

    Flows are sorted by (step, origin, destination); the rows of step s are row_first[s] to row_last[s], in any order.
    Areas may be any sets of tiles. The origin areas of a step are taken one after the other: the destinations of their
    rows are written into a table from tile to row, in which the flows that start in the area look themselves up. A flow
    is thus met once for each origin area that holds its origin: as often as a tree is deep, or less.

    In nearly all releases no flow lies in two rows. So it is first done without a look at that, which needs no branch; where
    more rows were met than flows that have one, it is done again, one flow after the other.
    """
    row_of = np.full(len(origin), -1, np.int64)
    rows = row_first, row_last, row_origin, row_destination
    met = _look_up(flow_offsets, origin, destination, rows, area_offsets, area_tiles, tiles, False, row_of)
    with_row = 0
    for i in range(len(row_of)):
        with_row += row_of[i] >= 0
    if met == with_row:
        return row_of, 0
    row_of[:] = -1
    return row_of, _look_up(flow_offsets, origin, destination, rows, area_offsets, area_tiles, tiles, True, row_of)


@kernel
def _look_up(
    flow_offsets: Ints,
    origin: Indices,
    destination: Indices,
    rows: tuple[Ints, Ints, Indices, Indices],
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
    one_by_one: bool,
    row_of: Ints,
) -> int:
    """Fill in the row of each flow; return how many were met or, one by one, how many flows lie in more than one."""
    row_first, row_last, row_origin, row_destination = rows
    areas, met, twice = len(area_offsets) - 1, 0, 0
    # Never emptied: an entry counts only while its step is the current one.
    tile_step, area_step = np.full(tiles, -1, np.int64), np.full(areas, -1, np.int64)
    tile_first, tile_last = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    area_row, next_row = np.full(areas, -1, np.int64), np.full(len(row_origin), -1, np.int64)
    row_at = np.full(tiles, -1, np.int64)
    for step in range(len(flow_offsets) - 1):
        for i in range(flow_offsets[step], flow_offsets[step + 1]):
            tile = origin[i]
            if tile_step[tile] != step:
                tile_step[tile] = step
                tile_first[tile] = i
            tile_last[tile] = i + 1
        for row in range(row_first[step], row_last[step]):
            area = row_origin[row]
            next_row[row] = area_row[area] if area_step[area] == step else -1
            area_step[area] = step
            area_row[area] = row
        for row in range(row_first[step], row_last[step]):
            area = row_origin[row]
            if area_row[area] != row:
                continue  # the last row of an origin area stands for all of them
            _set_table(row, True, next_row, row_destination, area_offsets, area_tiles, row_at)
            for place in range(area_offsets[area], area_offsets[area + 1]):
                tile = area_tiles[place]
                if tile_step[tile] != step:
                    continue
                low, high = tile_first[tile], tile_last[tile]
                if one_by_one:
                    for i in range(low, high):
                        found = row_at[destination[i]]
                        if row_of[i] == NONE and found >= 0:
                            row_of[i] = found
                        elif found != NONE and found != row_of[i]:
                            twice += 1
                    continue
                for i in range(low, high):
                    at = np.uintp(i)
                    found = row_at[np.uintp(destination[at])]
                    row_of[at] = max(row_of[at], found)
                    met += found != NONE
            _set_table(row, False, next_row, row_destination, area_offsets, area_tiles, row_at)
    return twice if one_by_one else met


@kernel
def _set_table(
    last: int,
    there: bool,
    next_row: Ints,
    row_destination: Indices,
    area_offsets: Ints,
    area_tiles: Indices,
    row_at: Ints,
) -> None:
    """Write the rows of an origin area under the tiles of their destinations, SEVERAL where two hold a tile; or remove them."""
    row = last
    while row >= 0:
        area = row_destination[row]
        for place in range(area_offsets[area], area_offsets[area + 1]):
            tile = area_tiles[place]
            if not there:
                row_at[tile] = NONE
            else:
                row_at[tile] = row if row_at[tile] == NONE or row_at[tile] == row else SEVERAL
        row = next_row[row]


@kernel
def sum_differences(offsets: Ints, of_flow: Floats, row: Ints, of_row: Floats) -> Floats:
    """Return for each slice of flows the sum of |x − y|, x of the flow and y of its row; y is 0 where the row is -1."""
    sums = np.zeros(len(offsets) - 1, np.float64)
    for at in range(len(sums)):
        added = 0.0
        for i in range(offsets[at], offsets[at + 1]):
            added += abs(of_flow[i] - (of_row[row[i]] if row[i] >= 0 else 0.0))
        sums[at] = added
    return sums
