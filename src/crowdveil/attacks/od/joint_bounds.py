"""Bounds of volumes from three or more published releases together, by cells: pairs of tiles in a shortest interval of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crowdveil.attacks.od.release_overlaps import TimedRows
from crowdveil.model.arrays import Ints, group_sums

MAX_CELLS = 50_000_000
"""Cells that are looked at; more are too many for the memory."""
MAX_ROUNDS = 100
MAX_ATOMS = 60
"""Overlaps of a component whose bounds are found by linear programs."""


class JointBounds(NamedTuple):
    """What all releases reveal together: the bounds of the volume of each overlap of rows of all releases."""

    lowest: Ints
    highest: Ints

    def recovered(self, k: int) -> int:
        """Count the overlaps whose volume of 1 to k - 1 is known exactly."""
        return int(np.count_nonzero((self.lowest == self.highest) & (self.lowest >= 1) & (self.lowest < k)))

    def confined(self, k: int) -> int:
        """Count the overlaps whose volume is certain to be within 1 to k - 1."""
        return int(np.count_nonzero((self.lowest >= 1) & (self.highest < k)))


def joint_bounds(releases: Sequence[TimedRows]) -> JointBounds | None:
    """Return the bounds of each overlap; None where volumes contradict each other or there are too many cells.

    Bounds are narrowed row by row until nothing changes: the largest volume of an overlap is what its row leaves when all others
    are smallest, and the reverse. In small components linear programs give the narrowest ones.
    """
    moments = np.unique(np.concatenate([side for one in releases for side in (*one.windows, one.start, one.end)]))
    tiles = len(releases[0].release.areas.zones)
    if (len(moments) - 1) * tiles * tiles > MAX_CELLS:
        return None
    atoms = _atoms([_rows_of_cells(one, moments, tiles) for one in releases])
    first = np.cumsum([0, *(len(one.volume) for one in releases)])
    rows = np.where(atoms >= 0, atoms + first[:-1], -1)
    volume = np.concatenate([one.volume for one in releases])
    low, high = np.zeros(len(rows), np.int64), np.full(len(rows), int(volume.max(initial=0)))
    for _ in range(MAX_ROUNDS):
        before = low.copy(), high.copy()
        low, high = _narrowed(rows, volume, low, high)
        if np.any(low > high):
            return None
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    _by_programs(rows, volume, low, high)
    return None if np.any(low > high) else JointBounds(low, high)


def _rows_of_cells(side: TimedRows, moments: Ints, tiles: int) -> Ints:
    """Return the row of each cell, -1 where none is published; a suppressed total is the row of all cells of its window left."""
    release, areas = side.release, side.release.areas
    row = np.full((len(moments) - 1, tiles, tiles), -1, np.int64)
    for total, start, end in zip(side.totals.tolist(), *side.windows, strict=True):
        if total >= 0:
            row[np.searchsorted(moments, start) : np.searchsorted(moments, end)] = total
    held = [areas.tiles[low:high] for low, high in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)]
    first, last = np.searchsorted(moments, side.start), np.searchsorted(moments, side.end)
    ends = zip(first.tolist(), last.tolist(), release.origin.tolist(), release.destination.tolist(), strict=True)
    for i, (low, high, o, d) in enumerate(ends):
        row[np.ix_(np.arange(low, high), held[o], held[d])] = i
    return row.ravel()


def _atoms(rows: Sequence[Ints]) -> Ints:
    """Return the combinations of rows that cells lie in, a line each."""
    covered = np.zeros(len(rows[0]), np.bool_)
    for one in rows:
        covered |= one >= 0
    number = np.zeros(int(covered.sum()), np.int64)
    for one in rows:
        own = one[covered].astype(np.int64)
        _, number = np.unique(number * (int(own.max(initial=-1)) + 2) + own + 1, return_inverse=True)
    _, place = np.unique(number, return_index=True)
    return np.column_stack([one[covered][place].astype(np.int64) for one in rows])


def _narrowed(rows: Ints, volume: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Narrow the bounds of each overlap once by each release."""
    for row in rows.T:
        inside = np.flatnonzero(row >= 0)
        of = row[inside]
        lows, highs = (group_sums(of, side[inside], len(volume)) for side in (low, high))
        low, high = low.copy(), high.copy()
        most = volume[of] - (lows[of] - low[inside])
        least = volume[of] - (highs[of] - high[inside])
        high[inside], low[inside] = np.minimum(high[inside], most), np.maximum(low[inside], least)
    return low, high


def _by_programs(rows: Ints, volume: Ints, low: Ints, high: Ints) -> None:
    """Narrow the bounds of overlaps in small components by linear programs, in place."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = len(rows), len(volume)
    atom, column = np.nonzero(rows >= 0)
    links = coo_array((np.ones(len(atom)), (atom, n + rows[atom, column])), shape=(n + m, n + m))
    component = connected_components(links, directed=False)[1][:n]
    order = np.argsort(component, kind="stable")
    bounds = np.searchsorted(component[order], np.arange(component.max(initial=-1) + 2))
    for members in np.split(order, bounds[1:-1]):
        open_ = members[(low[members] < high[members])]
        if len(members) > MAX_ATOMS or not len(open_):
            continue
        used = np.unique(rows[members][rows[members] >= 0])
        sums = np.array([(rows[members] == row).any(axis=1) for row in used], np.float64)
        limits = list(zip(low[members], high[members], strict=True))
        for i in np.flatnonzero(np.isin(members, open_)).tolist():
            goal = np.zeros(len(members))
            goal[i] = 1
            found = [linprog(sign * goal, A_eq=sums, b_eq=volume[used], bounds=limits) for sign in (1, -1)]
            if all(one.status == 0 for one in found):
                low[members[i]] = max(low[members[i]], int(np.ceil(found[0].fun - 1e-6)))
                high[members[i]] = min(high[members[i]], int(np.floor(-found[1].fun + 1e-6)))
