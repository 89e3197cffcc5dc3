"""Destinations that the small flows of an origin are aggregated over."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.growable import grow


@kernel
def _strike(
    low: int,
    high: int,
    origin: Ints,
    destination: Ints,
    skip: Ints,
    group: int,
    area_offsets: Ints,
    area_tiles: Ints,
    inside: Ints,
    known: Ints,
    meets: Ints,
    struck: Ints,
) -> None:
    """Strike out the destinations of boxes low to high whose origins have a tile in common with that of the group."""
    for box in range(low, high):
        if skip[box] == group:
            continue
        area = origin[box]
        if known[area] != group:
            known[area] = group
            meets[area] = 0
            for e in range(area_offsets[area], area_offsets[area + 1]):
                if inside[area_tiles[e]] == group:
                    meets[area] = 1
                    break
        if meets[area]:
            for e in range(area_offsets[destination[box]], area_offsets[destination[box] + 1]):
                struck[area_tiles[e]] = group


@kernel
def aggregated_tiles(
    group_step: Ints,
    group_area: Ints,
    row_offsets: Ints,
    row_origin: Ints,
    row_destination: Ints,
    left_offsets: Ints,
    left_origin: Ints,
    left_destination: Ints,
    left_group: Ints,
    area_offsets: Ints,
    area_tiles: Ints,
    tiles: int,
    include_empty: bool,
) -> tuple[Ints, Ints]:
    """Return the tiles of the destination of each group of small flows, as offsets and tiles.

    Parameters
    ----------
    group_step, group_area
        Time step and area of origin of each group, in order of steps.
    row_offsets, row_origin, row_destination
        The published boxes, by step.
    left_offsets, left_origin, left_destination, left_group
        The boxes with trips that are not published, by step, and their group: -1 where they stay suppressed.
    area_offsets, area_tiles
        The tiles of each area.
    include_empty
        Take every tile that no trip goes to from the origin too: those that are in no other box that has an origin in common.
    """
    offsets = np.zeros(len(group_step) + 1, np.int64)
    found = np.empty(1024, np.int64)
    inside, struck = np.full(tiles, -1, np.int64), np.full(tiles, -1, np.int64)
    known, meets = np.full(len(area_offsets), -1, np.int64), np.zeros(len(area_offsets), np.int64)
    none = np.full(len(row_origin), -2, np.int64)
    count = 0
    for group in range(len(group_step)):
        step, area = group_step[group], group_area[group]
        found = grow(found, count + tiles)
        if include_empty:
            for e in range(area_offsets[area], area_offsets[area + 1]):
                inside[area_tiles[e]] = group
            _strike(
                row_offsets[step], row_offsets[step + 1], row_origin, row_destination, none, group, area_offsets,
                area_tiles, inside, known, meets, struck,
            )  # fmt: skip
            _strike(
                left_offsets[step], left_offsets[step + 1], left_origin, left_destination, left_group, group,
                area_offsets, area_tiles, inside, known, meets, struck,
            )  # fmt: skip
            # Groups before this one have taken empty tiles of their own.
            other = group - 1
            while other >= 0 and group_step[other] == step:
                shared = False
                for e in range(area_offsets[group_area[other]], area_offsets[group_area[other] + 1]):
                    if inside[area_tiles[e]] == group:
                        shared = True
                        break
                if shared:
                    for e in range(offsets[other], offsets[other + 1]):
                        struck[found[e]] = group
                other -= 1
            for tile in range(tiles):
                if struck[tile] != group:
                    found[count] = tile
                    count += 1
        else:
            for box in range(left_offsets[step], left_offsets[step + 1]):
                if left_group[box] == group:
                    for e in range(area_offsets[left_destination[box]], area_offsets[left_destination[box] + 1]):
                        struck[area_tiles[e]] = group
            for tile in range(tiles):
                if struck[tile] == group:
                    found[count] = tile
                    count += 1
        offsets[group + 1] = count
    return offsets, found[:count].copy()
