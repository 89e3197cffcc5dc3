"""Trajectories as visits to tiles at levels of time, and visits removed until combinations of them are shared by a crowd."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from crowdveil.engine import apart
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option
from crowdveil.kernels.trajectory.combinations import PUBLISHED, SUPPRESSED, break_combinations, list_combinations
from crowdveil.model.arrays import Bytes, Indices, Ints
from crowdveil.model.tessellation import MAX_CELLS, grid_cells, grid_over, grid_zones, locate, public_box
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones

BLOCK = 2**23
"""Combinations whose table is in memory at once."""
MAX_COMBINATIONS = 4 * 10**9
"""Combinations that are counted at all: more would take hours."""


def tiles_of(data: Trajectories, tile_size_m: float) -> tuple[Zones, Indices]:
    """Return the tiles, given or the squares that have points, and the one that each point lies in, -1 for none."""
    if data.zones is not None:
        return data.zones, locate(data.zones, data.lon, data.lat)
    if data.points == 0:
        return Zones.from_ids([]), np.zeros(0, np.int32)
    grid = grid_over(public_box(data.extent, tile_size_m), tile_size_m, MAX_CELLS)
    column, row = grid_cells(grid, data.lon, data.lat)
    used, tile = np.unique(row.astype(np.int64) * grid.columns + column, return_inverse=True)
    zones = grid_zones(grid, (used % grid.columns).astype(np.int32), (used // grid.columns).astype(np.int32))
    return zones, tile.astype(np.int32)


def merged_tiles(zones: Zones, tile: Indices, level: Ints, least: int) -> Ints:
    """Return the area of each point: tiles of a grid with fewer than `least` points at a level join a neighbor of that level.

    It joins the neighbor with most points of the four; positions inside a tile do not matter. Tiles that join one another
    are one area, also by way of others. The same tile at two levels is in two areas.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if zones.grid is None or zones.column is None or zones.row is None:
        raise ValueError("only tiles of a grid have four neighbors")
    wide, high = zones.grid.columns + 2, zones.grid.rows + 2
    levels, rank = np.unique(level, return_inverse=True)
    if len(levels) * high * wide >= 2**63:
        raise InputError(
            Option("tile_size_m"),
            "the data occupy too many tiles and time intervals. Choose larger tiles or a longer time interval.",
        )
    place = (rank * high + zones.row[tile] + 1) * wide + zones.column[tile] + 1
    cell, of_point, n = np.unique(place, return_inverse=True, return_counts=True)
    small = np.flatnonzero(n < least)
    best, most = np.full(len(small), -1), np.zeros(len(small), np.int64)
    for step in (-1, 1, -wide, wide):
        other = np.searchsorted(cell, cell[small] + step)
        occupied = np.flatnonzero(cell[np.minimum(other, len(cell) - 1)] == cell[small] + step)
        more = occupied[n[other[occupied]] > most[occupied]]
        best[more], most[more] = other[more], n[other[more]]
    joins = best >= 0
    edges = coo_array((np.ones(int(joins.sum()), np.int8), (small[joins], best[joins])), shape=(len(cell), len(cell)))
    _, area = connected_components(edges, directed=False)
    areas: Ints = area.astype(np.int64)[of_point]
    return areas


