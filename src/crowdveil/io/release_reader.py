"""Load a written release as the model: alone, or for comparison with the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, Text, counted
from crowdveil.io.times import read_seconds
from crowdveil.io.values import one_array
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Bytes, Ints
from crowdveil.model.flows import Flows, FlowUnit
from crowdveil.model.intervals import Intervals
from crowdveil.model.release import NOT_GIVEN, STATES, FlowRelease, TrajectoryRelease, VolumeBounds
from crowdveil.model.time_axis import TimeAxis
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones


def load_flow_release(written: WrittenRelease, flows: Flows) -> FlowRelease:
    """Return the release over zones and time steps of `flows`: tiles match by id, steps by time."""
    return load_flow_release_alone(written, flows.zones, flows.step_s, flows.tz, flows)


def load_flow_release_alone(
    written: WrittenRelease, zones: Zones, step_s: int | None, tz: str, flows: Flows | None = None
) -> FlowRelease:
    """Return the release over zones that include its tiles; without times, all of it is of the only time step of `flows`."""
    if not written.is_flows:
        raise InputError(written.folder, "Expected a release of flows, but it holds trajectories.")
    counts: FlowUnit = "people" if "people" in written.data.column_names else "trips"
    t, suppressed = _steps(written, flows)
    intervals = read_intervals(written, step_s, tz) if written.has_intervals else None
    row_t = _row_times(written, flows, intervals)
    if len(np.setdiff1d(row_t, t)):
        raise InputError(
            written.folder, "a row has a time step that the table of time steps does not list. Verify the release."
        )
    order = np.argsort(row_t, kind="stable")
    return FlowRelease(
        areas=_areas(written, zones),
        t=t,
        offsets=np.append(np.searchsorted(row_t[order], t), len(order)),
        intervals=None if intervals is None else intervals.rows(order),
        origin=written.area_numbers("origin_area")[order].astype(np.int32),
        destination=written.area_numbers("destination_area")[order].astype(np.int32),
        volume=written.column("volume")[order],
        bounds=_bounds(written, order),
        people=written.column(counts)[order],
        state=_states(written)[order],
        suppressed=suppressed,
        k_unit=counts,
        step_s=step_s,
        tz=tz,
    )


def places_in_table(written: WrittenRelease, flows: Flows) -> tuple[Ints, Ints]:
    """Return the place of each row, and of each time step, of a loaded release in the written tables.

    A release loaded by `load_flow_release` is in order of time; files of a cluster are in any order.
    """
    intervals = read_intervals(written, flows.step_s, flows.tz) if written.has_intervals else None
    rows = np.argsort(_row_times(written, flows, intervals), kind="stable")
    return rows, np.argsort(_times(written, written.steps, flows), kind="stable")


def load_trajectory_release(written: WrittenRelease) -> TrajectoryRelease:
    """Return a release of trajectories, in the order of their numbers, without its areas."""
    if written.is_flows:
        raise InputError(written.folder, "Expected a release of trajectories, but it holds flows.")
    number, t = written.column("published_id"), written.column("timestamp")
    if np.any(np.diff(number) < 0) or np.any((np.diff(t) < 0) & (np.diff(number) == 0)):
        raise InputError(
            written.folder, "trajectories are not in order of their numbers and times. Verify the release."
        )
    names, first = np.unique(number, return_index=True)
    if len(names) and not (names[0] == 1 and names[-1] == len(names)):
        raise InputError(written.folder, "trajectories are not numbered 1, 2, …. Verify the release.")
    people = written.column("user_id")[first] if "user_id" in written.data.column_names else None
    lon, lat = written.column("lon"), written.column("lat")
    return TrajectoryRelease(lon, lat, t, np.append(first, len(number)), people)


def wrap_trajectories(published: Trajectories, source: Ints | None) -> TrajectoryRelease:
    """Return trajectories published by another tool as a release."""
    people = published.person if published.k_unit == "people" else None
    return TrajectoryRelease(published.lon, published.lat, published.t, published.offsets, people, source)


def _row_times(written: WrittenRelease, flows: Flows | None, intervals: Intervals | None) -> Ints:
    """Return the time step, or the window, of each row of the table."""
    if intervals is None:
        return _times(written, written.data, flows)
    window = np.searchsorted(intervals.offsets, intervals.first, side="right") - 1
    starts: Ints = np.append(intervals.window_start, 0)[window]
    return starts


def read_intervals(written: WrittenRelease, step_s: int | None, tz: str) -> Intervals:
    """Return the interval of each row, in the time steps of the listed windows."""
    (low, high), (t, until) = written.listed_windows(), written.row_intervals()
    if step_s is None or np.any(low >= high) or NO_TIME in low:
        raise InputError(
            written.folder, "its rows have intervals of time, but its windows have no times. Verify the release."
        )
    axis = TimeAxis(step_s, tz)
    starts, ends, counts = [], [], []
    for begin, end in sorted(zip(low.tolist(), high.tolist(), strict=True)):
        start, stop = axis.between(begin, end - 1)
        starts.append(start)
        ends.append(stop)
        counts.append(len(start))
    start, end = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (starts, ends))
    first, last = np.searchsorted(start, t), np.searchsorted(end, until)
    if len(t) and not (np.all(np.isin(t, start)) and np.all(np.isin(until, end))):
        raise InputError(
            written.folder,
            Text(
                "an interval of a row does not begin and end with a time step. Verify the release, or read it with the "
                "{step} and {tz} that it was made with."
            ),
        )
    return Intervals(start, end, np.cumsum([0, *counts]), first, last + 1)


def _bounds(written: WrittenRelease, order: Ints) -> VolumeBounds | None:
    """Return the confidence bounds of volumes, where the release has them."""
    if "volume_low" not in written.data.column_names:
        return None
    return VolumeBounds(written.column("volume_low")[order], written.column("volume_high")[order])


def _steps(written: WrittenRelease, flows: Flows | None) -> tuple[Ints, Ints]:
    """Return the times of the listed steps, sorted, and their suppressed trips."""
    t = _times(written, written.steps, flows)
    suppressed = _column(written, written.steps, "suppressed").cast(pa.int64()).fill_null(NOT_GIVEN)
    order = np.argsort(t, kind="stable")
    return t[order], suppressed.to_numpy(zero_copy_only=False)[order]


def _times(written: WrittenRelease, table: pa.Table, flows: Flows | None) -> Ints:
    """Return the time of each row of a table; if the release has no times, that of the only time step of `flows`."""
    column = _column(written, table, "t")
    if column.null_count < len(column):
        return read_seconds(column, f"{written.folder}, column t").values
    if flows is None:
        return np.zeros(len(column), np.int64)
    if len(column) and flows.steps != 1:
        raise InputError(
            written.folder,
            Text(
                "the release has no time steps, but the original has {steps:,}; read the original with {step}.",
                steps=flows.steps,
                step=Option("step", "all"),
            ),
        )
    return np.repeat(flows.t[:1], len(column))


def _column(written: WrittenRelease, table: pa.Table, name: str) -> Any:
    if name not in table.column_names:
        raise InputError(written.folder, f"the release has no column {name}, which its manifest lists.")
    return one_array(table[name])


def _states(written: WrittenRelease) -> Bytes:
    number = pc.index_in(_column(written, written.data, "state"), pa.array(STATES))
    if number.null_count:
        raise InputError(written.folder, f"the state of a row is none of {', '.join(STATES)}. Verify the release.")
    states: Bytes = number.to_numpy(zero_copy_only=False).astype(np.uint8)
    return states


def _areas(written: WrittenRelease, zones: Zones) -> Areas:
    """Return the areas of the release over zones."""
    names = [f["properties"]["area"] for f in written.features]
    tiles = [[zones.index_of(t) for t in f["properties"]["tiles"]] for f in written.features]
    flat = np.array([t for of_area in tiles for t in of_area], np.int32)
    missing = int(np.count_nonzero(flat < 0))
    if missing:
        raise InputError(
            written.folder,
            f"{counted(missing, 'tile')} of its areas {'is' if missing == 1 else 'are'} not among the "
            "original's zones. Give the zones of the release.",
        )
    return Areas(zones, np.array(names, dtype=object), np.cumsum([0, *map(len, tiles)]), flat)
