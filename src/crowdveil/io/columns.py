"""Roles of columns: named by the user, or guessed from the usual names with a note."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from crowdveil.errors import InputError, Option, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source

USUAL: dict[str, tuple[str, ...]] = {
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
    "time": ("timestamp", "time", "datetime", "date_time", "t", "departure", "departure_time", "start_time", "starttime",
             "started_at", "pickup_datetime", "tpep_pickup_datetime", "lpep_pickup_datetime", "hour", "date"),
    "trajectory": ("trajectory_id", "traj_id", "trajectory", "tid", "trip_id", "published_id"),
    "user": ("user_id", "user", "uid", "person_id", "person", "traveler_id", "subscriber_id", "device_id"),
    "origin": ("origin", "o", "origin_id", "origin_zone", "origin_zone_id", "from", "from_zone", "pulocationid",
               "pickup_location_id", "start_station_id"),
    "destination": ("destination", "d", "destination_id", "destination_zone", "destination_zone_id", "to", "to_zone",
                    "dolocationid", "dropoff_location_id", "end_station_id"),
    "origin_lon": ("origin_lon", "origin_longitude", "o_lon", "pickup_longitude", "start_lng", "start_lon",
                   "start_station_longitude"),
    "origin_lat": ("origin_lat", "origin_latitude", "o_lat", "pickup_latitude", "start_lat", "start_station_latitude"),
    "destination_lon": ("destination_lon", "destination_longitude", "d_lon", "dropoff_longitude", "end_lng", "end_lon",
                        "end_station_longitude"),
    "destination_lat": ("destination_lat", "destination_latitude", "d_lat", "dropoff_latitude", "end_lat",
                        "end_station_latitude"),
    "volume": ("volume", "flow", "flows", "trips", "count", "n_trips"),
    "people": ("people", "persons", "n_people", "distinct_people", "users"),
    "weight": (),
    "zone_id": ("zone_id", "tile_id", "zone_code", "taz", "geoid20", "geoid10", "geoid", "geo_code", "id", "zone", "tile", "code",
                "no", "objectid", "locationid", "location_id", "antenna", "antenna_id", "cell_id",
                "site_id", "station_id", "fid"),
    "zone_name": ("zone_name", "name", "station_name", "label", "zone", "nom", "nome", "nombre"),
    "zone_region": ("borough", "district", "region", "county", "municipality", "city", "state"),
}  # fmt: skip
"""Recognized names of each role, best first; compared without case."""
_ENDS = {f"{end}{axis}" for end in ("origin", "destination") for axis in ("", "_lon", "_lat")}
_VALUE = r"\s*[+-]?\d[\d.,:/+\sTZeE-]*"
"""A number or a time."""
_OTHER_SIGNS = r"[\s:^~#/\x00-\x1f]"
"""Characters that may separate values in place of a supported delimiter."""


def find_column(source: Source, role: str, named: str | None, notes: ReadNotes) -> str | None:
    """Return the column for `role`: the one that the user named, else the first usual name found, else None."""
    if named is not None:
        if named in source.columns:
            return named
        near = [] if lacks_header(source) else _nearest(named, source)
        hint = f". Did you mean {near[0]}?" if near else f"; {describe_columns(source)}."
        raise InputError(
            source.name,
            Text("there is no column {column} for {option}{hint}", column=named, option=_option(role), hint=hint),
        )
    by_lower = {c.lower(): c for c in reversed(source.columns)}
    for rank, usual in enumerate(USUAL[role]):
        if usual in by_lower:
            refuse_repeated_name([c for c in source.columns if c.lower() == usual], role, source)
            if rank or by_lower[usual] != usual:
                notes.add(
                    Text(
                        "column {column} is taken as {as_role} (name another with {option}).",
                        column=by_lower[usual],
                        as_role=role,
                        option=_option(role),
                    )
                )
            return by_lower[usual]
    return None


def _option(role: str) -> Option:
    """Return the option that names the column of a role; origin and destination have one option for both coordinates."""
    end = role.removesuffix("_lon").removesuffix("_lat")
    return Option(end) if end in ("origin", "destination") else Option(role)


def _nearest(name: str, source: Source, cutoff: float = 0.6) -> list[str]:
    """Return the column with the most similar name, in a list; empty if none is similar."""
    return get_close_matches(name, source.columns, n=1, cutoff=cutoff)


def refuse_repeated_name(columns: list[str], role: str, source: Source) -> None:
    """Raise if several columns have the usual name of a role."""
    if len(columns) > 1:
        raise InputError(
            source.name,
            Text(
                "columns {columns} could each be {any_role}. Name one of them with {option}, or remove the others.",
                columns=" and ".join(columns),
                any_role=role,
                option=_option(role),
            ),
        )


def need_column(source: Source, role: str, named: str | None, notes: ReadNotes) -> str:
    """Return the column for `role` as `find_column` does; raise if there is none."""
    column = find_column(source, role, named, notes)
    if column is None:
        near = _nearest(USUAL[role][0], source, cutoff=0.5)
        guessed = bool(near) and not lacks_header(source)
        raise InputError(
            source.name,
            Text(
                "Expected a column {column}, but {found}. Name it{how}{option}.",
                column=USUAL[role][0],
                found=describe_columns(source),
                how=", such as " if guessed else " with ",
                option=Option(role, near[0] if guessed else ""),
            ),
        )
    return column


def looks_like_trips(source: Source) -> bool:
    """Return whether rows of a table have an origin and a destination but no position: trips, not points or zones."""
    has = _usual_roles(source)
    return (
        all(not has.isdisjoint((end, f"{end}_lon")) for end in ("origin", "destination")) and not {"lon", "lat"} <= has
    )


def looks_like_points(source: Source) -> bool:
    """Return whether a table has positions with times, and no origin or destination: points of trajectories, not trips."""
    return has_positions(source) and "time" in _usual_roles(source)


def has_positions(source: Source) -> bool:
    """Return whether rows of a table have a position but no origin or destination."""
    has = _usual_roles(source)
    return {"lon", "lat"} <= has and has.isdisjoint(_ENDS)


def _usual_roles(source: Source) -> set[str]:
    """Return the roles of the columns with usual names."""
    names = {name.lower() for name in source.columns}
    return {role for role, usual in USUAL.items() if not names.isdisjoint(usual)}


def lacks_header(source: Source) -> bool:
    """Return whether the first line of a CSV looks like data; its values must not appear in a message."""
    return source.delimiter is not None and any(re.fullmatch(_VALUE, name) for name in source.columns)


def describe_columns(source: Source) -> str:
    """Describe the columns of a source for a message."""
    if lacks_header(source):
        return "its first line looks like data and not like a header with column names"
    if len(source.columns) == 1 and re.search(_OTHER_SIGNS, source.columns[0]):
        return "it has one column only: values must be separated by commas, semicolons, tabs or |"
    return f"it has {', '.join(source.columns[:12])}"


def find_columns(source: Source, named: Mapping[str, str | None], notes: ReadNotes) -> dict[str, str | None]:
    """Return the column of each role as `find_column` does."""
    return {role: find_column(source, role, name, notes) for role, name in named.items()}
