"""Read trajectories from CSV, Parquet, Arrow or a data frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.io.axes import check_axes
from crowdveil.io.duckdb_engine import duckdb_errors, engine, fetch
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
    find_point_columns,
    find_unusable_points,
    first_reasons,
    look_swapped,
    no_ids,
    none_usable,
    note_ids_per_user,
    read_points,
    rows_without_ids,
    settle_points,
    with_normalized_ids,
)
from crowdveil.io.values import encode_ids
from crowdveil.io.zones import read_zones
from crowdveil.model.arrays import Ints, Labels
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
    staged, ids, people_ids = _stage(source, columns, form, tz, drop_invalid, notes)
    note_case_variants(count_case_variants(people_ids), columns.people, notes)
    points = _in_order(staged, source.name)
    begins = np.flatnonzero(np.diff(points["first"].to_numpy(), prepend=-1))
    number, person, incomplete = (points[name].to_numpy()[begins] for name in ("trajectory", "person", "incomplete"))
    if len(np.unique(number)) < len(number):
        note_ids_per_user(notes)
    if columns.trajectory is None or columns.user is None:
        person = np.arange(len(number))
    model = Trajectories(
        points["lon"].to_numpy(), points["lat"].to_numpy(), points["t"].to_numpy(), np.append(begins, len(points)),
        ids[number], person, people_ids, columns.counts, points["row"].to_numpy() if keep_rows else None,
    )  # fmt: skip
    if incomplete.any():
        if incomplete.all():
            raise none_usable(source, len(incomplete))
        notes.drop(INCOMPLETE_TRAJECTORY, pc.sum(points["incomplete"]).as_py() - pc.sum(points["lost"]).as_py())
        model = model.where(~incomplete)
    if len(model.t):
        refuse_spread(int(model.t.min()), int(model.t.max()), form, f"{source.name}, column {columns.time}")
    tiles = None if zones is None else read_zones(zones, zone_id=zone_id, numbered=True, notes=notes)
    check_axes(model.lon, model.lat, (columns.lon, columns.lat), source.name, tiles, None)
    return replace(model, zones=tiles)


def _stage(
    source: Source, columns: PointColumns, form: TimeForm, tz: str, drop_invalid: bool, notes: ReadNotes
) -> tuple[pa.Table, Labels, Labels]:
    """Return the points with numbers of their trajectories and people, and the ids of both; unusable points are `lost`."""
    table = with_normalized_ids(source.read(columns.used), source, columns)
    notes.rows = len(table)
    table, row = _rows_with_ids(source, table, columns, drop_invalid, notes)
    (lon, no_lon), (lat, no_lat), times = read_points(source, columns, table, form)
    _note_times(times, columns, tz, notes)
    found = find_unusable_points(columns, (lon, no_lon), (lat, no_lat), times, form)
    found = add_comma_reasons(found, columns, table)
    problems, lost = first_reasons(found, len(table))
    settle_points(problems, source, columns, drop_invalid, notes, swapped=look_swapped(lon, lat))
    trajectory, ids = _encode_ids(source, table, columns.trajectory or columns.user)
    person, people_ids = _encode_ids(source, table, columns.user or columns.trajectory)
    staged = pa.table(
        {
            "trajectory": trajectory,
            "person": person,
            "lon": np.where(lost, 0.0, lon),
            "lat": np.where(lost, 0.0, lat),
            "t": times.values if times.instants else Clock(tz).to_utc(times.values),
            "lost": lost,
            "row": row,
        }
    )
    return staged, ids, people_ids


def _rows_with_ids(
    source: Source, table: Any, columns: PointColumns, drop_invalid: bool, notes: ReadNotes
) -> tuple[Any, Ints]:
    """Return the rows with ids, and their row numbers."""
    problems, lost = first_reasons(rows_without_ids(columns, table), len(table))
    settle_points(problems, source, columns, drop_invalid, notes)
    if not lost.any():
        return table, np.arange(len(table))
    if lost.all():
        raise no_ids(source, columns)
    return table.filter(pa.array(~lost)), np.flatnonzero(~lost)


def _note_times(times: Seconds, columns: PointColumns, tz: str, notes: ReadNotes) -> None:
    """Note assumptions about times."""
    if not times.instants:
        note_assumed_zone(notes, columns.time, tz)
        note_clock_changes(notes, columns.time, tz, *odd_times(times, Clock(tz)))


def _encode_ids(source: Source, table: Any, column: str | None) -> tuple[Ints, Labels]:
    """Number the ids in a column from 0 in order of appearance."""
    number, labels, _ = encode_ids(table[column], f"{source.name}, column {column}")
    return number, labels


def _in_order(points: pa.Table, name: str) -> pa.Table:
    """Return points by trajectory, time and place. Trajectories come in the order of their first rows.

    The same id of two people is that of two trajectories. One is incomplete if any of its points was lost.
    """
    with engine() as connection, duckdb_errors(name):
        connection.register("points", points)
        return fetch(
            connection,
            "SELECT *, min(row) OVER own AS first, bool_or(lost) OVER own AS incomplete FROM points "
            "WINDOW own AS (PARTITION BY trajectory, person) ORDER BY first, t, lon, lat, row",
        )
