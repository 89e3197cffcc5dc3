"""Assignment of original flows to rows of a release."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints


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
    """
    row_of = np.full(len(origin), -1, np.int64)
    areas = len(area_offsets) - 1
    # Tables are never emptied: an entry counts only while its stamp is the one of the current step or origin area.
    tile_step = np.full(tiles, -1, np.int64)
    tile_first = np.zeros(tiles, np.int64)
    tile_last = np.zeros(tiles, np.int64)
    area_step = np.full(areas, -1, np.int64)
    area_row = np.full(areas, -1, np.int64)
    stamp = np.full(tiles, -1, np.int64)
    row_at = np.full(tiles, -1, np.int64)
    next_row = np.full(len(row_origin), -1, np.int64)
    now = 0
    twice = 0
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
            now += 1
            _write_table(now, row, next_row, row_destination, area_offsets, area_tiles, stamp, row_at)
            for place in range(area_offsets[area], area_offsets[area + 1]):
                tile = area_tiles[place]
                if tile_step[tile] != step:
                    continue
                for i in range(tile_first[tile], tile_last[tile]):
                    if stamp[destination[i]] != now:
                        continue
                    found = row_at[destination[i]]
                    if row_of[i] == -1 and found >= 0:
                        row_of[i] = found
                    elif row_of[i] != found or found < 0:
                        twice += 1
    return row_of, twice


@kernel
def _write_table(
    now: int,
    first: int,
    next_row: Ints,
    row_destination: Indices,
    area_offsets: Ints,
    area_tiles: Indices,
    stamp: Ints,
    row_at: Ints,
) -> None:
    """Write the rows of one origin area under the tiles of their destinations; -2 where two rows hold a tile."""
    row = first
    while row >= 0:
        area = row_destination[row]
        for place in range(area_offsets[area], area_offsets[area + 1]):
            tile = area_tiles[place]
            if stamp[tile] == now and row_at[tile] != row:
                row_at[tile] = -2
            else:
                row_at[tile] = row
            stamp[tile] = now
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
