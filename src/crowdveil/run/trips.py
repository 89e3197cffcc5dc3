"""Find trips in trajectories, or in records of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.source import open_source
from crowdveil.io.tiling import zones_for
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.arrays import Mask
from crowdveil.model.tessellation import locate
from crowdveil.model.time_axis import Clock
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import TrajectoryReading
from crowdveil.solve.trajectory.trip_rules import (
    TripEnds,
    TripRule,
    between_stays,
    first_last,
    home_work,
    transitions,
)


class TripOptions(TrajectoryReading):
    """Which trips to find, and how to read the trajectories."""

    by: TripRule = "first-last"
    """From the first to the last point, between tiles, between stays, or from home to work."""
    stay_s: int | None = Field(None, ge=1)
    """Least duration of a stay. Default: 600."""
    stay_radius_m: float | None = Field(None, gt=0)
    """Radius of a stay. Default: 200."""
    zones: Any = Field(None, json_schema_extra={"metavar": "ZONES"})
    """Tiles between which transitions go: a file of zones, grid:500m, h3:8 or voronoi:FILE."""


def find_trips(data: Any, options: TripOptions, notes: ReadNotes) -> pa.Table:
    """Return trips found in trajectories: coordinates of both ends, departure (except by home-work), and person."""
    stay = {name: value for name in ("stay_s", "stay_radius_m") if (value := getattr(options, name)) is not None}
    if stay and options.by != "stays":
        raise ParameterError(Option(next(iter(stay))), Text("it is for {by}. Leave it out.", by=Option("by", "stays")))
    if (options.zones is None) == (options.by == "transitions"):
        raise ParameterError(
            Option("zones"),
            Text("{by} needs tiles. Give {zones}, such as grid:500m.", by=Option("by", "transitions"))
            if options.zones is None
            else Text("it is for {by}. Leave it out.", by=Option("by", "transitions")),
        )
    if not isinstance(data, Trajectories):
        own = {"by", "stay_s", "stay_radius_m", "zones", "zone_id"}
        reading = {name: getattr(options, name) for name in type(options).model_fields if name not in own}
        data = read_trajectories(data, notes=notes, **reading)
    if data.k_unit == "trajectories":
        notes.add(Text("without a column of users each trajectory counts as a person (name one with {user})."))
    found = _ends(data, options, stay)
    if options.by == "transitions":
        found = _between_tiles(found, options, notes)
    if len(found.owner) == 0:
        raise InputError(
            Option("by"),
            f"no trip was found in the trajectories by {options.by}. Choose another rule, or shorter stays.",
        )
    person = found.owner if options.by == "home-work" else data.person[found.owner]
    table = _coordinates(found).append_column("user_id", pa.array([str(i) for i in data.people_ids]).take(person))
    if found.t is None:
        return table
    return table.append_column("time", pa.array(found.t * 1000, pa.timestamp("ms", tz="UTC")))


def _coordinates(found: TripEnds) -> pa.Table:
    names = ("origin_lon", "origin_lat", "destination_lon", "destination_lat")
    return pa.table({name: getattr(found, name) for name in names})


def _ends(data: Trajectories, options: TripOptions, stay: dict[str, Any]) -> TripEnds:
    if options.by == "first-last":
        return first_last(data)
    if options.by == "transitions":
        return transitions(data)
    if options.by == "stays":
        return between_stays(data, stay.get("stay_radius_m", 200.0), stay.get("stay_s", 600))
    return home_work(data, Clock(options.tz).to_wall(data.t))


def _between_tiles(found: TripEnds, options: TripOptions, notes: ReadNotes) -> TripEnds:
    """Return the steps of trajectories that leave a tile."""
    if len(found.owner) == 0:
        return found
    source = open_source(_coordinates(found))
    columns = OdColumns(**{name: name for name in source.columns})
    zones = zones_for(source, columns, options.zones, options.zone_id, notes)
    if zones is None:
        return found
    tiles = [
        locate(zones, getattr(found, f"{end}_lon"), getattr(found, f"{end}_lat")) for end in ("origin", "destination")
    ]
    leaves: Mask = tiles[0] != tiles[1]
    if not leaves.any():
        raise InputError(Option("zones"), "no step of a trajectory leaves its tile. Choose smaller tiles.")
    rows = np.flatnonzero(leaves)
    t = None if found.t is None else found.t[rows]
    return TripEnds(
        found.owner[rows], found.origin_lon[rows], found.origin_lat[rows],
        found.destination_lon[rows], found.destination_lat[rows], t,
    )  # fmt: skip
