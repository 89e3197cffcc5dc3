"""Destinations that the small flows of an origin are aggregated over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Indices, Ints


class TimedBoxes(NamedTuple):
    """Boxes by window: offsets; areas of origin and destination, slots (half-open) and group of each, -1 where it has none."""

    offsets: Ints
    origin: Ints
    destination: Ints
    first: Ints
    last: Ints
    group: Ints


class SmallGroups(NamedTuple):
    """Groups of small flows, in order of windows: the window, the area of origin and the slots (half-open) of each."""

    window: Ints
    area: Ints
    first: Ints
    last: Ints


@kernel
def _meets(area: int, group: int, area_offsets: Ints, area_tiles: Indices, inside: Ints) -> bool:
    """Return whether an area has a tile in common with the origin of the group."""
    for e in range(area_offsets[area], area_offsets[area + 1]):
        if inside[area_tiles[e]] == group:
            return True
    return False


@kernel
def _strike(
    boxes: TimedBoxes,
    groups: SmallGroups,
    group: int,
    area_offsets: Ints,
    area_tiles: Indices,
    inside: Ints,
    known: Ints,
    meets: Ints,
    struck: Ints,
) -> None:
    """Strike out the destinations of other boxes that have a tile of the origin and a time step in common with the group."""
    window, first, last = groups.window[group], groups.first[group], groups.last[group]
    for box in range(boxes.offsets[window], boxes.offsets[window + 1]):
        if boxes.group[box] == group or boxes.first[box] >= last or boxes.last[box] <= first:
            continue
        area = boxes.origin[box]
        if known[area] != group:
            known[area], meets[area] = group, _meets(area, group, area_offsets, area_tiles, inside)
        if meets[area]:
            for e in range(area_offsets[boxes.destination[box]], area_offsets[boxes.destination[box] + 1]):
                struck[area_tiles[e]] = group


@kernel
def aggregated_tiles(
    groups: SmallGroups,
    rows: TimedBoxes,
    left: TimedBoxes,
    area_offsets: Ints,
    area_tiles: Indices,
    tiles: int,
    include_empty: bool,
) -> tuple[Ints, Ints]:
    """Return the tiles of the destination of each group of small flows, as offsets and tiles.

    Parameters
    ----------
    rows, left
        The published boxes, and those with trips that are not published.
    area_offsets, area_tiles
        The tiles of each area.
    include_empty
        Take every tile that no trip goes to from the origin too: those that are in no other box that has an origin and a time
        step in common.
    """
    offsets = np.zeros(len(groups.window) + 1, np.int64)
    found = np.empty(1024, np.int64)
    inside, struck = np.full(tiles, -1, np.int64), np.full(tiles, -1, np.int64)
    known, meets = np.full(len(area_offsets), -1, np.int64), np.zeros(len(area_offsets), np.int64)
    count = 0
    for group in range(len(groups.window)):
        window, area = groups.window[group], groups.area[group]
        found = grow(found, count + tiles)
        if include_empty:
            for e in range(area_offsets[area], area_offsets[area + 1]):
                inside[area_tiles[e]] = group
            for boxes in (rows, left):
                _strike(boxes, groups, group, area_offsets, area_tiles, inside, known, meets, struck)
            # Earlier groups have already taken empty tiles.
            other = group - 1
            while other >= 0 and groups.window[other] == window:
                apart = groups.first[other] >= groups.last[group] or groups.last[other] <= groups.first[group]
                if not apart and _meets(groups.area[other], group, area_offsets, area_tiles, inside):
                    for e in range(offsets[other], offsets[other + 1]):
                        struck[found[e]] = group
                other -= 1
        else:
            for box in range(left.offsets[window], left.offsets[window + 1]):
                if left.group[box] == group:
                    for e in range(area_offsets[left.destination[box]], area_offsets[left.destination[box] + 1]):
                        struck[area_tiles[e]] = group
        for tile in range(tiles):
            if (struck[tile] == group) != include_empty:
                found[count] = tile
                count += 1
        offsets[group + 1] = count
    return offsets, found[:count].copy()
