"""Define the input options of flows and of trajectories, and read data with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from crowdveil.errors import InputError, Option, Text
from crowdveil.io.columns import has_positions
from crowdveil.io.flows import read_flows, with_tree
from crowdveil.io.notes import ReadNotes
from crowdveil.io.omx import is_omx
from crowdveil.io.partition import read_partition
from crowdveil.io.source import open_source
from crowdveil.io.tiling import Tiling
from crowdveil.io.trajectories import read_trajectories
from crowdveil.io.zones import VORONOI, is_voronoi, read_tile_values
from crowdveil.model.canonical import canonical
from crowdveil.model.flows import VISITED, CountedTiles, Flows, fold_steps
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.params import DURATION, Column, Params


def _as_text(step: Any) -> Any:
    """Return the length of a time step as text; it may be a timedelta, also of pandas."""
    if not isinstance(step, timedelta):
        return step
    return f"{step // timedelta(seconds=1)}s" if step % timedelta(seconds=1) == timedelta(0) else str(step)


class Reading(Params):
    """Input options that flows and trajectories share."""

    zones: Any = Field(None, title="Zones", json_schema_extra={"metavar": "ZONES"})
    """A file of zones (GeoJSON, GeoPackage, GeoParquet, or a CSV of centroids) or voronoi:FILE for the cells around points. For
    coordinates also grid:500m for squares, or h3:8 for H3 cells."""
    zone_id: Column = Field(None, title="Column with the zones' ids")
    """Column of zone ids."""
    time: Column = None
    """Column of times."""
    user: Column = Field(None, title="Person")
    """Column of person ids."""
    tz: str = Field("UTC", title="Time zone", json_schema_extra={"metavar": "ZONE"})
    """Time zone of the time steps, and of times without one, such as Europe/Paris."""
    time_format: str | None = Field(None, title="Date and time format", json_schema_extra={"metavar": "FORMAT"})
    """Format of times in strptime codes, such as %d/%m/%Y %H:%M; for numbers their unit: seconds, milliseconds or excel."""
    drop_invalid: bool = Field(False, title="Leave out rows that cannot be used")
    """Drop unusable rows and count them, instead of stopping."""


class FlowReading(Reading):
    """Input options of trips or flows."""

    origin: Column = Field(None, title="Origin zone")
    """Column of origin zone ids, or LON,LAT for two columns of coordinates."""
    destination: Column = Field(None, title="Destination zone")
    """Column of destination zone ids, or LON,LAT for two columns of coordinates."""
    volume: Column = Field(None, title="Volume of a flow")
    """Column of volumes. With it a row is a flow, without it a trip."""
    people: Column = Field(None, title="People of a flow")
    """Column with the number of people of a flow."""
    weight: Column = Field(None, title="Weight of a trip")
    """Column of trip weights. They are summed into volumes and never count towards k."""
    each_row_is_a_trip: bool = False
    """Count each row as one trip, even if the table has columns of numbers that are not used."""
    bbox: str | None = Field(None, title="Box of the trips", json_schema_extra={"metavar": "W,S,E,N"})
    """Keep only trips that begin and end in this box, and zones with their center in it; degrees."""
    time_window: str | None = Field(None, json_schema_extra={"metavar": "FROM,TO"})
    """Keep only trips from the first local time on and before the second one, such as 2020-03-01,2020-03-08."""
    hierarchy: Any = Field(None, title="Tree over the zones", json_schema_extra={"metavar": "KIND|FILE"})
    """Tree over the zones: ward, kd, quadtree or h3, or a table of levels, parents or nodes."""
    partition: Any = Field(None, title="Areas that were made before", json_schema_extra={"metavar": "RELEASE|FILE"})
    """Existing areas for the method fixed: the folder of a release, or a table of zones and their groups."""
    min_tiles_of: Column = Field(None, title="Tiles that count")
    """Tiles that count for the smallest number of tiles: those with a value above 0 in this column of the zones, such as
    inhabitants or points of interest; or visited, for tiles in which a trip starts or ends. Default: all tiles."""
    step: Annotated[str | int | None, BeforeValidator(_as_text)] = Field(
        None, title="Length of a time step", json_schema_extra=DURATION
    )
    """Length of a time step, such as 15min, 1h or 1d; all for a single matrix. Default with times: 1h."""
    fold: str | None = Field(None, title="Period to add up time steps", json_schema_extra=DURATION)
    """Add up time steps that are whole periods apart, such as 1w or 2w. A person in several periods counts once."""


FRAME_OPTIONS = ("hierarchy", "partition", "min_tiles_of", "fold")
"""Input options that apply to the flows once they are read, and not to rows."""


class TrajectoryReading(Reading):
    """Input options of trajectories."""

    lat: Column = Field(None, title="Latitude")
    """Column of latitudes."""
    lon: Column = Field(None, title="Longitude")
    """Column of longitudes."""
    trajectory: Column = None
    """Column of trajectory ids."""


class EitherReading(FlowReading, TrajectoryReading):
    """Input options of flows or trajectories; reading refuses those of the other kind."""


READINGS: dict[type, type[Reading]] = {Flows: FlowReading, Trajectories: TrajectoryReading}


def looks_like_trajectories(data: Any, options: Mapping[str, Any]) -> bool:
    """Return whether data are points of trajectories, not trips or flows; only the header is read."""
    if isinstance(data, Flows | Trips | Trajectories):
        return isinstance(data, Trajectories)
    of_points, of_flows = (
        set(model.model_fields) - set(Reading.model_fields) for model in (TrajectoryReading, FlowReading)
    )
    if of_points & options.keys() or of_flows & options.keys():
        return bool(of_points & options.keys())
    return not is_omx(data) and has_positions(open_source(data))


def read(takes: type, data: Any, options: Reading, notes: ReadNotes, *, person_ids: bool = False) -> Any:
    """Read data as the model that a method takes; use a model unchanged. `person_ids`: keep the people of each flow.

    Trajectories are in canonical order, so that nothing depends on the order of rows or on the spelling of ids.
    """
    given = {name: getattr(options, name) for name in type(options).model_fields}
    if takes is not Flows:
        return canonical(data if isinstance(data, Trajectories) else read_trajectories(data, notes=notes, **given))
    partition, column = given.pop("partition"), given.pop("min_tiles_of")
    flows = with_partition(_read_flows(data, given, notes, person_ids), partition)
    return with_counted_tiles(flows, column, given["zones"], given["zone_id"])


def _read_flows(data: Any, given: dict[str, Any], notes: ReadNotes, person_ids: bool) -> Flows:
    """Read flows or trips; the tree is over the zones that are kept."""
    hierarchy, fold = given["hierarchy"], given.pop("fold")
    if isinstance(data, Flows):
        flows = data
    else:
        members = person_ids or fold is not None  # people in several periods count once
        flows = read_flows(data, notes=notes, members=members, **given | {"hierarchy": None})
    if fold is not None:
        flows = fold_steps(flows, fold)
        flows = flows if person_ids else replace(flows, person_offsets=None, person_ids=None)
    return flows if hierarchy is None else with_tree(flows, hierarchy)


def with_counted_tiles(flows: Flows, column: str | None, zones: Any, zone_id: str | None) -> Flows:
    """Return flows with the tiles that count: those with `column` of the `zones` above 0, or those that are visited."""
    if column is None:
        return flows
    if column == VISITED:
        return replace(flows, counted=CountedTiles(column, flows.visited))
    if zones is None or isinstance(zones, Zones) or Tiling.of(zones) is not None:
        raise InputError(
            Option("min_tiles_of"),
            Text(
                "Expected zones from a file or table with a column {column}, or the word {visited}. Give {zones}.",
                column=column,
                visited=VISITED,
            ),
        )
    source = zones.removeprefix(VORONOI) if is_voronoi(zones) else zones
    values = read_tile_values(source, column, flows.zones, zone_id=zone_id, option="min_tiles_of")
    return replace(flows, counted=CountedTiles(column, values > 0))


def with_partition(flows: Flows, partition: Any) -> Flows:
    """Return flows with an existing partition of their zones; without one, unchanged."""
    return flows if partition is None else replace(flows, partition=read_partition(partition, flows.zones))
