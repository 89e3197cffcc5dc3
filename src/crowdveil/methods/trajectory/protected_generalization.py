"""Replace positions and times by tiles and intervals, and remove visits until any few of them are shared by k people.

Guarantee
---------
CombinationKAnonymity(k, knowledge): every combination of up to `knowledge` visits, each a location with its time, that occurs
in order in a published trajectory occurs in those of at least k people. With `strategy = centroid` also
LocationsOnTileCenters. Ids are new.

With `time_strategy = keep` times are published to the second, and the guarantee holds against an adversary who knows no times
finer than `time_interval_s` (with 0: no times at all). One exactly known moment re-identifies the trajectory.

Assumptions
-----------
The column of users names people; without it, or with `count_trajectories`, k counts trajectories. An adversary who knows more
visits than `knowledge` may re-identify a trajectory, and each trajectory of a person is protected on its own.

Notes
-----
Tiles are squares of real meters on the ground, in a grid over a public box that shows no exact position, or those given with
--zones; levels of time are whole intervals of the clock (UTC). Squares with fewer than 3k points at a level join the one of
their four neighbors that has most points; MobiDataLab divides them by the square of the distance between mean positions, which
would show where removed points were. Consecutive points in one area at one level are one visit; with `time_strategy = same` it
is published as one point, at the middle of the interval, since the number of points would distinguish visits. `avg` is the mean
over people of their published points of the area at that level, in planar meters, not of degrees as in MobiDataLab.

Visits that fewer than k people share are removed first, then pairs of them are broken, then combinations of three and four: a
rare combination stays rare as visits are removed, so that one of its visits must be removed in any case. In each trajectory the
visit in most rare combinations is removed first; then all are counted again, until none is rare. A trajectory without a
frequent combination is removed whole. MobiDataLab counts combinations of exactly `knowledge`, so that shorter trajectories are
not protected; here these need k people too. It publishes exact times by default, and then every point is unique by its time.

Combinations are counted once for each occurrence, in tables of a block of them at a time. Their number grows with the sum over
trajectories of (visits choose `knowledge`): for trajectories of equal length with the number of trajectories, and for one
trajectory with the power `knowledge` of its visits, those left once smaller combinations are broken. More than four billion are
rejected.

References
----------
MobiDataLab, deliverable on the anonymization module, section 6.3.3.2.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.guarantees import CombinationKAnonymity, Guarantee, LocationsOnTileCenters
from crowdveil.io.geojson import COORDINATE_DECIMALS
from crowdveil.methods.base import Facts, Method
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Indices, Ints, take_slices
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.time_axis import DAY_S
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.solve.trajectory.swapping import owners
from crowdveil.solve.trajectory.visits import Visits, merged_tiles, remove_rare_visits, tiles_of


class ProtectedGeneralizationParams(Params):
    """Parameters of protected generalization."""

    k: int = Field(3, ge=2, title="Smallest group (k)")
    """Smallest number of people that share a combination of visits."""
    knowledge: int = Field(2, ge=1, le=4)
    """Number of visits in the adversary's background knowledge."""
    tile_size_m: float = Field(500.0, gt=0, le=1_000_000)
    """Side of the square tiles; not used where zones are given."""
    time_interval_s: int = Field(3600, ge=0, le=366 * DAY_S)
    """Length of a level of time; 0 for a single one."""
    strategy: Literal["avg", "centroid"] = "avg"
    """Position of a visit: the mean over people of published positions of its area and level, or the center of the area."""
    time_strategy: Literal["same", "keep"] = "same"
    """Time of a visit: one for all of a level, or its own, which gives no protection against a known moment."""
    count_trajectories: bool = False
    """Let k count trajectories, as MobiDataLab does, even where people are known."""


