"""One time step on two trees: its rows by leaf, and who is behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdveil.model.arrays import Indices, Ints, frozen, row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.systems import System

_NONE = frozen(np.zeros(0, np.int64), np.int64)
_NO_LEAF = frozen(np.zeros(0, np.int32), np.int32)


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
    origin: Indices
    destination: Indices
    volume: Ints
    crowd: Ints
    person: Ints
    person_origin: Indices
    person_destination: Indices

    @classmethod
    def of(cls, data: Flows, step: int, system: System) -> Matrix:
        """A time step of the data."""
        low, high = data.offsets[step], data.offsets[step + 1]
        origin = frozen(system.origins.tree.tile_leaf[data.origin[low:high]], np.int32)
        destination = frozen(system.destinations.tree.tile_leaf[data.destination[low:high]], np.int32)
        people = (_NONE, _NO_LEAF, _NO_LEAF)
        if data.member is not None and data.member_offsets is not None:
            offsets = data.member_offsets[low : high + 1]
            row = row_slices(offsets - offsets[0])
            people = (data.member[offsets[0] : offsets[-1]], origin[row], destination[row])
        return cls(system, origin, destination, data.volume[low:high], data.people[low:high], *people)

    @cached_property
    def total(self) -> int:
        """All trips."""
        return int(self.volume.sum())

    def pairs_by(self, group: Indices, groups: int) -> tuple[Ints, Ints, Ints]:
        """By group of origin leaves who went to which leaf: offsets, people, leaves, in order of person and leaf."""
        if len(self.person) == 0:
            return _NONE, _NONE, _NONE
        of_pair = group[self.person_origin]
        order = np.lexsort((self.person_destination, self.person, of_pair))
        offsets = np.searchsorted(of_pair[order], np.arange(groups + 1))
        columns = (offsets, self.person[order], self.person_destination[order])
        return tuple(frozen(c, np.int64) for c in columns)  # type: ignore[return-value]
