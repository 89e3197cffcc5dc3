"""Rows of a release: the row of each original flow, sums of rows that overlap, and a histogram of trip lengths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints

NONE, SEVERAL = -1, -2
"""Entries of a table from tile to row where no row holds a tile, and where several do."""


class Rows(NamedTuple):
    """Rows of a release, with their areas; those of time step s of the original are first[s] to last[s], in any order."""

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
    listed: bool,
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
            if not listed:
                row_at[tile] = NONE
            else:
                row_at[tile] = row if row_at[tile] == NONE or row_at[tile] == row else SEVERAL
        row = next_row[row]


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
    """Return the sum of the levels of all rows that hold the cell of each flow, and the sum of squares over all cells of each
    step.

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
            count = 0
            for i in range(begin[tile], end[tile]):
                area = row_destination[rows[i]]
                if level[rows[i]] == 0:
                    continue
                for place in range(area_offsets[area], area_offsets[area + 1]):
                    # An entry of 0 has not been touched.
                    if line[area_tiles[place]] == 0:
                        touched[count] = area_tiles[place]
                        count += 1
                    line[area_tiles[place]] += level[rows[i]]
            while flow < last_flow and origin[flow] == tile:
                rebuilt[flow] = line[destination[flow]]
                flow += 1
            for i in range(count):
                squares[step] += line[touched[i]] ** 2
                line[touched[i]] = 0
    return rebuilt, squares


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
