"""Find the columns of trips or flows by their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.columns import USUAL, describe_columns, find_columns, looks_like_points
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source
from crowdveil.io.times import TimeForm, read_seconds
from crowdveil.io.values import one_array, read_floats

FINE_SECONDS = 300
"""If all times are multiples of this, the rows may already be counts of time steps."""
ENDS = ("origin", "destination")


@dataclass(frozen=True)
class OdColumns:
    """The input column of each role; None if there is none."""

    origin: str | None = None
    destination: str | None = None
    origin_lon: str | None = None
    origin_lat: str | None = None
    destination_lon: str | None = None
    destination_lat: str | None = None
    time: str | None = None
    user: str | None = None
    volume: str | None = None
    people: str | None = None
    weight: str | None = None

    @property
    def by_id(self) -> bool:
        """Whether origins and destinations are zone ids, not coordinates."""
        return self.origin is not None

    @property
    def zone_ids(self) -> tuple[str, ...]:
        """Columns of zone ids: few different values in many rows."""
        return tuple(c for c in (self.origin, self.destination) if c is not None)

    @property
    def is_flows(self) -> bool:
        """Whether a row is a flow with a volume, not one trip."""
        return self.volume is not None

    def coordinates(self, end: str) -> tuple[str, str]:
        """Return the columns of longitude and latitude of "origin" or "destination"."""
        return getattr(self, f"{end}_lon"), getattr(self, f"{end}_lat")

    @property
    def used(self) -> list[str]:
        """All columns to read."""
        return [c for c in (getattr(self, role) for role in ROLES) if c is not None]


ROLES = tuple(field.name for field in fields(OdColumns))
COORDINATES = ROLES[2:6]
"""Roles of coordinates; users name them as LON,LAT of an origin or destination."""
NAMED = tuple(role for role in ROLES if role not in COORDINATES)
"""Roles that users name columns for."""


def by_role(named: Mapping[str, str | None], source: Source) -> dict[str, str | None]:
    """Return the named columns by role, with LON,LAT of an end as two columns; raise for a role that does not exist."""
    unknown = [name for name in named if name not in NAMED]
    if unknown:
        raise ParameterError(unknown[0], f"there is no such option; columns are named by {', '.join(NAMED)}.")
    roles = dict(named)
    for end in ENDS:
        parts = (named.get(end) or "").split(",")
        if len(parts) == 2 and named[end] not in source.columns:
            roles |= {end: None, f"{end}_lon": parts[0].strip(), f"{end}_lat": parts[1].strip()}
    return roles


def find_od_columns(source: Source, named: Mapping[str, str | None], tiled: bool | None, notes: ReadNotes) -> OdColumns:
    """Find the columns of all roles.

    `tiled` says which zones were chosen: tiles over coordinates, which are needed then while ids are ignored; others (False);
    or none (None). Named coordinates take the place of ids in zones that were chosen; else they are those of the ids, which may
    be stations.
    """
    roles = {role: named.get(role) for role in ROLES}
    by_coordinates = bool(tiled) or (roles["origin"] is None and roles["origin_lon"] is not None)
    if tiled is None and by_coordinates:
        # Guessed without a note: that of the stations names both columns.
        by_coordinates = None in find_columns(source, {end: named.get(end) for end in ENDS}, ReadNotes()).values()
    skipped = ENDS if by_coordinates else COORDINATES
    wanted = {r: n for r, n in roles.items() if r not in skipped}
    found = OdColumns(**find_columns(source, wanted, notes))
    if by_coordinates or found.origin is None or found.destination is None:
        found = OdColumns(**find_columns(source, {r: n for r, n in roles.items() if r not in ENDS}, notes))
        missing = [r for r in COORDINATES if getattr(found, r) is None]
        if missing:
            if not any(roles[role] for role in ROLES[:6]) and looks_like_points(source):
                raise InputError(
                    source.name,
                    "Expected trips or flows from an origin to a destination, but it holds points of trajectories. Use a method "
                    "for trajectories, such as microaggregation, or find trips in them with crowdveil trips.",
                )
            wanted_text = (
                "coordinates of origin and destination" if by_coordinates else "columns origin and destination"
            )
            if _is_wide(source):
                raise InputError(
                    source.name,
                    "Expected one row for each pair of zones, got a wide matrix with a column for each destination. Write it as "
                    "rows with the columns origin, destination and volume.",
                )
            form = "LON,LAT" if by_coordinates else "COLUMN"
            raise InputError(
                source.name,
                Text(
                    "Expected {wanted}, but {columns}. Name them with {origin} and {destination}.",
                    wanted=wanted_text,
                    columns=describe_columns(source),
                    origin=Option("origin", form),
                    destination=Option("destination", form),
                ),
            )
    if found.is_flows and found.weight is not None:
        raise InputError(
            source.name,
            Text(
                "Expected volumes or weights, but there are both (columns {volume} and {weights}); weights are for "
                "trips, so omit {weight}.",
                volume=found.volume,
                weights=found.weight,
            ),
        )
    return found


def _is_wide(source: Source) -> bool:
    """Return whether the columns are named by the values of the first one: a matrix with a column for each destination."""
    first, *others = source.columns
    values = set(one_array(next(source.batches([first]))[first]).cast(pa.string()).to_pylist())
    return len(others) > 1 and 2 * len(values & set(others)) > len(others)


def refuse_unread_volumes(
    rows: Any, columns: OdColumns, named: dict[str, str | None], form: TimeForm, name: str
) -> None:
    """Raise if rows read as trips may be flows: a column of numbers is unused, and no column identifies trips.

    `rows` are the first rows of the data, `named` the columns that the user named. A person, a weight, or a time between the
    multiples of `FINE_SECONDS` is that of one trip.
    """
    if columns.is_flows or columns.user is not None or columns.weight is not None:
        return
    if columns.time is not None:
        times = read_seconds(rows[columns.time], f"{name}, column {columns.time}", form)
        if (times.values[~times.bad] % FINE_SECONDS).any():
            return
    known = {usual for names in USUAL.values() for usual in names}
    others = [c for c in rows.schema.names if c not in (*columns.used, *named.values()) and c.lower() not in known]
    unread = [c for c in others if _may_be_volumes(rows[c], f"{name}, column {c}")]
    if unread:
        raise InputError(
            name,
            Text(
                "Expected one trip per row or a column of volumes, got numbers of unknown meaning in {unread}. Name the "
                "volumes with {volume}, or give {each_row_is_a_trip}.",
                unread=", ".join(unread[:12]),
            ),
        )


def _may_be_volumes(column: Any, what: str) -> bool:
    """Return whether a column holds numbers of at least 0, not all of them 0 or 1."""
    kind = column.type
    if pa.types.is_boolean(kind) or not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
        or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    ):  # fmt: skip
        return False
    values, bad = read_floats(column.drop_null(), what)
    return bad is None and bool(np.all(values >= 0)) and bool(np.any(values > 1))