@dataclass(frozen=True, eq=False)
class Visits:
    """Visits of trajectories, in order of owner, trajectory and time: points that follow one another in one area.

    Attributes
    ----------
    symbol
        The area of each visit.
    offsets
        Where the visits of each trajectory lie; a trajectory may have none left.
    owner
        Whose each trajectory is.
    """

    symbol: Ints
    offsets: Ints
    owner: Ints

    @classmethod
    def of(cls, symbol: Ints, trajectory: Ints, owner: Ints) -> tuple[Visits, Ints]:
        """Make visits from points in order of trajectory and time, with the visit of each point; trajectories are numbered in
        order of their owners.
        """
        first = np.flatnonzero(np.diff(symbol, prepend=-1) | np.diff(trajectory, prepend=-1))
        visit = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(symbol))))
        offsets = np.searchsorted(trajectory[first], np.arange(len(owner) + 1))
        return cls(symbol[first], offsets, owner), visit

    def combinations(self, size: int) -> int:
        """Count the combinations of `size` visits, each as often as it occurs."""
        length, times = np.unique(np.diff(self.offsets), return_counts=True)
        return sum(comb(n, size) * m for n, m in zip(length.tolist(), times.tolist(), strict=True))

    def without(self, fate: Bytes) -> tuple[Visits, Ints]:
        """Remove visits by their fate; return what is left, and the new position of each: -1 if it is removed; that of the one
        before if merged.
        """
        stays = fate == PUBLISHED
        place = np.cumsum(stays) - 1
        place[fate == SUPPRESSED] = -1
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(stays)])
        return Visits(self.symbol[stays], before[self.offsets], self.owner), place


def remove_rare_visits(visits: Visits, k: int, knowledge: int, progress: Progress) -> Ints:
    """Remove visits until every combination of up to `knowledge` of them is shared by k owners.

    Returns the new place of each visit, -1 where it is gone; visits that became one have one place.
    """
    place = np.arange(len(visits.symbol))
    size = quiet = furthest = 0
    while quiet < knowledge:
        size = size % knowledge + 1
        changed = True
        rounds = 0
        while changed:
            visits, moved, changed = _break_rare(visits, k, size)
            place = np.append(moved, -1)[place]  # removed visits, -1, stay removed
            rounds += changed
        quiet = 1 if rounds else quiet + 1
        furthest = max(furthest, quiet)
        progress(furthest, knowledge)
    return place


def _break_rare(visits: Visits, k: int, size: int) -> tuple[Visits, Ints, bool]:
    """Count combinations of a size, and remove visits so that no combination that is rare now is left: one round."""
    if not len(visits.symbol):
        return visits, np.zeros(0, np.int64), False
    names, symbol = np.unique(visits.symbol, return_inverse=True)
    pairs = np.zeros(0, np.int64)
    if size > 2:
        _check_combinations(visits, 2)
        pairs = _shared_combinations(visits, symbol, len(names), 2, 1, pairs)
    _check_combinations(visits, size)
    good = _shared_combinations(visits, symbol, len(names), size, k, pairs)
    fate, changed = apart(lambda: break_combinations(size, symbol, len(names), visits.offsets, pairs, good))
    left, place = visits.without(fate)
    return left, place, changed > 0


def _shared_combinations(visits: Visits, symbol: Ints, symbols: int, size: int, k: int, pairs: Ints) -> Ints:
    """Return all combinations that k owners share, sorted; block by block of first symbols, so that few are in memory."""
    blocks = visits.combinations(size) // BLOCK + 1
    found = []
    for block in range(blocks):
        keys, trajectory = list_combinations(size, block, blocks, symbol, symbols, visits.offsets, pairs)
        order = np.argsort(keys, kind="stable")  # trajectories are in order of owners, and stay so
        keys, owner = keys[order], visits.owner[trajectory[order]]
        differs = np.diff(keys, prepend=-1) != 0
        counts = differs | (np.diff(owner, prepend=-1) != 0)
        first = np.flatnonzero(differs)
        crowd = np.add.reduceat(counts, first, dtype=np.int64) if len(first) else first
        found.append(keys[first][crowd >= k])
    return np.sort(np.concatenate(found))


def _check_combinations(visits: Visits, size: int) -> None:
    if visits.combinations(size) > MAX_COMBINATIONS:
        raise InputError(
            Option("knowledge"),
            f"{visits.combinations(size):,} combinations of {size} visits are more than can be counted. Choose less "
            "knowledge, larger tiles or a longer time interval, or cut trajectories into shorter ones.",
        )
