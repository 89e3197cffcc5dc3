"""Read trajectories from CSV, Parquet, Arrow or a data frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.axes import check_axes
from crowdveil.io.notes import ReadNotes
from crowdveil.io.person_ids import count_case_variants, note_case_variants
from crowdveil.io.source import Source, open_source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import (
    Seconds,
    note_assumed_zone,
    note_clock_changes,
    odd_times,
    refuse_spread,
)
from crowdveil.io.trajectory_points import (
    INCOMPLETE_TRAJECTORY,
    PointColumns,
    add_comma_reasons,
    drop_or_raise,
    find_point_columns,
    find_unusable_points,
    no_ids,
    none_usable,
    note_ids_per_user,
    read_points,
    remedy_for,
    rows_without_ids,
    with_normalized_ids,
)
from crowdveil.io.values import encode_ids, ids_of
from crowdveil.io.zones import read_zones
from crowdveil.model.arrays import Floats, Ints, Labels, Mask, frozen, group_offsets
from crowdveil.model.canonical import points_in_order
from crowdveil.model.time_axis import Clock
from crowdveil.model.trajectories import Trajectories


def read_trajectories(
    data: Any,
    *,
    lat: str | None = None,
    lon: str | None = None,
    time: str | None = None,
    trajectory: str | None = None,
    user: str | None = None,
    zones: Any = None,
    zone_id: str | None = None,
    tz: str = "UTC",
    time_format: str | None = None,
    drop_invalid: bool = False,
    keep_rows: bool = False,
    notes: ReadNotes | None = None,
) -> Trajectories:
    """Read trajectories.

    Parameters
    ----------
    data
        A path to a CSV or Parquet file or to a folder of Parquet files, an Arrow table, or a data frame.
    lat, lon, time, trajectory, user
        Names of the columns; guessed from the usual ones if not given. Without a column of users each trajectory
        counts as a person; without one of trajectories, all points of a user are one trajectory.
    zones, zone_id
        Tiles for methods that assign points to tiles, as for `read_zones`.
    tz
        Time zone of times without one.
    time_format
        A `strptime` format for times that are not recognized, or the unit of numbers.
    drop_invalid
        Drop trajectories that have a point without a usable position or time, instead of raising.
    keep_rows
        Keep the input row of each point.
    notes
        Filled with assumptions and counts of dropped rows.
    """
    source, notes = open_source(data), notes if notes is not None else ReadNotes()
    columns = find_point_columns(source, lat, lon, time, trajectory, user, notes)
    form = TimeForm(time_format)
    table = with_normalized_ids(source.read(columns.used), source, columns)
    notes.rows = len(table)
    table, kept = _keep_rows_with_ids(source, table, columns, drop_invalid, notes)

    read_lon, read_lat, times = read_points(source, columns, table, form)
    group, labels, person, people = number_trajectories(source, table, columns, notes)
    note_case_variants(count_case_variants(people), columns.people, notes)
    _note_times(times, columns, tz, notes)
    t = times.values if times.instants else Clock(tz).to_utc(times.values)
    found, lon_deg, lat_deg = find_unusable_points(columns, read_lon, read_lat, times, form), read_lon[0], read_lat[0]
    found = add_comma_reasons(found, columns, table)
    lost = drop_or_raise(source, found, remedy_for(found, columns, lon_deg, lat_deg), drop_invalid, notes)
    del table, read_lon, read_lat  # ids and times as text take more memory than the points
    if lost is not None:
        lon_deg, lat_deg = np.where(lost, 0.0, lon_deg), np.where(lost, 0.0, lat_deg)
    group = frozen(group, np.int64)
    lon_deg, lat_deg, t, offsets, row = _in_order(lon_deg, lat_deg, frozen(t, np.int64), group, len(labels), keep_rows)
    model = Trajectories(lon_deg, lat_deg, t, offsets, labels, person, people, columns.counts, row)
    if lost is not None:
        model = _drop_incomplete(model, lost, group, source, notes)
    if len(model.t):
        refuse_spread(int(model.t.min()), int(model.t.max()), form, f"{source.name}, column {columns.time}")
    model = points_in_order(model)
    if kept is not None and model.row is not None:
        model = replace(model, row=kept[model.row])
    tiles = None if zones is None else read_zones(zones, zone_id=zone_id, numbered=True, notes=notes)
    check_axes(model.lon, model.lat, (columns.lon, columns.lat), source.name, tiles, None)
    return replace(model, zones=tiles)


def _keep_rows_with_ids(
    source: Source, table: Any, columns: PointColumns, drop_invalid: bool, notes: ReadNotes
) -> tuple[Any, Ints | None]:
    """Return the rows with ids, and their row numbers if rows without ids were dropped."""
    lost = drop_or_raise(source, rows_without_ids(columns, table), "Fix", drop_invalid, notes)
    if lost is None:
        return table, None
    if lost.all():
        raise no_ids(source, columns)
    return table.filter(pa.array(~lost)), np.flatnonzero(~lost)


def _note_times(times: Seconds, columns: PointColumns, tz: str, notes: ReadNotes) -> None:
    """Note assumptions about times."""
    if not times.instants:
        note_assumed_zone(notes, columns.time, tz)
        note_clock_changes(notes, columns.time, tz, *odd_times(times, Clock(tz)))


def _in_order(
    lon: Floats, lat: Floats, t: Ints, group: Ints, groups: int, keep_rows: bool
) -> tuple[Floats, Floats, Ints, Ints, Ints | None]:
    """Return points sorted by trajectory and time, the offsets of trajectories, and the row of each point."""
    offsets, same = group_offsets(group, groups), group[1:] == group[:-1]
    if np.all((group[1:] > group[:-1]) | (same & (t[1:] >= t[:-1]))):
        return lon, lat, t, offsets, np.arange(len(group)) if keep_rows else None
    order = np.lexsort((t, group))
    return lon[order], lat[order], t[order], offsets, order if keep_rows else None


def _drop_incomplete(model: Trajectories, lost: Mask, group: Ints, source: Source, notes: ReadNotes) -> Trajectories:
    """Drop the trajectories that have an unusable point."""
    gone = np.bincount(group[lost], minlength=len(model)) > 0
    notes.drop(INCOMPLETE_TRAJECTORY, int(np.diff(model.offsets)[gone].sum()) - int(lost.sum()))
    if gone.all():
        raise none_usable(source, len(gone))
    return model.where(~gone)


def number_trajectories(
    source: Source, table: Any, columns: PointColumns, notes: ReadNotes
) -> tuple[Ints, Labels, Ints, Labels]:
    """Return the trajectory number of each row, trajectory ids, the person number of each trajectory, and person ids.

    Every row has its ids.
    """
    by_trajectory, by_user = columns.trajectory, columns.user
    if by_trajectory is None or by_user is None:
        column = by_trajectory or by_user or ""
        group, labels = _encode_ids(table[column], f"{source.name}, column {column}")
        return group, labels, np.arange(len(labels)), labels
    group, labels = _encode_ids(table[by_trajectory], f"{source.name}, column {by_trajectory}")
    owners = _owners(table[by_user], group, len(labels))
    if owners is not None:
        return group, labels, *_encode_ids(pa.array(owners), f"{source.name}, column {by_user}")
    owner, people = _encode_ids(table[by_user], f"{source.name}, column {by_user}")
    person = np.zeros(len(labels), np.int64)
    person[group] = owner
    if np.any(person[group] != owner):
        # Ids are unique only per user: a trajectory is a pair of user and id.
        pair, first, inverse = np.unique(
            owner.astype(np.int64) * len(labels) + group, return_index=True, return_inverse=True
        )
        rank = np.empty(len(pair), np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(pair))
        group, first = rank[inverse], np.sort(first)
        labels, person = labels[pair[np.argsort(rank)] % len(labels)], owner[first]
        note_ids_per_user(notes)
    return group, labels, person, people


def _owners(users: Any, group: Ints, groups: int) -> Ints | None:
    """Return the user of each trajectory if users are whole numbers and each trajectory has one; else None."""
    if users.type != pa.int64() or users.null_count:
        return None
    owner, values = np.zeros(groups, np.int64), users.to_numpy()
    owner[group] = values
    return owner if np.all(owner[group] == values) else None


def _encode_ids(column: Any, what: str) -> tuple[Ints, Labels]:
    """Number ids from 0 in order of appearance."""
    number, labels, _ = encode_ids(ids_of(column, what))
    return number.astype(np.int64), labels