def run(
    data: Trajectories, params: ProtectedGeneralizationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Find the visits to keep, and publish them."""
    owner = owners(data, params.count_trajectories)
    zones, tile = tiles_of(data, params.tile_size_m)
    level = data.t // params.time_interval_s if params.time_interval_s else np.zeros(data.points, np.int64)
    area = _areas(data, params, zones, tile, level)
    by_owner = np.argsort(owner, kind="stable")
    rows, offsets = take_slices(data.offsets, by_owner)
    trajectory = np.repeat(np.arange(len(data)), np.diff(offsets))
    rows, trajectory = rows[tile[rows] >= 0], trajectory[tile[rows] >= 0]
    visits, visit = Visits.of(area[rows], trajectory, owner[by_owner])
    kept = remove_rare_visits(visits, params.k, params.knowledge, progress)[visit]
    rows, trajectory, kept = (column[kept >= 0] for column in (rows, trajectory, kept))
    areas, number = _listed(zones, tile[rows], area[rows])
    lon, lat = _positions(data, params, areas, number, area[rows], rows)
    t = data.t[rows] if params.time_strategy == "keep" else _moments(data, params, level[rows])
    if params.time_strategy == "same":
        first = np.flatnonzero(np.diff(kept, prepend=-1))
        lon, lat, t, trajectory = lon[first], lat[first], t[first], trajectory[first]
    source, lengths = np.unique(trajectory, return_counts=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return TrajectoryRelease(lon, lat, t, offsets, source=by_owner[source], areas=areas)


def _areas(data: Trajectories, params: ProtectedGeneralizationParams, zones: Zones, tile: Indices, level: Ints) -> Ints:
    """Return the area of each point at its level: a tile or, of a grid, several."""
    if data.zones is None and data.points:
        return merged_tiles(zones, tile, level, least=3 * params.k)
    _, rank = np.unique(level, return_inverse=True)
    return rank * max(len(zones), 1) + tile


def _listed(zones: Zones, tile: Indices, area: Ints) -> tuple[Areas, Ints]:
    """Return the published areas, those of the same tiles once, and the area of each row."""
    of_row = np.unique(area, return_inverse=True)[1]
    tiles: list[Indices] = [np.zeros(0, np.int32)] * (int(of_row.max(initial=-1)) + 1)
    pairs = np.unique(np.column_stack([of_row, tile]), axis=0)
    for of_area in np.split(pairs, np.flatnonzero(np.diff(pairs[:, 0])) + 1) if len(pairs) else []:
        tiles[of_area[0, 0]] = of_area[:, 1].astype(np.int32)
    seen: dict[bytes, int] = {}
    number = np.array([seen.setdefault(t.tobytes(), len(seen)) for t in tiles], np.int64)
    different = [np.frombuffer(key, np.int32) for key in seen]
    return Areas.of_tiles(zones, np.zeros(0, np.int32)).and_more(different, "area"), number[of_row]


def _positions(
    data: Trajectories, params: ProtectedGeneralizationParams, areas: Areas, number: Ints, area: Ints, rows: Ints
) -> tuple[Floats, Floats]:
    """Return the position of each row."""
    if params.strategy == "centroid":
        # Rounded like the list of areas, to the last digit.
        lon, lat = areas.centers(COORDINATE_DECIMALS)
        return lon[number], lat[number]
    of_row = np.unique(area, return_inverse=True)[1]
    # The mean over people, each the mean of their points.
    pair = of_row * max(data.people, 1) + np.repeat(data.person, np.diff(data.offsets))[rows]
    _, whose, count = np.unique(pair, return_inverse=True, return_counts=True)
    weight = 1 / count[whose]
    people = np.bincount(of_row, weight)
    x, y = (np.bincount(of_row, c[rows] * weight) / people for c in data.xy)
    lon, lat = data.projection.to_globe(x, y)
    return rounded(lon, COORDINATE_DECIMALS)[of_row], np.round(lat, COORDINATE_DECIMALS)[of_row]


def _moments(data: Trajectories, params: ProtectedGeneralizationParams, level: Ints) -> Ints:
    """Return the time of each level: its middle, or the midnight before the data where there is a single level."""
    if params.time_interval_s:
        return level * params.time_interval_s + params.time_interval_s // 2
    return np.full(len(level), data.start)


def guarantees(params: ProtectedGeneralizationParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity of combinations, and tile centers with `strategy = centroid`."""
    anonymity = CombinationKAnonymity(
        k=params.k,
        knowledge=params.knowledge,
        interval_s=None if params.time_strategy == "same" else params.time_interval_s,
        k_unit="trajectories" if params.count_trajectories else facts.k_unit,
    )
    return (anonymity, LocationsOnTileCenters()) if params.strategy == "centroid" else (anonymity,)


METHOD = Method(
    "protected-generalization",
    takes=Trajectories,
    params=ProtectedGeneralizationParams,
    run=run,
    guarantees=guarantees,
    status="proven",
)
