"""Define OD flows: trips, and the people who made them, from tile to tile in each time step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.model.arrays import (
    Indices,
    Ints,
    Mask,
    check_lengths,
    check_offsets,
    count_distinct,
    freeze_columns,
    group_sums,
    require,
    row_slices,
    slice_sums,
    take_slices,
)
from crowdveil.model.tabular import Tabular
from crowdveil.model.time_axis import TimeAxis, period_seconds
from crowdveil.model.zones import Zones

if TYPE_CHECKING:  # checkers read flows, and must not import what trees are built with
    from crowdveil.model.hierarchy import Hierarchy
    from crowdveil.model.partition import Partition

FlowUnit = Literal["people", "trips"]
WEIGHT_UNITS = 10**9
"""Units of weight in one trip."""


class CountedTiles(NamedTuple):
    """The tiles that count where areas must have a number of tiles (l-diversity).

    `of` is `VISITED`, or the column of the zones that is above 0 in them; `tiles` says of each tile whether it counts.
    """

    of: str
    tiles: Mask


VISITED = "visited"
"""Tiles in which any trip of the data starts or ends."""


@dataclass(frozen=True, eq=False, repr=False)
class Flows(Tabular):
    """All matrices of a data set in one table, sorted by (step, origin, destination); a matrix is a slice.

    Attributes
    ----------
    zones
        The tiles; origins and destinations are indices of them.
    t
        Start of each time step, seconds since 1970-01-01 UTC, rising. One step, 0, where the data have no times.
    offsets
        Row i belongs to step j if offsets[j] <= i < offsets[j + 1].
    origin, destination
        Tile indices.
    volume
        Trips, or their weighted number; whole, and zero only where weights round to nothing.
    people
        The group size of the row, which k is compared with: distinct people where they are known (`k_unit` is
        "people"), otherwise trips (`k_unit` is "trips"). Weights never enter it.
    k_unit
        The unit of `people`.
    step_s
        Length of a time step in seconds; None where the data have no times.
    tz
        The time zone of the time steps.
    person_offsets, person_ids
        The people of each row, as numbers without meaning outside: those of row i are
        person_ids[person_offsets[i]:person_offsets[i + 1]], rising. None unless requested: methods that merge rows need
        them, since two rows may share people.
    origin_tree, destination_tree
        Trees over the zones given by the user, or None.
    partition
        A partition of the map that was made before, or None.
    counted
        The tiles that count where areas must have a number of tiles; None for all.
    weight
        Where trips are weighted: the exact weight of each row, in `WEIGHT_UNITS` to a trip. Volumes are these, rounded.
    dropped_weight
        Weight of time steps left out because all of it rounds to nothing, in the same units.
    distinct_people
        Number of distinct people in all rows; None where unknown.
    """

    zones: Zones
    t: Ints
    offsets: Ints
    origin: Indices
    destination: Indices
    volume: Ints
    people: Ints
    k_unit: FlowUnit = "trips"
    step_s: int | None = None
    tz: str = "UTC"
    person_offsets: Ints | None = None
    person_ids: Ints | None = None
    origin_tree: Hierarchy | None = None
    destination_tree: Hierarchy | None = None
    weight: Ints | None = None
    dropped_weight: int = 0
    distinct_people: int | None = None
    partition: Partition | None = None
    counted: CountedTiles | None = None

    def __post_init__(self) -> None:
        freeze_columns(self)
        n = len(self.origin)
        if self.person_offsets is not None and self.person_ids is not None:
            check_offsets(self.person_offsets, len(self.person_ids), "flows")
            fits = len(self.person_offsets) == n + 1 and bool(np.all(np.diff(self.person_offsets) == self.people))
            require(fits, "flows: each row must have as many person ids as people.")
        check_lengths(
            "flows", n, destination=self.destination, volume=self.volume, people=self.people, weight=self.weight
        )
        check_offsets(self.offsets, n, "flows")
        require(len(self.t) == len(self.offsets) - 1, "flows: there must be one time for each step.")
        require(bool(np.all(np.diff(self.t) > 0)), "flows: steps must be in order of time, each once.")
        if n:
            self._check_rows()

    def _check_rows(self) -> None:
        low = min(int(self.origin.min()), int(self.destination.min()))
        high = max(int(self.origin.max()), int(self.destination.max()))
        if low < 0 or high >= len(self.zones):
            raise InputError("flows", f"an origin or destination is not one of the {len(self.zones):,} zones.")
        low_volume = 0 if self.weight is not None else 1
        require(int(self.volume.min()) >= low_volume, "flows: volumes must be above zero.")
        require(int(self.people.min()) > 0, "flows: the number of people must be above zero.")
        rising = all(self._rises(low, min(low + _BLOCK, len(self))) for low in range(0, len(self), _BLOCK))
        require(rising, "flows: rows must be sorted by step, origin, destination, each pair once.")

    def _rises(self, low: int, high: int) -> bool:
        """Return whether rows from `low` to `high` rise inside each step, and from the row before them."""
        low = max(low, 1)
        o, d = self.origin[low - 1 : high], self.destination[low - 1 : high]
        rising = (o[1:] > o[:-1]) | ((o[1:] == o[:-1]) & (d[1:] > d[:-1]))
        first, last = np.searchsorted(self.offsets, (low, high))
        rising[self.offsets[first:last] - low] = True  # a new step may begin lower
        return bool(rising.all())

    def to_arrow(self) -> pa.Table:
        """Return the flows as a table with the zones' ids, as `write_flows` writes them. They are not anonymized."""
        ids = pa.array(self.zones.ids, pa.string())
        columns: dict[str, Any] = {}
        if self.step_s is not None:
            columns["t"] = pa.array(self.t * 1000, pa.timestamp("ms", tz=self.tz)).take(pa.array(self.step))
        columns["origin"] = ids.take(pa.array(self.origin))
        columns["destination"] = ids.take(pa.array(self.destination))
        columns["volume"] = self.volume
        if self.k_unit == "people":
            columns["people"] = self.people
        return pa.table(columns)

    def summary(self) -> str:
        """Return the numbers of flows, trips, time steps and zones."""
        return f"{len(self):,} flows, {self.total:,} trips, {self.steps:,} time steps, {len(self.zones):,} zones"

    def __len__(self) -> int:
        return len(self.origin)

    @property
    def steps(self) -> int:
        """Return the number of time steps, each a matrix."""
        return len(self.t)

    @property
    def total(self) -> int:
        """Return the volume of all flows."""
        return int(self.volume.sum())

    @property
    def exact_units(self) -> int:
        """Return the volume of all flows before rounding, in `WEIGHT_UNITS` to a trip."""
        if self.weight is None:
            return self.total * WEIGHT_UNITS
        whole, rest = np.divmod(self.weight, WEIGHT_UNITS)  # separately, so that no sum overflows
        return int(whole.sum()) * WEIGHT_UNITS + int(rest.sum()) + self.dropped_weight

    @property
    def total_people(self) -> int:
        """Return the distinct people, or trips, of all flows; an upper bound where person ids are unknown."""
        if self.distinct_people is not None:
            return self.distinct_people
        return int(self.people.sum()) if self.person_ids is None else count_distinct(self.person_ids)

    @property
    def total_people_is_exact(self) -> bool:
        """Return whether `total_people` is exact and not only an upper bound."""
        return self.k_unit == "trips" or self.distinct_people is not None or self.person_ids is not None

    @property
    def visited(self) -> Mask:
        """Return whether any trip starts or ends in each tile."""
        visited = np.zeros(len(self.zones), np.bool_)
        visited[self.origin] = visited[self.destination] = True
        return visited

    @cached_property
    def trips_by_step(self) -> Ints:
        """Return the volume of each time step."""
        return slice_sums(self.offsets, self.volume)

    @cached_property
    def people_by_step(self) -> Ints:
        """Return the sum of the people of the flows of each time step."""
        return slice_sums(self.offsets, self.people)

    @property
    def step(self) -> Ints:
        """Return the time step of each row."""
        return row_slices(self.offsets)

    def people_in_step(self, step: int) -> int:
        """Return the people of a time step; an upper bound where person ids are unknown."""
        low, high = self.offsets[step], self.offsets[step + 1]
        if self.person_ids is not None and self.person_offsets is not None:
            return count_distinct(self.person_ids[self.person_offsets[low] : self.person_offsets[high]])
        return int(self.people[low:high].sum())

    def where(self, keep: Mask) -> Flows:
        """Return the rows in `keep`; every time step stays, even without rows."""
        kept_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
        return self._take(np.flatnonzero(keep), kept_before[self.offsets], self.t)

    def at_steps(self, which: Ints) -> Flows:
        """Return the matrices of these time steps alone, given by their rising numbers."""
        return self._take(*take_slices(self.offsets, which), self.t[which])

    def with_steps(self, t: Ints) -> Flows:
        """Return the flows with these time steps as well, which are empty where there is no flow; given by their starts."""
        every = np.union1d(self.t, t)
        counts = np.zeros(len(every), np.int64)
        counts[np.searchsorted(every, self.t)] = np.diff(self.offsets)
        return replace(self, t=every, offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))

    def _take(self, rows: Ints, offsets: Ints, t: Ints) -> Flows:
        person_offsets = person_ids = None
        if self.person_offsets is not None and self.person_ids is not None:
            taken, person_offsets = take_slices(self.person_offsets, rows)
            person_ids = self.person_ids[taken]
        return replace(
            self,
            t=t,
            offsets=offsets,
            origin=self.origin[rows],
            destination=self.destination[rows],
            volume=self.volume[rows],
            people=self.people[rows],
            weight=None if self.weight is None else self.weight[rows],
            person_offsets=person_offsets,
            person_ids=person_ids,
            distinct_people=None,
        )

    def suppressed_totals(
        self, suppressed: Mask, volume: Ints, k: int, not_given: int, window: Ints | None = None
    ) -> Ints:
        """Return `volume`, that of the suppressed rows of each step, or `not_given` where k people may not have made it.

        Different rows may share people: without person ids only the largest row is a lower bound of the people of all
        rows. With the `window` of each step the volumes are those of windows; steps with -1 are in none.
        """
        step, groups = self.step[suppressed], self.steps
        if window is not None:
            suppressed = suppressed & (window >= 0)[self.step]
            step, groups = window[self.step[suppressed]], len(volume)
        people = np.zeros(groups, np.int64)
        if self.person_ids is not None and self.person_offsets is not None:
            rows, offsets = take_slices(self.person_offsets, np.flatnonzero(suppressed))
            pairs = np.unique(np.column_stack([step[row_slices(offsets)], self.person_ids[rows]]), axis=0)
            people = np.bincount(pairs[:, 0], minlength=groups)
        else:
            (np.maximum if self.k_unit == "people" else np.add).at(people, step, self.people[suppressed])
        # With weights below one, k people may stand for fewer than k trips; such a total is not published either.
        return np.where((volume == 0) | (np.minimum(volume, people) >= k), volume, not_given)

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
        """Make flows from unsorted rows with the start `t` of their step. No step and pair may repeat."""
        order = np.lexsort((destination, origin, t))
        steps, counts = np.unique(t, return_counts=True)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        group_size = volume if people is None else people
        return cls(
            zones,
            steps,
            offsets,
            origin[order],
            destination[order],
            volume[order],
            group_size[order],
            "trips" if people is None else "people",
            step_s,
            tz,
        )


