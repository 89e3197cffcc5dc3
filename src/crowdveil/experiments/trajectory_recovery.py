"""Recover trajectories from aggregates: counts of people by place and time step, without any id.

The adversary has the number of people in each place in each time step (a heat map for each step, or flows), and nothing else.
Locations of consecutive steps are linked by minimum-cost assignment: at night people are expected to stay, by day to go on as in
the last step. Days are linked by the places that were visited. The attack is run on the aggregates of the original (before), and
on published ones (after): the flows of a release, or, without one, heat maps in which tiles with fewer than k people are
suppressed.

Accuracy: each person is paired with one recovered trajectory, those with the most right time steps first; it is the mean share
of time steps in which that trajectory is in the person's place. A large place is easily right, so the size of places is given
too, and the accuracy of linking at random.

Notes
-----
A person is in a step where the last record up to its end is, and before the first record where that is. Days are linked by the
entropy that is gained when the places of two days are mixed; of more than 1,000 people they are linked like other nights. A flow
counts in its time step, at its destination area; a person who makes no trip is taken to stay. Where more than 1,000 locations of
a step do not match exactly, they are assigned in blocks from west to east. Accuracy comes from the original: it is confidential.

References
----------
Xu, Tu, Li, Zhang, Fu, Jin, Trajectory recovery from ash: user privacy is not preserved in aggregated mobility data, WWW 2017.
D'Silva et al., a re-evaluation of the attack, 2024.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import shapely
from pydantic import Field, field_validator

from crowdveil.attacks.adversary_view import AggregatedTrajectories
from crowdveil.attacks.base import Attack, Exposure
from crowdveil.errors import InputError, counted
from crowdveil.experiments.linked_aggregates import MAX_ASSIGNED, Entries, link_days, link_entries, match_people
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.time_axis import DAY_S, TimeAxis, step_seconds
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import DURATION, Params

MAX_STEPS = 10_000
"""Time steps of the data at most."""


class RecoveryParams(Params):
    """Parameters of trajectory recovery."""

    tile_m: float = Field(1000.0, gt=0, le=1_000_000)
    """Side of the square tiles in which people are counted."""
    step: str = Field("1h", json_schema_extra=DURATION)
    """Length of a time step, such as 15min, 1h."""
    k: int | None = Field(None, ge=2)
    """Smallest number of people of a published tile, without a release; 10 where not given."""
    night_from: int = Field(22, ge=0, le=23)
    """Local hour from which people are expected to stay."""
    night_to: int = Field(6, ge=0, le=23)
    """Local hour from which people are expected to move."""

    @field_validator("step")
    @classmethod
    def _is_length(cls, value: str) -> str:
        step_seconds(value)
        return value


class Positions(NamedTuple):
    """The position of each person (rows) at the end of each time step (columns), in meters; starts of steps, nights and days."""

    x: Floats
    y: Floats
    start: Ints
    night: Mask
    day: Ints


class Accuracy(NamedTuple):
    """The result of one linking: share of right steps of each person, and the mean size of places in square kilometers."""

    right: Floats
    random: Floats
    km2: float
    trajectories: int


def positions_of(scenario: AggregatedTrajectories, params: RecoveryParams) -> Positions:
    """Return where people are at the end of each time step."""
    data, seconds = scenario.data, step_seconds(params.step)
    if len(data) == 0 or seconds is None:
        raise InputError("input", "Expected trajectories and a time step such as 1h. Give them.")
    steps = TimeAxis(seconds, scenario.tz)
    first, last = steps.number_at(np.array([data.t.min(), data.t.max()])).tolist()
    if last - first >= MAX_STEPS:
        raise InputError("input", f"Expected at most {MAX_STEPS:,} time steps. Give a longer step.")
    numbers = np.arange(first, last + 1)
    start, end = steps.starts(numbers), steps.starts(numbers + 1)
    local = steps.clock.to_wall(start)
    hour = local // 3600 % 24
    low, high = params.night_from, params.night_to
    night = (hour >= low) & (hour < high) if low <= high else (hour >= low) | (hour < high)
    person = np.repeat(data.person, np.diff(data.offsets))
    order = np.lexsort((data.t, person))
    who, t = person[order], data.t[order]
    people, begin = np.unique(who, return_index=True)
    span = int(t.max() - t.min()) + 2
    key = np.searchsorted(people, who) * span + t - t.min()
    asked = np.arange(len(people))[:, None] * span + np.clip(end - t.min() - 1, 0, span - 1)[None, :]
    place = np.maximum(np.searchsorted(key, asked, side="right") - 1, begin[:, None])
    x, y = (side[order] for side in data.xy)
    return Positions(x[place], y[place], start, night, local // DAY_S)


def tile_entries(positions: Positions, tile_m: float, smallest: int) -> tuple[Entries, list[tuple[Ints, Ints]], int]:
    """Return the entries of tiles with at least a number of people, the tile of each person in each step, and the tiles."""
    column, row = (np.floor(side / tile_m).astype(np.int64) for side in (positions.x, positions.y))
    tiles, number = np.unique(np.stack([column.ravel(), row.ravel()], axis=1), axis=0, return_inverse=True)
    people, steps = len(positions.x), len(positions.start)
    place = number.reshape(people, steps)
    center = ((tiles + 0.5) * tile_m).astype(np.float64)
    counts = [np.bincount(place[:, step], minlength=len(tiles)) for step in range(steps)]
    listed = [np.repeat(np.arange(len(tiles)), np.where(count >= smallest, count, 0)) for count in counts]
    flat = np.concatenate(listed)
    entries = Entries(np.cumsum([0, *map(len, listed)]), center[flat], center[flat], flat)
    return entries, [(np.arange(people), place[:, step]) for step in range(steps)], len(tiles)


def flow_entries(
    written: WrittenRelease, data: Trajectories, positions: Positions
) -> tuple[Entries, list[tuple[Ints, Ints]], Floats]:
    """Return the published trips as entries, the areas of each person in each step, and square kilometers of the areas."""
    shapes = [f.get("geometry") for f in written.features]
    if any(shape is None for shape in shapes):
        raise InputError(written.folder, "its areas have no outlines. Make the release with zones that have them.")
    outlines = shapely.from_geojson([json.dumps(shape) for shape in shapes])
    projection = data.projection
    centers = shapely.centroid(outlines)
    center = np.stack(projection.to_plane(shapely.get_x(centers), shapely.get_y(centers)), axis=1)
    plane = projection.polygons_to_plane(outlines)
    tree = shapely.STRtree(plane)
    truth = []
    for i in range(len(positions.start)):
        points = shapely.points(positions.x[:, i], positions.y[:, i])
        who, where = tree.query(points, predicate="intersects")
        truth.append((who, where))
    t, index = written.row_steps()
    step = np.searchsorted(positions.start, t[index], side="right") - 1
    origin, destination = (written.area_numbers(f"{end}_area") for end in ("origin", "destination"))
    volume = written.column("volume")
    usable = (step >= 0) & (origin >= 0) & (destination >= 0)
    order = np.flatnonzero(usable)[np.argsort(step[usable], kind="stable")]
    rows = np.repeat(order, volume[order])
    offsets = np.searchsorted(step[rows], np.arange(len(positions.start) + 1))
    entries = Entries(offsets, center[origin[rows]], center[destination[rows]], destination[rows])
    return entries, truth, shapely.area(plane) / 1e6


def recovered_places(entries: Entries, positions: Positions, of_places: int) -> Ints:
    """Return the place of each recovered trajectory at each step."""
    cuts = np.flatnonzero(np.diff(positions.day)) + 1
    bounds = [0, *cuts.tolist(), len(positions.day)]
    if len(cuts) == 0 or int(np.diff(entries.offsets).max()) > MAX_ASSIGNED:
        return link_entries(entries, positions.night)
    days = [link_entries(entries.steps(a, b), positions.night[a:b]) for a, b in pairwise(bounds)]
    return link_days(days, of_places)


def _accuracy(entries: Entries, truth: list[tuple[Ints, Ints]], positions: Positions, km2: Floats) -> Accuracy:
    people = len(positions.x)
    places = recovered_places(entries, positions, len(km2))
    right = match_people(places, truth, people, len(km2))
    rng = np.random.default_rng(0)  # published entries are in no order that the draw could favor
    shuffled = places.copy()
    for step in range(places.shape[1]):
        shuffled[:, step] = rng.permutation(places[:, step])
    present = places[places >= 0]
    size = float(km2[present].mean()) if len(present) else float("nan")
    return Accuracy(right, match_people(shuffled, truth, people, len(km2)), size, len(places))


def run(scenario: AggregatedTrajectories, params: RecoveryParams) -> Exposure:
    """Recover trajectories from the aggregates of the original, and from published ones."""
    positions = positions_of(scenario, params)
    people, k = len(positions.x), scenario.threshold(params)
    tile_km2 = params.tile_m**2 / 1e6
    entries, truth, tiles = tile_entries(positions, params.tile_m, 1)
    found = {"before": _accuracy(entries, truth, positions, np.full(tiles, tile_km2))}
    if scenario.release is None:
        entries, truth, _ = tile_entries(positions, params.tile_m, k)
        found["after"] = _accuracy(entries, truth, positions, np.full(tiles, tile_km2))
    else:
        entries, truth, km2 = flow_entries(scenario.release, scenario.data, positions)
        found["after"] = _accuracy(entries, truth, positions, km2)
    values: dict[str, Any] = {"people": people, "time_steps": len(positions.start)}
    for side, recovered in found.items():
        values[f"accuracy_percent_{side}"] = _percent(recovered.right)
        values[f"accuracy_of_random_links_percent_{side}"] = _percent(recovered.random)
        values[f"people_at_least_80_percent_right_{side}"] = int((recovered.right >= 0.8).sum())
        values[f"recovered_trajectories_{side}"] = recovered.trajectories
        values[f"mean_km2_of_a_place_{side}"] = None if np.isnan(recovered.km2) else round(recovered.km2, 3)
    published = "the release" if scenario.release is not None else f"tiles with at least {k:,} people"
    sentence = (
        f"{counted(people, 'person', 'people')}, {counted(len(positions.start), 'time step')}: from the original counts "
        f"{values['accuracy_percent_before']} % of a person's time steps are recovered (linked at random "
        f"{values['accuracy_of_random_links_percent_before']} %), from {published} {values['accuracy_percent_after']} % "
        f"(at random {values['accuracy_of_random_links_percent_after']} %)."
    )
    return Exposure(ATTACK.name, ATTACK.title, values, None, False, sentence)


def _percent(right: Floats) -> float:
    return round(100 * float(right.mean()), 1) if len(right) else 0.0


ATTACK = Attack(
    "trajectory-recovery", "recovery of trajectories", takes=AggregatedTrajectories, params=RecoveryParams, run=run
)  # fmt: skip
