"""Filter trajectories before anonymization (too short, too fast, outside an area or a time window), and split them into rides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine import extensions
from crowdveil.errors import InputError, Option, ParameterError, Text, counted
from crowdveil.io.atomic import new_file
from crowdveil.io.cropping import in_box, parse_box, parse_times
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source, open_source
from crowdveil.io.tables import check_ending, write_table
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.arrays import Floats, Mask
from crowdveil.model.projection import great_circle_m
from crowdveil.model.time_axis import Clock
from crowdveil.model.trajectories import Trajectories


@dataclass(frozen=True)
class FilterKind:
    """The record of a filter, from which the command line and the service are drawn.

    Attributes
    ----------
    name
        In lower case with underscores.
    keeps
        (trajectories, values, time zone of times without one) → whether to keep each; raises for bad values, also on no data.
    summary
        One sentence on the trajectories that it leaves out.
    metavar
        The placeholder of its values on the command line.
    """

    name: str
    keeps: Callable[[Trajectories, tuple[str, ...], str], Mask]
    summary: str
    metavar: str = "VALUE"


@dataclass(frozen=True)
class Filter:
    """A condition; a trajectory that does not meet it is removed whole.

    `name` is min_locations (least number of points), max_speed (highest speed of a leg, km/h), bbox (all points in
    west, south, east, north) or time_window (all points from the first time up to the second).
    """

    name: str
    values: tuple[str, ...]

    def keeps(self, data: Trajectories, tz: str = "UTC") -> Mask:
        """Return whether to keep each trajectory."""
        if self.name not in (names := filter_names()):
            raise ParameterError(f"there is no filter {self.name}. Known are {', '.join(names)}.")
        return find_filter(self.name).keeps(data, self.values, tz)


def filter_trajectories(
    data: Trajectories, filters: Sequence[Filter], tz: str = "UTC"
) -> tuple[Trajectories, list[tuple[Filter, int]]]:
    """Apply filters in the order given; return the kept trajectories, and how many each filter removed."""
    removed = []
    for condition in filters:
        keep = condition.keeps(data, tz)
        removed.append((condition, int((~keep).sum())))
        data = data.where(keep)
    return data, removed


@dataclass(frozen=True)
class FilterResult:
    """The result of filtering a file: trajectories and points before and after, and the number that each filter removed."""

    removed: list[tuple[Filter, int]]
    trajectories: tuple[int, int]
    points: tuple[int, int]
    split: str | None = None
    """The column by which trajectories were split into rides before, or None."""

    def lines(self) -> list[str]:
        """Return a line for each filter on the trajectories that it removed."""
        split = [] if self.split is None else [f"split by {self.split}: {counted(self.trajectories[0], 'ride')}"]
        return split + [
            f"{condition.name} {','.join(condition.values)}: removed {counted(n, 'trajectory', 'trajectories')}"
            for condition, n in self.removed
        ]

    def rest(self) -> str:
        """Return the kept trajectories and points, in words."""
        (were, are), (points_were, points_are) = self.trajectories, self.points
        return f"{are:,} of {were:,} trajectories, {points_are:,} of {points_were:,} points"


def filter_file(
    data: Any,
    output: str | Path,
    filters: Sequence[Filter],
    *,
    split_by: str | None = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    **options: Any,
) -> FilterResult:
    """Filter a file or table of trajectories to a file, .csv or .parquet, with every column of the kept rows.

    With `split_by`, each longest run of points of a vehicle in which that column is 1 (or true, or yes) is a trajectory of its
    own, with an id in the column `trajectory_id`, and all other points are left out. `options` are the input options of
    trajectories.
    """
    check_filters(filters, split_by=split_by)
    check_ending(Path(output))
    source = open_source(data)
    before = read_trajectories(source, keep_rows=True, notes=notes if notes is not None else ReadNotes(), **options)
    if split_by is not None:
        before = split_rides(before, read_flags(source, split_by))
    after, removed = filter_trajectories(before, filters, options.get("tz", "UTC"))
    rows = np.sort(after.row) if after.row is not None else np.zeros(0, np.int64)
    with new_file(Path(output), overwrite=overwrite) as file:
        table = source.read(as_is=True)
        table = table.take(rows) if split_by is None else with_ride_ids(table, after, rows)
        write_table(table, file, as_input=True)
    return FilterResult(removed, (len(before), len(after)), (before.points, after.points), split_by)


def filters_of(listed: list[dict[str, Any]]) -> list[Filter]:
    """Return the filters of a request or a run file, each an object of its name and its value, in their order."""
    pairs = [(name, value) for entry in listed for name, value in entry.items()]
    return [
        Filter(n, tuple(_text(x) for x in v) if isinstance(v, list) else tuple(_text(v).split(","))) for n, v in pairs
    ]


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value)) if whole else str(value).strip()


def check_filters(filters: Sequence[Filter], split_by: str | None = None) -> None:
    """Raise unless there is a filter or a column to split by, and all filters are valid; needs no data."""
    if not filters and split_by is None:
        listed = [part for name in filter_names() for part in (", ", Option(name))][1:]
        raise ParameterError(Text.of(["Expected at least one filter. Give one of ", *listed, "."]))
    none, ids = np.zeros(0), np.zeros(0, object)
    nothing = Trajectories(none, none, np.zeros(0, np.int64), np.zeros(1, np.int64), ids, np.zeros(0, np.int64), ids)
    for condition in filters:
        condition.keeps(nothing)


def leg_speeds_kmh(data: Trajectories) -> Floats:
    """Return the speed of the leg that begins at each point, by great circle; 0 after a trajectory's last point.

    A leg that takes no time and covers a distance is infinitely fast.
    """
    if data.points == 0:
        return np.zeros(0)
    meters = great_circle_m(data.lon[:-1], data.lat[:-1], data.lon[1:], data.lat[1:])
    seconds = np.diff(data.t).astype(np.float64)
    still = meters == 0
    speed = np.where(still, 0.0, np.inf)
    moving = seconds > 0
    speed[moving] = meters[moving] / seconds[moving] * 3.6
    speeds = np.append(speed, 0.0)
    speeds[data.offsets[1:] - 1] = 0.0
    return speeds


def _every_point(data: Trajectories, holds: Mask) -> Mask:
    return np.asarray(np.logical_and.reduceat(holds, data.offsets[:-1])) if len(data) else np.zeros(0, bool)


def _min_locations(data: Trajectories, values: tuple[str, ...], tz: str) -> Mask:
    wanted = "a whole number of points, at least 1"
    return np.diff(data.offsets) >= _number("min_locations", values, wanted, lambda x: x >= 1 and x.is_integer())


def _max_speed(data: Trajectories, values: tuple[str, ...], tz: str) -> Mask:
    limit = _number("max_speed", values, "a speed in km/h, above 0", lambda x: x > 0)
    return _every_point(data, leg_speeds_kmh(data) <= limit)


def _bbox(data: Trajectories, values: tuple[str, ...], tz: str) -> Mask:
    return _every_point(data, in_box(parse_box(values), data.lon, data.lat))


def _time_window(data: Trajectories, values: tuple[str, ...], tz: str) -> Mask:
    times = parse_times(values)
    start, end = (times.values if times.instants else Clock(tz).to_utc(times.values)).tolist()
    return _every_point(data, (data.t >= start) & (data.t < end))


def _number(name: str, values: tuple[str, ...], wanted: str, fits: Callable[[float], bool]) -> float:
    """Return the only value as a finite number that fits."""
    try:
        (value,) = (float(v) for v in values)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and fits(value)):
        raise ParameterError(Option(name), f"Expected {wanted}.")
    return value


FILTER_POINTS = "crowdveil.filters"
_OWN = (
    FilterKind("min_locations", _min_locations, "Leave out trajectories with fewer points than this.", "N"),
    FilterKind("max_speed", _max_speed, "Leave out trajectories with a leg faster than this, in km/h.", "KMH"),
    FilterKind("bbox", _bbox, "Leave out trajectories with a point outside this box, in degrees.", "W,S,E,N"),
    FilterKind(
        "time_window", _time_window, "Leave out trajectories with a point before FROM, or at TO or later.", "FROM,TO"
    ),
)
FILTERS = {kind.name: kind for kind in _OWN}


def filter_names() -> tuple[str, ...]:
    """Return the names of all filters: ours, then those of installed packages."""
    return (*FILTERS, *extensions.installed(FILTER_POINTS))


def find_filter(name: str) -> FilterKind:
    """Return the record of a filter: ours, or of an installed package."""
    found: FilterKind = FILTERS[name] if name in FILTERS else extensions.load(FILTER_POINTS, name, FilterKind)
    return found


COLUMN = "trajectory_id"
"""The column of the rides' ids in the written table."""
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no")


