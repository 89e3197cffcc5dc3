"""Find pairs of tiles that lie in two rows of a time step, and the row of each pair.

Tiles of a time step that are in the same areas are one *atom*. A product of sparse matrices (atoms of origins × areas, areas ×
areas with the numbers of rows, areas × atoms of destinations) has the row of each pair of atoms. Where two rows meet, it has
fewer entries than they cover. To bound memory, groups of time steps, and of atoms of origins in each, are checked one after
the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from crowdveil.model.arrays import Ints, Mask, group_sums, groups_of, row_slices, sorted_distinct, take_slices

AT_ONCE = 1 << 21
"""Pairs of atoms, and tiles of areas, in memory; exceeded only by a single atom of origins or time step."""


class Pairs(NamedTuple):
    """Time step, origin and destination of rows (areas) or of flows (tiles; -1 is a tile in no area), in order of time steps."""

    step: Ints
    origin: Ints
    destination: Ints

    def in_steps(self, low: int, high: int) -> tuple[slice, Pairs]:
        """Return the rows of some time steps as a slice, and their values, with time steps numbered from 0."""
        here = slice(*np.searchsorted(self.step, [low, high]))
        return here, Pairs(self.step[here] - low, self.origin[here], self.destination[here])


class _Side(NamedTuple):
    """The atoms of origins, or of destinations, numbered in order of time steps.

    `of_tile` has the atom of each tile of each time step, -1 in no area; `first` the first atom of each time step; `atoms` has a
    line for each area of a time step and a column for each atom, 1 where the area contains the atom; `area` is that of each row.
    """

    of_tile: Ints
    first: Ints
    atoms: sparse.csr_array
    area: Ints


def rows_of_pairs(areas: tuple[Ints, Ints], tiles: int, steps: int, rows: Pairs, pairs: Pairs) -> tuple[Ints, Mask]:
    """Return the row of each pair of tiles, -1 if there is none; and the time steps with a pair in two rows.

    In these time steps, the row of a pair is not defined.

    Parameters
    ----------
    areas, tiles
        The tiles of all areas, one area after the other: the offset of each, and the tiles; and how many tiles there are.
    steps
        How many time steps there are.
    rows, pairs
        Rows by their areas, and pairs by their tiles.
    """
    found, crossed = np.full(len(pairs.step), -1, np.int64), np.zeros(steps, np.bool_)
    sizes = np.diff(areas[0])
    work = tiles + group_sums(rows.step, sizes[rows.origin] + sizes[rows.destination], steps)
    for low, high in groups_of(work, AT_ONCE):
        (here, some_rows), (there, some_pairs) = rows.in_steps(low, high), pairs.in_steps(low, high)
        one, other = (_side(areas, tiles, high - low, some_rows.step, area) for area in some_rows[1:])
        row, crossed[low:high] = _in_group(one, other, tiles, some_rows, some_pairs)
        found[there] = np.where(row < 0, -1, row + here.start)
    return found, crossed


def _in_group(one: _Side, other: _Side, tiles: int, rows: Pairs, pairs: Pairs) -> tuple[Ints, Mask]:
    """Return the row of each pair, and the time steps with overlaps, of a group of time steps."""
    found, crossed = np.full(len(pairs.step), -1, np.int64), np.zeros(len(one.first) - 1, np.bool_)
    atoms, shape = one.atoms.T.tocsr(), (one.atoms.shape[0], other.atoms.shape[0])
    number = sparse.csr_array((np.arange(1, len(rows.step) + 1), (one.area, other.area)), shape)  # of rows, from 1
    # For each atom of origins: the pairs that its rows cover, each row by itself, and the pairs that there are.
    sizes = group_sums(one.area, np.diff(other.atoms.indptr)[other.area], shape[0])
    covered, width = atoms @ sizes, np.repeat(np.diff(other.first), np.diff(one.first))
    step = np.repeat(np.arange(len(crossed)), np.diff(one.first))
    crossed[step[covered > width]] = True

    from_atom, to_atom = (
        side.of_tile[np.where(tile < 0, len(side.of_tile) - 1, pairs.step * tiles + tile)]
        for side, tile in ((one, pairs.origin), (other, pairs.destination))
    )
    lines = np.flatnonzero(~crossed[step])
    for low, high in groups_of(covered[lines], AT_ONCE):
        line = lines[low:high]
        row = atoms[line] @ number @ other.atoms
        # Where two rows meet, a line has fewer pairs than its rows cover by themselves.
        crossed[step[line[np.diff(row.indptr) < covered[line]]]] = True
        here = np.flatnonzero(np.isin(from_atom, line) & (to_atom >= 0))
        if len(here):
            found[here] = row[np.searchsorted(line, from_atom[here]), to_atom[here]] - 1
    return found, crossed


def _side(areas: tuple[Ints, Ints], tiles: int, steps: int, step: Ints, area: Ints) -> _Side:
    """Find the atoms of the areas that the rows of each time step name."""
    offsets, tile_of_area = areas
    used, area_of_row = np.unique(step * len(offsets) + area, return_inverse=True)
    step, area = np.divmod(used, len(offsets))
    taken, bounds = take_slices(offsets, area)
    area = row_slices(bounds)
    # The tiles of all time steps, each with the areas that it is in, in order.
    listed = sorted_distinct((step[area] * tiles + tile_of_area[taken]) * len(used) + area)
    place, area = np.divmod(listed, max(len(used), 1))
    first = np.flatnonzero(np.diff(place, prepend=-1))
    number = np.diff(first, append=len(place))
    # Tiles are alike if they have the same number of areas, and the same first one, second one and so on.
    alike = np.zeros(len(first), np.int64)
    for depth in range(number.max(initial=0)):
        more = np.flatnonzero(number > depth)
        key = alike[more] * len(used) + area[first[more] + depth]
        alike[more] = np.unique(key, return_inverse=True)[1]
    step = place[first] // tiles
    key = (step * (number.max(initial=0) + 1) + number) * len(first) + alike
    distinct, atom = np.unique(key, return_inverse=True)

    of_tile = np.full(steps * tiles + 1, -1, np.int64)  # the last is for tiles in no area
    of_tile[place[first]] = atom
    step_of_atom = np.zeros(len(distinct), np.int64)
    step_of_atom[atom] = step
    atoms = sparse.csr_array((np.ones(len(place), np.int64), (area, of_tile[place])), (len(used), len(distinct)))
    atoms.data[:] = 1  # not the number of its tiles
    return _Side(of_tile, np.searchsorted(step_of_atom, np.arange(steps + 1)), atoms, area_of_row)
