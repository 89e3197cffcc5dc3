"""Columns and usable rows of a table of trajectory points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Text, counted
from crowdveil.io.columns import describe_columns, find_column, looks_like_trips, need_column
from crowdveil.io.notes import Problems, ReadNotes
from crowdveil.io.person_ids import normalized_ids
from crowdveil.io.source import Source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import (
    FIX_TIMES,
    Seconds,
    far_reason,
    far_years,
    read_seconds,
)
from crowdveil.io.values import comma_reason, decimal_commas, one_array, read_floats
from crowdveil.model.arrays import Floats, Mask
from crowdveil.model.trajectories import TrajectoryUnit

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
) -> tuple[tuple[Floats, Mask | None], tuple[Floats, Mask | None], Seconds]:
    """Return longitudes, latitudes and times of a table or chunk, and the rows where there is none."""
    return (
        read_floats(table[columns.lon], f"{source.name}, column {columns.lon}"),
        read_floats(table[columns.lat], f"{source.name}, column {columns.lat}"),
        read_seconds(table[columns.time], f"{source.name}, column {columns.time}", form),
    )


def find_unusable_points(
    columns: PointColumns,
    lon: tuple[Floats, Mask | None],
    lat: tuple[Floats, Mask | None],
    times: Seconds,
    form: TimeForm,
) -> dict[str, Mask]:
    """Return the rows without a usable position or time, by reason, from the results of `read_points`."""
    bad = {
        no_value_reason(columns.lat): _off_globe(lat[0], 90.0, lat[1]),
        no_value_reason(columns.lon): _off_globe(lon[0], 180.0, lon[1]),
        no_value_reason(columns.time): times.bad if times.bad.any() else None,
        far_reason(columns.time): far_years(times, form),
    }
    return {reason: mask for reason, mask in bad.items() if mask is not None}


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


def add_comma_reasons(found: dict[str, Mask], columns: PointColumns, table: Any) -> dict[str, Mask]:
    """Return the unusable rows by reason, those with a decimal comma first."""
    unread = [c for c in (columns.lat, columns.lon) if no_value_reason(c) in found]
    commas = {comma_reason(c): mask for c in unread if (mask := decimal_commas(table[c])) is not None}
    return {**commas, **found}


def settle_points(
    problems: Problems,
    source: Source,
    columns: PointColumns,
    drop_invalid: bool,
    notes: ReadNotes,
    *,
    swapped: bool = False,
) -> None:
    """Raise if points cannot be used, or count them as dropped; `swapped`: longitudes and latitudes seem to be."""

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
