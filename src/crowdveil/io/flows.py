"""Read trips and flows from files as `Flows`: grouped by time step, origin and destination, out of core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.axes import check_axes
from crowdveil.io.cropping import crop_zones, parse_crop
from crowdveil.io.hierarchy import build_hierarchy, named_by_levels
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import ENDS, OdColumns, by_role, find_od_columns, refuse_unread_volumes
from crowdveil.io.od_grouping import FlowGrouping, group_in_memory, to_flows
from crowdveil.io.od_rows import OdReader, ZoneNames
from crowdveil.io.omx import is_omx, read_omx
from crowdveil.io.person_ids import count_case_variants, note_case_variants
from crowdveil.io.source import open_source
from crowdveil.io.tiling import Tiling, by_coordinates, station_zones, usable_coordinates, zones_for
from crowdveil.io.times import TimeForm
from crowdveil.io.values import encode_ids, find_unusable_weights, to_weight_units
from crowdveil.io.zones import read_zones
from crowdveil.model.arrays import count_distinct
from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.time_axis import DEFAULT_STEP, Clock, TimeAxis, step_seconds
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones


def read_flows(
    data: Any,
    *,
    zones: Any = None,
    zone_id: str | None = None,
    bbox: str | None = None,
    time_window: str | None = None,
    each_row_is_a_trip: bool = False,
    step: str | int | None = None,
    tz: str = "UTC",
    time_format: str | None = None,
    drop_invalid: bool = False,
    hierarchy: Any = None,
    members: bool = False,
    notes: ReadNotes | None = None,
    **columns: str | None,
) -> Flows:
    """Read trips (one row each) or flows (one row with a volume each) as flows by time step.

    Parameters
    ----------
    data
        A path to a CSV, Parquet or OMX file or to a folder of Parquet files, an Arrow table, a data frame, or `Trips`. Of an
        OMX file all matrices are read as time steps if their names are times; file.omx#AM reads one, and file.omx#AM,MD,PM
        reads several as successive periods. `origin` names its lookup.
    zones, zone_id
        The zones, as for `read_zones`. Without them, the ids found in the data are the zones; where each has one position, the
        Voronoi cells of these stations. For data with coordinates also "grid:500m" (squares) or "h3:8" (H3 cells).
    bbox, time_window
        Leave out trips outside of a box ("west,south,east,north"), or of a window of local times ("from,to").
    each_row_is_a_trip
        Read rows as single trips, although the table has columns of numbers that are not used, which may be volumes.
    step
        Length of a time step ("15min", "1h", "1d"), or "all" for one matrix. Default: 1h if the data has times.
    tz
        Time zone of the time steps, and of times without a zone.
    time_format
        A `strptime` format for times that are not recognized, or the unit of numbers.
    drop_invalid
        Drop rows that cannot be used and count them in `notes`, instead of raising.
    hierarchy
        Tree over the zones, as for `build_hierarchy`, for methods that generalize.
    members
        Keep the person ids of each flow, for methods that merge flows.
    columns
        Names of columns by role: origin and destination (a column of ids, or "lon,lat"), time, user, volume, people, weight.
        All but weight are guessed from the usual names if not given.
    """
    notes = notes if notes is not None else ReadNotes()
    if (bbox or time_window) and (isinstance(data, Trips) or is_omx(data)):
        raise ParameterError(Text("{bbox} and {time_window} crop tables of trips or flows. Leave them out."))
    if isinstance(data, Trips):
        flows = trips_to_flows(data, step=step, tz=tz, members=members)
    elif is_omx(data):
        known = None if zones is None else read_zones(zones, zone_id=zone_id, notes=notes)
        flows = read_omx(data, zones=known, lookup=columns.get("origin"), notes=notes)
    else:
        rows = open_rows(
            data, zones=zones, zone_id=zone_id, bbox=bbox, time_window=time_window, each_row_is_a_trip=each_row_is_a_trip,
            step=step, tz=tz, time_format=time_format, drop_invalid=drop_invalid, notes=notes, **columns,
        )  # fmt: skip
        flows, box = rows.flows(members=members), rows.reader.crop.box
        flows = flows if box is None or Tiling.of(zones) is not None else crop_zones(flows, box)
    return flows if hierarchy is None else with_tree(flows, hierarchy)


def open_rows(
    data: Any,
    *,
    zones: Any,
    zone_id: str | None,
    bbox: str | None,
    time_window: str | None,
    each_row_is_a_trip: bool,
    step: str | int | None,
    tz: str,
    time_format: str | None,
    drop_invalid: bool,
    notes: ReadNotes,
    **columns: str | None,
) -> FlowGrouping:
    """Open a table of trips or flows, and find its columns, zones and times; parameters as in `read_flows`."""
    source, crop = open_source(data), parse_crop(bbox, time_window, tz)
    columns = by_role(columns, source)
    found = find_od_columns(source, columns, by_coordinates(zones), notes)
    given = zones_for(source, found, zones, zone_id, notes, crop)
    given = station_zones(source, found, columns, notes) if given is None else given
    if crop.window is not None and found.time is None:
        raise InputError(Option("time_window"), Text("there is no column of times. Name it with {time}."))
    seconds = resolve_step_seconds(step, found, notes)
    if not found.by_id:
        check_coordinates(next(source.batches(found.used)), found, source.name, zones, given, notes)
    reader = OdReader(source, found, ZoneNames(given), tz, TimeForm(time_format), notes, crop)
    reader.learn_form()
    if not each_row_is_a_trip:
        refuse_unread_volumes(next(source.batches(source.columns)), found, columns, reader.form, source.name)
    return FlowGrouping(reader, seconds, step is None, drop_invalid)


def check_coordinates(
    rows: pa.RecordBatch, columns: OdColumns, name: str, option: Any, zones: Zones | None, notes: ReadNotes
) -> None:
    """Raise if longitudes and latitudes look exchanged in the first rows; `option` says how the zones were chosen."""
    of_file = zones if Tiling.of(option) is None else None
    for end, (lon, lat) in zip(ENDS, usable_coordinates(rows, columns, name), strict=True):
        check_axes(lon, lat, columns.coordinates(end), name, of_file, notes)


def with_tree(flows: Flows, hierarchy: Any) -> Flows:
    """Return flows with a tree over their zones, and named units of a table."""
    tree = build_hierarchy(flows.zones, hierarchy)
    return replace(flows, zones=named_by_levels(flows.zones, [hierarchy]), origin_tree=tree, destination_tree=tree)


def read_trips(
    data: Any,
    *,
    zones: Any = None,
    zone_id: str | None = None,
    tz: str = "UTC",
    time_format: str | None = None,
    drop_invalid: bool = False,
    notes: ReadNotes | None = None,
    **columns: str | None,
) -> Trips:
    """Read trips into memory; parameters as in `read_flows`."""
    notes = notes if notes is not None else ReadNotes()
    source = open_source(data)
    found = find_od_columns(source, by_role(columns, source), False, notes)
    if found.is_flows:
        raise InputError(
            source.name, f"Expected one trip per row, but column {found.volume} holds volumes. Read it as flows."
        )
    given = zones_for(source, found, zones, zone_id, notes)
    form = TimeForm(time_format)
    reader = OdReader(source, found, ZoneNames(given), tz, form, notes)
    table = pa.Table.from_batches(list(reader.batches()))
    reader.settle(drop_invalid)
    known, final = reader.names.finish()
    o, d = (table[c].to_numpy() for c in "od")
    columns_of = set(table.column_names)
    person = None
    if "person" in columns_of:
        person, ids, _ = encode_ids(table["person"])
        note_case_variants(count_case_variants(ids), found.user, notes)
    return Trips(
        known,
        o if final is None else final[o],
        d if final is None else final[d],
        Clock(tz).to_utc(table["wall"].to_numpy()) if "wall" in columns_of else None,
        person,
        table["weight"].to_numpy() / WEIGHT_UNITS if "weight" in columns_of else None,
    )


def trips_to_flows(trips: Trips, *, step: str | int | None = None, tz: str = "UTC", members: bool = False) -> Flows:
    """Group trips in memory to flows by time step; with `members`, keep the person ids of each flow."""
    seconds = None if trips.t is None else step_seconds(DEFAULT_STEP if step is None else step)
    steps = TimeAxis(seconds, tz) if seconds else None
    number = np.zeros(len(trips.origin), np.int64)
    if steps is not None and trips.t is not None:
        number = steps.number_at(trips.t)
    columns: dict[str, Any] = {"step": number, "o": trips.origin, "d": trips.destination}
    if trips.person is not None:
        columns["person"] = trips.person
    if trips.weight is not None:
        reasons = [reason for reason, rows in find_unusable_weights(trips.weight).items() if rows.any()]
        if reasons:
            raise InputError("trips", f"some weights are {reasons[0]}. Scale them, or remove them.")
        columns["weight"] = to_weight_units(trips.weight)
    grouped = group_in_memory(pa.table(columns), members=members)
    flows = to_flows(grouped, trips.zones, None, steps, "person" in columns, None)
    return flows if trips.person is None else replace(flows, distinct_people=count_distinct(trips.person))


def resolve_step_seconds(step: str | int | None, columns: OdColumns, notes: ReadNotes) -> int | None:
    """Return the seconds of a time step, by default one hour if the data has times; None for one matrix."""
    if columns.time is None:
        if step not in (None, "all"):
            raise InputError(
                Text("{step} needs a column of times, and none was found. Name it with {time}, or leave {step} out.")
            )
        return None
    if step is None and not columns.is_flows:
        notes.add(Text("time steps are one hour long (choose another length with {step}, or all for one matrix)."))
    return step_seconds(DEFAULT_STEP if step is None else step)
