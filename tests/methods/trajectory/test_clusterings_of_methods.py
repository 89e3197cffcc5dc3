"""Clusterings and centers of methods that make groups: groups stay within parts, and begin where they should."""

from __future__ import annotations

import numpy as np
import pytest
from examples import tries
from hypothesis import assume, given, settings

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import ParameterError
from crowdveil.methods.trajectory.segment_microaggregation import SegmentMicroaggregationParams
from crowdveil.methods.trajectory.time_partitioned_microaggregation import (
    TimePartitionedParams,
    _cluster_parts,
    parts_of,
)
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.solve.trajectory.distances import make_distance
from crowdveil.solve.trajectory.mdav import Grouping


@settings(max_examples=tries(20), deadline=None)
@given(data=testing.trajectories(max_trajectories=12))
def test_groups_of_pivots_stay_within_a_part(data: Trajectories) -> None:
    assume(len(data) >= 4)
    params = TimePartitionedParams(
        k=2, interval_s=60, clustering="pivots", count_trajectories=True, distance="frechet-manhattan"
    )
    every, parts = np.arange(len(data)), parts_of(Outline.of(data), params)
    group = _cluster_parts(data, params, 0.0, every, parts, np.random.default_rng(0), no_progress)
    part = np.full(len(data), -1)
    for number, members in enumerate(parts):
        part[members] = number
    for number in np.unique(group[group >= 0]):
        assert len({*part[group == number].tolist()}) == 1 and (group == number).sum() >= 2


@settings(max_examples=tries(30), deadline=None)
@given(data=testing.trajectories(max_trajectories=10))
def test_the_first_group_begins_far_from_the_trajectory_nearest_to_the_mean(data: Trajectories) -> None:
    from crowdveil.kernels.trajectory.aggregation import mean_path
    from crowdveil.solve.trajectory.mdav import _Search

    assume(len(data) >= 4)
    distance, every = make_distance(data, "dtw", 0.0), np.arange(len(data))
    grouping = Grouping(distance, every, 2, center_aggregation="closest-trajectory")
    far = _Search(distance, every).from_center(every, "closest-trajectory")
    center = int(np.argmin(distance.between(mean_path(every, distance.paths.points), every)))
    assert far.tolist() == [float(distance.from_one(center, np.array([i]))[0]) for i in range(len(data))]
    group = grouping.groups([every])
    assert np.bincount(group).min() >= 2


def test_pivots_take_no_segments() -> None:
    with pytest.raises(ParameterError, match="with the clustering pivots"):
        SegmentMicroaggregationParams.checked({"clustering": "pivots"})
    with pytest.raises(ParameterError, match="with the clustering pivots"):
        TimePartitionedParams.checked({"clustering": "pivots"})
