"""Group near trajectories of at least k people, and swap locations inside each group.

Guarantee
---------
No guarantee of anonymity. OriginalPoints: every location with its time is one of the data, and none is published more often
than it is there. With `permutation = circle` also NoOwnPoints: no point of a published trajectory is of the person whose
trajectory it replaces. Ids are new. Measured instead of guaranteed, in the manifest: how often two exact points of a person
match one published trajectory, how much of that is the same person's, and how often the nearest published trajectory is the one
that replaces theirs.

Assumptions
-----------
Each published point is of one of k people, all equally likely. Whole trajectories are not k-anonymous: points stay exact, so
that a visit of some person is visible; a group has few people, so a large part of a published trajectory is of each of
them, and two known points of a person often match one; and the shape may reveal which parts belong together.

Notes
-----
Groups are those of `microaggregation` with the distance over contemporaries (`distance = graph`): trajectories without a chain
of contemporaries between them are not in one group, and components with fewer than k people are left out.

Inside a group trajectories are taken in random order, and the remaining locations of each in random order too. A location forms
a set with the nearest remaining location of each of the k - 1 nearest other people in the group, all within `space_threshold_m`
and `time_threshold_s` of it. Nearest is by meters, then by seconds. Where there is no such set the location is removed. The
paper draws one trajectory, takes one location of every other one, and drops the rest; where a group is k trajectories of k
people both are the same, and where it has more people more locations stay. The paper minimizes the distance inside the set,
where here it is that to the first location.

A set is permuted at random, locations with their times, and all permutations are equally likely, as in the paper: one in k
stays with its owner. With `permutation = circle` all of a set are put in a random circle and each gives its location to the
next, which leaves none, as `swap-locations` does. It is not the default here, since all sets of a group are of the same people:
a published trajectory then consists of k - 1 people instead of k, and with k = 2 it would be the other's whole trajectory,
which is rejected.

Each trajectory gets as many points as it gives, and one without a point is left out. A group of k keeps k times the points of
its shortest trajectory, so much longer trajectories lose most points. Without thresholds, as in the comparison of the
second reference, points of one published trajectory may be far apart at near times.

With `count_trajectories` groups and sets count trajectories, as the paper does, even where people are known. The full paper was
not available: statements about it are from its abstract, a summary by others, and its authors' public code.

References
----------
J. Domingo-Ferrer, R. Trujillo-Rasua: Microaggregation- and permutation-based anonymization of movement data. Information
Sciences 208, 2012 (SwapLocations). C. Ferreira Torres, R. Trujillo-Rasua: The Fréchet/Manhattan distance and the trajectory
anonymization problem. DBSec 2016, sections 2 and 5.2.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from crowdveil.attacks.known_points import with_linkage
from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, NoOwnPoints, OriginalPoints
from crowdveil.methods.base import Facts, Method
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.distances import Contemporaries, Paths
from crowdveil.solve.trajectory.mdav import Grouping
from crowdveil.solve.trajectory.swapping import owners, release_of_points


class SwapLocations2012Params(Params):
    """Parameters of swapping locations inside groups."""

    k: int = Field(3, ge=2, title="Smallest group (k)")
    """Smallest number of people of a group, and number of people of each set of swapped locations."""
    time_threshold_s: int | None = Field(None, ge=0)
    """Largest time between the first and another location of a set; any if not given."""
    space_threshold_m: float | None = Field(None, ge=0)
    """Largest distance between the first and another location of a set; any if not given."""
    permutation: Literal["any", "circle"] = "any"
    """Permutation of a set: any, all equally likely, or a circle, so that no location stays with its owner."""
    count_trajectories: bool = False
    """Count trajectories, as the paper does, even where people are known."""

    @model_validator(mode="after")
    def _check_k_of_circle(self) -> SwapLocations2012Params:
        if self.permutation == "circle" and self.k == 2:
            raise ValueError(
                "k of at least 3 with permutation = circle, since two people would exchange whole trajectories"
            )
        return self


def run(
    data: Trajectories, params: SwapLocations2012Params, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Make the groups, then swap locations in each."""
    owner = owners(data, params.count_trajectories)
    distance = Contemporaries(Paths.of(data))
    group = Grouping(distance, owner, params.k).groups(distance.components(), progress)
    release, points = release_of_points(data, _swapped(data, params, owner, group, rng))
    return with_linkage(data, release, points, rng)


def _swapped(
    data: Trajectories, params: SwapLocations2012Params, owner: Ints, group: Ints, rng: np.random.Generator
) -> Ints:
    """Return the new trajectory of each location, -1 where it has none; `group` is that of each trajectory."""
    trajectory = data.trajectory
    order, turn, draw = rng.permutation(len(data)), rng.permutation(data.points), rng.random(data.points)
    new_trajectory, left = np.full(data.points, -1), group[trajectory] >= 0
    points = _Points(*data.xy, data.t, trajectory, owner[trajectory])
    seeds = np.lexsort((turn, order[trajectory], group[trajectory]))
    for here in np.split(seeds, np.flatnonzero(np.diff(group[trajectory[seeds]])) + 1):
        for seed in here.tolist():
            if not left[seed]:
                continue
            chosen = _nearest_set(points, seed, here[left[here]], params)
            left[chosen] = False
            if len(chosen) < params.k:
                continue
            drawn = chosen[np.argsort(draw[chosen])]
            if params.permutation == "circle":
                new_trajectory[drawn] = trajectory[np.roll(drawn, -1)]
            else:
                new_trajectory[chosen] = trajectory[drawn]
    return new_trajectory


class _Points(NamedTuple):
    """All locations, with the trajectory and the owner of each."""

    x: Floats
    y: Floats
    t: Ints
    trajectory: Ints
    owner: Ints


def _nearest_set(points: _Points, seed: int, among: Ints, params: SwapLocations2012Params) -> Ints:
    """Return a location and the nearest ones of k - 1 other owners: in space, then in time; or itself alone."""
    others = among[points.owner[among] != points.owner[seed]]
    square = (points.x[others] - points.x[seed]) ** 2 + (points.y[others] - points.y[seed]) ** 2
    late = np.abs(points.t[others] - points.t[seed])
    within_m, within_s = _or_any(params.space_threshold_m), _or_any(params.time_threshold_s)
    near = np.flatnonzero((square <= within_m * within_m) & (late <= within_s))
    nearest = others[near[np.lexsort((others[near], late[near], square[near]))]]
    first = np.sort(np.unique(points.owner[nearest], return_index=True)[1])[: params.k - 1]
    return np.append(seed, nearest[first]) if len(first) == params.k - 1 else np.array([seed])


def _or_any(threshold: float | None) -> float:
    return np.inf if threshold is None else float(threshold)


def guarantees(params: SwapLocations2012Params, facts: Facts) -> tuple[Guarantee, ...]:
    """Return that points are original, and swapped with `permutation = circle`."""
    if params.permutation == "any":
        return (OriginalPoints(),)
    return (OriginalPoints(), NoOwnPoints(k_unit="trajectories" if params.count_trajectories else facts.k_unit))


METHOD = Method(
    "swap-locations-2012",
    takes=Trajectories,
    params=SwapLocations2012Params,
    run=run,
    guarantees=guarantees,
    status="heuristic",
)
