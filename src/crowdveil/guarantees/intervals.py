"""Intervals of time of rows, the pieces that they are cut into, and windows; without code of the methods."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Ints, Mask, take_slices
from crowdveil.model.flows import WEIGHT_UNITS, Flows

_DAY_S = 86_400


class RowPieces(NamedTuple):
    """Pairs of a piece of time and a row that spans it, in order of pieces."""

    piece: Ints
    row: Ints


def row_pieces(written: WrittenRelease) -> RowPieces:
    """Return the pieces of time of each row, which are cut wherever a row begins or ends.

    If rows have no intervals, a piece is a time step.
    """
    if not written.has_intervals:
        step = written.row_steps()[1]
        order = np.argsort(step, kind="stable")
        return RowPieces(step[order], order)
    start, until = written.row_intervals()
    return _spread(np.unique(np.concatenate([start, until])), start, until)


def rows_in_steps(written: WrittenRelease, original: Flows) -> RowPieces:
    """Return the original time steps that begin in the interval of each row."""
    return _spread(original.t, *written.row_intervals())


def _spread(times: Ints, start: Ints, until: Ints) -> RowPieces:
    """Return the times in each half-open interval."""
    first, last = np.searchsorted(times, start), np.searchsorted(times, until)
    count = np.maximum(last - first, 0)
    row = np.repeat(np.arange(len(start)), count)
    piece = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
    order = np.argsort(piece, kind="stable")
    return RowPieces(piece[order], row[order])


def interval_faults(written: WrittenRelease) -> dict[str, bool]:
    """Return the faults of intervals and windows, each with whether it occurs."""
    windows = "until" in written.steps.column_names
    if not written.has_intervals or not windows:
        return {"no_intervals": windows, "no_windows": written.has_intervals}
    (start, until), (low, high) = written.row_intervals(), written.listed_windows()
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    window = np.searchsorted(low, start, side="right") - 1
    inside = (window >= 0) & (until <= np.append(high, NO_TIME)[window])
    return {
        "missing_times": any(NO_TIME in times for times in (start, until, low, high)),
        "empty_interval": bool(np.any(start >= until)),
        "overlapping_windows": bool(np.any(low >= high) or np.any(high[:-1] > low[1:])),
        "outside_windows": not bool(np.all(inside)),
    }


INTERVAL_FAULTS = {
    "no_intervals": "windows are listed, but rows have no end",
    "no_windows": "rows have intervals, but no windows are listed",
    "missing_times": "a row or a window has no time",
    "empty_interval": "a row ends before it begins",
    "overlapping_windows": "windows overlap, or end before they begin",
    "outside_windows": "a row lies in no window",
}


def days_that_count(original: Flows, tz: str, interval_s: int, k: int) -> tuple[Ints, Mask]:
    """Return the local day of each time step, and whether the step counts for the budget of the day.

    Time steps do not count if the longest possible interval around them, of `interval_s` seconds, has fewer than k people.
    """
    local = local_seconds(original.t, tz)
    intervals, top = np.unique(local // interval_s, return_inverse=True)
    counts = np.zeros(len(local), np.bool_)
    for number in range(len(intervals)):
        here = np.flatnonzero(top == number)
        counts[here] = people_in(original, here) >= k
    return local // _DAY_S, counts


def rounded_over_windows(original: Flows, window: Ints) -> Flows:
    """Return weighted flows in whole trips, rounded so that each partial sum of a window is its rounded weight.

    Flows without weights are returned unchanged. `window` has the window of each time step.
    """
    if original.weight is None:
        return original
    volume, of_flow = np.zeros(len(original), np.int64), np.repeat(window, np.diff(original.offsets))
    for key in np.unique(of_flow).tolist():
        here = np.flatnonzero(of_flow == key)
        whole, rest = np.divmod(original.weight[here], WEIGHT_UNITS)
        so_far = (np.cumsum(rest) + WEIGHT_UNITS // 2) // WEIGHT_UNITS
        volume[here] = whole + np.diff(so_far, prepend=0)
    return replace(original, volume=volume)


def local_seconds(t: Ints, tz: str) -> Ints:
    """Return the local time of each time, as seconds since 1970."""
    zone = ZoneInfo(tz)
    found = []
    for moment in t.tolist():
        offset = datetime.fromtimestamp(0 if moment == NO_TIME else moment, zone).utcoffset()
        found.append((0 if moment == NO_TIME else moment) + (0 if offset is None else int(offset.total_seconds())))
    return np.array(found, np.int64)


def people_in(original: Flows, steps: Ints) -> int:
    """Return the people of some time steps, or a lower bound if person ids are unknown."""
    return people_of(original, take_slices(original.offsets, steps)[0])


def people_of(original: Flows, flows: Ints) -> int:
    """Return the people of some flows, or a lower bound if person ids are unknown."""
    if original.k_unit == "trips":
        return int(original.people[flows].sum())
    if original.person_ids is None or original.person_offsets is None:
        return int(original.people[flows].max(initial=0))
    return len(np.unique(original.person_ids[take_slices(original.person_offsets, flows)[0]]))
