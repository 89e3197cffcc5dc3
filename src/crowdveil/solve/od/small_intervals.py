"""Small flows of intervals of time: what the suppressed destinations of an origin hold together, if k people are behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Mask, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.intervals import Intervals
from crowdveil.model.release import REPORTED, FlowRelease
from crowdveil.solve.od.assignment import rows_met
from crowdveil.solve.od.small_flows import Reporting, count_groups, with_areas


class LeftIntervals(NamedTuple):
    """Boxes over time that are not published; those of window i are offsets[i] to offsets[i + 1]. They may hold no trip.

    Areas of the release that they go with, and slots, half-open.
    """

    offsets: Ints
    origin: Ints
    destination: Ints
    first: Ints
    last: Ints


class _Boxes(NamedTuple):
    """Boxes of one window: areas and slots; the group of those that are not published, -2 for rows."""

    origin: Ints
    destination: Ints
    first: Ints
    last: Ints
    group: Ints


def aggregate_small_intervals(
    release: FlowRelease, data: Flows, left: LeftIntervals, k: int, reporting: Reporting
) -> FlowRelease:
    """Add a row to the release for each origin area and interval whose small flows are made by at least k people together."""
    held = release.intervals
    if held is None or len(left.origin) == 0:
        return release
    box = _boxes_of_flows(release, data, left, held)
    inside = np.flatnonzero(box >= 0)
    visited = np.unique(box[inside])
    window = row_slices(left.offsets)
    # A group is the boxes with trips of one origin area and one interval; groups come in order of windows.
    keys = np.column_stack([window, left.first, left.last, left.origin])[visited]
    groups, of_visited = np.unique(keys, axis=0, return_inverse=True)
    of_visited = of_visited.reshape(-1)
    group_of_box = np.full(len(window), -1, np.int64)
    group_of_box[visited] = of_visited
    volume, crowd = count_groups(data, inside, group_of_box[box[inside]], len(groups))
    large = reporting.fits(data, release.areas.offsets, release.areas.tiles)
    kept = (crowd >= k) & (volume >= k) & large[groups[:, 3]]
    chosen = LeftIntervals(left.offsets, *(column[visited] for column in left[1:]))
    found: list[Ints] = []
    for number in np.unique(groups[kept, 0]).tolist():
        rows = slice(release.offsets[number], release.offsets[number + 1])
        here = window[visited] == number
        boxes = _Boxes(
            np.concatenate([release.origin[rows], chosen.origin[here]]),
            np.concatenate([release.destination[rows], chosen.destination[here]]),
            np.concatenate([held.first[rows], chosen.first[here]]),
            np.concatenate([held.last[rows], chosen.last[here]]),
            np.concatenate([np.full(rows.stop - rows.start, -2), of_visited[here]]),
        )
        which = np.flatnonzero(kept & (groups[:, 0] == number))
        found += _destinations(release.areas, boxes, groups, which, reporting.include_empty)
    offsets = np.cumsum([0, *map(len, found)])
    tiles = np.concatenate([np.zeros(0, np.int64), *found])
    large = reporting.fits(data, offsets, tiles)
    taken, offsets = take_slices(offsets, np.flatnonzero(large))
    which = np.flatnonzero(kept)[large]
    return _with_rows(release, held, groups[which], volume[which], crowd[which], offsets, tiles[taken])


def _boxes_of_flows(release: FlowRelease, data: Flows, left: LeftIntervals, held: Intervals) -> Ints:
    """Return the box that each flow lies in, -1 where it is published."""
    none = np.zeros(len(left.origin), np.int64)
    as_rows = replace(
        release, offsets=left.offsets, origin=left.origin.astype(np.int32), destination=left.destination.astype(np.int32),
        volume=none, people=none, state=none.astype(np.uint8), intervals=replace(held, first=left.first, last=left.last),
    )  # fmt: skip
    return rows_met(data, as_rows)[0]


def _destinations(areas: Areas, boxes: _Boxes, groups: Ints, which: Ints, include_empty: bool) -> list[Ints]:
    """Return the tiles that the small flows of each group are aggregated over.

    With `include_empty` these are all tiles but those of other boxes with a tile of the origin and a time step in common: of
    rows, of boxes with trips that stay suppressed or are in another group, and of the groups before.
    """
    tiles = len(areas.zones)
    used, place = np.unique(boxes.origin, return_inverse=True)
    taken, offsets = take_slices(areas.offsets, used)
    held = np.zeros((len(used), tiles), np.bool_)
    held[row_slices(offsets), areas.tiles[taken]] = True
    found: list[Ints] = []
    before: list[tuple[int, int, Mask, Ints]] = []
    for group in which.tolist():
        _, first, last, origin = groups[group].tolist()
        mine = boxes.group == group
        if not include_empty:
            found.append(np.unique(_tiles_of(areas, boxes.destination[mine])))
            continue
        start = np.zeros(tiles, np.bool_)
        start[areas.tiles[areas.offsets[origin] : areas.offsets[origin + 1]]] = True
        shared: Mask = np.any(held & start, axis=1)
        meets = shared[place] & (boxes.first < last) & (boxes.last > first) & ~mine
        free = np.ones(tiles, np.bool_)
        free[_tiles_of(areas, boxes.destination[meets])] = False
        for other_first, other_last, other_start, other in before:
            if other_first < last and other_last > first and (other_start & start).any():
                free[other] = False
        found.append(np.flatnonzero(free))
        before.append((first, last, start, found[-1]))
    return found


def _tiles_of(areas: Areas, which: Ints) -> Ints:
    rows, _ = take_slices(areas.offsets, np.unique(which))
    tiles: Ints = areas.tiles[rows].astype(np.int64)
    return tiles


def _with_rows(
    release: FlowRelease, held: Intervals, group: Ints, volume: Ints, crowd: Ints, offsets: Ints, tiles: Ints
) -> FlowRelease:
    """Add aggregated rows to the release, each behind the published ones of its window."""
    areas, destination = with_areas(release.areas, offsets, tiles)
    window = np.concatenate([release.step, group[:, 0]])
    order = np.argsort(window, kind="stable")
    added = {
        "origin": group[:, 3], "destination": destination, "volume": volume, "people": crowd,
        "state": np.full(len(group), REPORTED),
    }  # fmt: skip
    columns: dict[str, Any] = {
        name: np.concatenate([old := getattr(release, name), new.astype(old.dtype)])[order]
        for name, new in added.items()
    }
    first, last = np.concatenate([held.first, group[:, 1]]), np.concatenate([held.last, group[:, 2]])
    bounds = np.searchsorted(window[order], np.arange(len(release.t) + 1))
    intervals = replace(held, first=first[order], last=last[order])
    return replace(release, areas=areas, offsets=bounds, intervals=intervals, **columns)
