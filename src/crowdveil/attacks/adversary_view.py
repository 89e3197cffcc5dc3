"""What an adversary sees: who was at which places in which order, of those whom something is known of and of those published."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Floats, Ints, distinct, row_slices, take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

Units = Literal["people", "trajectories"]
Precision = Literal["year", "month", "day", "hour", "minute", "second"]
_CLOCK = {"year": "Y", "month": "M", "day": "D", "hour": "h", "minute": "m", "second": "s"}


@dataclass(frozen=True, eq=False)
class LocationHistories:
    """The places of units, which are people or single trajectories, in order of time.

    Attributes
    ----------
    place
        The place of each record, as a number below `places`; with its time where times are known too.
    offsets
        The records of unit i are offsets[i] to offsets[i + 1].
    label
        Whose each unit is: crowds are counted in labels.
    places
        How many places there are, on either side.
    """

    place: Ints
    offsets: Ints
    label: Ints
    places: int

    def __len__(self) -> int:
        return len(self.label)

    @property
    def labels(self) -> int:
        """One more than the greatest label."""
        return int(self.label.max(initial=-1)) + 1

    @cached_property
    def profiles(self) -> tuple[Ints, Ints, Ints]:
        """The different places of each unit, rising: offsets of units, places, and how often the unit was there."""
        from crowdveil.kernels.ordering import group_offsets, rows_by_two

        index, place = self.index, row_slices(self.index.place_offsets)
        order = rows_by_two(index.unit, place, len(self), self.places)
        return group_offsets(index.unit, len(self)), place[order], index.count[order]

    @cached_property
    def index(self) -> Index:
        """The same by place."""
        from crowdveil.kernels.ordering import group_offsets, rows_by_two

        unit = row_slices(self.offsets)
        position = np.arange(len(self.place)) - self.offsets[:-1][unit]
        order = rows_by_two(self.place, unit, self.places, len(self))
        place, unit = self.place[order], unit[order]
        begins = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.diff(unit, prepend=-1) != 0))
        return Index(
            group_offsets(place[begins], self.places), unit[begins], np.append(begins, len(place)), position[order]
        )

    def share(self, of_unit: Ints, count: Ints) -> Floats:
        """Counts as shares of all records of their unit."""
        shares: Floats = count / np.diff(self.offsets)[of_unit]
        return shares


@dataclass(frozen=True, eq=False)
class Index:
    """Units by place: those at place p are unit[place_offsets[p]:place_offsets[p + 1]], rising, and each was there at the places
    position[first[q]:first[q + 1]] in the order of its records.
    """

    place_offsets: Ints
    unit: Ints
    first: Ints
    position: Ints

    @property
    def count(self) -> Ints:
        """How often each unit was at the place."""
        return np.diff(self.first)


@dataclass(frozen=True, eq=False)
class AdversaryView:
    """Those whom something is known of, and those among whom they are looked for: the same in the original.

    Attributes
    ----------
    targets
        Units of the original.
    candidates
        Units of the original, or of the release.
    released
        Whether the candidates are those of a release: then what is known need not be in it.
    paired
        Whether it is known whose published units are: then a crowd counts only if the target is in it.
    """

    targets: LocationHistories
    candidates: LocationHistories
    released: bool = False
    paired: bool = True

    @property
    def wanted(self) -> Ints:
        """The label that a crowd must have to count, for each target; -1 for any."""
        return self.targets.label if self.paired else np.full(len(self.targets), -1)


@dataclass(frozen=True, eq=False)
class AttackScenario:
    """Trajectories, and a release of them where the adversary looks there.

    Attributes
    ----------
    data
        What the adversary knows something of.
    release
        What was published of it, if anything.
    units
        Whose records go together: those of a person, or of a single trajectory.
    counts
        What crowds are counted in: people where they are known.
    look
        Where the adversary looks: in the original, or in the release; there where there is one.
    """

    data: Trajectories
    release: TrajectoryRelease | None = None
    units: Units = "people"
    counts: Units = "people"
    look: Literal["original", "release"] = "release"
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def before(self) -> AttackScenario:
        """The same with the adversary looking in the original; what was made for one is there for the other."""
        return replace(self, look="original")

    def sight(self, tile_m: float | None, precision: Precision | None = None) -> AdversaryView:
        """Who was where, by square tiles (exact positions where there is no size), and when, where times are known too."""
        if (tile_m, precision) not in self._made:
            self._made[tile_m, precision] = self._traces(self._numbers(tile_m, precision))
        targets, published = self._made[tile_m, precision]
        if published is None or self.look == "original":
            return AdversaryView(targets, targets)
        return AdversaryView(
            targets, published, released=True, paired=self.release is not None and self.release.source is not None
        )

    def _traces(self, number: Ints) -> tuple[LocationHistories, LocationHistories | None]:
        """Those whom something is known of, and those published."""
        data, release = self.data, self.release
        places, n = int(number.max(initial=-1)) + 1, data.points
        whose = data.person if self.counts == "people" else np.arange(len(data))
        linked = self.units == "people"
        targets = _traces(number[:n], data.t, data.offsets, data.person if linked else None, whose, places)
        if release is None:
            return targets, None
        if linked and release.person is None:
            raise InputError(
                Option("units"),
                "the release does not link the trajectories of a person; let units be trajectories, or leave them out.",
            )
        label = None if release.source is None else whose[release.source]
        person = release.person if linked else None
        return targets, _traces(number[n:], release.t, release.offsets, person, label, places)

    def _numbers(self, tile_m: float | None, precision: Precision | None) -> Ints:
        """A number for the place, or the place and time, of each record, those of the release last; from south to north."""
        if precision is not None:
            times = self.data.t if self.release is None else np.concatenate([self.data.t, self.release.t])
            return paired_numbers(self._places(tile_m), cut(times, precision))
        return self._places(tile_m)

    def _places(self, tile_m: float | None) -> Ints:
        """A number for the place of each record: its tile (of the squares that methods cut too), or its exact position."""
        if (tile_m, "places") not in self._made:
            x, y = (self.data.lon, self.data.lat) if tile_m is None else self.data.xy
            if self.release is not None:
                lon, lat = self.release.lon, self.release.lat
                more = (lon, lat) if tile_m is None else self.data.projection.to_plane(lon, lat)
                x, y = np.concatenate([x, more[0]]), np.concatenate([y, more[1]])
            column, row = (x, y) if tile_m is None else (_squares(x, tile_m), _squares(y, tile_m))
            self._made[tile_m, "places"] = paired_numbers(row, column)
        places: Ints = self._made[tile_m, "places"]
        return places


def _squares(meters: Floats, tile_m: float) -> npt.NDArray[Any]:
    return np.floor(meters / tile_m).astype(np.int64)


def _traces(
    place: Ints, t: Ints, offsets: Ints, person: Ints | None, label: Ints | None, places: int
) -> LocationHistories:
    """Location histories of trajectories, or of people where `person` has the owner of each; `label` as of trajectories."""
    trajectories = len(offsets) - 1
    if person is None:
        return LocationHistories(place, offsets, np.arange(trajectories) if label is None else label, places)
    people, number = np.unique(person, return_inverse=True)
    of_record = number[row_slices(offsets)]
    order = np.lexsort((t, of_record))
    one = np.zeros(len(people), np.int64)
    one[number] = np.arange(trajectories)
    new = np.searchsorted(of_record[order], np.arange(len(people) + 1))
    return LocationHistories(place[order], new, np.arange(len(people)) if label is None else label[one], places)


def numbered(*columns: npt.NDArray[Any]) -> Ints:
    """A number for each row, rising with the columns, the same for equal rows."""
    number = columns[0]
    for column in columns[1:]:
        number = paired_numbers(number, column)
    return number if len(columns) > 1 else ranks(number)[0]


def paired_numbers(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Ints:
    """The same of two columns."""
    high, _ = ranks(first)
    low, count = ranks(second)
    return ranks(high * count + low)[0]


def ranks(values: npt.NDArray[Any]) -> tuple[Ints, int]:
    """The place of each value among the different ones, and how many these are."""
    if len(values) and np.issubdtype(values.dtype, np.integer):
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * len(values) + 65_536:  # few numbers in between: counted, not sorted
            used, rank = distinct(values - low, high - low + 1)
            return rank, len(used)
    different, rank = np.unique(values, return_inverse=True)
    return rank.reshape(-1).astype(np.int64), max(len(different), 1)


def cut(t: Ints, precision: Precision) -> Ints:
    """Times as whole years, months, …, seconds of the calendar (UTC)."""
    whole: Ints = t.astype("M8[s]").astype(f"M8[{_CLOCK[precision]}]").astype(np.int64)
    return whole


def chosen_units(traces: LocationHistories, units: Ints) -> tuple[Ints, Ints]:
    """The records of some units, and where each one's lie among them."""
    return take_slices(traces.offsets, units)
