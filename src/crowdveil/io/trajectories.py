"""Trajectories from CSV, Parquet, Arrow or a data frame to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, counted, rows_that
from crowdveil.io.columns import find_column, listed, need_column
from crowdveil.io.notes import ReadNotes
from crowdveil.io.parallel import side_by_side
from crowdveil.io.person_ids import IdRules, distinct_alike
from crowdveil.io.source import Source, open_source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import (
    Clock,
    Seconds,
    far_reason,
    far_years,
    odd_times,
    read_seconds,
    refuse_spread,
    say_clock,
    say_unit,
    say_zone,
)
from crowdveil.io.values import codes, comma_reason, decimal_commas, ids_of, one_array, read_floats
from crowdveil.io.zones import read_zones
from crowdveil.model.arrays import Floats, Ints, Labels, Mask, frozen
from crowdveil.model.canonical import points_in_order
from crowdveil.model.trajectories import Trajectories, TrajectoryCounts

BESIDE = "are in a trajectory with such a row"
"""Why rows are left out that are usable themselves."""


def read_trajectories(
    data: Any,
    *,
    lat: str | None = None,
    lon: str | None = None,
    time: str | None = None,
    trajectory: str | None = None,
    user: str | None = None,
    user_case_sensitive: bool = False,
    user_ignore_case: bool = False,
    zones: Any = None,
    zone_id: str | None = None,
    tz: str = "UTC",
    time_format: str | None = None,
    any_years: bool = False,
    drop_invalid: bool = False,
    keep_rows: bool = False,
    notes: ReadNotes | None = None,
) -> Trajectories:
    """Read trajectories.

    Parameters
    ----------
    data
        A path to a CSV or Parquet file, an Arrow table, or a data frame.
    lat, lon, time, trajectory, user
        Names of the columns; guessed from the usual ones where not given. Without a column of users each trajectory
        counts as a person; without one of trajectories, all points of a user are one.
    user_case_sensitive, user_ignore_case
        Whether ids that differ only in upper and lower case are different people, or one; different, with a note, by default.
    zones, zone_id
        Tiles for methods that put points into tiles, as `read_zones` takes them.
    tz
        The zone of times that name none.
    time_format
        A format in the signs of `strptime`, for times that are not read otherwise; or what numbers are.
    any_years
        Allow times before 1970, after 2100, or more than 100 years apart.
    drop_invalid
        Leave out trajectories that have a point without a usable position or time, instead of stopping.
    keep_rows
        Remember which row of the input each point came from.
    notes
        Filled with what was guessed and what was left out.
    """
    source, notes = open_source(data), notes if notes is not None else ReadNotes()
    columns = find_point_columns(source, lat, lon, time, trajectory, user, notes)
    form, rules = TimeForm(time_format, any_years), IdRules(user_case_sensitive, user_ignore_case)
    table = with_normalized_ids(source.read(columns.used), source, columns, rules)
    table, kept = _with_ids(source, table, columns, drop_invalid, notes)

    read_lon, read_lat, times, (group, labels, person, people) = side_by_side(
        *readers(source, columns, table, form), lambda: _who(source, table, columns, notes)
    )
    rules.warn(distinct_alike(people), columns.people, notes)
    _say_times(times, columns, tz, notes)
    t = times.values if times.instants else Clock(tz).to_utc(times.values)
    found, lon_deg, lat_deg = unusable(columns, read_lon, read_lat, times, form), read_lon[0], read_lat[0]
    found = _with_commas(found, columns, table)
    lost = _refuse_or_drop(source, found, _hint(found, columns, lon_deg, lat_deg), drop_invalid, notes)
    if lost is not None:
        lon_deg, lat_deg = np.where(lost, 0.0, lon_deg), np.where(lost, 0.0, lat_deg)
    points = Points(lon_deg, lat_deg, t, group, lost)
    model = assemble(points, labels, person, people, columns.counts, keep_rows)
    if lost is not None:
        model = _without(model, points, source, notes)
    if len(model.t):
        refuse_spread(int(model.t.min()), int(model.t.max()), form, f"{source.name}, column {columns.time}")
    model = points_in_order(model)
    if kept is not None and model.row is not None:
        model = replace(model, row=kept[model.row])
    return model if zones is None else replace(model, zones=read_zones(zones, zone_id=zone_id, notes=notes))


@dataclass(frozen=True)
class PointColumns:
    """The names of the columns; one of `trajectory` and `user` may be None."""

    lat: str
    lon: str
    time: str
    trajectory: str | None
    user: str | None

    @property
    def ids(self) -> list[str]:
        """Those that say whose a point is."""
        return [column for column in (self.trajectory, self.user) if column is not None]

    @property
    def used(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys([self.lat, self.lon, self.time, *self.ids]))

    @property
    def people(self) -> str | None:
        """The one that k counts by."""
        return self.user or self.trajectory

    @property
    def counts(self) -> TrajectoryCounts:
        """What k counts."""
        return "trajectories" if self.user is None else "people"


def find_point_columns(
    source: Source, lat: str | None, lon: str | None, time: str | None, trajectory: str | None, user: str | None,
    notes: ReadNotes,
) -> PointColumns:  # fmt: skip
    """The columns of points, as named or guessed."""
    needed = [need_column(source, role, name, notes) for role, name in (("lat", lat), ("lon", lon), ("time", time))]
    ids = [find_column(source, role, name, notes) for role, name in (("trajectory", trajectory), ("user", user))]
    columns = PointColumns(*needed, *ids)
    if columns.trajectory is None and columns.user is None:
        raise InputError(
            source.name,
            f"wanted a column trajectory_id or user_id, but {listed(source)}; "
            f"name it with {Option('trajectory')} or {Option('user')}.",
        )
    if columns.trajectory is None:
        notes.say("there is no column of trajectories: all points of a user are one trajectory.")
    elif columns.user is None:
        notes.say("there is no column of users: each trajectory counts as a person.")
    return columns


def readers(source: Source, columns: PointColumns, table: Any, form: TimeForm) -> tuple[Callable[[], Any], ...]:
    """What reads longitudes, latitudes and times of a table, or of a piece of one, each by itself."""
    return (
        lambda: read_floats(table[columns.lon], f"{source.name}, column {columns.lon}"),
        lambda: read_floats(table[columns.lat], f"{source.name}, column {columns.lat}"),
        lambda: read_seconds(table[columns.time], f"{source.name}, column {columns.time}", form),
    )


def unusable(
    columns: PointColumns,
    lon: tuple[Floats, Mask | None],
    lat: tuple[Floats, Mask | None],
    times: Seconds,
    form: TimeForm,
) -> dict[str, Mask]:
    """The rows that have no usable position or time, by reason; those that `readers` gave."""
    bad = {
        no_value(columns.lat): _off(lat[0], 90.0, lat[1]),
        no_value(columns.lon): _off(lon[0], 180.0, lon[1]),
        no_value(columns.time): times.bad if times.bad.any() else None,
        far_reason(columns.time): far_years(times, form),
    }
    return {reason: mask for reason, mask in bad.items() if mask is not None}


def without_ids(columns: PointColumns, table: Any) -> dict[str, Mask]:
    """The rows that do not say whose they are, by reason; of a table with normalized ids."""
    missing = [(no_value(c), table[c].is_null()) for c in columns.ids if table[c].null_count]
    return {reason: one_array(mask).to_numpy(zero_copy_only=False) for reason, mask in missing}


def with_normalized_ids(table: Any, source: Source, columns: PointColumns, rules: IdRules) -> Any:
    """The table, or piece of one, with one spelling for each id; case matters for ids of trajectories of known people."""
    for column in columns.ids:
        if not pa.types.is_integer(table[column].type):
            of_people = rules if column == columns.people else IdRules()
            ids = of_people.apply(table[column], f"{source.name}, column {column}")
            table = table.set_column(table.schema.get_field_index(column), column, ids)
    return table


def no_ids(source: Source, columns: PointColumns) -> InputError:
    """What is said where no row tells whose it is."""
    return InputError(source.name, f"no row has a value in column {' and in column '.join(columns.ids)}; name another.")


def say_pairs(notes: ReadNotes) -> None:
    """Tell that ids of trajectories begin anew for each user."""
    notes.say("some trajectory ids belong to several users: each pair of user and id is a trajectory.")


def _with_ids(
    source: Source, table: Any, columns: PointColumns, drop_invalid: bool, notes: ReadNotes
) -> tuple[Any, Ints | None]:
    """The rows that say whose they are, with their numbers where some do not: those belong to no trajectory."""
    lost = _refuse_or_drop(source, without_ids(columns, table), "", drop_invalid, notes)
    if lost is None:
        return table, None
    if lost.all():
        raise no_ids(source, columns)
    return table.filter(pa.array(~lost)), np.flatnonzero(~lost)


def _who(source: Source, table: Any, columns: PointColumns, notes: ReadNotes) -> tuple[Ints, Labels, Ints, Labels]:
    """The trajectory of each row with its id, and the person of each trajectory with theirs; every row has its ids."""
    from crowdveil.kernels.ordering import one_owner

    by_trajectory, by_user = columns.trajectory, columns.user
    if by_trajectory is None or by_user is None:
        column = by_trajectory or by_user or ""
        group, labels = _codes(table[column], f"{source.name}, column {column}")
        return group, labels, np.arange(len(labels)), labels
    group, labels = _codes(table[by_trajectory], f"{source.name}, column {by_trajectory}")
    owners = _owner_numbers(table[by_user], group, len(labels))
    if owners is not None:
        return group, labels, *_codes(pa.array(owners), f"{source.name}, column {by_user}")
    owner, people = _codes(table[by_user], f"{source.name}, column {by_user}")
    person, known = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.bool_)
    if not one_owner(frozen(group, np.int64), frozen(owner, np.int64), known, person):
        # Ids that start anew for each user: a trajectory is a pair of user and id.
        pair, first, inverse = np.unique(
            owner.astype(np.int64) * len(labels) + group, return_index=True, return_inverse=True
        )
        rank = np.empty(len(pair), np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(pair))
        group, first = rank[inverse], np.sort(first)
        labels, person = labels[pair[np.argsort(rank)] % len(labels)], owner[first]
        say_pairs(notes)
    return group, labels, person, people


def _owner_numbers(users: Any, group: Ints, groups: int) -> Ints | None:
    """The user of each trajectory where users are whole numbers and each trajectory has one; None otherwise.

    The column is looked at piece by piece as it was read: nothing is copied or numbered for every point.
    """
    from crowdveil.kernels.ordering import one_owner

    if users.type != pa.int64() or users.null_count:
        return None
    owner, known = np.zeros(groups, np.int64), np.zeros(groups, np.bool_)
    group, start = frozen(group, np.int64), 0
    for piece in users.chunks if isinstance(users, pa.ChunkedArray) else [users]:
        values = frozen(piece.to_numpy(zero_copy_only=False), np.int64)
        if not one_owner(group[start : start + len(values)], values, known, owner):
            return None
        start += len(values)
    return owner


def _codes(column: Any, what: str) -> tuple[Ints, Labels]:
    """As `codes`; whole numbers that lie close together are looked up in a table, piece by piece as they were read."""
    from crowdveil.kernels.ordering import codes_in_range

    if not pa.types.is_signed_integer(column.type) or len(column) == 0 or column.null_count:
        return codes(ids_of(column, what))[:2]
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    pieces = [frozen(c.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64) for c in chunks if len(c)]
    low, high = min(int(p.min()) for p in pieces), max(int(p.max()) for p in pieces)
    span = high - low + 1
    if span > max(4 * len(column), 1 << 16):
        return codes(ids_of(column, what))[:2]
    place, seen = np.full(span, -1, np.int64), np.empty(min(span, len(column)), np.int64)
    code, start, n = np.empty(len(column), np.int64), 0, 0
    for piece in pieces:
        n = codes_in_range(piece, low, place, seen, n, code[start : start + len(piece)])
        start += len(piece)
    return code, seen[:n].copy()


def _off(values: Floats, bound: float, bad: Mask | None) -> Mask | None:
    """Rows whose degrees are off the globe, or were no number."""
    if len(values) == 0 or (bad is None and values.min() >= -bound and values.max() <= bound):
        return None
    off: Mask = np.abs(values) > bound
    return off if bad is None else off | bad


def _say_times(times: Seconds, columns: PointColumns, tz: str, notes: ReadNotes) -> None:
    """Tell what was taken for granted of times."""
    say_unit(notes, columns.time, times.unit)
    if not times.instants:
        say_zone(notes, columns.time, tz)
        say_clock(notes, columns.time, tz, *odd_times(times, Clock(tz)))


def _with_commas(found: dict[str, Mask], columns: PointColumns, table: Any) -> dict[str, Mask]:
    """The unusable rows, those of them first that have a decimal comma."""
    places = [c for c in (columns.lat, columns.lon) if no_value(c) in found]
    commas = {comma_reason(c): mask for c in places if (mask := decimal_commas(table[c])) is not None}
    return {**commas, **found}


def _hint(found: dict[str, Mask], columns: PointColumns, lon: Floats, lat: Floats) -> str:
    """What may help with the first reason why rows cannot be used."""
    if next(iter(found), None) == no_value(columns.time):
        return f"name the form of the times with {Option('time_format')}, "
    return _swap_hint(lon, lat) if found else ""


def _swap_hint(lon: Floats, lat: Floats) -> str:
    swapped = len(lat) and np.abs(lat).max() > 90 and np.abs(lat).max() <= 180 and np.abs(lon).max() <= 90
    return f"longitude and latitude look swapped; exchange {Option('lon')} and {Option('lat')}, " if swapped else ""


def _refuse_or_drop(
    source: Source, bad: dict[str, Mask], hint: str, drop_invalid: bool, notes: ReadNotes
) -> Mask | None:
    """The rows to leave out; stops instead unless the user asked for that."""
    if not bad:
        return None
    lost = np.logical_or.reduce(list(bad.values()))
    reason = next(iter(bad))
    if not drop_invalid:
        rows = np.flatnonzero(bad[reason])
        raise bad_rows(source, reason, (rows + 1).tolist(), len(rows), hint)
    for why, n in first_of(bad).items():
        notes.drop(why, n)
    return np.asarray(lost)


def first_of(bad: dict[str, Mask]) -> dict[str, int]:
    """How many rows each reason is the first to make unusable."""
    counts: dict[str, int] = {}
    before: Mask | None = None
    for name, mask in bad.items():
        counts[name] = int((mask if before is None else mask & ~before).sum())
        before = mask if before is None else before | mask
    return {name: n for name, n in counts.items() if n}


def no_value(column: str) -> str:
    """Why rows were left out."""
    return f"have no usable value in column {column}"


def bad_rows(source: Source, reason: str, rows: list[int], n: int, hint: str = "") -> InputError:
    """What is said of `n` rows that stop the run; the first of them where they are known."""
    return InputError(
        source.name,
        f"{rows_that(rows, n, reason)}; "
        f"{hint}mend them, or leave their trajectories out with {Option('drop_invalid')}.",
    )


@dataclass(frozen=True)
class Points:
    """The rows as read: position, time, trajectory, and which are not usable."""

    lon: Floats
    lat: Floats
    t: Ints
    group: Ints
    lost: Mask | None


def assemble(
    points: Points, labels: Labels, person: Ints, people: Labels, counts: TrajectoryCounts, keep_rows: bool
) -> Trajectories:
    """Sort the points by trajectory and time where they are not, and make the model."""
    from crowdveil.kernels.ordering import group_offsets, in_order, rows_by_group_and_time

    lon, lat = points.lon, points.lat
    # Kernels get read-only int64 arrays only, so that each is compiled once and not for every mixture of types.
    t, group = frozen(points.t, np.int64), frozen(points.group, np.int64)
    counted_up, ordered = side_by_side(lambda: group_offsets(group, len(labels)), lambda: in_order(group, t))
    offsets = frozen(counted_up, np.int64)
    row: Ints | None = np.arange(len(group)) if keep_rows else None
    if not ordered:
        order, t = rows_by_group_and_time(group, t, offsets)
        lon, lat = side_by_side(*(partial(np.take, column, order) for column in (lon, lat)))
        row = order if keep_rows else None
    return Trajectories(lon, lat, t, offsets, labels, person, people, counts, row)


def _without(model: Trajectories, points: Points, source: Source, notes: ReadNotes) -> Trajectories:
    """Leave out the trajectories that have an unusable point."""
    from crowdveil.kernels.ordering import spread

    lost = points.lost if points.lost is not None else np.zeros(model.points, bool)
    gone = spread(frozen(lost, np.bool_), frozen(points.group, np.int64), len(model))
    notes.drop(BESIDE, int(np.diff(model.offsets)[gone].sum()) - int(lost.sum()))
    if gone.all():
        raise none_usable(source, len(gone))
    return model.where(~gone)


def none_usable(source: Source, n: int) -> InputError:
    """What is said where all trajectories have an unusable point."""
    return InputError(source.name, f"none of the {counted(n, 'trajectory', 'trajectories')} is usable.")
