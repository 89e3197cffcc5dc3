"""The OD matrix of one time step: its rows by origin tile, and the people behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdveil.kernels.od.structures import MatrixRows, PeoplePairs
from crowdveil.model.arrays import Indices, Ints, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.solve.od.region_space import RegionSpace

_NONE = frozen(np.zeros(0, np.int64), np.int64)
_NO_TILE = frozen(np.zeros(0, np.int32), np.int32)


@dataclass(frozen=True, eq=False)
class Matrix:
    """The rows of a time step, in order of origin and destination; or those of several, where a pair of tiles may repeat.

    Attributes
    ----------
    system
        The regions that boxes are made of.
    offsets, leaving
        The rows of each origin tile, and the trips that leave it.
    destination
        The destination tile of each row.
    volume, crowd
        Trips, and people (or trips) where they add up.
    total
        The number of all trips.
    person, person_origin, person_destination
        Who went from which tile to which; empty where people are not known.
    """

    system: RegionSpace
    offsets: Ints
    leaving: Ints
    destination: Indices
    volume: Ints
    crowd: Ints
    total: int
    person: Ints
    person_origin: Indices
    person_destination: Indices

    @classmethod
    def of(cls, data: Flows, step: int, system: RegionSpace) -> Matrix:
        """Take a time step out of the data."""
        return cls.over(data, step, step + 1, system)

    @classmethod
    def over(cls, data: Flows, first: int, last: int, system: RegionSpace) -> Matrix:
        """Take the time steps from `first` to before `last` out of the data, as one matrix.

        Each row is still the cell of one time step; a person is listed once for each pair of tiles.
        """
        low, high = int(data.offsets[first]), int(data.offsets[last])
        rows = slice(low, high)
        origin, destination, volume, crowd = (
            data.origin[rows],
            data.destination[rows],
            data.volume[rows],
            data.people[rows],
        )
        people = (_NONE, _NO_TILE, _NO_TILE)
        if data.person_ids is not None and data.person_offsets is not None:
            members = data.person_offsets[low : high + 1]
            row = row_slices(members - members[0])
            people = (data.person_ids[members[0] : members[-1]], origin[row], destination[row])
            if last - first > 1:
                people = _each_once(*people, len(data.zones))
        if last - first > 1:
            order = np.argsort(origin, kind="stable")
            origin, destination = (frozen(a[order], np.int32) for a in (origin, destination))
            volume, crowd = (frozen(a[order], np.int64) for a in (volume, crowd))
        offsets = np.searchsorted(origin, np.arange(len(data.zones) + 1))
        before = np.append(0, np.cumsum(volume))
        leaving = frozen(np.diff(before[offsets]), np.int64)
        return cls(system, frozen(offsets, np.int64), leaving, destination, volume, crowd, int(before[-1]), *people)

    @cached_property
    def rows_by_leaf(self) -> MatrixRows:
        """Return the rows by leaf of the tree of origins, so that those of any node follow one another."""
        tiles = self.system.origins.tree.leaf_tile.astype(np.int64)
        rows, offsets = take_slices(self.offsets, tiles)
        volume, crowd = (frozen(column[rows], np.int64) for column in (self.volume, self.crowd))
        return MatrixRows(frozen(offsets, np.int64), frozen(self.destination[rows], np.int32), volume, crowd)

    def in_order_of_leaves(self, rows: MatrixRows) -> MatrixRows:
        """Return rows with those of each origin in order of the leaves of their destinations."""
        tree = self.system.destinations.tree
        order = np.argsort(row_slices(rows.offsets) * tree.tiles + tree.tile_leaf[rows.tile], kind="stable")
        volume, crowd = (frozen(column[order], np.int64) for column in (rows.volume, rows.crowd))
        return MatrixRows(rows.offsets, frozen(rows.tile[order], np.int32), volume, crowd)

    @property
    def rows(self) -> MatrixRows:
        """Return the rows by origin tile."""
        return MatrixRows(self.offsets, self.destination, self.volume, self.crowd)

    def pairs_by(self, group: Indices, groups: int) -> PeoplePairs:
        """Return who went to which leaf, by group of origin leaves."""
        if len(self.person) == 0:
            return PeoplePairs(_NONE, _NONE, _NONE)
        of_pair = group[self.system.origins.tree.tile_leaf[self.person_origin]]
        leaf = self.system.destinations.tree.tile_leaf[self.person_destination]
        order = np.lexsort((leaf, self.person, of_pair))
        offsets = np.searchsorted(of_pair[order], np.arange(groups + 1))
        return PeoplePairs(*(frozen(c, np.int64) for c in (offsets, self.person[order], leaf[order])))

    def pairs_by_person(self) -> tuple[Ints, Ints, Ints]:
        """Return people, numbered without gaps, with their origin and destination tiles, in order of person."""
        if len(self.person) == 0:
            return _NONE, _NONE, _NONE
        order = np.argsort(self.person, kind="stable")
        _, number = np.unique(self.person, return_inverse=True)
        columns = (number[order], self.person_origin[order], self.person_destination[order])
        return tuple(frozen(c, np.int64) for c in columns)  # type: ignore[return-value]


def _each_once(person: Ints, origin: Indices, destination: Indices, tiles: int) -> tuple[Ints, Indices, Indices]:
    """Return each person once for each pair of tiles."""
    pair = origin.astype(np.int64) * tiles + destination
    order = np.lexsort((pair, person))
    person, pair = person[order], pair[order]
    new = np.ones(len(pair), np.bool_)
    new[1:] = (np.diff(person) != 0) | (np.diff(pair) != 0)
    origin, destination = (frozen(a, np.int32) for a in np.divmod(pair[new], tiles))
    return frozen(person[new], np.int64), origin, destination
