"""Let trajectories that cross exchange their remaining parts.

Guarantee
---------
No guarantee of anonymity. OriginalPoints: every location with its time is one of the data, and none is published more often than
it is there. SwappedTrajectories: along every published trajectory the person of the points changes at least `min_n_swaps` times;
points that several people share at one location and second do not count. Ids are new. Measured instead of guaranteed, in the
manifest: how often two exact points of a person match one published trajectory, how much of that is the same person's, and how
often the nearest published trajectory is the one that ends as theirs does.

Assumptions
-----------
Between two swaps the points are one person's own, with exact locations and times. Two known points re-identify that part, and
speeds and directions may reveal which parts belong together. Where people meet rarely, parts are long.

Notes
-----
Points are taken in windows of `max_time_s`, in order of time. Pairs of points of different people within `max_distance_m` and
`max_time_s` of one another meet; a pair belongs to the window of its later point, so that none is missed where windows join. In
a window points with the fewest partners draw one of theirs first, at random, and each trajectory meets once. All points up to
the later of the two meeting points stay, and the rest is exchanged: times never fall.

If both end where they meet, an exchange would only rename whole trajectories; that is no swap. If one of them ends there, the
trajectory that would end must have been swapped enough already. Trajectories with fewer than `min_n_swaps` swaps are left out,
and so are single points. MobiDataLab counts the swaps in which a trajectory took part, which is not the number of parts of a
published one; its public implementation published 1 % whole trajectories under other names, and let people swap with
themselves.

Time grows with the number of points and of pairs that meet, memory with the number of points.

References
----------
J. Salas, D. Megías, V. Torra: SwapMob: Swapping Trajectories for Mobility Anonymization. PSD 2018. MobiDataLab, deliverable on
the anonymization module, section 6.3.3.6.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from pydantic import Field

from crowdveil.attacks.known_points import with_linkage
from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, OriginalPoints, SwappedTrajectories
from crowdveil.kernels.trajectory.structures import GridPoints, MeetingRule, OwnedPoints, PathState
from crowdveil.kernels.trajectory.swapmob import exchange_tails, finish_paths
from crowdveil.methods.base import Facts, Method
from crowdveil.model.arrays import Floats, Indices, Ints, gather, index_type
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.swapping import (
    build_grid,
    equal_points,
    owners,
    point_owners,
    release_of_points,
    sure_owners,
)

BATCH = 100_000
"""Points between two reports of progress."""


class SwapMobParams(Params):
    """Parameters of SwapMob."""

    max_distance_m: float = Field(200.0, gt=0, le=100_000)
    """Largest distance of points that meet."""
    max_time_s: int = Field(30, ge=1, le=86_400)
    """Largest time between points that meet; also the length of a window."""
    min_n_swaps: int = Field(1, ge=1, title="Fewest swaps")
    """Leave out trajectories with fewer swaps."""
    count_trajectories: bool = False
    """Let trajectories of one person meet, as MobiDataLab does, even where people are known."""


def run(data: Trajectories, params: SwapMobParams, rng: np.random.Generator, progress: Progress) -> TrajectoryRelease:
    """Find the trajectory of each point after all exchanges, and leave out those with too few."""
    owner, same = owners(data, params.count_trajectories), equal_points(data)
    path, changes = _paths(data, params, owner, sure_owners(point_owners(data, owner), same), rng, progress)
    good = (changes >= params.min_n_swaps) & (_lengths(path, len(data)) > 1)
    path[~gather(good, path)] = -1
    release, points = release_of_points(data, path)
    del path
    return with_linkage(data, release, points, rng, same)


def _lengths(path: Indices | Ints, paths: int) -> Ints:
    """Return the number of points of each path, without a copy of all numbers in 64 bits."""
    lengths, chunk = np.zeros(paths, np.int64), max(BATCH, paths)
    for low in range(0, len(path), chunk):
        lengths += np.bincount(path[low : low + chunk], minlength=paths)
    return lengths


def _paths(
    data: Trajectories, params: SwapMobParams, owner: Ints, sure: Indices | Ints, rng: np.random.Generator,
    progress: Progress,
) -> tuple[Indices | Ints, Ints]:  # fmt: skip
    """Return the trajectory of each point, numbered by its last part, and the number of changes of owners of each."""
    grid = build_grid(*data.xy, data.t, params.max_distance_m, params.max_time_s)
    m, before = len(data), grid.cell_offsets[grid.slab_offsets]
    trajectory = point_owners(data, np.arange(m))
    points = OwnedPoints(data.t, data.offsets, sure, data.t[data.offsets[1:] - 1])
    met, head, begun = np.full(m, -1), np.arange(m), data.offsets[:-1].copy()
    last, changes, path = np.full(m, -1), np.zeros(m, np.int64), np.zeros(data.points, index_type(m))
    state = PathState(met, head, begun, last, changes, path)
    rule = MeetingRule(params.max_distance_m, params.max_time_s, params.min_n_swaps)
    for low, high in pairwise(_stops(before)):
        # Points of these slabs meet one another, and those of the slab before.
        base, begin, end = (int(before[slab]) for slab in (max(low - 1, 0), low, high))
        rows, draw = grid.order[base:end], np.append(np.zeros(begin - base), rng.random(end - begin))
        in_grid = _in_grid(data, owner, gather(trajectory, rows).astype(np.int64), rows, draw)
        exchange_tails(low, high, base, rule, grid, in_grid, points, state)
        progress(end, data.points)
    finish_paths(points, state)
    ending = np.empty(m, path.dtype)
    ending[head] = np.arange(m)
    return gather(ending, path), changes[head]


def _in_grid(data: Trajectories, owner: Ints, trajectory: Ints, rows: Indices | Ints, draw: Floats) -> GridPoints:
    """Return some points in the order of the grid: never all, which would take twice the memory of the data."""
    x, y = data.xy
    return GridPoints(gather(x, rows), gather(y, rows), gather(data.t, rows), trajectory, owner[trajectory], draw)


def _stops(points: Ints) -> list[int]:
    """Return slabs to stop at, with some points between them; `points` are the points before each slab."""
    inner = np.searchsorted(points, np.arange(0, points[-1], BATCH))
    return [int(slab) for slab in np.unique(np.append(inner, len(points) - 1))]


def guarantees(params: SwapMobParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return that points are original, and trajectories swapped."""
    k_unit = "trajectories" if params.count_trajectories else facts.k_unit
    return (OriginalPoints(), SwappedTrajectories(swaps=params.min_n_swaps, k_unit=k_unit))


METHOD = Method(
    "swapmob",
    takes=Trajectories,
    params=SwapMobParams,
    run=run,
    guarantees=guarantees,
    status="heuristic",
)
