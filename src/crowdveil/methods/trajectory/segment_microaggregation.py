"""Cut trajectories into segments of a few minutes, and publish each as one of k people's, without links between segments.

Guarantee
---------
SegmentKAnonymity(k): every published segment is in an equivalence class, equal point for point and second for second, of at
least k people. Segments have new ids; no id links those of one trajectory or person.

SuppressedSegments(suppress, k), with `suppress`: at most that share of the segments is suppressed, and segments of at least k
people, or none.

Assumptions
-----------
The column of users names people. Without it, or with `count_trajectories`, k counts trajectories. A segment is one of k people's;
a whole trajectory is not. An adversary may link segments by continuity, where one ends and the next begins: groups change from
segment to segment, so two linked segments are together of fewer than k people, perhaps of one. How often that succeeds is
measured, and is in the manifest. Where that is too often, take `microaggregation`.

Notes
-----
Trajectories are cut at multiples of `segment_s` of the clock (UTC), at positions on the straight line between points. Segments
are near others in place and time more often than whole trajectories are, so less is lost, most with trajectories of an
hour and more. Groups are made as in `microaggregation`, with segments in place of trajectories; a person with several segments
counts once in a group. Each group has its own members, whatever groups the other segments of a trajectory are in.

With `suppress` whole groups of segments are suppressed, those with the largest distortion first, until the share is used up: the
mean squared distance of their members from what would be published. A person with a suppressed segment is one of at least k.

References
----------
MobiDataLab, deliverable on the anonymization module, sections 6.3.1 to 6.3.3.3, for groups and means. The attack by continuity is
that of multiple-target tracking: B. Hoh, M. Gruteser: Protecting location privacy through path confusion. SecureComm 2005.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from crowdveil.attacks.continuity import measured_continuity
from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, SegmentKAnonymity, SuppressedSegments
from crowdveil.methods.base import Facts, Method
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import GroupingParams, TimeWeight
from crowdveil.solve.trajectory.aggregation import AggregationName, find_aggregation
from crowdveil.solve.trajectory.clustering import ClusteringName, ClusteringProblem, check_clustering, find_clustering
from crowdveil.solve.trajectory.distances import SpatioTemporal, make_distance, published_weight, time_weight
from crowdveil.solve.trajectory.mdav import improve_groups
from crowdveil.solve.trajectory.microaggregation import release_groups
from crowdveil.solve.trajectory.swapping import owners


class SegmentMicroaggregationParams(GroupingParams):
    """Parameters of microaggregation of segments."""

    segment_s: int = Field(300, ge=1, le=86_400)
    """Length of a segment."""
    time_weight: TimeWeight = "auto"
    """Weight of time in the distance between segments: auto, a number (0 is space alone), mobidatalab, or mean-ratio."""
    aggregation: AggregationName = "mean-trajectory"
    """Representative of a group: its mean, or composed of its members; no original points, which link segments."""
    improve: int = Field(0, ge=0, le=1000, title="Rounds of exchange")
    """Rounds in which near groups exchange segments where that makes them more compact."""
    clustering: ClusteringName = "mdav"
    """How groups of segments are made: mdav, or a clustering of an installed package."""
    count_trajectories: bool = False
    """Let k count trajectories even where people are known."""

    @field_validator("aggregation")
    @classmethod
    def _check_aggregation(cls, name: str) -> str:
        if find_aggregation(name).original_points:
            raise ValueError(
                "an aggregation without original points, which link the segments of a person",
                "Choose another",
            )
        return name

    @model_validator(mode="after")
    def _check_clustering(self) -> SegmentMicroaggregationParams:
        check_clustering(self.clustering, "spatiotemporal")
        return self


def run(
    data: Trajectories, params: SegmentMicroaggregationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Cut trajectories into segments, group these, and publish one segment for each group."""
    segments, whole = cut_at_multiples(data, params.segment_s)
    weight = time_weight(segments, params.time_weight, rng)
    distance = make_distance(segments, "spatiotemporal", weight)
    person = owners(data, params.count_trajectories)[whole]
    problem = ClusteringProblem(distance, person, params.k, [np.arange(len(segments))], rng, progress=progress)
    group = find_clustering(params.clustering).make(problem)
    if isinstance(distance, SpatioTemporal):
        group = improve_groups(distance, group, person, params.k, params.improve, progress)
    release = release_groups(segments, distance, group, params.aggregation, {}, suppress=params.suppress)
    facts: dict[str, Any] = {
        "time_weight": published_weight(params.time_weight, weight),
        "continuity": measured_continuity(segments, whole, release),
    }
    return replace(release, source=whole[release.source], facts=facts)


def guarantees(params: SegmentMicroaggregationParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity of segments, counted as `count_trajectories` says, and the budget where suppression is asked for."""
    unit = "trajectories" if params.count_trajectories else facts.k_unit
    anonymity = SegmentKAnonymity(k=params.k, k_unit=unit)
    made: list[Guarantee] = [anonymity]
    if params.suppress:
        made.append(SuppressedSegments(suppress=params.suppress, k=params.k, k_unit=unit, segment_s=params.segment_s))
    return tuple(made)


METHOD = Method(
    "segment-microaggregation",
    takes=Trajectories,
    params=SegmentMicroaggregationParams,
    run=run,
    guarantees=guarantees,
    status="proven",
)


def cut_at_multiples(data: Trajectories, segment_s: int) -> tuple[Trajectories, Ints]:
    """Return the segments of trajectories, as trajectories of the same people, and the trajectory of each.

    Segments are between multiples of `segment_s` since 1970-01-01 UTC. Between two points of different segments the trajectory is
    taken as straight, in the plane of the data: the first segment gets a point at its end, the second one at its beginning. There
    is no segment where there is no point.
    """
    slot, trajectory = data.t // segment_s, data.trajectory
    begins = np.ones(data.points, np.bool_)
    begins[1:] = (np.diff(trajectory) != 0) | (np.diff(slot) != 0)
    segment = np.cumsum(begins) - 1
    last = np.flatnonzero((np.diff(trajectory) == 0) & (np.diff(slot) != 0))
    ends = _between(data, last, (slot[last] + 1) * segment_s)
    # A point on the border is the first of its segment already.
    first = last[data.t[last + 1] > slot[last + 1] * segment_s]
    starts = _between(data, first, slot[first + 1] * segment_s)
    rows = np.arange(data.points)
    order = np.argsort(np.concatenate([3 * rows + 1, 3 * last + 2, 3 * (first + 1)]), kind="stable")
    lon, lat, t = (
        np.concatenate(columns)[order] for columns in zip((data.lon, data.lat, data.t), ends, starts, strict=True)
    )
    of_point = np.concatenate([segment, segment[last], segment[first + 1]])[order]
    whole = trajectory[begins]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(of_point, minlength=len(whole)))])
    pieces = Trajectories(
        lon,
        lat,
        t,
        offsets,
        np.arange(len(whole)),
        data.person[whole],
        data.people_ids,
        data.k_unit,
        within=data.extent,
    )
    return pieces, whole


def _between(data: Trajectories, row: Ints, moment: Ints) -> tuple[Floats, Floats, Ints]:
    """Return longitude, latitude and time on the way from some points to the next ones, at given moments."""
    share = (moment - data.t[row]) / np.maximum(data.t[row + 1] - data.t[row], 1)
    x, y = (column[row] + share * (column[row + 1] - column[row]) for column in data.xy)
    return *data.projection.to_globe(x, y), moment
