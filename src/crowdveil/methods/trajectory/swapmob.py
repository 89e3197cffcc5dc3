"""Let trajectories that cross exchange what comes after.

Guarantee
---------
No guarantee of anonymity. OriginalPoints: every place with its time is one of the data, and none is published more
often than it is there. SwappedTrajectories: along every published trajectory the person behind the points changes at
least `min_n_swaps` times; points that several people share at one place and second count for nobody. Ids are new.
What is measured instead of guaranteed is in the manifest: how often two exact points of somebody lead to one
published trajectory, how much of that is the same person's, and how often the published trajectory that runs nearest
to somebody's is the one that ends as it does.

Assumptions
-----------
Between two swaps the points are one person's own, with exact places and times. Whoever knows two of them finds the piece, and
whoever can follow speeds and directions may guess which tail belongs to which head. Where people meet rarely, pieces are long.

Notes
-----
Points are taken in windows of `max_time_s`, in order of time. Pairs of points of different people within `max_distance_m` and
`max_time_s` of one another meet; a pair belongs to the window of its later point, so that none is missed where windows join. In
a window points with the fewest partners draw one of theirs first, at random, and each trajectory meets once. All points up to the
later of the two meeting points stay, and what comes after is exchanged: times never fall.

If both end where they meet, exchanging would only give whole trajectories new names; that is no swap. If one of them ends there,
the path that would end must have been swapped enough already. What was swapped fewer than `min_n_swaps` times is left out, and so
are single points. The document counts in how many swaps a trajectory took part, which is not how many pieces a published one has;
its public implementation published 1 % whole trajectories under other names, and let people swap with themselves.

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

STRETCH = 100_000
"""Points between two tellings of how far it is."""


class SwapMobParams(Params):
    """Parameters of SwapMob."""

    max_distance_m: float = Field(200.0, gt=0, le=100_000)
    """Points that are at most this far apart meet."""
    max_time_s: int = Field(30, ge=1, le=86_400)
    """Points that are at most this long apart meet; also the length of a window."""
    min_n_swaps: int = Field(1, ge=1)
    """Leave out trajectories that were swapped less often."""
    count_trajectories: bool = False
    """Let trajectories of one person meet, as the document does, even where people are known."""


def run(data: Trajectories, params: SwapMobParams, rng: np.random.Generator, progress: Progress) -> TrajectoryRelease:
    """Find out which path each point is on after all exchanges, and leave out paths with too few of them."""
    owner, same = owners(data, params.count_trajectories), equal_points(data)
    path, changes = _paths(data, params, owner, sure_owners(owner[data.trajectory], same), rng, progress)
    good = (changes >= params.min_n_swaps) & (np.bincount(path, minlength=len(data)) > 1)
    release, points = release_of_points(data, np.where(good[path], path, -1))
    return with_linkage(data, release, points, rng, same)


def _paths(
    data: Trajectories, params: SwapMobParams, owner: Ints, sure: Ints, rng: np.random.Generator, progress: Progress
) -> tuple[Ints, Ints]:
    """The path of each point, numbered as the trajectory that it ends with, and how often owners change on each path."""
    from crowdveil.kernels.trajectory.swapmob import exchange_tails, walk_to_the_end

    x, y = data.xy
    grid = SpaceTimeGrid.of(x, y, data.t, params.max_distance_m, params.max_time_s)
    trajectory, m = data.trajectory[grid.order], len(data)
    places = (x[grid.order], y[grid.order], data.t[grid.order], trajectory, owner[trajectory], rng.random(data.points))
    points = (data.t, data.offsets, sure, data.t[data.offsets[1:] - 1])
    met, head, begun = np.full(m, -1), np.arange(m), data.offsets[:-1].copy()
    last, changes, path = np.full(m, -1), np.zeros(m, np.int64), np.zeros(data.points, np.int64)
    for low, high in pairwise(_stops(grid.cell_offsets[grid.slab_offsets])):
        exchange_tails(
            low, high, params.max_distance_m, params.max_time_s, params.min_n_swaps,
            grid.slab, grid.slab_offsets, grid.cell, grid.cell_offsets, grid.columns,
            *places, *points, met, head, begun, last, changes, path,
        )  # fmt: skip
        progress(int(grid.cell_offsets[grid.slab_offsets[high]]), data.points)
    walk_to_the_end(*points, head, begun, last, changes, path)
    ending = np.empty(m, np.int64)
    ending[head] = np.arange(m)
    return ending[path], changes[head]


def _stops(points: Ints) -> list[int]:
    """Slabs to stop at, with some points between them; `points` are the points before each slab."""
    inner = np.searchsorted(points, np.arange(0, points[-1], STRETCH))
    return [int(slab) for slab in np.unique(np.append(inner, len(points) - 1))]


def guarantees(data: Trajectories, params: SwapMobParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    people = data.counts == "people" and not params.count_trajectories
    return (
        OriginalPoints(),
        SwappedTrajectories(swaps=params.min_n_swaps, counts="people" if people else "trajectories"),
    )


METHOD = Method(
    "swapmob",
    takes=Trajectories,
    params=SwapMobParams,
    run=run,
    guarantees=guarantees,
    status="heuristic",
    doc=__doc__ or "",
)
