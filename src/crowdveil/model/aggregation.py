"""One trajectory in place of a group of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil.model.arrays import Floats, Ints, frozen, take_slices
from crowdveil.model.distances import Distance, Paths, SpatioTemporal
from crowdveil.model.trajectories import Trajectories

AggregationName = Literal["mean-trajectory", "closest-trajectory", "closest-locations"]
DECIMALS = 5
"""Of published degrees: about a metre."""


@dataclass(frozen=True, eq=False)
class Made:
    """Trajectories that stand for groups, as `Trajectories` has them."""

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints


def aggregate(data: Trajectories, distance: Distance, members: Ints, offsets: Ints, how: AggregationName) -> Made:
    """A trajectory for each group; those of group g are members[offsets[g]:offsets[g + 1]], and none is empty.

    `mean-trajectory`: the mean of evenly matched points. `closest-trajectory`: the member that is nearest to it.
    `closest-locations`: for each of its points the nearest point of any member.
    """
    mean = _means(data, members, offsets)
    if how == "mean-trajectory":
        made = mean
    elif how == "closest-trajectory":
        made = _closest_trajectories(data, distance, members, offsets, mean)
    else:
        made = _closest_locations(data, distance, members, offsets, mean)
    return Made(np.round(made.lon, DECIMALS), np.round(made.lat, DECIMALS), made.t, made.offsets)


def mean_path(data: Trajectories, members: Ints) -> tuple[Floats, Floats, Floats]:
    """The mean trajectory of one group in planar metres and seconds since the first point of the data."""
    mean = _means(data, members, frozen([0, len(members)], np.int64))
    return _paths(data, mean).one(0)


def _paths(data: Trajectories, made: Made) -> Paths:
    """Made-up trajectories on the plane of the data."""
    x, y = data.projection.to_plane(made.lon, made.lat)
    return Paths(x, y, (made.t - int(data.t.min())).astype(np.float64), made.offsets)


def _means(data: Trajectories, members: Ints, offsets: Ints) -> Made:
    from crowdveil.kernels.aggregation import mean_lengths, mean_trajectories

    lengths = mean_lengths(members, offsets, data.offsets)
    made = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Made(*mean_trajectories(members, offsets, data.lon, data.lat, data.t, data.offsets, made), made)


def _closest_trajectories(data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: Made) -> Made:
    paths = _paths(data, mean)
    chosen = np.empty(len(offsets) - 1, np.int64)
    for g in range(len(chosen)):
        here = members[offsets[g] : offsets[g + 1]]
        chosen[g] = here[int(np.argmin(distance.between(paths.one(g), here)))]
    rows, made = take_slices(data.offsets, chosen)
    return Made(data.lon[rows], data.lat[rows], data.t[rows], made)


def _closest_locations(data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: Made) -> Made:
    from crowdveil.kernels.aggregation import nearest_points

    weight = distance.weight * float(distance.speed.mean()) if isinstance(distance, SpatioTemporal) else 0.0
    own = Paths.of(data)
    rows = nearest_points(members, offsets, *own.points, *_paths(data, mean).points, weight)
    # Points of several members in an order of their own: times rise as those of the mean do.
    return Made(data.lon[rows], data.lat[rows], mean.t, mean.offsets)
