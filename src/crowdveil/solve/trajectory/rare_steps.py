"""Steps of trajectories from one square to the next, and removing points so that none is made by few alone."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.trajectory.swap_locations import break_pairs
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.swapping import sort_left_by_position


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
