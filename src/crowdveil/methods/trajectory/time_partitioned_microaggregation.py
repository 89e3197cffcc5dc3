"""Partition trajectories by time, then group near ones of at least k people inside each part.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is in an equivalence class, equal point for point and second for second, of
at least k people. Ids are new.

SuppressedTrajectories(suppress, k), with `suppress`: at most that share is suppressed, and the trajectories of at least k
people, or none.

Assumptions
-----------
The column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a group may be of one
person.

Notes
-----
Trajectories are sorted by their mean time. A part takes all whose mean time is before the next multiple of `interval_s` (from
midnight UTC); if they have fewer than k people, the next ones join until there are k. A rest of fewer than k people joins the
last part. Inside a part groups are made as in `microaggregation`, by space alone unless a weight of time is given. It takes
seconds where `microaggregation` takes minutes, and loses more.

With `suppress` whole groups are suppressed, those with the largest distortion first, until the share is used up: the mean
squared distance of their members from what would be published, in space and, if it has a weight, in time. A person whose
trajectory is suppressed is one of at least k such people.

Means are in planar meters around the data, not of degrees as in MobiDataLab: see `microaggregation`.

MDAV groups the remaining trajectories last, which costs most where parts are small. So in parts of at most 128 trajectories
groups then exchange trajectories as long as that makes them more compact, and each keeps k people; MobiDataLab does not, as
with `--no-exchange`. MobiDataLab sorts by mean time; its public implementation by first time, which `parts_by` allows.

References
----------
MobiDataLab, deliverable on the anonymization module, section 6.3.3.4.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from crowdveil.engine.progress import Progress
from crowdveil.methods.base import Method
from crowdveil.methods.guarantee_sets import suppressing_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.params import GroupingParams, TimeWeight, TrajectoryDistance
from crowdveil.solve.trajectory.aggregation import AggregationName
from crowdveil.solve.trajectory.clustering import ClusteringName, ClusteringProblem, check_clustering, find_clustering
from crowdveil.solve.trajectory.distances import make_distance, published_weight, time_weight
from crowdveil.solve.trajectory.mdav import Center, CenterAggregation, Grouping
from crowdveil.solve.trajectory.microaggregation import release_groups
from crowdveil.solve.trajectory.swapping import owners


class TimePartitionedParams(GroupingParams):
    """Parameters of microaggregation by parts."""

    interval_s: int = Field(900, ge=1)
    """Length of a part."""
    parts_by: Literal["mean-time", "first-time"] = "mean-time"
    """Time that assigns a trajectory to a part: the mean of its times, or the first."""
    distance: TrajectoryDistance = "spatiotemporal"
    """Distance between trajectories of a part; graph works with microaggregation only."""
    time_weight: TimeWeight = 0.0
    """Weight of time in the spatio-temporal distance: a number (0 is space alone), auto, mobidatalab, or mean-ratio."""
    aggregation: AggregationName = "mean-trajectory"
    """Representative of a group: its mean, or the trajectory, or the single locations, nearest to it."""
    aggregation_time_weight: float | None = Field(None, ge=0)
    """Weight of time when the trajectory nearest to the mean is chosen. Default: that of the distance."""
    clustering: ClusteringName = "mdav"
    """How groups of a part are made: mdav, or pivots with a Fréchet/Manhattan distance."""
    center: Center = "once"
    """With mdav: groups begin far from the center of all trajectories of the part, or of the remaining ones."""
    center_aggregation: CenterAggregation = "mean-trajectory"
    """With mdav: the center is the mean of trajectories, or the trajectory nearest to it; then groups do not exchange members."""
    exchange: bool = True
    """Let groups of small parts exchange trajectories where that makes them more compact; with spatiotemporal alone."""
    count_trajectories: bool = False
    """Let k count trajectories, as MobiDataLab does, even where people are known."""

    @model_validator(mode="after")
    def _check_distance_of_parts(self) -> TimePartitionedParams:
        if self.distance == "graph":
            raise ValueError("a distance of any two trajectories of a part, which graph is not", "Choose another")
        check_clustering(self.clustering, self.distance)
        return self


def run(
    data: Trajectories, params: TimePartitionedParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Partition, make the groups of each part, then a trajectory for each group."""
    weight = time_weight(data, params.time_weight, rng) if params.distance == "spatiotemporal" else 0.0
    distance = make_distance(data, params.distance, weight)
    person = owners(data, params.count_trajectories)
    parts = parts_of(Outline.of(data), params)
    if params.clustering == "mdav":
        grouping = Grouping(distance, person, params.k, params.center, params.exchange, params.center_aggregation)
        group = grouping.groups(parts, progress)
    else:
        group = _cluster_parts(data, params, weight, person, parts, rng, progress)
    release = release_groups(
        data,
        distance,
        group,
        params.aggregation,
        {},
        suppress=params.suppress,
        time_weight=params.aggregation_time_weight,
    )
    shown = published_weight(params.time_weight, weight) if params.distance == "spatiotemporal" else 0.0
    # Parts that are suppressed whole are not counted: their number would show that there are any.
    published = np.zeros(len(data), np.bool_)
    published[release.source] = True
    begins = np.cumsum([0, *map(len, parts)])[:-1]
    left = int(np.logical_or.reduceat(published[np.concatenate(parts)], begins).sum()) if parts else 0
    figures = np.full((left, 1), shown)
    facts = summarize_diagnostics(params, figures) if left else {"time_weight": shown, "parts": 0}
    return replace(release, facts=facts, figures=figures)


