"""Trips in trajectories: from the first point to the last, between points, between stays, or from home to work."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from crowdveil.kernels.trajectory.path_legs import stays
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.time_axis import DAY_S, hour_of_week
from crowdveil.model.trajectories import Trajectories

TripRule = Literal["first-last", "transitions", "stays", "home-work"]
NIGHT, WORK = (20, 7), (9, 17)
"""Hours of the local day at home (from 20 to 7) and at work (from 9 to 17, Monday to Friday)."""
CELL_DEGREES = 1e-3
"""Side of the cells, about 100 m, in which points of a home or a workplace are counted."""
MIN_DAYS = 2
"""Least number of days on which a person is seen at home, and at work."""


class TripEnds(NamedTuple):
    """Trips: the trajectory (of home-work: the person) of each, its two ends, and its departure, seconds UTC, if it has one."""

    owner: Ints
    origin_lon: Floats
    origin_lat: Floats
    destination_lon: Floats
    destination_lat: Floats
    t: Ints | None


def first_last(data: Trajectories) -> TripEnds:
    """Return one trip for each trajectory of at least two points: from its first to its last point."""
    owner = np.flatnonzero(np.diff(data.offsets) > 1)
    return _between(data, owner, data.offsets[owner], data.offsets[owner + 1] - 1)


def transitions(data: Trajectories) -> TripEnds:
    """Return one trip for each step from a point to the next; those inside a tile are left out once tiles are known."""
    owner = data.trajectory
    first = np.flatnonzero(owner[1:] == owner[:-1])
    return _between(data, owner[first], first, first + 1)


def _between(data: Trajectories, owner: Ints, first: Ints, last: Ints) -> TripEnds:
    return TripEnds(owner, data.lon[first], data.lat[first], data.lon[last], data.lat[last], data.t[first])


def between_stays(data: Trajectories, radius_m: float, duration_s: int) -> TripEnds:
    """Return one trip for each pair of consecutive stays of a trajectory, from and to the mean position of each.

    It departs at the last point of the first stay. Means are taken in planar meters.
    """
    x, y = data.xy
    owner, first, after = stays(x, y, data.t, data.offsets, radius_m, duration_s)
    count = after - first
    running = [np.concatenate([np.zeros(1), np.cumsum(values)]) for values in (x - _mean(x), y - _mean(y))]
    mean_x, mean_y = ((sums[after] - sums[first]) / np.maximum(count, 1) for sums in running)
    lon, lat = data.projection.to_globe(mean_x + _mean(x), mean_y + _mean(y))
    pair = np.flatnonzero(owner[1:] == owner[:-1])
    return TripEnds(owner[pair], lon[pair], lat[pair], lon[pair + 1], lat[pair + 1], data.t[after[pair] - 1])


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def home_work(data: Trajectories, wall: Ints) -> TripEnds:
    """Return one trip for each person with a home and a workplace: where most nights and most working days are spent.

    `wall` has the local time of each point. A place is a cell of about 100 m; days are counted, not points, so a phone
    that is used more often does not weigh more. Ties are decided by the cell. A home is seen on at least two days, and so is a
    workplace.
    """
    person = np.repeat(data.person, np.diff(data.offsets))
    day = wall // DAY_S
    weekday, hour = np.divmod(hour_of_week(wall), 24)
    at_night = (hour >= NIGHT[0]) | (hour < NIGHT[1])
    at_work = (hour >= WORK[0]) & (hour < WORK[1]) & (weekday < 5)
    # The hours after midnight belong to the night before.
    night = np.where(hour < NIGHT[1], day - 1, day)
    home, home_lon, home_lat = _usual_place(data, person, night, at_night)
    work, work_lon, work_lat = _usual_place(data, person, day, at_work)
    both, of_home, of_work = np.intersect1d(home, work, return_indices=True)
    return TripEnds(both, home_lon[of_home], home_lat[of_home], work_lon[of_work], work_lat[of_work], None)


def _usual_place(data: Trajectories, person: Ints, day: Ints, taken: Mask) -> tuple[Ints, Floats, Floats]:
    """Return people with a place of at least `MIN_DAYS` days, and the mean position of the place with the most."""
    rows = np.flatnonzero(taken)
    column, row = (np.floor(values[rows] / CELL_DEGREES).astype(np.int64) for values in (data.lon, data.lat))
    visits = np.unique(np.column_stack([person[rows], column, row, day[rows]]), axis=0)
    places, days = np.unique(visits[:, :3], axis=0, return_counts=True)
    order = np.lexsort((places[:, 2], places[:, 1], -days, places[:, 0]))
    places, days = places[order], days[order]
    best = np.flatnonzero(np.diff(places[:, 0], prepend=-1) != 0)
    best = best[days[best] >= MIN_DAYS]
    place = {tuple(key): i for i, key in enumerate(places[best].tolist())}
    of_row = np.array(
        [place.get(key, -1) for key in zip(person[rows].tolist(), column.tolist(), row.tolist(), strict=True)], np.int64
    )
    inside, of_row = rows[of_row >= 0], of_row[of_row >= 0]
    count = np.bincount(of_row, minlength=len(best))
    lon, lat = (
        np.bincount(of_row, values[inside], len(best)) / np.maximum(count, 1) for values in (data.lon, data.lat)
    )
    return places[best, 0], lon, lat
