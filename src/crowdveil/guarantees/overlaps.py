"""Find pairs of tiles that lie in two rows of a time step, and the row of each pair.

Tiles in the same set of areas are one *atom*. For each atom of origins, the atoms of destinations that rows cover are counted:
where one is covered twice, two rows overlap. Only what is covered from a few atoms of origins is in memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crowdveil.model.arrays import Ints, group_sums, row_slices, take_slices

AT_ONCE = 1 << 20
"""Covered pairs of atoms in memory; those of one atom of origins are not parted."""


class _Side(NamedTuple):
    """The atoms of origins, or of destinations: of each tile (-1 in no area), of each area, and the area of each row."""

    of_tile: Ints
    offsets: Ints
    atoms: Ints
    area: Ints

    @property
    def number(self) -> int:
        """Return the number of atoms."""
        return int(self.of_tile.max(initial=-1)) + 1

    def of_rows(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the atoms of some rows, and the position of the row of each."""
        taken, bounds = take_slices(self.offsets, self.area[rows])
        return self.atoms[taken], row_slices(bounds)


def rows_of_pairs(
    areas: list[Ints], tiles: int, origin: Ints, destination: Ints, pairs: tuple[Ints, Ints]
) -> Ints | None:
    """Return the row of each pair of tiles, -1 where there is none; None where two rows have a pair in common.

    Parameters
    ----------
    areas, tiles
        The tiles of each area, and how many tiles there are.
    origin, destination
        The areas of each row.
    pairs
        Origin and destination of the pairs; -1 is a tile in no area.
    """
    one, other = _side(areas, tiles, origin), _side(areas, tiles, destination)
    line, row = one.of_rows(np.arange(len(origin)))
    order = np.argsort(line, kind="stable")
    line, row = line[order], row[order]
    covered = group_sums(line, np.diff(other.offsets)[other.area][row], one.number)
    if np.any(covered > other.number):
        return None  # more than there are
    found = np.full(len(pairs[0]), -1, np.int64)
    from_atom, to_atom = (side.of_tile[tile] for side, tile in zip((one, other), pairs, strict=True))
    starts = np.flatnonzero(np.diff((np.cumsum(covered) - covered) // AT_ONCE, prepend=-1))
    for low, high in pairwise([*starts.tolist(), one.number]):
        entries = slice(*np.searchsorted(line, [low, high]))
        atom, entry = other.of_rows(row[entries])
        pair = line[entries][entry] * other.number + atom
        order = np.argsort(pair)
        pair, row_of_pair = pair[order], row[entries][entry][order]
        if np.any(pair[1:] == pair[:-1]):
            return None
        here = np.flatnonzero((from_atom >= low) & (from_atom < high) & (to_atom >= 0))
        wanted = from_atom[here] * other.number + to_atom[here]
        at = np.searchsorted(pair, wanted)
        known = np.append(pair, -1)[at] == wanted
        found[here[known]] = row_of_pair[at[known]]
    return found


def _side(areas: list[Ints], tiles: int, of_row: Ints) -> _Side:
    """Find the atoms of the areas that rows name."""
    used, area_of_row = np.unique(of_row, return_inverse=True)
    held = [areas[area] for area in used.tolist()]
    area = np.repeat(np.arange(len(held)), [len(part) for part in held])
    tile = np.concatenate([np.zeros(0, np.int64), *held])
    tile, area = np.divmod(np.unique(tile * len(held) + area), max(len(held), 1))
    first = np.flatnonzero(np.diff(tile, prepend=-1))
    last = np.append(first[1:], len(tile)).tolist()
    numbers: dict[bytes, int] = {}
    atom = np.array(
        [numbers.setdefault(area[a:b].tobytes(), len(numbers)) for a, b in zip(first.tolist(), last, strict=False)],
        np.int64,
    )
    of_tile = np.full(tiles + 1, -1, np.int64)  # the last is for tiles in no area
    of_tile[tile[first]] = atom
    pairs = np.unique(area * max(len(numbers), 1) + of_tile[tile])
    area, atoms = np.divmod(pairs, max(len(numbers), 1))
    offsets = np.searchsorted(area, np.arange(len(held) + 1))
    return _Side(of_tile, offsets, atoms, area_of_row)
