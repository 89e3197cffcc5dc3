"""Segments: trajectories cut at whole multiples of a length of time."""

from __future__ import annotations

import numpy as np

from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.trajectories import Trajectories


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
