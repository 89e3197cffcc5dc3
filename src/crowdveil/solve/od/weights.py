"""Weights of trips: added up exactly, and rounded to whole trips once, when they are published.

A time step is rounded so that sums stay right: the volumes up to any row, in the order of the step, are those of their weights,
rounded. So no row is off by a whole trip, and no time step by more than half of one (bucket rounding, as matrix tools call it).
Methods choose by the flows, rounded like this; what they publish is rounded from the exact weights of each row's flows. Where all
rows together would have fewer trips than the flows that the method chose, rows that were rounded down are rounded up: without it,
more would be suppressed than the budget that the method kept. First come those that would have no trip.

Nothing is carried over to the next time step, so T time steps together may be off by T/2 trips. A part of a trip that is carried
over would make the figures of a step depend on the people of earlier ones, and steps could not be solved in partitions. Where
rows have intervals of time, a window takes the place of a time step: its flows are rounded together, in order of time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdveil.model.arrays import Ints, row_slices, slice_sums
from crowdveil.model.flows import WEIGHT_UNITS, Flows, rounded
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.assignment import row_of_flows, sums_in_windows, trips_in_windows, windows_of_steps


def rounded_in_windows(data: Flows, window: Ints) -> Flows:
    """Return flows with weights rounded over each window instead of each time step; unchanged without weights.

    `window` is the window of each time step; time steps of a window follow one another.
    """
    if data.weight is None or data.steps == 0:
        return data
    first = np.flatnonzero(np.append(True, window[1:] != window[:-1]))
    offsets = data.offsets[np.append(first, data.steps)]
    return replace(data, volume=rounded(*np.divmod(data.weight, WEIGHT_UNITS), offsets))


def added_up(data: Flows, flows: Ints, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """Return the trips of each group of flows, and the part of a trip beyond them, in units."""
    if data.weight is None:
        whole, rest = data.volume[flows], np.zeros(1, np.int64)
    else:
        whole, rest = np.divmod(data.weight[flows], WEIGHT_UNITS)  # apart, so that no sum is too large
    trips, units = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(trips, group, whole)
    np.add.at(units, group, rest)
    return trips + units // WEIGHT_UNITS, units % WEIGHT_UNITS


def with_exact_volumes(data: Flows, release: FlowRelease) -> FlowRelease:
    """Return the release with the volume of each row rounded from the weights of all of its flows, where trips are weighted."""
    if data.weight is None:
        return release
    row = row_of_flows(data, release)
    inside = np.flatnonzero(row >= 0)
    sums = added_up(data, inside, row[inside], len(release))
    chosen = np.zeros(len(release), np.int64)
    np.add.at(chosen, row[inside], data.volume[inside])
    window = windows_of_steps(data, release)
    exact = sums_in_windows(window, weight_of_steps(data), len(release.t))
    volume = rounded_within_budget(*sums, chosen, release.offsets, trips_in_windows(data, release), exact)
    return replace(release, volume=volume)


def weight_of_steps(data: Flows) -> Ints:
    """Return the weight of each time step in units."""
    return slice_sums(data.offsets, data.volume * WEIGHT_UNITS if data.weight is None else data.weight)


def rounded_within_budget(whole: Ints, rest: Ints, chosen: Ints, offsets: Ints, trips: Ints, exact: Ints) -> Ints:
    """Return whole trips of rows, in each time step at least as many as their flows have (`chosen`), as far as that is possible.

    A time step whose weight (`exact`, in units) is rounded down to its `trips` gets one more, since the budget is a share of the
    weight. No row is rounded by a whole trip, and no time step has more than its trips in rows.
    """
    volume = rounded(whole, rest, offsets)
    lost = (volume == 0) & (chosen > 0)
    down = (volume == whole) & (rest > 0) | lost
    wanted = slice_sums(offsets, chosen) + (exact > trips * WEIGHT_UNITS)
    missing = np.minimum(wanted, trips) - slice_sums(offsets, volume)
    missing = np.maximum(
        missing, np.minimum(slice_sums(offsets, lost.astype(np.int64)), trips - slice_sums(offsets, volume))
    )
    step = row_slices(offsets)
    order = np.lexsort((-rest, ~lost, ~down, step))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - offsets[:-1][step]
    up: Ints = volume + (down & (rank < missing[step]))
    return up
