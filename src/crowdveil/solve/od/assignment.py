"""Assignment of original flows to the rows of a release; every comparison of the two starts here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdveil.errors import InputError, Text, counted
from crowdveil.kernels.od.release_rows import Rows, assign_rows
from crowdveil.model.arrays import Ints, frozen, require, row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease


def row_of_flows(flows: Flows, release: FlowRelease) -> Ints:
    """Return the row of the release that each original flow lies in, -1 where it was suppressed.

    Rows may be boxes of any two sets of tiles, as long as no flow lies in two of them.
    """
    row, twice = rows_met(flows, release)
    if twice:
        raise InputError(
            "release",
            f"Expected each flow of the original in at most one row of its time step, got {counted(twice, 'flow')} in several. "
            "Verify the release.",
        )
    return row


def rows_met(flows: Flows, release: FlowRelease) -> tuple[Ints, int]:
    """Return a row of the release that each original flow lies in, -1 where there is none; and how many flows lie in more."""
    check_same_zones(flows, release)
    by_step = rows_of_steps(flows, release)
    bounds = frozen(by_step.first, np.int64), frozen(by_step.last, np.int64)
    areas = frozen(release.origin[by_step.row], np.int32), frozen(release.destination[by_step.row], np.int32)
    tiles_of_areas = release.areas.offsets, release.areas.tiles, len(flows.zones)
    found, twice = assign_rows(flows.offsets, flows.origin, flows.destination, Rows(*bounds, *areas), *tiles_of_areas)
    return (found if release.intervals is None else np.append(by_step.row, -1)[found]), twice


class StepRows(NamedTuple):
    """The rows that each time step of the original is in: `row` from `first` to before `last`; a row may be in several."""

    first: Ints
    last: Ints
    row: Any


def rows_of_steps(flows: Flows, release: FlowRelease) -> StepRows:
    """Return the rows of a release that each time step of the original is in."""
    if release.intervals is not None:
        check_windows(flows, release)
        slot, row = release.intervals.spread()
        own = release.intervals.slots_of(flows.t)
        # A time step outside all windows, -1, is in no row.
        first, last = (frozen(np.searchsorted(slot, own, side=side), np.int64) for side in ("left", "right"))
        return StepRows(first, last, row)
    first, last = np.zeros(flows.steps, np.int64), np.zeros(flows.steps, np.int64)
    step = steps_of_release(flows, release)
    first[step], last[step] = release.offsets[:-1], release.offsets[1:]
    return StepRows(first, last, slice(None))


def windows_of_steps(flows: Flows, release: FlowRelease) -> Ints:
    """Return the time step of the release, or the window, that each time step of the original is in; -1 where there is none."""
    if release.intervals is None:
        found = np.full(flows.steps, -1, np.int64)
        found[steps_of_release(flows, release)] = np.arange(len(release.t))
        return found
    slot = release.intervals.slots_of(flows.t)
    windows: Ints = np.append(row_slices(release.intervals.offsets), -1)[slot]
    return windows


def trips_in_windows(flows: Flows, release: FlowRelease) -> Ints:
    """Return the trips of the original in each time step of the release, or in each window."""
    return sums_in_windows(windows_of_steps(flows, release), flows.trips_by_step, len(release.t))


def sums_in_windows(window: Ints, values: Ints, windows: int) -> Ints:
    """Return the sums of values of time steps over the windows that they are in; steps with -1 are in none."""
    sums = np.zeros(windows, np.int64)
    np.add.at(sums, window[window >= 0], values[window >= 0])
    return sums


def check_windows(flows: Flows, release: FlowRelease) -> None:
    """Raise if a release has windows without any time step of the original."""
    found = windows_of_steps(flows, release)
    check_steps(int(len(release.t) - len(np.unique(found[found >= 0]))))


def steps_of_release(flows: Flows, release: FlowRelease) -> Ints:
    """Return the time step of the original that each step of the release is. A release may have fewer of them."""
    require(release.intervals is None, "release: expected rows of one time step each, but rows have intervals of time.")
    place = np.searchsorted(flows.t, release.t)
    known = (place < flows.steps) & (flows.t[np.minimum(place, flows.steps - 1)] == release.t if flows.steps else False)
    check_steps(int(len(release.t) - np.count_nonzero(known)))
    require(bool(np.all(np.diff(place) > 0)), "release: time steps must be in order, each once.")
    return place.astype(np.int64)


def check_steps(missing: int) -> None:
    """Raise if a release has time steps that the original does not have."""
    if missing:
        raise InputError(
            "release",
            Text(
                "Expected time steps of the original, got {steps} that the original does not have. Read the original with the "
                "same {step} and {tz}.",
                steps=counted(missing, "time step"),
            ),
        )


def check_same_zones(flows: Flows, release: FlowRelease) -> None:
    """Raise unless flows and release have the same tiles under the same numbers."""
    zones, released = flows.zones, release.areas.zones
    same = zones is released or (len(zones) == len(released) and bool(np.all(zones.ids == released.ids)))
    require(same, "release: expected the zones of the original, each with the same id.")
