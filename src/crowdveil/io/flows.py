"""Trips and flows from files to `Flows`: grouped by step, origin and destination, out of core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.engine import engine, fetch
from crowdveil.io.grouping import engine_can_read, group_sql, read_in_engine, read_piecewise, to_flows
from crowdveil.io.hierarchy import build_hierarchy
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, OdReader, ZoneNames, find_od_columns
from crowdveil.io.person_ids import IdRules
from crowdveil.io.source import open_source
from crowdveil.io.steps import Steps, step_seconds
from crowdveil.io.tiling import zones_for
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import Clock, refuse_spread
from crowdveil.io.values import codes
from crowdveil.io.weights import in_units, unusable
from crowdveil.io.zones import read_zones
from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.trips import Trips

DEFAULT_STEP = "1h"


def read_flows(
    data: Any,
    *,
    zones: Any = None,
    zone_id: str | None = None,
    grid: str | float | None = None,
    h3: int | None = None,
    voronoi: Any = None,
    matrix: str | None = None,
    step: str | int | None = None,
    tz: str = "UTC",
    time_format: str | None = None,
    any_years: bool = False,
    user_case_sensitive: bool = False,
    user_ignore_case: bool = False,
    drop_invalid: bool = False,
    hierarchy: Any = None,
    destination_hierarchy: Any = None,
    members: bool = False,
    notes: ReadNotes | None = None,
    **columns: str | None,
) -> Flows:
    """Read trips (a row each) or flows (a row with a volume each) as flows by time step.

    Parameters
    ----------
    data
        A path to a CSV, Parquet or OMX file, an Arrow table, a data frame, or `Trips`.
    zones, zone_id
        The zones, as `read_zones` takes them. Without any, zones are the ids that come up.
    grid, h3, voronoi
        A tessellation made here, for data with coordinates: squares ("500m"), H3 cells of a resolution, or
        the Voronoi cells of points in a file.
    matrix
        The matrix of an OMX file; all of them, as time steps, where their names are times. `origin` names its lookup.
    step
        Length of a time step ("15min", "1h", "1d"), or "all" for one matrix. 1h where the data has times.
    tz
        The zone that steps are cut in, and that times without a zone are in.
    time_format, any_years
        How times are written where it is not recognized, and whether times of any years are allowed.
    user_case_sensitive, user_ignore_case
        Whether ids that differ only in upper and lower case are different people, or one; different, with a note, by default.
    drop_invalid
        Leave out rows that cannot be used, and count them in `notes`, instead of stopping.
    hierarchy, destination_hierarchy
        Trees over the zones, as `build_hierarchy` takes them, for methods that generalize; of destinations only where
        they have another than origins.
    members
        Keep who is behind each flow, for methods that put flows together.
    columns
        Names of columns by role: origin, destination, origin_lon, origin_lat, destination_lon, destination_lat, time,
        user, volume, people, weight. Guessed from the usual names where not given, except weight.
    """
    notes = notes if notes is not None else ReadNotes()
    if hierarchy is not None or destination_hierarchy is not None:
        flat = read_flows(
            data, zones=zones, zone_id=zone_id, grid=grid, h3=h3, voronoi=voronoi, matrix=matrix, step=step, tz=tz,
            time_format=time_format, any_years=any_years, user_case_sensitive=user_case_sensitive,
            user_ignore_case=user_ignore_case, drop_invalid=drop_invalid, members=members, notes=notes, **columns,
        )  # fmt: skip
        return with_trees(flat, hierarchy, destination_hierarchy)
    if isinstance(data, Trips):
        return trips_to_flows(data, step=step, tz=tz, members=members)
    if isinstance(data, str | Path) and Path(data).suffix.lower() == ".omx":
        from crowdveil.io.omx import read_omx

        known = None if zones is None else read_zones(zones, zone_id=zone_id, notes=notes)
        return read_omx(Path(data), zones=known, matrix=matrix, lookup=columns.get("origin"), notes=notes)
    source = open_source(data)
    found = find_od_columns(source, columns, by_place(zones, grid, h3, voronoi), notes)
    given = zones_for(source, found, zones, zone_id, grid, h3, voronoi, notes)
    seconds = step_of(step, found, notes)
    form, ids = TimeForm(time_format, any_years), IdRules(user_case_sensitive, user_ignore_case)
    if given is None or not engine_can_read(source, found, given):
        flows = read_piecewise(source, found, given, step is None, seconds, tz, form, ids, drop_invalid, members, notes)
    else:
        flows = read_in_engine(source, found, given, seconds, tz, form, ids, drop_invalid, members, notes)
    refuse_spread(int(flows.t[0]), int(flows.t[-1]), form, f"{source.name}, column {found.time}")
    return flows


def by_place(zones: Any, grid: Any, h3: Any, voronoi: Any) -> bool:
    """Whether zones are to be made around coordinates; only one way to have zones can be asked for."""
    ways = (("grid", grid), ("h3", h3), ("voronoi", voronoi), ("zones", zones))
    tiled = [option for option, value in ways if value is not None]
    if len(tiled) > 1:
        raise ParameterError(f"{' and '.join(str(Option(name)) for name in tiled)} were given; give one of them.")
    return bool(tiled) and tiled[0] != "zones"


def with_trees(flows: Flows, hierarchy: Any, destination_hierarchy: Any = None) -> Flows:
    """Flows with trees over their zones; without one of their own, destinations have that of the origins."""
    origin = None if hierarchy is None else build_hierarchy(flows.zones, hierarchy)
    destination = origin if destination_hierarchy is None else build_hierarchy(flows.zones, destination_hierarchy)
    return replace(flows, origin_tree=origin, destination_tree=destination)


def read_trips(
    data: Any,
    *,
    zones: Any = None,
    zone_id: str | None = None,
    tz: str = "UTC",
    time_format: str | None = None,
    any_years: bool = False,
    user_case_sensitive: bool = False,
    user_ignore_case: bool = False,
    drop_invalid: bool = False,
    notes: ReadNotes | None = None,
    **columns: str | None,
) -> Trips:
    """Read trips into memory, for data small enough; parameters as in `read_flows`."""
    notes = notes if notes is not None else ReadNotes()
    source = open_source(data)
    found = find_od_columns(source, columns, False, notes)
    if found.is_flows:
        raise InputError(
            source.name, f"wanted trips, one a row, but column {found.volume} holds volumes; read it as flows."
        )
    given = zones_for(source, found, zones, zone_id, None, None, None, notes)
    form, ids = TimeForm(time_format, any_years), IdRules(user_case_sensitive, user_ignore_case)
    reader = OdReader(source, found, ZoneNames(given), tz, form, notes, ids)
    table = pa.Table.from_batches(list(reader.batches()))
    reader.problems.settle(source.name, drop_invalid, notes)
    known, final = reader.names.finish()
    o, d = (table[c].to_numpy() for c in "od")
    columns_of = set(table.column_names)
    person = codes(table["person"])[0] if "person" in columns_of else None
    reader.count_people()
    return Trips(
        known,
        o if final is None else final[o],
        d if final is None else final[d],
        Clock(tz).to_utc(table["wall"].to_numpy()) if "wall" in columns_of else None,
        person,
        table["weight"].to_numpy() / WEIGHT_UNITS if "weight" in columns_of else None,
    )


def trips_to_flows(trips: Trips, *, step: str | int | None = None, tz: str = "UTC", members: bool = False) -> Flows:
    """Group trips in memory to flows by time step; with `members`, keep who is behind each flow."""
    seconds = None if trips.t is None else step_seconds(DEFAULT_STEP if step is None else step)
    columns: dict[str, Any] = {"o": trips.origin, "d": trips.destination}
    if trips.t is not None:
        columns["wall"] = Clock(tz).to_wall(trips.t)
    if trips.person is not None:
        columns["person"] = trips.person
    if trips.weight is not None:
        reasons = [reason for reason, rows in unusable(trips.weight).items() if rows.any()]
        if reasons:
            raise InputError("trips", f"some weights {reasons[0]}; give weights of a usual size.")
        columns["weight"] = in_units(trips.weight)
    with engine() as connection:
        connection.register("rows", pa.table(columns))
        steps = Steps(seconds, tz) if seconds else None
        step_sql = steps.number_sql("wall") if steps else "0::BIGINT"
        names = [*columns, "members"] if members else list(columns)
        grouped = fetch(connection, group_sql(step_sql, "rows", names))
    return to_flows(grouped, trips.zones, None, steps, "person" in columns, None)


def step_of(step: str | int | None, columns: OdColumns, notes: ReadNotes) -> int | None:
    """Seconds of a time step as it was asked for, or as data with these columns usually has it; None for one matrix."""
    if columns.time is None:
        if step not in (None, "all"):
            raise InputError(
                f"{Option('step')} needs a column of times, and none was found; name it with {Option('time')}, "
                f"or leave {Option('step')} out."
            )
        return None
    if step is None and not columns.is_flows:
        notes.say(
            f"time steps of one hour are made (choose another length with {Option('step')}, or all for one matrix)."
        )
    return step_seconds(DEFAULT_STEP if step is None else step)
