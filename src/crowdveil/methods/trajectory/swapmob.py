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
from crowdveil.method import Method
from crowdveil.model.arrays import Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.spacetime import SpaceTimeGrid
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
    from crowdveil.kernels.trajectory.swapmob import exchange_tails, walk_to_the_end

    x, y = data.xy
    grid = SpaceTimeGrid.of(x, y, data.t, params.max_distance_m, params.max_time_s)
    trajectory, m = data.trajectory[grid.order], len(data)
    located = (x[grid.order], y[grid.order], data.t[grid.order], trajectory, owner[trajectory], rng.random(data.points))
    points = (data.t, data.offsets, sure, data.t[data.offsets[1:] - 1])
    met, head, begun = np.full(m, -1), np.arange(m), data.offsets[:-1].copy()
    last, changes, path = np.full(m, -1), np.zeros(m, np.int64), np.zeros(data.points, np.int64)
    for low, high in pairwise(_stops(grid.cell_offsets[grid.slab_offsets])):
        exchange_tails(
            low, high, params.max_distance_m, params.max_time_s, params.min_n_swaps,
            grid.slab, grid.slab_offsets, grid.cell, grid.cell_offsets, grid.columns,
            *located, *points, met, head, begun, last, changes, path,
        )  # fmt: skip
        progress(int(grid.cell_offsets[grid.slab_offsets[high]]), data.points)
    walk_to_the_end(*points, head, begun, last, changes, path)
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
    aliases=("SwapMob",),
    parameter_aliases=(
        ("spatial_thold", "max_distance_m"),
        ("temporal_thold", "max_time_s"),
        ("min_n_swap", "min_n_swaps"),
    ),
    alias_factors=(("spatial_thold", 1000.0),),
)
