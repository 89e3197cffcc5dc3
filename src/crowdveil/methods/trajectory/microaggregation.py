"""Group near trajectories of at least k people, and publish one trajectory for all of a group.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is in an equivalence class, equal point for point and second for second, of
at least k people. Ids are new.

SuppressedTrajectories(suppress, k), with `suppress` and a distance other than graph: at most that share is suppressed, and the
trajectories of at least k people, or none.

Assumptions
-----------
The column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a group may be of one
person.

Notes
-----
Groups are made by MDAV: the farthest trajectory from the center and the farthest one from that each collect their nearest ones,
until the group has k people, and so on with the rest. A person with several trajectories counts once in a group. A group takes
k people and no more, so the last group has k to 2k − 1. It is exact: no trajectory is skipped unless a bound proves that
it is neither the farthest nor among the nearest ones.

`time_weight = auto` chooses the weight of time from a short public list, so that time has at most a seventh of the distance
between nearest neighbors; `mobidatalab` is the formula of the reference, D / (V · T), in which one far trajectory makes time
count more than space. The manifest has the weight as it was used, or one digit of it where a formula computed it.

With `distance = graph` trajectories without a chain of contemporaries between them are not in one group; components with fewer
than k people are left out, and counted. `closest-trajectory` publishes one person's own trajectory for the whole group.

A composed trajectory is the mean, moved by a tenth towards the member nearest to it, with as many points as that has. It has the
mean pace of the members, begins four fifths of the way from their mean start to the start of another one, the first in the order
of hashes, and ends no later than the last of all. A plain mean is shorter, has the mean number of points, and its times move to
the middle of the data, although they are nearer to those of the members.

MDAV puts the last trajectories into one group, however far apart they are. With `improve` near groups then exchange
trajectories, in blocks of the map with other borders each round, as long as they get more compact: the sum over groups of the
squared distances of their pairs over their size. Each keeps k people.

With `suppress` whole groups are suppressed, those with the largest distortion first, until the share is used up: the mean
squared distance of their members from what would be published, in space and time. A person whose trajectory is suppressed is one
of at least k such people.

Means are in planar meters around the data, and are right across the date line; MobiDataLab's are of degrees, which differs by
little elsewhere and puts points near longitude 0 there. Positions within 1° of a pole are rejected.

MobiDataLab counts trajectories, so a group may be of one person, and its public implementation omits the last point of each
trajectory in its distances.

References
----------
MobiDataLab, deliverable on the anonymization module, sections 6.3.1 to 6.3.3.3.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from crowdveil.engine.progress import Progress
from crowdveil.errors import Text
from crowdveil.methods.base import Method
from crowdveil.methods.guarantee_sets import suppressing_guarantees
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import GroupingParams, TimeWeight, TrajectoryDistance
from crowdveil.solve.trajectory.aggregation import AggregationName
from crowdveil.solve.trajectory.clustering import ClusteringName, ClusteringProblem, check_clustering, find_clustering
from crowdveil.solve.trajectory.distances import (
    Contemporaries,
    SpatioTemporal,
    make_distance,
    published_weight,
    time_weight,
)
from crowdveil.solve.trajectory.mdav import Center, CenterAggregation, improve_groups
from crowdveil.solve.trajectory.microaggregation import release_groups
from crowdveil.solve.trajectory.swapping import owners


class MicroaggregationParams(GroupingParams):
    """Parameters of microaggregation."""

    distance: TrajectoryDistance = "spatiotemporal"
    """Distance between trajectories."""
    time_weight: TimeWeight = "auto"
    """Weight of time in the spatio-temporal distance: auto, a number (0 is space alone), mobidatalab, or mean-ratio."""
    aggregation: AggregationName = "composed-trajectory"
    """Representative of a group: composed of its members, their mean, or the members nearest to that."""
    aggregation_time_weight: float | None = Field(None, ge=0)
    """Weight of time when the trajectory nearest to the mean is chosen. Default: that of the distance."""
    improve: int = Field(0, ge=0, le=1000, title="Rounds of exchange")
    """Rounds in which near groups exchange trajectories where that makes them more compact; with spatiotemporal alone."""
    clustering: ClusteringName = "mdav"
    """How groups are made: mdav, or pivots with a Fréchet/Manhattan distance."""
    center: Center = "once"
    """With mdav: groups begin far from the center of all trajectories, or of the remaining ones, which takes longer."""
    center_aggregation: CenterAggregation = "mean-trajectory"
    """With mdav: the center is the mean of trajectories, or the trajectory nearest to it."""
    count_trajectories: bool = False
    """Let k count trajectories, as MobiDataLab does, even where people are known."""

    @model_validator(mode="after")
    def _check_distance_of_improvement(self) -> MicroaggregationParams:
        if self.improve and self.distance != "spatiotemporal":
            raise ValueError(
                Text("the distance spatiotemporal with {improve}, which sums squares of it"), "Leave one out"
            )
        return self

    @model_validator(mode="after")
    def _check_clustering(self) -> MicroaggregationParams:
        check_clustering(self.clustering, self.distance)
        return self


def run(
    data: Trajectories, params: MicroaggregationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Make the groups, then a trajectory for each."""
    weight = time_weight(data, params.time_weight, rng) if params.distance == "spatiotemporal" else 0.0
    distance = make_distance(data, params.distance, weight)
    person, every = owners(data, params.count_trajectories), np.arange(len(data))
    parts = distance.components() if isinstance(distance, Contemporaries) else [every]
    problem = ClusteringProblem(
        distance, person, params.k, parts, rng, params.center, params.center_aggregation, progress
    )
    group = find_clustering(params.clustering).make(problem)
    if isinstance(distance, SpatioTemporal):
        group = improve_groups(distance, group, person, params.k, params.improve, progress)
    facts = {"time_weight": published_weight(params.time_weight, weight)} if params.distance == "spatiotemporal" else {}
    return release_groups(
        data,
        distance,
        group,
        params.aggregation,
        facts,
        suppress=params.suppress,
        time_weight=params.aggregation_time_weight,
    )


METHOD = Method(
    "microaggregation",
    takes=Trajectories,
    params=MicroaggregationParams,
    run=run,
    guarantees=suppressing_guarantees,
    status="proven",
)
