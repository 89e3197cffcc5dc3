"""Put near trajectories into groups of at least k people, and publish one trajectory for all of a group.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is equal, point for point and second for second, to those of at least k − 1
other people. Ids are new.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a group
may be one person's.

Notes
-----
Groups are made by MDAV: the farthest trajectory from the center and the farthest one from that each gather whoever is nearest,
until k people are together, and so on with what is left. A person with several trajectories counts once in a group. A group takes
k people and no more, so that the rest, which is the last group, has k to 2k − 1. It is exact: no trajectory is passed over unless
a bound says that it cannot be the farthest or among the nearest ones.

With `distance = graph` trajectories that no chain of contemporaries leads to are not in one group; parts with fewer than k people
are left out, and their number is told. `closest-trajectory` publishes one person's own trajectory for the whole group.

Means are taken in planar meters around the data, and are right across the date line; the document takes them of degrees, which
differs by little elsewhere and puts points near longitude 0 there. Positions within 1° of a pole are refused.

The document counts trajectories, so that a group may be one person's, and its public implementation misses the last point of
each trajectory in its distances.

References
----------
MobiDataLab, deliverable on the anonymization module, sections 6.3.1 to 6.3.3.3.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from crowdveil.guarantees import Guarantee, TrajectoryKAnonymity
from crowdveil.method import Method
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params, TimeWeight, TrajectoryDistance
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.aggregation import AggregationName
from crowdveil.solve.trajectory.distances import Contemporaries, make_distance, time_weight
from crowdveil.solve.trajectory.mdav import Center, Grouping
from crowdveil.solve.trajectory.microaggregation import release_of


class MicroaggregationParams(Params):
    """Parameters of microaggregation."""

    k: int = Field(3, ge=2)
    """Fewest people of a group."""
    distance: TrajectoryDistance = "spatiotemporal"
    """How far trajectories are from one another."""
    time_weight: TimeWeight = "document"
    """What time counts in the spatio-temporal distance: a number (0 is space alone), document, or mean-ratio."""
    aggregation: AggregationName = "mean-trajectory"
    """What stands for a group: its mean, or the trajectory, or the single locations, that are nearest to it."""
    center: Center = "once"
    """Groups begin far from the center of all trajectories, or from that of those that are left, which takes longer."""
    count_trajectories: bool = False
    """Let k count trajectories, as the document does, even where people are known."""


def run(
    data: Trajectories, params: MicroaggregationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Make the groups, then a trajectory for each."""
    weight = time_weight(data, params.time_weight, rng) if params.distance == "spatiotemporal" else 0.0
    distance = make_distance(data, params.distance, weight)
    every = np.arange(len(data))
    person = every if params.count_trajectories else data.person
    parts = distance.components() if isinstance(distance, Contemporaries) else [every]
    group = Grouping(distance, person, params.k, params.center).groups(parts, progress)
    facts = {"time_weight": weight} if params.distance == "spatiotemporal" else {}
    return release_of(data, distance, group, params.aggregation, facts)


def guarantees(data: Trajectories, params: MicroaggregationParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    counts = "trajectories" if params.count_trajectories else data.counts
    return (TrajectoryKAnonymity(k=params.k, counts=counts),)


METHOD = Method(
    "microaggregation",
    takes=Trajectories,
    params=MicroaggregationParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
)
