"""Assignment of original flows to rows of a release."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints

NONE, SEVERAL = -1, -2
"""What a table from tile to row has where no row holds a tile, and where several do."""


class Rows(NamedTuple):
    """Rows of a release: those of time step s of the original are first[s] to last[s], in any order; and the areas of each."""

    first: Ints
    last: Ints
    origin: Indices
    destination: Indices


@kernel
def assign_rows(
    flow_offsets: Ints,
    origin: Indices,
    destination: Indices,
    rows: Rows,
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
) -> tuple[Ints, int]:
    """Return the row of each flow, -1 where there is none; and how many more rows than one hold a flow.

    Flows are sorted by (step, origin, destination). Areas may be any sets of tiles. The origin areas of a step are taken one
    after the other: the destinations of their rows are written into a table from tile to row, in which the flows that start in
    the area look themselves up. A flow is thus met once for each origin area that holds its origin: as often as a tree is deep,
    or less.
    """
    row_first, row_last, row_origin, row_destination = rows
    areas, twice = len(area_offsets) - 1, 0
    row_of = np.full(len(origin), NONE, np.int64)
    # Never emptied: an entry counts only while its step is the current one.
    tile_step, area_step = np.full(tiles, -1, np.int64), np.full(areas, -1, np.int64)
    tile_first, tile_last = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    area_row, next_row = np.full(areas, -1, np.int64), np.full(len(row_origin), -1, np.int64)
    row_at = np.full(tiles, NONE, np.int64)
    for step in range(len(flow_offsets) - 1):
        for flow in range(flow_offsets[step], flow_offsets[step + 1]):
            tile = origin[flow]
            if tile_step[tile] != step:
                tile_step[tile], tile_first[tile] = step, flow
            tile_last[tile] = flow + 1
        for row in range(row_first[step], row_last[step]):
            area = row_origin[row]
            next_row[row] = area_row[area] if area_step[area] == step else -1
            area_step[area], area_row[area] = step, row
        for row in range(row_first[step], row_last[step]):
            area = row_origin[row]
            if area_row[area] != row:
                continue  # the last row of an origin area stands for all of them
            _set_table(row, True, next_row, row_destination, area_offsets, area_tiles, row_at)
            for place in range(area_offsets[area], area_offsets[area + 1]):
                tile = area_tiles[place]
                if tile_step[tile] != step:
                    continue
                for flow in range(tile_first[tile], tile_last[tile]):
                    found = row_at[destination[flow]]
                    if row_of[flow] == NONE and found >= 0:
                        row_of[flow] = found
                    elif found != NONE and found != row_of[flow]:
                        twice += 1
            _set_table(row, False, next_row, row_destination, area_offsets, area_tiles, row_at)
    return row_of, twice


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
