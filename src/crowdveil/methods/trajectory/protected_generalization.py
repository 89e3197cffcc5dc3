"""Replace positions and times by tiles and intervals, and remove visits until any few of them are shared by k people.

Guarantee
---------
CombinationKAnonymity(k, knowledge): every combination of up to `knowledge` visits, each a place with its time, that occurs
in order in a published trajectory occurs in those of at least k people. With `strategy = centroid` also
LocationsOnTileCenters. Ids are new.

With `time_strategy = keep` times are published to the second, and the guarantee holds for somebody who knows no times finer
than `time_interval_s` (with 0: no times at all). Whoever knows one moment exactly finds the trajectory.

Assumptions
-----------
Owed by the caller: the column of users names people; without it, or with `count_trajectories`, k counts trajectories.
Somebody who knows more visits than `knowledge` may find a trajectory, and one person's trajectories are protected each for
itself.

Notes
-----
Tiles are squares of real meters on the ground, or those given with --zones; levels of time are whole intervals of the clock
(UTC). Squares with fewer than 3k points at a level join the one of their four neighbors that has most points for the
square of the distance. Points that follow one another in one area at one level are one visit; with `time_strategy = same`
it is published as one point, at the middle of the interval, since the number of points would tell visits apart. `avg` is
the mean of all published points of the area at that level, in planar meters around the data, not of degrees as in the document.

Visits that fewer than k people share are removed first, then pairs of them are broken, then combinations of three and four:
what is bad stays bad as visits go, so that of each bad combination some visit has to go, however it is done. In each
trajectory the visit in most bad combinations goes first; then all are counted again, until none is bad. A trajectory
without a good combination goes whole. The document counts combinations of exactly `knowledge`, so that shorter trajectories
are not protected; here these need a crowd too. It publishes exact times by default, and then every point is unique by its
time.

Combinations are counted once for each occurrence, in tables of a block of them at a time. Their number grows with the sum
over trajectories of (visits choose `knowledge`): for trajectories of equal length with the number of trajectories, and for
one trajectory with the power `knowledge` of its visits, those that are left once smaller combinations are broken. More than
four thousand million are refused.

References
----------
MobiDataLab, deliverable on the anonymization module, section 6.3.3.2.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.guarantees import CombinationKAnonymity, Guarantee, LocationsOnTileCenters
from crowdveil.io.geojson import COORDINATE_DECIMALS
from crowdveil.method import Method
from crowdveil.model.arrays import Floats, Indices, Ints, take_slices
from crowdveil.model.globe import rounded
from crowdveil.model.release import Areas, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.swapping import owners
from crowdveil.solve.trajectory.visits import Visits, merged_tiles, shared_by_a_crowd, tiles_of

DAY = 86_400


class ProtectedGeneralizationParams(Params):
    """Parameters of protected generalization."""

    k: int = Field(3, ge=2)
    """Fewest people that share a combination of visits."""
    knowledge: int = Field(2, ge=1, le=4)
    """How many visits of somebody may be known."""
    tile_size_m: float = Field(500.0, gt=0, le=1_000_000)
    """Side of the square tiles; not used where zones are given."""
    time_interval_s: int = Field(3600, ge=0, le=366 * DAY)
    """Length of a level of time; 0 for a single one."""
    strategy: Literal["avg", "centroid"] = "avg"
    """Where a visit is put: at the mean of all published positions of its area and level, or at the center of the area."""
    time_strategy: Literal["same", "keep"] = "same"
    """When a visit is put: at one time for all of a level, or as it was, which protects from nobody who knows the moment."""
    count_trajectories: bool = False
    """Let k count trajectories, as the document does, even where people are known."""


def run(
    data: Trajectories, params: ProtectedGeneralizationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Find the visits that may stay, and publish them."""
    owner = owners(data, params.count_trajectories)
    zones, tile = tiles_of(data, params.tile_size_m)
    level = data.t // params.time_interval_s if params.time_interval_s else np.zeros(data.points, np.int64)
    area = _areas(data, params, zones, tile, level)
    by_owner = np.argsort(owner, kind="stable")
    rows, offsets = take_slices(data.offsets, by_owner)
    trajectory = np.repeat(np.arange(len(data)), np.diff(offsets))
    rows, trajectory = rows[tile[rows] >= 0], trajectory[tile[rows] >= 0]
    visits, visit = Visits.of(area[rows], trajectory, owner[by_owner])
    place = shared_by_a_crowd(visits, params.k, params.knowledge, progress)[visit]
    rows, trajectory, place = (column[place >= 0] for column in (rows, trajectory, place))
    areas, number = _listed(zones, tile[rows], area[rows])
    lon, lat = _positions(data, params, areas, number, area[rows], rows)
    t = data.t[rows] if params.time_strategy == "keep" else _moments(data, params, level[rows])
    if params.time_strategy == "same":
        first = np.flatnonzero(np.diff(place, prepend=-1))
        lon, lat, t, trajectory = lon[first], lat[first], t[first], trajectory[first]
    source, lengths = np.unique(trajectory, return_counts=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return TrajectoryRelease(lon, lat, t, offsets, source=by_owner[source], areas=areas)


def _areas(data: Trajectories, params: ProtectedGeneralizationParams, zones: Zones, tile: Indices, level: Ints) -> Ints:
    """The area of each point at its level: a tile or, of a grid, several."""
    if data.zones is None and data.points:
        return merged_tiles(zones, tile, level, *data.xy, least=3 * params.k)
    _, rank = np.unique(level, return_inverse=True)
    return rank * max(len(zones), 1) + tile


def _listed(zones: Zones, tile: Indices, area: Ints) -> tuple[Areas, Ints]:
    """The areas that are published, those of the same tiles once, and the one of each row."""
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
    """Where each row is put."""
    if params.strategy == "centroid":
        # Rounded as the list of areas is, to the last digit.
        lon, lat = areas.centers(COORDINATE_DECIMALS)
        return lon[number], lat[number]
    of_row = np.unique(area, return_inverse=True)[1]
    count = np.bincount(of_row)
    x, y = (np.bincount(of_row, c[rows]) / count for c in data.xy)
    lon, lat = data.projection.to_globe(x, y)
    return rounded(lon, COORDINATE_DECIMALS)[of_row], np.round(lat, COORDINATE_DECIMALS)[of_row]


def _moments(data: Trajectories, params: ProtectedGeneralizationParams, level: Ints) -> Ints:
    """The time of each level: its middle, or the first midnight of the data where there is a single level."""
    if params.time_interval_s:
        return level * params.time_interval_s + params.time_interval_s // 2
    return np.full(len(level), int(data.t.min()) // DAY * DAY if data.points else 0)


def guarantees(data: Trajectories, params: ProtectedGeneralizationParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    people = data.counts == "people" and not params.count_trajectories
    crowd = CombinationKAnonymity(
        k=params.k,
        knowledge=params.knowledge,
        interval_s=None if params.time_strategy == "same" else params.time_interval_s,
        counts="people" if people else "trajectories",
    )
    return (crowd, LocationsOnTileCenters()) if params.strategy == "centroid" else (crowd,)


METHOD = Method(
    "protected-generalization",
    takes=Trajectories,
    params=ProtectedGeneralizationParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    aliases=("ProtectedGeneralization",),
    parameter_aliases=(
        ("tile_size", "tile_size_m"),
        ("tiles_filename", "zones"),
        ("time_interval", "time_interval_s"),
    ),
    alias_factors=(("time_interval", 60.0),),
)
