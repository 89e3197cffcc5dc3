"""Define the input options that all methods for one model share, declared once like a method's parameters."""

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
from crowdveil.params import Params


def _as_text(step: Any) -> Any:
    """Return the length of a time step as text, from a length of the standard library or of pandas too."""
    if not isinstance(step, timedelta):
        return step
    return f"{step // timedelta(seconds=1)}s" if step % timedelta(seconds=1) == timedelta(0) else str(step)


class Reading(Params):
    """Input options that flows and trajectories share."""

    zones: Any = Field(None, title="Zones", json_schema_extra={"metavar": "ZONES"})
    """File of zones (GeoJSON, GeoPackage, GeoParquet, a CSV of centroids), voronoi:FILE for the cells of points, or, for
    coordinates, grid:500m for squares or h3:8 for H3 cells."""
    zone_id: str | None = Field(None, title="Column with the zones' ids")
    """Column of the zones' ids."""
    time: str | None = None
    """Column of times."""
    user: str | None = Field(None, title="Person")
    """Column of the person's id."""
    tz: str = Field("UTC", title="Time zone")
    """Time zone of times that name none, and of the time steps; such as Europe/Paris."""
    time_format: str | None = Field(None, title="Date and time format")
    """Format of the times in signs of strptime, such as %d/%m/%Y %H:%M, or the unit of numbers: seconds, milliseconds, excel."""
    drop_invalid: bool = Field(False, title="Leave out rows that cannot be used")
    """Drop and count unusable rows, instead of stopping."""


class FlowReading(Reading):
    """Input options of trips or flows."""

    origin: str | None = Field(None, title="Origin zone")
    """Column of the origin's zone id, or LON,LAT, the columns of its coordinates."""
    destination: str | None = Field(None, title="Destination zone")
    """Column of the destination's zone id, or LON,LAT, the columns of its coordinates."""
    volume: str | None = Field(None, title="Volume of a flow")
    """Column of volumes; with it a row is a flow, without it a trip."""
    people: str | None = Field(None, title="People of a flow")
    """Column of the number of people of a flow."""
    weight: str | None = Field(None, title="Weight of a trip")
    """Column of a trip's weight; it is summed into volumes and never counts towards k."""
    each_row_is_a_trip: bool = False
    """Every row is one trip, although the table has columns of numbers that are not used."""
    bbox: str | None = Field(None, title="Box of the trips", json_schema_extra={"metavar": "W,S,E,N"})
    """Leave out trips that begin or end outside of this box, and zones whose center is outside; degrees."""
    time_window: str | None = Field(None, json_schema_extra={"metavar": "FROM,TO"})
    """Leave out trips before the first time and from the second on; local times, such as 2020-03-01,2020-03-08."""
    hierarchy: Any = Field(None, title="Tree over the zones")
    """Tree over the zones, for methods that generalize: ward, kd, quadtree, h3, or a table of levels, parents or nodes."""
    partition: Any = Field(None, title="Areas that were made before")
    """Existing areas, for the method fixed: the folder of a release, or a table of zones and their groups."""
    min_tiles_of: str | None = Field(None, title="Tiles that count", json_schema_extra={"metavar": "COLUMN"})
    """Tiles that count towards min_tiles: those in which this column of the zones, such as inhabitants or points of interest, is
    above 0; or visited, for those in which a trip starts or ends."""
    step: Annotated[str | int | None, BeforeValidator(_as_text)] = Field(None, title="Length of a time step")
    """Length of a time step, such as 15min, 1h, 1d; all for one matrix. Default with times: 1h."""
    fold: str | None = Field(None, title="Period to add up time steps")
    """Add up time steps that are whole periods apart, such as 1w or 2w; people in several periods count once."""


FRAME_OPTIONS = ("hierarchy", "partition", "min_tiles_of", "fold")
"""Input options about flows that are read, and not about the rows."""


class TrajectoryReading(Reading):
    """Input options of trajectories."""

    lat: str | None = Field(None, title="Latitude")
    """Column of latitudes."""
    lon: str | None = Field(None, title="Longitude")
    """Column of longitudes."""
    trajectory: str | None = None
    """Column of the trajectory's id."""


class EitherReading(FlowReading, TrajectoryReading):
    """Input options of flows or trajectories; those of the other kind are refused when the original is read."""


READINGS: dict[type, type[Reading]] = {Flows: FlowReading, Trajectories: TrajectoryReading}


def looks_like_trajectories(data: Any, options: Mapping[str, Any]) -> bool:
    """Return whether data are points of trajectories, not trips or flows; nothing but the header is read."""
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
    """Read flows or trips; the tree is over what is left of the zones."""
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
    """Return flows with the tiles that count; `column` of the `zones` is above 0 in them, or they are visited."""
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
    """Return flows with a partition of their zones that was made before; without one, unchanged."""
    return flows if partition is None else replace(flows, partition=read_partition(partition, flows.zones))
