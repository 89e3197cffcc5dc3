"""Swap locations that are near in space and time, in clusters of at least k people.

Guarantee
---------
No guarantee of anonymity. OriginalPoints: every location with its time is one of the data, and none is published more often
than it is there. NoOwnPoints: no point of a published trajectory is of the person whose trajectory it replaces.
SharedTilePairs: every step from one square of `tile_size_m` to the next one is made by the trajectories of at least
`min_pair_people` people (k if not given). Ids are new. Measured instead of guaranteed, in the manifest: how often two exact
points of a person match one published trajectory, how much of that is the same person's, and how often the nearest published
trajectory is the one that replaces theirs.

Assumptions
-----------
A published trajectory runs near the one that it replaces, point by point within twice the largest radii: many known points of a
person may re-identify it by its shape, although none of its points is true; a third of San Francisco's cabs in a day can be
re-identified in this way at k = 10. Exact locations and times stay, so a visit of some person is visible. A trajectory inside one
square makes no step, and has no guarantee.

Notes
-----
A location is drawn at random. Around it the time radius grows from `min_time_s` to `max_time_s` in steps of half the range, and
for each the space radius likewise, until locations of k people are inside; of each person the one nearest in time takes part.
All of them are put in a random circle, and each gives its location to the next. MobiDataLab permutes at random, which leaves a
quarter of the locations with their owners at k = 3; a circle leaves none. A location without k people around it is removed.

Steps between squares that fewer than `min_pair_people` people make are broken by removing the points in one of the two squares,
and counted again until none is left. MobiDataLab does one pass, and breaks pairs that occur less often than a fixed number.

With `count_trajectories` clusters and steps count trajectories, as in MobiDataLab, even where people are known.

Time and memory grow with the number of locations, and with the number within the largest radii of one.

References
----------
J. Domingo-Ferrer, R. Trujillo-Rasua: Microaggregation- and permutation-based anonymization of movement data. Information
Sciences 208, 2012 (ReachLocations). MobiDataLab, deliverable on the anonymization module, section 6.3.3.5.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from crowdveil.attacks.known_points import with_linkage
from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, NoOwnPoints, OriginalPoints, SharedTilePairs
from crowdveil.kernels.trajectory.structures import CellSlots, GridPoints, SwapBuffers, SwapRadii
from crowdveil.kernels.trajectory.swap_locations import swap_locations
from crowdveil.methods.base import Facts, Method
from crowdveil.model.arrays import Ints, row_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.swapping import build_grid, owners, release_of_points, remove_rare_steps

BATCH = 20_000
"""Locations between two reports of progress."""


class SwapLocationsParams(Params):
    """Parameters of swapping locations."""

    k: int = Field(3, ge=2, title="Smallest group (k)")
    """Smallest number of people of a cluster in which locations are swapped."""
    min_radius_m: float = Field(100.0, gt=0, le=100_000)
    """Radius of a cluster in space, at first."""
    max_radius_m: float = Field(500.0, gt=0, le=100_000)
    """Radius of a cluster in space, at most."""
    min_time_s: int = Field(60, ge=1, le=86_400)
    """Radius of a cluster in time, at first."""
    max_time_s: int = Field(120, ge=1, le=86_400)
    """Radius of a cluster in time, at most."""
    tile_size_m: float = Field(1000.0, gt=0, le=1_000_000)
    """Side of the squares between which steps are counted."""
    min_pair_people: int | None = Field(None, ge=1)
    """Smallest number of people that make a step from square to square; k if not given, and 1 leaves all steps."""
    count_trajectories: bool = False
    """Count trajectories, as MobiDataLab does, even where people are known."""

    @model_validator(mode="after")
    def _radii_in_order(self) -> SwapLocationsParams:
        if self.min_radius_m > self.max_radius_m:
            raise ValueError("min_radius_m to be at most max_radius_m")
        if self.min_time_s > self.max_time_s:
            raise ValueError("min_time_s to be at most max_time_s")
        return self

    @property
    def min_people(self) -> int:
        """Return the smallest number of people that make a step."""
        return self.k if self.min_pair_people is None else self.min_pair_people


def run(
    data: Trajectories, params: SwapLocationsParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Swap locations in clusters, then break rare steps."""
    owner = owners(data, params.count_trajectories)
    new_trajectory = _swapped(data, params, owner, rng, progress)
    new_trajectory = remove_rare_steps(data, new_trajectory, owner, params.min_people, params.tile_size_m)
    release, points = release_of_points(data, new_trajectory)
    return with_linkage(data, release, points, rng)


def _swapped(
    data: Trajectories, params: SwapLocationsParams, owner: Ints, rng: np.random.Generator, progress: Progress
) -> Ints:
    """Return the new trajectory of each location, -1 where fewer than k people are around it."""
    x, y = data.xy
    grid = build_grid(x, y, data.t, params.max_radius_m, params.max_time_s)
    n, order = data.points, grid.order
    trajectory, cell_of, draw = data.trajectory[order], row_slices(grid.cell_offsets), rng.random(n)
    points = GridPoints(x[order], y[order], data.t[order], trajectory, owner[trajectory], draw)
    slab_of, seed, new_trajectory = row_slices(grid.slab_offsets)[cell_of], rng.permutation(n), np.full(n, -1)
    slots = CellSlots(cell_of, grid.cell_offsets[1:].copy(), np.arange(n), np.arange(n))
    people = int(owner.max(initial=-1)) + 1
    buffers = SwapBuffers(
        np.full(people, -1), np.zeros(people, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    )
    radii = SwapRadii(params.min_radius_m, params.max_radius_m, float(params.min_time_s), float(params.max_time_s))
    for low in range(0, n, BATCH):
        high = min(low + BATCH, n)
        swap_locations(low, high, params.k, radii, grid, slab_of, points, seed, slots, buffers, new_trajectory)
        progress(high, n)
    by_point = np.empty(n, np.int64)
    by_point[grid.order] = new_trajectory
    return by_point


def guarantees(params: SwapLocationsParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return that points are original and swapped, and steps are shared."""
    k_unit = "trajectories" if params.count_trajectories else facts.k_unit
    pairs = SharedTilePairs(
        min_group_size=params.min_people,
        tile_size_m=params.tile_size_m,
        lon0=facts.center[0],
        lat0=facts.center[1],
        k_unit=k_unit,
    )
    return (OriginalPoints(), NoOwnPoints(k_unit=k_unit), pairs)


METHOD = Method(
    "swap-locations",
    takes=Trajectories,
    params=SwapLocationsParams,
    run=run,
    guarantees=guarantees,
    status="heuristic",
)
