"""Small flows: the suppressed flows of an origin, joined to one row if at least k people made them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdveil.kernels.od.small_flows import SmallGroups, TimedBoxes, aggregated_tiles
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import AnyArray, Indices, Ints, distinct, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.release import REPORTED, FlowRelease
from crowdveil.solve.od.assignment import rows_met
from crowdveil.solve.od.region_space import ANY_EXTENT, RegionExtent
from crowdveil.solve.od.weights import added_up


@dataclass(frozen=True)
class Reporting:
    """How small volumes are treated.

    Attributes
    ----------
    wanted
        Whether they are reported.
    include_empty
        Whether an aggregated area holds the destinations without trips as well. Without them it discloses that each of its
        parts has trips.
    content
        What an aggregated area must contain.
    """

    wanted: bool = False
    include_empty: bool = True
    content: RegionExtent = ANY_EXTENT


@dataclass(frozen=True)
class Left:
    """Boxes that are not published; those of step or window i are offsets[i] to offsets[i + 1]. They may hold no trip.

    Attributes
    ----------
    offsets
        Where the boxes of each time step or window lie.
    origin, destination
        Areas of the release that they go with.
    first, last
        Slots of each, half-open, where rows have intervals of time.
    """

    offsets: Ints
    origin: Ints
    destination: Ints
    first: Ints | None = None
    last: Ints | None = None


def aggregate_small(release: FlowRelease, data: Flows, left: Left, k: int, reporting: Reporting) -> FlowRelease:
    """Add a row for each origin area, and time step or interval, whose small flows are made by at least k people together."""
    areas, window = release.areas, row_slices(left.offsets)
    first, last = _slots(window, left.first, left.last)
    box = _boxes_of_flows(release, data, left, first, last)
    inside = np.flatnonzero(box >= 0)
    visited, place = distinct(box[inside], len(window))
    small = SmallGroups(*(column[visited] for column in (window, left.origin, first, last)))
    length = small.last - small.first
    # A group is the boxes with trips of one origin area and one interval; groups come in order of time.
    keys = (small.first * (length.max(initial=0) + 1) + length) * len(areas) + small.area
    _, example, of_visited = np.unique(keys, return_index=True, return_inverse=True)
    volume, crowd = count_groups(data, inside, of_visited[place], len(example))
    large = reporting.content.areas_that_fit(data, areas.offsets, areas.tiles)
    kept = (crowd >= k) & (volume >= k) & large[small.area[example]]
    number = np.where(kept, np.cumsum(kept) - 1, -1)

    intervals = release.intervals
    times = _slots(release.step, *((None, None) if intervals is None else (intervals.first, intervals.last)))
    rows = _boxes(release.offsets, release.origin, release.destination, *times, np.full(len(release), -1))
    destination, offsets = left.destination[visited], np.searchsorted(visited, left.offsets)
    others = _boxes(offsets, small.area, destination, small.first, small.last, number[of_visited])
    groups = SmallGroups(*(frozen(column[example[kept]], np.int64) for column in small))
    tiles_of_areas = areas.offsets, areas.tiles
    offsets, tiles = aggregated_tiles(groups, rows, others, *tiles_of_areas, len(data.zones), reporting.include_empty)
    large = reporting.content.areas_that_fit(data, offsets, tiles)
    taken, offsets = take_slices(offsets, np.flatnonzero(large))
    groups = SmallGroups(*(column[large] for column in groups))
    return _with_rows(release, groups, volume[kept][large], crowd[kept][large], offsets, tiles[taken])


def _boxes(*columns: AnyArray) -> TimedBoxes:
    return TimedBoxes(*(frozen(column, np.int64) for column in columns))


def _slots(window: Ints, first: Ints | None, last: Ints | None) -> tuple[Ints, Ints]:
    """Return the slots of boxes, half-open; a time step is a slot where there are no intervals."""
    return (window, window + 1) if first is None or last is None else (first, last)


def _boxes_of_flows(release: FlowRelease, data: Flows, left: Left, first: Ints, last: Ints) -> Ints:
    """Return the box that each flow lies in, -1 where it is published."""
    none, spans = np.zeros(len(left.origin), np.int64), release.intervals
    as_rows = replace(
        release,
        offsets=left.offsets,
        origin=left.origin.astype(np.int32),
        destination=left.destination.astype(np.int32),
        volume=none,
        people=none,
        state=none.astype(np.uint8),
        intervals=None if spans is None else replace(spans, first=first, last=last),
    )
    return rows_met(data, as_rows)[0]


def count_groups(data: Flows, rows: Ints, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """Count the whole trips and the different people of each group of flows; trips in place of people where k counts trips."""
    volume, _ = added_up(data, rows, group, groups)
    crowd = np.zeros(groups, np.int64)
    if data.person_ids is not None and data.person_offsets is not None:
        taken, offsets = take_slices(data.person_offsets, rows)
        people = int(data.person_ids.max(initial=0)) + 1
        different = np.sort(group[row_slices(offsets)] * people + data.person_ids[taken])
        different = different[np.diff(different, prepend=-1) != 0]
        crowd = np.bincount(different // people, minlength=groups)
    elif data.k_unit == "people":
        np.maximum.at(crowd, group, data.people[rows])  # people of two flows may be the same ones
    else:
        np.add.at(crowd, group, data.people[rows])
    return volume, crowd


def _with_rows(
    release: FlowRelease, groups: SmallGroups, volume: Ints, crowd: Ints, offsets: Ints, tiles: Ints
) -> FlowRelease:
    """Add aggregated rows to the release, each behind the published ones of its step or window."""
    areas, destination = _with_areas(release.areas, offsets, tiles)
    windows, held = np.concatenate([release.step, groups.window]), release.intervals
    order = np.argsort(windows, kind="stable")

    def both(old: AnyArray, new: AnyArray) -> AnyArray:
        return np.concatenate([old, new.astype(old.dtype)])[order]

    intervals = None
    if held is not None:
        intervals = replace(held, first=both(held.first, groups.first), last=both(held.last, groups.last))
    return replace(
        release,
        areas=areas,
        offsets=np.searchsorted(windows[order], np.arange(len(release.t) + 1)),
        origin=both(release.origin, groups.area),
        destination=both(release.destination, destination),
        volume=both(release.volume, volume),
        people=both(release.people, crowd),
        state=both(release.state, np.full(len(volume), REPORTED)),
        intervals=intervals,
    )


def _with_areas(areas: Areas, offsets: Ints, tiles: Ints) -> tuple[Areas, Ints]:
    """Add the areas of aggregated destinations, equal ones once; return the number of each.

    Existing areas are used again only if they are single tiles: larger ones may come from other time steps, on which names must
    not depend.
    """
    single = np.flatnonzero(areas.size == 1)
    number = {areas.tiles[areas.offsets[i] : areas.offsets[i] + 1].tobytes(): int(i) for i in single}
    new: list[Indices] = []
    place = np.empty(len(offsets) - 1, np.int64)
    flat = tiles.astype(np.int32)
    for i in range(len(place)):
        here = flat[offsets[i] : offsets[i + 1]]
        key = here.tobytes()
        if key not in number:
            number[key] = len(areas) + len(new)
            new.append(here)
        place[i] = number[key]
    return areas.and_more(new, "rest"), place
