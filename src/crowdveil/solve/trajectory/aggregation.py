"""Aggregation: one trajectory in place of a group of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from crowdveil.engine import extensions
from crowdveil.kernels.trajectory.aggregation import (
    composed_trajectories,
    mean_lengths,
    mean_trajectories,
    nearest_points,
)
from crowdveil.model.arrays import Floats, Ints, row_slices, take_slices
from crowdveil.model.globe import rounded
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.distances import Distance, Paths, SpatioTemporal
from crowdveil.solve.trajectory.distances.nearest import NearestNeighbors

NAMES = extensions.OpenNames(
    "crowdveil.aggregations", ("mean-trajectory", "composed-trajectory", "closest-trajectory", "closest-locations")
)
AggregationName = Annotated[str, AfterValidator(NAMES.check), NAMES]
"""The name of an aggregation, for types and parameters: one of `AGGREGATIONS`, or of an installed package."""
OWN_SHARE = 0.1
"""Share of the nearest member in a composed trajectory, where the mean has the rest: a mean alone is shorter than its members."""
START_SHARE = 0.8
"""Share of one member in the start of a composed trajectory, where the mean has the rest: starts that are all means move to the
middle of the data, and a start that is a member's own would be exact."""
DECIMALS = 5
"""Decimals of published degrees that are no original position: about a meter."""


@dataclass(frozen=True, eq=False)
class GroupTrajectories:
    """Trajectories that stand for groups; columns as in `Trajectories`."""

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints


@dataclass(frozen=True)
class Aggregation:
    """The record of a way to put one trajectory in place of a group: what parameters, run files and the docs are drawn from.

    Attributes
    ----------
    name
        In lower case with hyphens.
    make
        (data, distance, members, offsets, means of the groups) → a trajectory for each group.
    summary
        A description in one sentence.
    original_points
        Whether it publishes points of members. Not for segments: both halves of a cut trajectory have the point of the cut,
        so that copies of it link them.
    """

    name: str
    make: Callable[[Trajectories, Distance, Ints, Ints, GroupTrajectories], GroupTrajectories]
    summary: str
    original_points: bool = False


def aggregate(data: Trajectories, distance: Distance, members: Ints, offsets: Ints, how: str) -> GroupTrajectories:
    """Make a trajectory for each group; those of group g are members[offsets[g]:offsets[g + 1]], and none is empty."""
    return find_aggregation(how).make(data, distance, members, offsets, _means(data, members, offsets))


def find_aggregation(name: str) -> Aggregation:
    """Return the record of an aggregation: ours, or of an installed package."""
    for own in AGGREGATIONS:
        if name == own.name:
            return own
    found: Aggregation = extensions.load(NAMES.group, name, Aggregation)
    return found


def plane_paths(data: Trajectories, made: GroupTrajectories) -> Paths:
    """Project the trajectories of groups to the plane of the data."""
    x, y = data.projection.to_plane(made.lon, made.lat)
    return Paths(x, y, (made.t - data.start).astype(np.float64), made.offsets)


def weights_of_people(data: Trajectories, members: Ints, offsets: Ints) -> Floats:
    """Return the weight of each member of groups in means: all people of a group count the same, however many they have."""
    pair = row_slices(offsets) * max(len(data.people_ids), 1) + data.person[members]
    _, number, count = np.unique(pair, return_inverse=True, return_counts=True)
    weights: Floats = 1.0 / count[number.reshape(-1)]
    return weights


def _means(data: Trajectories, members: Ints, offsets: Ints) -> GroupTrajectories:
    weight = weights_of_people(data, members, offsets)
    lengths = mean_lengths(members, weight, offsets, data.offsets)
    made = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    # Degrees have no mean: those on both sides of the date line would meet at Greenwich.
    x, y, t = mean_trajectories(members, weight, offsets, *data.xy, data.t, data.offsets, made)
    return GroupTrajectories(*data.projection.to_globe(x, y), t, made)


def _rounded(
    data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: GroupTrajectories
) -> GroupTrajectories:
    return GroupTrajectories(rounded(mean.lon, DECIMALS), np.round(mean.lat, DECIMALS), mean.t, mean.offsets)


def _closest_trajectories(
    data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: GroupTrajectories
) -> GroupTrajectories:
    rows, made = take_slices(data.offsets, _nearest_members(data, distance, members, offsets, mean))
    return GroupTrajectories(data.lon[rows], data.lat[rows], data.t[rows], made)


def _nearest_members(
    data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: GroupTrajectories
) -> Ints:
    """Return the member of each group that is nearest to its mean; of equally near ones the first."""
    group = row_slices(offsets)
    if isinstance(distance, SpatioTemporal):
        far = NearestNeighbors(distance, plane_paths(data, mean)).pairs(distance, group, members)
    else:
        means, ends = plane_paths(data, mean), pairwise(offsets.tolist())
        each = [distance.between(means.one(g), members[low:high]) for g, (low, high) in enumerate(ends)]
        far = np.concatenate([np.zeros(0), *each])
    # The sort is stable: of equally near members it takes the first.
    found: Ints = members[np.lexsort((far, group))[offsets[:-1]]]
    return found


def _composed(
    data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: GroupTrajectories
) -> GroupTrajectories:
    # Any member near the mean in space will do, and other distances can take long.
    quick = distance if isinstance(distance, SpatioTemporal) else SpatioTemporal.of(distance.paths, 0.0)
    nearest = _nearest_members(data, quick, members, offsets, mean)
    _, made = take_slices(data.offsets, nearest)
    x, y, t = composed_trajectories(
        members,
        weights_of_people(data, members, offsets),
        offsets,
        nearest,
        *data.xy,
        data.t,
        data.offsets,
        made,
        OWN_SHARE,
        START_SHARE,
    )
    lon, lat = data.projection.to_globe(x, y)
    return GroupTrajectories(rounded(lon, DECIMALS), np.round(lat, DECIMALS), t, made)


def _closest_locations(
    data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: GroupTrajectories
) -> GroupTrajectories:
    weight = 0.0
    if isinstance(distance, SpatioTemporal) and len(data):
        weight = distance.weight * float(distance.speed.mean())
    rows = nearest_points(members, offsets, *distance.paths.points, *plane_paths(data, mean).points, weight)
    # Times of points of several members need not rise; those of the mean do.
    return GroupTrajectories(data.lon[rows], data.lat[rows], mean.t, mean.offsets)


AGGREGATIONS: tuple[Aggregation, ...] = (
    Aggregation(
        "mean-trajectory",
        _rounded,
        "The mean of evenly matched points: no original position, rounded to five decimals of a degree.",
    ),
    Aggregation(
        "composed-trajectory",
        _composed,
        "The mean, moved a little towards the nearest member, with its number of points; it starts near the start of another.",
    ),
    Aggregation(
        "closest-trajectory",
        _closest_trajectories,
        "The trajectory of the group that is nearest to the mean: an original one, with its times.",
        original_points=True,
    ),
    Aggregation(
        "closest-locations",
        _closest_locations,
        "For each point of the mean the nearest point of any member of the group, at the time of the mean's.",
        original_points=True,
    ),
)
