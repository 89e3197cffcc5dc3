"""OD flows: how many trips, by how many people, went from tile to tile in each step of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Literal

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import (
    Indices,
    Ints,
    Mask,
    check_lengths,
    check_offsets,
    frozen,
    require,
    row_slices,
    take_slices,
)
from crowdveil.model.zones import Zones

if TYPE_CHECKING:  # checkers read flows, and must not import what trees are built with
    from crowdveil.model.hierarchy import Hierarchy

FlowCounts = Literal["people", "trips"]
WEIGHT_UNITS = 10**9
"""Weights of trips are whole numbers of this part of a trip."""


@dataclass(frozen=True, eq=False)
class Flows:
    """All matrices of a data set in one table, sorted by (step, origin, destination); a matrix is a slice.

    Attributes
    ----------
    zones
        The tiles that origins and destinations are indices of.
    t
        Start of each time step, seconds since 1970-01-01 UTC, rising. One step, 0, where the data has no times.
    offsets
        The rows of step i are offsets[i] to offsets[i + 1].
    origin, destination
        Tile indices.
    volume
        Trips, or their weighted number; whole, and zero only where weights are rounded to nothing.
    people
        The crowd behind the row, which k is compared with: distinct people where they are known (`counts` is
        "people"), otherwise trips (`counts` is "trips"). Weights never enter it.
    counts
        What `people` counts.
    step_s
        Length of a time step in seconds; None where the data has no times.
    tz
        The time zone that the steps were cut in.
    member_offsets, member
        Who is behind each row, as numbers that mean nothing elsewhere: those of row i are
        member[member_offsets[i]:member_offsets[i + 1]], rising. None unless asked for: methods that put rows together
        need them, since people of two rows may be the same ones.
    origin_tree, destination_tree
        Trees over the zones that the user gave, or None.
    visited_tiles
        Where these are some time steps of a larger data set: whether any trip of that starts or ends in each tile.
    weight
        Where trips are weighted: the exact weight of each row, in `WEIGHT_UNITS` to a trip. Volumes are these, rounded.
    dropped_weight
        Weight of time steps that are not here because all of it is rounded to nothing, in the same units.
    distinct_people
        Number of distinct people in all rows; None where it is not known.
    """

    zones: Zones
    t: Ints
    offsets: Ints
    origin: Indices
    destination: Indices
    volume: Ints
    people: Ints
    counts: FlowCounts = "trips"
    step_s: int | None = None
    tz: str = "UTC"
    member_offsets: Ints | None = None
    member: Ints | None = None
    origin_tree: Hierarchy | None = None
    destination_tree: Hierarchy | None = None
    visited_tiles: Mask | None = None
    weight: Ints | None = None
    dropped_weight: int = 0
    distinct_people: int | None = None

    def __post_init__(self) -> None:
        for name, dtype in _COLUMN_TYPES.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        n = len(self.origin)
        if self.member_offsets is not None and self.member is not None:
            check_offsets(self.member_offsets, len(self.member), "flows")
            fits = len(self.member_offsets) == n + 1 and bool(np.all(np.diff(self.member_offsets) == self.people))
            require(fits, "flows: the members of each row must be as many as its people.")
        check_lengths("flows", n, destination=self.destination, volume=self.volume, people=self.people)
        if self.weight is not None:
            check_lengths("flows", n, weight=self.weight)
        check_offsets(self.offsets, n, "flows")
        require(len(self.t) == len(self.offsets) - 1, "flows: there must be one time for each step.")
        require(bool(np.all(np.diff(self.t) > 0)), "flows: steps must be in order of time, each once.")
        if n:
            self._check_rows()

    def _check_rows(self) -> None:
        low = min(int(self.origin.min()), int(self.destination.min()))
        high = max(int(self.origin.max()), int(self.destination.max()))
        if low < 0 or high >= len(self.zones):
            raise InputError("flows", f"an origin or destination is none of the {len(self.zones):,} zones.")
        low_volume = 0 if self.weight is not None else 1
        require(int(self.volume.min()) >= low_volume, "flows: volumes must be above zero.")
        require(int(self.people.min()) > 0, "flows: the number of people must be above zero.")
        rising = all(self._rises(low, min(low + _PIECE, len(self))) for low in range(0, len(self), _PIECE))
        require(rising, "flows: rows must be sorted by step, origin, destination, each pair once.")

    def _rises(self, low: int, high: int) -> bool:
        """Whether rows from `low` to `high` rise inside each step, and with the row before them."""
        low = max(low, 1)
        o, d = self.origin[low - 1 : high], self.destination[low - 1 : high]
        rising = (o[1:] > o[:-1]) | ((o[1:] == o[:-1]) & (d[1:] > d[:-1]))
        first, last = np.searchsorted(self.offsets, (low, high))
        rising[self.offsets[first:last] - low] = True  # a new step begins anew
        return bool(rising.all())

    def __len__(self) -> int:
        return len(self.origin)

    @property
    def steps(self) -> int:
        """Number of time steps, each a matrix."""
        return len(self.t)

    @property
    def total(self) -> int:
        """Volume of all flows."""
        return int(self.volume.sum())

    @property
    def exact_units(self) -> int:
        """What all flows add up to before anything is rounded, in `WEIGHT_UNITS` to a trip."""
        if self.weight is None:
            return self.total * WEIGHT_UNITS
        whole, rest = np.divmod(self.weight, WEIGHT_UNITS)  # apart, so that no sum is too large
        return int(whole.sum()) * WEIGHT_UNITS + int(rest.sum()) + self.dropped_weight

    @property
    def crowd(self) -> int:
        """The distinct people, or trips, in all flows; where it is not known who the people are, an upper bound of them."""
        if self.distinct_people is not None:
            return self.distinct_people
        return int(self.people.sum()) if self.member is None else len(np.unique(self.member))

    @property
    def crowd_is_exact(self) -> bool:
        """Whether `crowd` is a number and not only an upper bound."""
        return self.counts == "trips" or self.distinct_people is not None or self.member is not None

    @property
    def visited(self) -> Mask:
        """Whether any trip starts or ends in each tile, of the whole data set where these flows are a part of one."""
        if self.visited_tiles is not None:
            return self.visited_tiles
        visited = np.zeros(len(self.zones), np.bool_)
        visited[self.origin] = visited[self.destination] = True
        return visited

    @property
    def step(self) -> Ints:
        """The time step of each row."""
        return row_slices(self.offsets)

    def crowd_of(self, step: int) -> int:
        """The people in a time step; where it is not known who they are, an upper bound."""
        low, high = self.offsets[step], self.offsets[step + 1]
        if self.member is not None and self.member_offsets is not None:
            return len(np.unique(self.member[self.member_offsets[low] : self.member_offsets[high]]))
        return int(self.people[low:high].sum())

    def where(self, keep: Mask) -> Flows:
        """The rows in `keep`; every time step stays, even if it has no row left."""
        kept_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
        member_offsets = member = None
        if self.member_offsets is not None and self.member is not None:
            rows, member_offsets = take_slices(self.member_offsets, np.flatnonzero(keep))
            member = self.member[rows]
        return replace(
            self,
            offsets=kept_before[self.offsets],
            origin=self.origin[keep],
            destination=self.destination[keep],
            volume=self.volume[keep],
            people=self.people[keep],
            weight=None if self.weight is None else self.weight[keep],
            member_offsets=member_offsets,
            member=member,
            distinct_people=None,
        )

    def at_steps(self, which: Ints) -> Flows:
        """The matrices of these time steps alone, named by their numbers, rising."""
        rows, offsets = take_slices(self.offsets, which)
        member_offsets = member = None
        if self.member_offsets is not None and self.member is not None:
            taken, member_offsets = take_slices(self.member_offsets, rows)
            member = self.member[taken]
        return replace(
            self,
            t=self.t[which],
            offsets=offsets,
            origin=self.origin[rows],
            destination=self.destination[rows],
            volume=self.volume[rows],
            people=self.people[rows],
            weight=None if self.weight is None else self.weight[rows],
            member_offsets=member_offsets,
            member=member,
            distinct_people=None,
        )

    def suppressed_totals(self, suppressed: Mask, volume: Ints, k: int, not_given: int) -> Ints:
        """`volume`, that of the suppressed rows of each step, or `not_given` where it is not sure that k people made it.

        Where people are counted, those of different rows may be the same people: unless it is known who they are, only the
        largest row is a lower bound of the crowd behind them all.
        """
        step = self.step[suppressed]
        crowd = np.zeros(self.steps, np.int64)
        if self.member is not None and self.member_offsets is not None:
            rows, offsets = take_slices(self.member_offsets, np.flatnonzero(suppressed))
            pairs = np.unique(np.column_stack([step[row_slices(offsets)], self.member[rows]]), axis=0)
            crowd = np.bincount(pairs[:, 0], minlength=self.steps)
        else:
            (np.maximum if self.counts == "people" else np.add).at(crowd, step, self.people[suppressed])
        # With weights below one, k people may stand for less than k trips; such a total is not worth telling either.
        return np.where((volume == 0) | (np.minimum(volume, crowd) >= k), volume, not_given)

    @classmethod
    def from_rows(
        cls,
        zones: Zones,
        t: Ints,
        origin: Indices,
        destination: Indices,
        volume: Ints,
        people: Ints | None = None,
        *,
        step_s: int | None = None,
        tz: str = "UTC",
    ) -> Flows:
        """Flows from unsorted rows with their step's start `t`. Rows of the same step and pair must not repeat."""
        order = np.lexsort((destination, origin, t))
        steps, counts = np.unique(t, return_counts=True)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        crowd = volume if people is None else people
        return cls(
            zones,
            steps,
            offsets,
            origin[order],
            destination[order],
            volume[order],
            crowd[order],
            "trips" if people is None else "people",
            step_s,
            tz,
        )


def trips_within(share: float, volume: int) -> int:
    """Return how many whole trips a share of a volume is; the share is taken as it is written in decimals, and exactly."""
    return floor(Fraction(repr(float(share))) * volume)


_PIECE = 1 << 17
"""Rows that are looked at together: so few stay near the processor."""
_COLUMN_TYPES = {
    "t": np.int64,
    "offsets": np.int64,
    "origin": np.int32,
    "destination": np.int32,
    "volume": np.int64,
    "people": np.int64,
    "member_offsets": np.int64,
    "member": np.int64,
    "visited_tiles": np.bool_,
    "weight": np.int64,
}