def _cluster_parts(
    data: Trajectories,
    params: TimePartitionedParams,
    weight: float,
    person: Ints,
    parts: list[Ints],
    rng: np.random.Generator,
    progress: Progress,
) -> Ints:
    """Return the group of each trajectory, -1 for none, with a clustering that knows no parts: each is clustered alone."""
    clustering, group, before = find_clustering(params.clustering), np.full(len(data), -1, np.int64), 0
    for number, part in enumerate(parts):
        inside = np.zeros(len(data), np.bool_)
        inside[part] = True
        distance = make_distance(data.where(inside), params.distance, weight)
        own = np.unique(person[part], return_inverse=True)[1].reshape(-1)
        found = clustering.make(ClusteringProblem(distance, own, params.k, [np.arange(len(part))], rng))
        group[part] = np.where(found >= 0, found + before, -1)
        before += int(found.max(initial=-1)) + 1
        progress(number + 1, len(parts))
    return group


def summarize_diagnostics(params: TimePartitionedParams, figures: Floats) -> dict[str, Any]:
    """Return the weight of time and the number of parts."""
    return {"time_weight": float(figures[0, 0]), "parts": len(figures)}


def parts_of(outline: Outline, params: TimePartitionedParams) -> list[Ints]:
    """Return the trajectories of each part, each rising."""
    person = np.arange(len(outline)) if params.count_trajectories else outline.person
    times = outline.total / outline.points if params.parts_by == "mean-time" else outline.first.astype(np.float64)
    return parts_by_time(times, person, params.k, params.interval_s)


def parts_by_time(time: Floats, person: Ints, k: int, interval_s: int) -> list[Ints]:
    """Return the trajectories of each part, each rising; every part has at least k people, unless all have fewer.

    Parts end at multiples of the interval, so that no single time decides where they do.
    """
    order = np.argsort(time, kind="stable")
    sorted_time, who = time[order], person[order]
    begins: list[int] = []
    low = 0
    while low < len(order):
        high = int(sorted_time.searchsorted((sorted_time[low] // interval_s + 1) * interval_s))
        people = set(who[low:high].tolist())
        while len(people) < k and high < len(order):
            people.add(int(who[high]))
            high += 1
        if len(people) >= k or not begins:  # else they join the part before
            begins.append(low)
        low = high
    part = np.empty(len(order), np.int64)
    part[order] = np.repeat(np.arange(len(begins)), np.diff([*begins, len(order)]))
    members = np.argsort(part, kind="stable")
    return [members[first:last] for first, last in pairwise([*begins, len(order)])]


def partitioning(params: TimePartitionedParams) -> str | None:
    """Return why partitions cannot be solved on their own; None if they can."""
    if params.suppress:
        return "the groups with the largest distortion are found among all of them: leave out suppress"
    if params.clustering != "mdav":
        return "clusterings other than mdav draw at random over all parts: choose mdav"
    if isinstance(params.time_weight, str):
        return "the weight of time is found from all trajectories: give it as a number"
    if params.aggregation == "closest-locations" and (params.aggregation_time_weight or params.time_weight):
        return "closest-locations weighs time by the mean speed of all trajectories: choose another aggregation, or no weight"
    return None


METHOD = Method(
    "time-partitioned-microaggregation",
    takes=Trajectories,
    params=TimePartitionedParams,
    run=run,
    guarantees=suppressing_guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    partitioning=partitioning,
    partitions=parts_of,
)
