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
from crowdveil.guarantees import Guarantee, OriginalPoints, SwappedTrajectories
from crowdveil.kernels.trajectory.structures import GridPoints, MeetingRule, OwnedPoints, PathState
from crowdveil.method import Method
from crowdveil.model.arrays import Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.spacetime import build_grid
from crowdveil.solve.trajectory.swapping import equal_points, owners, release_of_points, sure_owners

BATCH = 100_000
"""Points between two reports of progress."""


class SwapMobParams(Params):
    """Parameters of SwapMob."""

    max_distance_m: float = Field(200.0, gt=0, le=100_000)
    """Largest distance of points that meet."""
    max_time_s: int = Field(30, ge=1, le=86_400)
    """Largest time between points that meet; also the length of a window."""
    min_n_swaps: int = Field(1, ge=1)
    """Leave out trajectories with fewer swaps."""
    count_trajectories: bool = False
    """Let trajectories of one person meet, as MobiDataLab does, even where people are known."""


def run(data: Trajectories, params: SwapMobParams, rng: np.random.Generator, progress: Progress) -> TrajectoryRelease:
    """Find the trajectory of each point after all exchanges, and leave out those with too few."""
    owner, same = owners(data, params.count_trajectories), equal_points(data)
    path, changes = _paths(data, params, owner, sure_owners(owner[data.trajectory], same), rng, progress)
    good = (changes >= params.min_n_swaps) & (np.bincount(path, minlength=len(data)) > 1)
    release, points = release_of_points(data, np.where(good[path], path, -1))
    return with_linkage(data, release, points, rng, same)


def _paths(
    data: Trajectories, params: SwapMobParams, owner: Ints, sure: Ints, rng: np.random.Generator, progress: Progress
) -> tuple[Ints, Ints]:
    """Return the trajectory of each point, numbered by its last part, and the number of changes of owners of each."""
    from crowdveil.kernels.trajectory.swapmob import exchange_tails, finish_paths

    x, y = data.xy
    grid = build_grid(x, y, data.t, params.max_distance_m, params.max_time_s)
    m, order = len(data), grid.order
    trajectory, draw = data.trajectory[order], rng.random(data.points)
    in_grid = GridPoints(x[order], y[order], data.t[order], trajectory, owner[trajectory], draw)
    points = OwnedPoints(data.t, data.offsets, sure, data.t[data.offsets[1:] - 1])
    met, head, begun = np.full(m, -1), np.arange(m), data.offsets[:-1].copy()
    last, changes, path = np.full(m, -1), np.zeros(m, np.int64), np.zeros(data.points, np.int64)
    state = PathState(met, head, begun, last, changes, path)
    rule = MeetingRule(params.max_distance_m, params.max_time_s, params.min_n_swaps)
    for low, high in pairwise(_stops(grid.cell_offsets[grid.slab_offsets])):
        exchange_tails(low, high, rule, grid, in_grid, points, state)
        progress(int(grid.cell_offsets[grid.slab_offsets[high]]), data.points)
    finish_paths(points, state)
    ending = np.empty(m, np.int64)
    ending[head] = np.arange(m)
    return ending[path], changes[head]


def _stops(points: Ints) -> list[int]:
    """Return slabs to stop at, with some points between them; `points` are the points before each slab."""
    inner = np.searchsorted(points, np.arange(0, points[-1], BATCH))
    return [int(slab) for slab in np.unique(np.append(inner, len(points) - 1))]


def guarantees(data: Trajectories, params: SwapMobParams) -> tuple[Guarantee, ...]:
    """Return that points are original, and trajectories swapped."""
    k_unit = "trajectories" if params.count_trajectories else data.k_unit
    return (OriginalPoints(), SwappedTrajectories(swaps=params.min_n_swaps, k_unit=k_unit))


METHOD = Method(
    "swapmob",
    takes=Trajectories,
    params=SwapMobParams,
    run=run,
    guarantees=guarantees,
    status="heuristic",
)
