"""One time step on two trees: its rows by leaf, and who is behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdveil.model.arrays import Ints, frozen, row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.systems import System

_NONE = frozen(np.zeros(0, np.int64), np.int64)


@dataclass(frozen=True, eq=False)
class Matrix:
    """The rows of a time step, in no particular order.

    Attributes
    ----------
    system
        The trees.
    origin, destination
        Leaf positions in the tree of origins and in that of destinations.
    volume, crowd
        Trips, and people (or trips) where they add up.
    person, person_origin, person_destination
        Who went from which leaf to which; empty where people are not known.
    """

    system: System
    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    person: Ints
    person_origin: Ints
    person_destination: Ints

    @classmethod
    def of(cls, data: Flows, step: int, system: System) -> Matrix:
        """A time step of the data."""
        low, high = data.offsets[step], data.offsets[step + 1]
        origin = frozen(system.origins.tree.tile_leaf[data.origin[low:high]], np.int64)
        destination = frozen(system.destinations.tree.tile_leaf[data.destination[low:high]], np.int64)
        people = (_NONE, _NONE, _NONE)
        if data.member is not None and data.member_offsets is not None:
            offsets = data.member_offsets[low : high + 1]
            row = row_slices(offsets - offsets[0])
            people = (data.member[offsets[0] : offsets[-1]], origin[row], destination[row])
        return cls(system, origin, destination, data.volume[low:high], data.people[low:high], *people)

    @property
    def total(self) -> int:
        """All trips."""
        return int(self.volume.sum())

    @cached_property
    def outgoing(self) -> Ints:
        """The volume that leaves each node of the tree of origins."""
        tree = self.system.origins.tree
        before = np.zeros(tree.tiles + 1, np.int64)
        np.cumsum(np.bincount(self.origin, self.volume, tree.tiles).astype(np.int64), out=before[1:])
        sums: Ints = before[tree.last_leaf] - before[tree.first_leaf]
        return sums

    def pairs_by(self, group: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
        """By group of origin leaves who went to which leaf: offsets, people, leaves, in order of person and leaf."""
        if len(self.person) == 0:
            return _NONE, _NONE, _NONE
        of_pair = group[self.person_origin]
        order = np.lexsort((self.person_destination, self.person, of_pair))
        offsets = np.searchsorted(of_pair[order], np.arange(groups + 1))
        columns = (offsets, self.person[order], self.person_destination[order])
        return tuple(frozen(c, np.int64) for c in columns)  # type: ignore[return-value]