def read_flags(source: Source, column: str) -> Mask:
    """Return whether each row of a table is part of a ride: 1, true or yes, or 0, false or no."""
    if column not in source.columns:
        raise InputError(
            source.name, Text("there is no column {column}. Name one that exists with {split_by}.", column=column)
        )
    text = pc.utf8_lower(pc.utf8_trim_whitespace(source.read([column]).column(column).cast(pa.string())))
    known = pc.is_in(text, pa.array([*_YES, *_NO]))
    wrong = len(text) - int(pc.sum(known).as_py() or 0)
    if wrong:
        raise InputError(
            source.name,
            f"{wrong:,} values of column {column} are neither 1, true or yes nor 0, false or no. Correct them.",
        )
    return np.asarray(pc.is_in(text, pa.array(_YES)))


def split_rides(data: Trajectories, flags: Mask) -> Trajectories:
    """Return the rides in trajectories: each longest run of points with a flag is one. The others are left out.

    `flags` has a value for each row of the input. Rides are counted for the people of their trajectories.
    """
    if data.k_unit != "people" or data.row is None:
        raise InputError(
            Text(
                "rides are split from trajectories of known people or vehicles, which k counts. Name their column with "
                "{user}."
            )
        )
    inside = flags[data.row]
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    of_point = np.repeat(np.arange(len(data)), np.diff(data.offsets))
    first = data.offsets[:-1]
    begins[first] = inside[first]
    starts = np.flatnonzero(begins)
    parent, points = of_point[starts], np.flatnonzero(inside)
    offsets = np.append(np.searchsorted(points, starts), len(points))
    number = np.arange(len(starts)) - np.searchsorted(parent, parent) + 1
    labels = [f"{data.ids[of]}-{n}" for of, n in zip(parent.tolist(), number.tolist(), strict=True)]
    left, person = np.unique(data.person[parent], return_inverse=True)
    return replace(
        data, lon=data.lon[points], lat=data.lat[points], t=data.t[points], offsets=offsets, ids=np.array(labels, object),
        person=person, people_ids=data.people_ids[left], row=data.row[points],
    )  # fmt: skip


def with_ride_ids(table: pa.Table, rides: Trajectories, rows: np.ndarray) -> pa.Table:
    """Return the rows of a table that are in rides, with a column of the rides' ids in place of one of that name."""
    of_row = dict(zip(rides.row.tolist(), np.repeat(rides.ids, np.diff(rides.offsets)).tolist(), strict=True))  # type: ignore[union-attr]
    taken, ids = table.take(rows), pa.array([of_row[row] for row in rows.tolist()], pa.string())
    if COLUMN in taken.column_names:
        return taken.set_column(taken.column_names.index(COLUMN), COLUMN, ids)
    return taken.append_column(COLUMN, ids)
