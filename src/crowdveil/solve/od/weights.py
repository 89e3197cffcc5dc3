"""Weights of trips: added up exactly, and rounded to whole trips once for what is published.

A time step is rounded so that sums stay right: the volumes up to any row, in the order of the step, are those of their weights,
rounded. So no row is off by a whole trip, and no time step by more than half of one (bucket rounding, as matrix tools call it).
Methods choose by the flows, rounded like this; what they publish is rounded from the exact weights of each row's flows. A row
that a method counts as published, but whose own weight would be rounded to 0, is rounded up to 1 while its time step has trips
that are in no row: without it, more would be suppressed than the budget that the method kept.

Nothing is carried over to the next time step, so T time steps together may be off by T/2 trips. A part of a trip that is carried
over would make the figures of a step depend on the people of earlier ones, and steps could not be solved in partitions. Where
rows have intervals of time, a window takes the place of a time step: its flows are rounded together, in order of time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdveil.model.arrays import Ints, slice_sums
from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.assignment import row_of_flows, trips_in_windows


def rounded(whole: Ints, rest: Ints, offsets: Ints) -> Ints:
    """Whole trips of rows that weigh `whole` trips and `rest` units; those of time step i are offsets[i] to offsets[i + 1]."""
    so_far = np.concatenate([np.zeros(1, np.int64), np.cumsum(rest)])
    before = np.repeat(so_far[offsets[:-1]], np.diff(offsets))
    # What is carried over to the next row is the part of a trip so far in the step, and half a trip.
    carried = (so_far[1:] - before + WEIGHT_UNITS // 2) // WEIGHT_UNITS
    carried_before = (so_far[:-1] - before + WEIGHT_UNITS // 2) // WEIGHT_UNITS
    trips: Ints = whole + carried - carried_before
    return trips


def rounded_in_windows(data: Flows, window: Ints) -> Flows:
    """Flows with weights rounded over each window instead of each time step; unchanged without weights.

    `window` is the window of each time step; time steps of a window follow one another.
    """
    if data.weight is None or data.steps == 0:
        return data
    first = np.flatnonzero(np.append(True, window[1:] != window[:-1]))
    offsets = data.offsets[np.append(first, data.steps)]
    return replace(data, volume=rounded(*np.divmod(data.weight, WEIGHT_UNITS), offsets))


def added_up(data: Flows, flows: Ints, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """Trips of each group of flows, and the part of a trip beyond them, in units."""
    if data.weight is None:
        whole, rest = data.volume[flows], np.zeros(1, np.int64)
    else:
        whole, rest = np.divmod(data.weight[flows], WEIGHT_UNITS)  # apart, so that no sum is too large
    trips, units = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(trips, group, whole)
    np.add.at(units, group, rest)
    return trips + units // WEIGHT_UNITS, units % WEIGHT_UNITS


def with_exact_volumes(data: Flows, release: FlowRelease) -> FlowRelease:
    """The release with the volume of each row rounded from the weights of all of its flows, where trips are weighted."""
    if data.weight is None:
        return release
    row = row_of_flows(data, release)
    inside = np.flatnonzero(row >= 0)
    sums = added_up(data, inside, row[inside], len(release))
    chosen = np.zeros(len(release), np.int64)
    np.add.at(chosen, row[inside], data.volume[inside])
    volume = rounded(*sums, release.offsets)
    return replace(release, volume=rounded_up(volume, chosen, release.offsets, trips_in_windows(data, release)))


def rounded_up(volume: Ints, chosen: Ints, offsets: Ints, trips: Ints) -> Ints:
    """Return volumes of rows, of which some that are 0 become 1: those whose flows are rounded to more (`chosen`), the first ones
    of a time step, up to its `trips` that are in no row.
    """
    lost = (volume == 0) & (chosen > 0)
    room = trips - slice_sums(offsets, volume)
    so_far = np.concatenate([np.zeros(1, np.int64), np.cumsum(lost)])
    rank = so_far[1:] - np.repeat(so_far[offsets[:-1]], np.diff(offsets))
    up: Ints = volume + (lost & (rank <= np.repeat(room, np.diff(offsets))))
    return up
