"""Read trajectories, or records of calls, as trips: the table that OD data are read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.times import Clock
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.trip_rules import (
    TripEnds,
    TripRule,
    between_stays,
    first_last,
    home_work,
    transitions,
)

RULE, STAY = "from_trajectories", ("stay_radius_m", "stay_s")
POINTS = ("lat", "lon", "trajectory")
"""Columns of trajectories that trips do not have."""
READ = ("time", "user", "tz", "time_format", "drop_invalid")
"""Input options that trajectories and trips share, which are those of the trajectories here."""
TRIP_COLUMNS = ("origin", "destination", "origin_lon", "origin_lat", "destination_lon", "destination_lat", "volume",
                "people", "weight", "matrix")  # fmt: skip


def trips_of(
    data: Trajectories, rule: TripRule, *, stay_radius_m: float = 200.0, stay_s: int = 600, tz: str = "UTC"
) -> pa.Table:
    """Return trips found in trajectories, as a table with coordinates of both ends, departure and person.

    Parameters
    ----------
    data
        The trajectories; without person ids each of them counts as a person.
    rule
        "first-last": one trip a trajectory. "transitions": each step from a point to the next. "stays": from each stay to the
        next one. "home-work": one trip a person, from where nights are spent to where working days are.
    stay_radius_m, stay_s
        A stay is a run of points within this radius of its first one, which lasts at least this long.
    tz
        Time zone of nights and working days.
    """
    found = _ends(data, rule, stay_radius_m, stay_s, tz)
    person = found.owner if rule == "home-work" else data.person[found.owner]
    columns = {
        "origin_lon": found.origin_lon,
        "origin_lat": found.origin_lat,
        "destination_lon": found.destination_lon,
        "destination_lat": found.destination_lat,
        "user_id": person,
    }
    if found.t is not None:
        columns["time"] = pa.array(found.t * 1000, pa.timestamp("ms", tz="UTC"))
    return pa.table(columns)


def _ends(data: Trajectories, rule: TripRule, stay_radius_m: float, stay_s: int, tz: str) -> TripEnds:
    if rule == "first-last":
        return first_last(data)
    if rule == "transitions":
        return transitions(data)
    if rule == "stays":
        return between_stays(data, stay_radius_m, stay_s)
    return home_work(data, Clock(tz).to_wall(data.t))


def read_as_trips(data: Any, options: dict[str, Any], notes: ReadNotes) -> tuple[Any, dict[str, Any]]:
    """Return the input of flows and their options: with `from_trajectories`, a table of trips found in trajectories."""
    rule: TripRule | None = options[RULE]
    own = {name: options[name] for name in (*POINTS, *STAY)}
    rest = {name: value for name, value in options.items() if name not in (RULE, *own)}
    if rule is None:
        given = next((name for name, value in own.items() if value is not None), None)
        if given is not None:
            raise ParameterError(Option(given), f"it is for trajectories; give {Option(RULE)} too, or leave it out.")
        return data, rest
    _refuse_others(rule, rest, own)
    if isinstance(data, Trajectories):
        found = data
    else:
        named = {name: own[name] for name in POINTS} | {name: rest[name] for name in READ}
        found = read_trajectories(data, notes=notes, **named)
    if found.k_unit == "trajectories":
        notes.add(f"without a column of users each trajectory counts as a person (name one with {Option('user')}).")
    stay = {name: own[name] for name in STAY if own[name] is not None}
    table = trips_of(found, rule, tz=rest["tz"], **stay)
    if len(table) == 0:
        raise InputError(
            Option(RULE), f"no trip was found in the trajectories by {rule}; choose another rule, or shorter stays."
        )
    columns = {"user": "user_id", "time": "time" if "time" in table.column_names else None}
    return table, rest | {"time_format": None} | columns | {name: name for name in TRIP_COLUMNS[2:6]}


def _refuse_others(rule: TripRule, options: dict[str, Any], own: dict[str, Any]) -> None:
    given = next((name for name in TRIP_COLUMNS if options[name] is not None), None)
    if given is not None:
        raise ParameterError(Option(given), f"it is for trips or flows; leave it or {Option(RULE)} out.")
    stay = next((name for name in STAY if own[name] is not None), None)
    if stay is not None and rule != "stays":
        raise ParameterError(Option(stay), f"it is for {Option(RULE, 'stays')}; leave it out.")
    if all(options[name] is None for name in ("zones", "grid", "h3", "voronoi")):
        raise InputError(
            f"trajectories need zones; give {Option('zones')}, {Option('grid')}, {Option('h3')} or {Option('voronoi')}."
        )
    if rule == "home-work" and options["step"] not in (None, "all"):
        raise ParameterError(Option("step"), f"trips by {Option(RULE, rule)} have no times; leave it out.")


def without_inner(flows: Flows) -> Flows:
    """Return flows without those inside one tile: steps of a trajectory that do not leave a tile are no transitions."""
    leaves = flows.origin != flows.destination
    if not leaves.any():
        raise InputError(Option(RULE), "no step of a trajectory leaves its tile; choose smaller tiles.")
    left = flows.where(leaves)
    return left.at_steps(np.flatnonzero(np.diff(left.offsets)))