def trips_within(share: float, volume: int) -> int:
    """Return the whole trips in a share of a volume; the share is taken exactly, as written in decimals."""
    parts, whole = _as_written(float(share))
    return int(volume) * parts // whole


@cache
def _as_written(share: float) -> tuple[int, int]:
    """Return a share as a ratio; parsing one takes as long as solving a small time step."""
    return Fraction(repr(share)).as_integer_ratio()


_BLOCK = 1 << 17
"""Rows checked at once: few enough for the processor's cache."""


def rounded(whole: Ints, rest: Ints, offsets: Ints) -> Ints:
    """Return whole trips of rows that weigh `whole` trips and `rest` units; rows of time step i are offsets[i] to offsets[i + 1].

    The volumes up to any row of a step add up to their weights, rounded: no row is off by a whole trip.
    """
    so_far = np.concatenate([np.zeros(1, np.int64), np.cumsum(rest)])
    before = np.repeat(so_far[offsets[:-1]], np.diff(offsets))
    # What is carried over to the next row is the part of a trip so far in the step, and half a trip.
    carried = (so_far[1:] - before + WEIGHT_UNITS // 2) // WEIGHT_UNITS
    carried_before = (so_far[:-1] - before + WEIGHT_UNITS // 2) // WEIGHT_UNITS
    trips: Ints = whole + carried - carried_before
    return trips


def fold_steps(flows: Flows, period: str) -> Flows:
    """Return flows with times modulo a period, in the first period of the data; periods of whole weeks begin on Monday.

    Trips are added up. People who are in several periods count once; where only their numbers are known, the largest number of
    the flows that are added up counts, since the people may be the same ones.
    """
    seconds = period_seconds(period)
    if flows.step_s is None:
        raise InputError(Option("fold"), "the data have no times, or one time step for all of them. Leave it out.")
    if seconds % flows.step_s:
        raise ParameterError(
            Option("fold"),
            Text(
                "a period must be whole time steps, of {step_s:,} seconds. Choose another {step}.", step_s=flows.step_s
            ),
        )
    if flows.steps == 0:
        return flows
    periods = TimeAxis(seconds, flows.tz)
    wall = periods.clock.to_wall(flows.t)
    t, step = np.unique(periods.folded(wall, wall), return_inverse=True)
    return _added_up(flows, t, step.reshape(-1))


def _added_up(flows: Flows, t: Ints, step: Ints) -> Flows:
    """Return flows whose time step i becomes step[i] of the times `t`."""
    n = len(flows.zones)
    key = (step[flows.step] * n + flows.origin) * n + flows.destination
    keys, row = np.unique(key, return_inverse=True)
    row = row.reshape(-1)
    offsets = np.searchsorted(keys // (n * n), np.arange(len(t) + 1))
    volume, people = group_sums(row, flows.volume, len(keys)), np.zeros(len(keys), np.int64)
    weight, person_offsets, person_ids = None, None, None
    if flows.weight is not None:
        weight = group_sums(row, flows.weight, len(keys))
        volume = rounded(*np.divmod(weight, WEIGHT_UNITS), offsets)
    if flows.person_ids is not None and flows.person_offsets is not None:
        span = int(flows.person_ids.max(initial=0)) + 1
        pairs = np.unique(row[row_slices(flows.person_offsets)] * span + flows.person_ids)
        person_ids, person_offsets = pairs % span, np.searchsorted(pairs // span, np.arange(len(keys) + 1))
        people = np.diff(person_offsets)
    else:
        (np.add if flows.k_unit == "trips" else np.maximum).at(people, row, flows.people)
    return replace(
        flows, t=t, offsets=offsets, origin=(keys // n % n).astype(np.int32), destination=(keys % n).astype(np.int32),
        volume=volume, people=people, weight=weight, person_offsets=person_offsets, person_ids=person_ids,
    )  # fmt: skip
