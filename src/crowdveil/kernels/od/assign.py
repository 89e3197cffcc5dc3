"""Assignment of original flows to rows of a release."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints, Mask

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
    """Return the row of each flow, -1 where there is none; and the number of flows that lie in more than one.

    Flows are sorted by (step, origin, destination). Areas may be any sets of tiles. The origin areas of a step are taken one
    after the other: the destinations of their rows are written into a table from tile to row, in which the flows that start in
    the area look themselves up. A flow is thus met once for each origin area that holds its origin: as often as a tree is deep,
    or less.

    In nearly all releases no flow lies in two rows. So it is first done without a look at that, which needs no branch; where
    more rows were met than flows that have one, it is done again, one flow after the other.
    """
    row_of = np.full(len(origin), -1, np.int64)
    every = np.ones(len(rows.origin), np.bool_)
    met = _look_up(flow_offsets, origin, destination, rows, every, area_offsets, area_tiles, tiles, False, row_of)
    if met == _with_row(row_of):
        return row_of, 0
    row_of[:] = -1
    twice = _look_up(flow_offsets, origin, destination, rows, every, area_offsets, area_tiles, tiles, True, row_of)
    return row_of, twice


@kernel
def assign_changed_rows(
    flow_offsets: Ints,
    origin: Indices,
    destination: Indices,
    rows: Rows,
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
    before: Rows,
    row_before: Ints,
) -> tuple[Ints, bool]:
    """Return the row of each flow from its row in another release with the same areas, in which no flow lies in two.

    The flows of a row that both have stay in it, and only other rows are looked up. Returned is also whether no flow lies in two:
    otherwise rows are not assigned.
    """
    same, new = _same_rows(rows, before, len(area_offsets) - 1)
    row_of = np.empty(len(origin), np.int64)
    for i in range(len(row_of)):
        known = row_before[np.uintp(i)]
        row_of[np.uintp(i)] = same[np.uintp(known)] if known >= 0 else -1
    met = _with_row(row_of)
    met += _look_up(flow_offsets, origin, destination, rows, new, area_offsets, area_tiles, tiles, False, row_of)
    return row_of, met == _with_row(row_of)


@kernel
def _with_row(row_of: Ints) -> int:
    """Return how many flows have a row."""
    found = 0
    for i in range(len(row_of)):
        found += row_of[i] >= 0
    return found


@kernel
def _same_rows(rows: Rows, before: Rows, areas: int) -> tuple[Ints, Mask]:
    """Return for each row of the release before the row with the same areas, -1 where there is none; and which rows are new.

    Of two rows with the same areas in a time step one is new, so that it is seen that their flows lie in two.
    """
    same, new = np.full(len(before.origin), -1, np.int64), np.ones(len(rows.origin), np.bool_)
    area_row, next_row = np.full(areas, -1, np.int64), np.empty(len(before.origin), np.int64)
    for step in range(len(rows.first)):
        for row in range(before.first[step], before.last[step]):
            area = before.origin[row]
            next_row[row] = area_row[area]
            area_row[area] = row
        for row in range(rows.first[step], rows.last[step]):
            other = area_row[rows.origin[row]]
            while other >= 0 and (same[other] >= 0 or before.destination[other] != rows.destination[row]):
                other = next_row[other]
            if other >= 0:
                same[other], new[row] = row, False
        for row in range(before.first[step], before.last[step]):
            area_row[before.origin[row]] = -1
    return same, new


@kernel
def _look_up(
    flow_offsets: Ints,
    origin: Indices,
    destination: Indices,
    rows: Rows,
    wanted: Mask,
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
    one_by_one: bool,
    row_of: Ints,
) -> int:
    """Fill in the row of each flow in wanted rows; return how many were met or, one by one, how many lie in more than one."""
    row_first, row_last, row_origin, row_destination = rows
    areas, met, twice = len(area_offsets) - 1, 0, 0
    # Never emptied: an entry counts only while its step is the current one.
    tile_step, area_step = np.full(tiles, -1, np.int64), np.full(areas, -1, np.int64)
    tile_first, tile_last = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    area_row, next_row = np.full(areas, -1, np.int64), np.full(len(row_origin), -1, np.int64)
    row_at = np.full(tiles, -1, np.int64)
    for step in range(len(flow_offsets) - 1):
        if flow_offsets[step] < flow_offsets[step + 1]:
            _mark_tiles(step, flow_offsets[step], flow_offsets[step + 1], origin, tile_step, tile_first, tile_last)
        for row in range(row_first[step], row_last[step]):
            if wanted[row]:
                area = row_origin[row]
                next_row[row] = area_row[area] if area_step[area] == step else -1
                area_step[area] = step
                area_row[area] = row
        for row in range(row_first[step], row_last[step]):
            area = row_origin[row]
            if not wanted[row] or area_row[area] != row:
                continue  # the last row of an origin area stands for all of them
            _set_table(row, True, next_row, row_destination, area_offsets, area_tiles, row_at)
            # Indices are unsigned: others would each be tested for being counted from the end.
            for place in range(np.uintp(area_offsets[area]), np.uintp(area_offsets[area + 1])):
                tile = np.uintp(area_tiles[place])
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
                for at in range(np.uintp(low), np.uintp(high)):
                    found = row_at[np.uintp(destination[at])]
                    row_of[at] = max(row_of[at], found)
                    met += found != NONE
            _set_table(row, False, next_row, row_destination, area_offsets, area_tiles, row_at)
    return twice if one_by_one else met


@kernel
def _mark_tiles(
    step: int, first: int, last: int, origin: Indices, tile_step: Ints, tile_first: Ints, tile_last: Ints
) -> None:
    """Note the flows of each origin tile, from `first` to before `last`."""
    tile, begin = np.uintp(origin[first]), first
    for i in range(first + 1, last + 1):
        if i < last and np.uintp(origin[np.uintp(i)]) == tile:
            continue
        tile_step[tile], tile_first[tile], tile_last[tile] = step, begin, i
        if i < last:
            tile, begin = np.uintp(origin[np.uintp(i)]), i


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
        for place in range(np.uintp(area_offsets[area]), np.uintp(area_offsets[area + 1])):
            tile = np.uintp(area_tiles[place])
            if not there:
                row_at[tile] = NONE
            else:
                row_at[tile] = row if row_at[tile] == NONE or row_at[tile] == row else SEVERAL
        row = next_row[row]


@kernel
def sum_differences(offsets: Ints, of_flow: Floats, row: Ints, of_row: Floats) -> Floats:
    """Return for each slice of flows the sum of |x − y|, x of the flow and y of its row; y is 0 where the row is -1."""
    sums = np.zeros(len(offsets) - 1, np.float64)
    with_none = np.zeros(len(of_row) + 1, np.float64)  # that of no row comes first, so that there is no branch for it
    with_none[1:] = of_row
    for at in range(len(sums)):
        added = 0.0
        for i in range(np.uintp(offsets[at]), np.uintp(offsets[at + 1])):
            added += abs(of_flow[i] - with_none[np.uintp(row[i] + 1)])
        sums[at] = added
    return sums
