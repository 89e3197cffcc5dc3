"""Common parts of methods that swap locations: owners of points, a grid over points, and releases under new trajectories."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.trajectory.structures import SpaceTimeGrid
from crowdveil.kernels.trajectory.swap_locations import break_pairs
from crowdveil.model.arrays import (
    Floats,
    Indices,
    Ints,
    Mask,
    distinct,
    gather,
    group_offsets,
    index_type,
    number_rows,
    scatter,
)
from crowdveil.model.canonical import tied_times
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


def owners(data: Trajectories, count_trajectories: bool) -> Ints:
    """Return the owner of each trajectory: its person, or itself where trajectories are to count as people."""
    return np.arange(len(data)) if count_trajectories else data.person


def equal_points(data: Trajectories) -> Ints:
    """Number the points, those of one place and time alike."""
    return number_rows(data.lon, data.lat, data.t)


def point_owners(data: Trajectories, owner: Ints) -> Indices | Ints:
    """Return the owner of each point, from that of each trajectory, in numbers of 32 bits where they are enough."""
    return np.repeat(owner.astype(index_type(max(len(data), data.people))), np.diff(data.offsets))


def sure_owners(owner: Indices | Ints, same: Indices | Ints) -> Indices | Ints:
    """Return the owner of each point, -1 where an equal point has another owner: it cannot be attributed then."""
    last = np.full(int(same.max(initial=-1)) + 1, -1, owner.dtype)
    scatter(last, same, owner)
    # An owner that is not the last one at a location and time shares it.
    last[same[gather(last, same) != owner]] = -1
    return gather(last, same)


def sort_left_by_position(data: Trajectories, name: Ints) -> Ints:
    """Return the points with a trajectory, by position: those of one time are published in this order, since any other would
    disclose which of them come from one trajectory.
    """
    left = np.flatnonzero(name >= 0)
    return left[np.lexsort((data.lat[left], data.lon[left]))]


def release_of_points(data: Trajectories, name: Indices | Ints) -> tuple[TrajectoryRelease, Ints]:
    """Make a release of points under their new trajectories (-1: left out), in order of time; and the original point of each
    published one. Points of one time are in order of position, as in `sort_left_by_position`.
    """
    left = np.flatnonzero(name >= 0)
    source, number = distinct(name[left], len(data))
    offsets = group_offsets(number, len(source))
    points: Ints = left[np.lexsort((data.t[left], number))]
    lon, lat, t = data.lon[points], data.lat[points], data.t[points]
    order = tied_times(lon, lat, t, offsets)
    if order is not None:
        points, lon, lat = points[order], lon[order], lat[order]
    point = points.astype(index_type(data.points))
    return TrajectoryRelease(lon, lat, t, offsets, source=source, point=point), points


def remove_rare_steps(data: Trajectories, name: Ints, owner: Ints, least: int, tile_size_m: float) -> Ints:
    """Return the trajectory of each point (-1: none), with points removed until every step from square to square that a
    trajectory makes is made by at least `least` owners.
    """
    left = sort_left_by_position(data, name)
    rows = left[np.lexsort((data.t[left], name[left]))]
    trajectory, tile = name[rows], _tiles(data, rows, tile_size_m)
    while len(rows):
        first = np.flatnonzero(np.diff(tile, prepend=-1) | np.diff(trajectory, prepend=-1))
        points = np.diff(np.append(first, len(rows)))
        bad = _rare(tile[first], trajectory[first], owner, least)
        if not bad.any():
            break
        stay = np.repeat(~break_pairs(bad, points, trajectory[first]), points)
        rows, trajectory, tile = rows[stay], trajectory[stay], tile[stay]
    result = np.full(len(name), -1)
    result[rows] = trajectory
    return result


def _tiles(data: Trajectories, rows: Ints, tile_size_m: float) -> Ints:
    """Number the square of each row; the middle of the data's plane, which is published, is a corner of squares."""
    x, y = data.projection.to_plane(data.lon[rows], data.lat[rows])
    column, row = (np.unique(np.floor(c / tile_size_m), return_inverse=True)[1] for c in (x, y))
    return row.astype(np.int64) * (int(column.max(initial=0)) + 1) + column


def _rare(tile: Ints, trajectory: Ints, owner: Ints, least: int) -> Mask:
    """Return whether each visit and the next one are a step that fewer than `least` owners make."""
    step = np.flatnonzero(trajectory[1:] == trajectory[:-1])
    _, pair = np.unique(tile[step] * (int(tile.max(initial=0)) + 1) + tile[step + 1], return_inverse=True)
    people = int(owner.max(initial=0)) + 1
    crowd = np.bincount(np.unique(pair * people + owner[trajectory[step]]) // people)
    bad = np.zeros(len(tile), np.bool_)
    bad[step] = crowd[pair] < least
    return bad


_MAX_CELLS = 2**62
"""Slab, row and column of a cell are one number below this."""


def build_grid(x: Floats, y: Floats, t: Ints, meters: float, seconds: int) -> SpaceTimeGrid:
    """Put points into slabs of `seconds` and cells of `meters`; cells are larger where there would be too many of them."""
    slab, which = np.unique(t // seconds, return_inverse=True)
    side = max(meters, 1e-3)
    while True:
        # Far points and a small distance make more cells than there are numbers: larger ones find the same.
        wide, high = (int(np.ptp(c) / side) + 4 if len(c) else 4 for c in (x, y))
        if wide * high * max(len(slab), 1) < _MAX_CELLS:
            break
        side *= 2
    number = _line(y, side) * wide
    number += _line(x, side)
    points_before = group_offsets(which, len(slab))
    order = np.lexsort((number, which))
    number = number[order]
    begins = np.append(True, number[1:] != number[:-1])[: len(number)]
    begins[points_before[:-1]] = True
    first = np.flatnonzero(begins)
    slab_offsets = np.searchsorted(first, points_before)
    narrow = order.astype(index_type(len(order)))
    return SpaceTimeGrid(narrow, slab, slab_offsets, number[first], np.append(first, len(number)), wide)


def _line(values: Floats, side: float) -> Ints:
    """Return the row or column of each point, from 1."""
    if not len(values):
        return np.zeros(0, np.int64)
    place = values - values.min()
    place /= side
    line: Ints = np.floor(place, out=place).astype(np.int64)
    line += 1
    return line
