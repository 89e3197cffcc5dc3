"""Replace every position by the center of its tile.

Guarantee
---------
No guarantee of anonymity. LocationsOnTileCenters: no exact position is published; each is the center of a tile. Ids are
new, and trajectories of one person are not linked unless requested.

Assumptions
-----------
A sequence of tiles with its times may be unique: background knowledge of a few locations and times re-identifies the rest. Use a
method that guarantees k for published data.

Notes
-----
Squares are of real meters on the ground, in an equal-area projection around a public box, whose sides show no exact position; a
position on a border belongs to the tile north or east of it. With a file of tiles, positions outside all tiles are left out,
and so are trajectories without any position left; the run reports their number. Only tiles that are used are in the list of
areas.

References
----------
MobiDataLab, deliverable on the anonymization module, section 6.3.3.1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, LocationsOnTileCenters
from crowdveil.io.geojson import COORDINATE_DECIMALS
from crowdveil.methods.base import Facts, Method
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.visits import tiles_of


class SimpleGeneralizationParams(Params):
    """Parameters of simple generalization."""

    tile_size_m: float = Field(500.0, gt=0, le=1_000_000)
    """Side of the square tiles; not used where zones are given."""
    overlapping_strategy: Literal["all", "one"] = "all"
    """Consecutive positions of a trajectory in one tile: keep all, or one with their mean time."""
    link_users: bool = False
    """Publish a new key for each person, which links the trajectories of one person."""


def run(
    data: Trajectories, params: SimpleGeneralizationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Move each point to the center of its tile."""
    zones, tile = tiles_of(data, params.tile_size_m)
    inside = tile >= 0
    tile, t, trajectory = tile[inside], data.t[inside], data.trajectory[inside]
    if params.overlapping_strategy == "one":
        tile, t, trajectory = _one_a_visit(tile, t, trajectory)
    source, lengths = np.unique(trajectory, return_counts=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    used, area = np.unique(tile, return_inverse=True)
    areas = Areas.of_tiles(zones, used.astype(np.int32))
    lon, lat = (c[area] for c in areas.centers(COORDINATE_DECIMALS))
    progress(len(data), len(data))
    return TrajectoryRelease(
        lon,
        lat,
        t,
        offsets,
        person=data.person[source] if params.link_users and data.k_unit == "people" else None,
        source=source,
        areas=areas,
    )


def _one_a_visit(tile: Indices, t: Ints, trajectory: Ints) -> tuple[Indices, Ints, Ints]:
    """Return one point for each run of points in one tile, at their mean time in whole seconds."""
    if len(tile) == 0:
        return tile, t, trajectory
    first = np.flatnonzero(np.concatenate([[True], (np.diff(tile) != 0) | (np.diff(trajectory) != 0)]))
    length = np.diff(np.append(first, len(tile)))
    # The mean is of the time since the first point of the run, so that no sum can overflow.
    since = np.add.reduceat(t - np.repeat(t[first], length), first)
    return tile[first], t[first] + since // length, trajectory[first]


def partitioning(params: SimpleGeneralizationParams) -> str | None:
    """Return why trajectories cannot be partitioned, as it follows "since"; None if they can."""
    return "a person has one key in all trajectories: leave out link_users" if params.link_users else None


def guarantees(params: SimpleGeneralizationParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return that positions are tile centers."""
    return (LocationsOnTileCenters(),)


METHOD = Method(
    "simple-generalization",
    takes=Trajectories,
    params=SimpleGeneralizationParams,
    run=run,
    guarantees=guarantees,
    status="heuristic",
    partitioning=partitioning,
)
