"""Small flows: what the suppressed destinations of an origin hold together, if k people are behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import AnyArray, Indices, Ints, Mask, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.release import REPORTED, FlowRelease
from crowdveil.solve.od.area_content import AreaContent
from crowdveil.solve.od.weights import added_up


@dataclass(frozen=True)
class Reporting:
    """What becomes of small volumes.

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
    content: AreaContent = AreaContent()  # noqa: RUF009 (frozen)

    def fits(self, data: Flows, offsets: Ints, tiles: Ints | Indices) -> Mask:
        """Return whether areas, given by their tiles, contain enough."""
        return self.content.areas_that_fit(data, offsets, tiles)


@dataclass(frozen=True)
class Left:
    """Boxes that are not published; those of step i are offsets[i] to offsets[i + 1]. They may hold no trip.

    Attributes
    ----------
    offsets
        Where the boxes of each time step lie.
    origin, destination
        Areas of the release that they go with.
    """

    offsets: Ints
    origin: Ints
    destination: Ints


def aggregate_small(release: FlowRelease, data: Flows, left: Left, k: int, reporting: Reporting) -> FlowRelease:
    """Add a row to the release for each origin area whose small flows are made by at least k people together."""
    from crowdveil.kernels.od.assign import assign_rows
    from crowdveil.kernels.od.small_flows import aggregated_tiles

    areas, step = release.areas, row_slices(left.offsets)
    box, _ = assign_rows(
        data.offsets, data.origin, data.destination, frozen(left.offsets[:-1], np.int64), frozen(left.offsets[1:], np.int64),
        frozen(left.origin, np.int32), frozen(left.destination, np.int32), areas.offsets, areas.tiles, len(data.zones),
    )  # fmt: skip
    inside = np.flatnonzero(box >= 0)
    visited = np.unique(box[inside])
    # A group is the boxes with trips of one origin area in one time step; groups come in order of steps.
    keys, of_visited = np.unique(step[visited] * len(areas) + left.origin[visited], return_inverse=True)
    group_of_box = np.full(len(step), -1, np.int64)
    group_of_box[visited] = of_visited
    volume, crowd = count_groups(data, inside, group_of_box[box[inside]], len(keys))
    large = reporting.fits(data, areas.offsets, areas.tiles)
    kept = (crowd >= k) & (volume >= k) & large[keys % max(len(areas), 1)]
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    group_step, group_area = keys[kept] // max(len(areas), 1), keys[kept] % max(len(areas), 1)
    boxes = group_of_box[visited]
    columns = (
        group_step, group_area, release.offsets, release.origin, release.destination,
        np.searchsorted(visited, left.offsets), left.origin[visited], left.destination[visited], number[boxes],
        areas.offsets, areas.tiles,
    )  # fmt: skip
    arguments: Any = (*(frozen(column, np.int64) for column in columns), len(data.zones), reporting.include_empty)
    offsets, tiles = aggregated_tiles(*arguments)
    large = reporting.fits(data, offsets, tiles)
    taken, offsets = take_slices(offsets, np.flatnonzero(large))
    step_of, area_of, volume, crowd = group_step[large], group_area[large], volume[kept][large], crowd[kept][large]
    return _with_rows(release, step_of, area_of, volume, crowd, offsets, tiles[taken])


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
    release: FlowRelease, step: Ints, origin: Ints, volume: Ints, crowd: Ints, offsets: Ints, tiles: Ints
) -> FlowRelease:
    """Add aggregated rows to the release, each behind the published ones of its step."""
    areas, destination = with_areas(release.areas, offsets, tiles)
    all_steps = np.concatenate([release.step, step])
    order = np.argsort(all_steps, kind="stable")

    def both(old: AnyArray, new: AnyArray) -> AnyArray:
        return np.concatenate([old, new.astype(old.dtype)])[order]

    return replace(
        release,
        areas=areas,
        offsets=np.searchsorted(all_steps[order], np.arange(len(release.t) + 1)),
        origin=both(release.origin, origin),
        destination=both(release.destination, destination),
        volume=both(release.volume, volume),
        people=both(release.people, crowd),
        state=both(release.state, np.full(len(step), REPORTED)),
    )


def with_areas(areas: Areas, offsets: Ints, tiles: Ints) -> tuple[Areas, Ints]:
    """Add the areas of aggregated destinations, equal ones once; return the number of each.

    Of the areas that are there only single tiles are taken again: whether a larger one is there depends on other time steps,
    and names must not.
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
