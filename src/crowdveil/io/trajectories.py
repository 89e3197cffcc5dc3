"""Read trajectories from CSV, Parquet, Arrow or a data frame: columns, usable rows, points in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Text, counted
from crowdveil.io.axes import check_axes
from crowdveil.io.columns import describe_columns, find_column, looks_like_trips, need_column
from crowdveil.io.duckdb_engine import duckdb_errors, engine, fetch
from crowdveil.io.notes import Problems, ReadNotes
from crowdveil.io.person_ids import count_case_variants, normalized_ids, note_case_variants
from crowdveil.io.source import Source, open_source
from crowdveil.io.times import (
    FIX_TIMES,
    Seconds,
    TimeForm,
    far_reason,
    far_years,
    note_assumed_zone,
    note_clock_changes,
    odd_times,
    read_seconds,
    refuse_spread,
)
from crowdveil.io.values import comma_reason, decimal_commas, encode_ids, one_array, read_floats
from crowdveil.io.zones import read_zones
from crowdveil.model.arrays import Floats, Ints, Labels, Mask
from crowdveil.model.time_axis import Clock
from crowdveil.model.trajectories import Trajectories, TrajectoryUnit

INCOMPLETE_TRAJECTORY = "are in a trajectory with such a row"
"""Why usable rows are dropped."""


@dataclass(frozen=True)
class PointColumns:
    """Names of the columns; one of `trajectory` and `user` may be None."""

    lat: str
    lon: str
    time: str
    trajectory: str | None
    user: str | None

    @property
    def ids(self) -> list[str]:
        """The columns of ids."""
        return [column for column in (self.trajectory, self.user) if column is not None]

    @property
    def used(self) -> list[str]:
        """All distinct columns."""
        return list(dict.fromkeys([self.lat, self.lon, self.time, *self.ids]))

    @property
    def people(self) -> str | None:
        """The column that k counts."""
        return self.user or self.trajectory

    @property
    def counts(self) -> TrajectoryUnit:
        """What k counts."""
        return "trajectories" if self.user is None else "people"


def find_point_columns(
    source: Source, lat: str | None, lon: str | None, time: str | None, trajectory: str | None, user: str | None,
    notes: ReadNotes,
) -> PointColumns:  # fmt: skip
    """Return the columns of points, as named or guessed."""
    if lat is None and lon is None and looks_like_trips(source):
        raise InputError(
            source.name,
            Text(
                "Expected the points of trajectories, but it holds trips from an origin to a destination. Use a method "
                "for flows, such as joint, or name the columns of points with {lat} and {lon}."
            ),
        )
    needed = [need_column(source, role, name, notes) for role, name in (("lat", lat), ("lon", lon), ("time", time))]
    ids = [find_column(source, role, name, notes) for role, name in (("trajectory", trajectory), ("user", user))]
    columns = PointColumns(*needed, *ids)
    if columns.trajectory is None and columns.user is None:
        raise InputError(
            source.name,
            Text(
                "Expected a column trajectory_id or user_id, but {columns}; name it with {trajectory} or {user}.",
                columns=describe_columns(source),
            ),
        )
    if columns.trajectory is None:
        notes.add("there is no column of trajectories: all points of a user are one trajectory.")
    elif columns.user is None:
        notes.add("there is no column of users: each trajectory counts as a person.")
    return columns


def read_points(
    source: Source, columns: PointColumns, table: Any, form: TimeForm
) -> tuple[Floats, Floats, Seconds, dict[str, Mask]]:
    """Return longitudes, latitudes and times of a table or chunk, and the unusable rows by reason, decimal commas first."""
    (lat, no_lat), (lon, no_lon) = (
        read_floats(table[column], f"{source.name}, column {column}") for column in (columns.lat, columns.lon)
    )
    times = read_seconds(table[columns.time], f"{source.name}, column {columns.time}", form)
    bad = {
        comma_reason(columns.lat): None if no_lat is None else decimal_commas(table[columns.lat]),
        comma_reason(columns.lon): None if no_lon is None else decimal_commas(table[columns.lon]),
        no_value_reason(columns.lat): _off_globe(lat, 90.0, no_lat),
        no_value_reason(columns.lon): _off_globe(lon, 180.0, no_lon),
        no_value_reason(columns.time): times.bad if times.bad.any() else None,
        far_reason(columns.time): far_years(times, form),
    }
    return lon, lat, times, {reason: mask for reason, mask in bad.items() if mask is not None}


def rows_without_ids(columns: PointColumns, table: Any) -> dict[str, Mask]:
    """Return the rows without ids, by reason, of a table with normalized ids."""
    missing = [(no_value_reason(c), table[c].is_null()) for c in columns.ids if table[c].null_count]
    return {reason: one_array(mask).to_numpy(zero_copy_only=False) for reason, mask in missing}


def with_normalized_ids(table: Any, source: Source, columns: PointColumns) -> Any:
    """Return a table or chunk with normalized ids."""
    for column in columns.ids:
        if not pa.types.is_integer(table[column].type):
            ids = normalized_ids(table[column], f"{source.name}, column {column}")
            table = table.set_column(table.schema.get_field_index(column), column, ids)
    return table


def no_ids(source: Source, columns: PointColumns) -> InputError:
    """Return the error for a table in which no row has ids."""
    return InputError(
        source.name, f"no row has a value in column {' and in column '.join(columns.ids)}. Name another column."
    )


def _off_globe(values: Floats, bound: float, bad: Mask | None) -> Mask | None:
    """Return the rows whose degrees are out of range or no number."""
    if len(values) == 0 or (bad is None and values.min() >= -bound and values.max() <= bound):
        return None
    off: Mask = np.abs(values) > bound
    return off if bad is None else off | bad


def settle_points(
    problems: Problems,
    source: Source,
    columns: PointColumns,
    drop_invalid: bool,
    notes: ReadNotes,
    *,
    swapped: bool = False,
) -> None:
    """Raise if points cannot be used, or count them as dropped; `swapped` says whether longitudes and latitudes look so."""

    def remedy(reason: str) -> str | Text:
        if reason in (no_value_reason(columns.time), far_reason(columns.time)):
            return FIX_TIMES
        if swapped and reason not in map(no_value_reason, columns.ids):
            return Text("Exchange {lon} and {lat}, which look swapped, fix")
        return "Fix"

    problems.settle(source.name, drop_invalid, notes, remedy, "their trajectories")


def look_swapped(lon: Floats, lat: Floats) -> bool:
    """Return whether longitudes and latitudes seem to be swapped."""
    return bool(len(lat) and 90 < np.abs(lat).max() <= 180 and np.abs(lon).max() <= 90)


def first_reasons(bad: dict[str, Mask], rows: int) -> tuple[Problems, Mask]:
    """Return the unusable rows by their first reason, and which of all `rows` these are."""
    problems, lost = Problems(), np.zeros(rows, np.bool_)
    for reason, mask in bad.items():
        problems.add(reason, mask & ~lost)
        lost |= mask
    return problems, lost


def no_value_reason(column: str) -> str:
    """Return the reason why rows without a usable value are dropped."""
    return f"have no usable value in column {column}"


def none_usable(source: Source, n: int) -> InputError:
    """Return the error for data in which all trajectories have an unusable point."""
    return InputError(source.name, f"none of the {counted(n, 'trajectory', 'trajectories')} is usable. Fix the rows.")


def note_ids_per_user(notes: ReadNotes) -> None:
    """Note that ids of trajectories are unique only per user."""
    notes.add("some trajectory ids belong to several users: each pair of user and id is a trajectory.")


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
    lon, lat, times, bad = read_points(source, columns, table, form)
    if not times.instants:
        note_assumed_zone(notes, columns.time, tz)
        note_clock_changes(notes, columns.time, tz, *odd_times(times, Clock(tz)))
    problems, lost = first_reasons(bad, len(table))
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


def _encode_ids(source: Source, table: Any, column: str | None) -> tuple[Ints, Labels]:
    """Number the ids in a column from 0 in order of appearance."""
    number, labels, _ = encode_ids(table[column], f"{source.name}, column {column}")
    return number, labels


def _in_order(points: pa.Table, name: str) -> pa.Table:
    """Return points by trajectory, time and place. Trajectories come in the order of their first rows.

    Equal ids of two people are two trajectories. A trajectory is incomplete if any of its points was lost.
    """
    with engine() as connection, duckdb_errors(name):
        connection.register("points", points)
        return fetch(
            connection,
            "SELECT *, min(row) OVER own AS first, bool_or(lost) OVER own AS incomplete FROM points "
            "WINDOW own AS (PARTITION BY trajectory, person) ORDER BY first, t, lon, lat, row",
        )
