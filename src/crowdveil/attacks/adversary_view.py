"""Define the adversary's view: the ordered locations of targets and of published candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError, Option
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats, Ints, group_offsets, ranks, row_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

T = TypeVar("T")
Units = Literal["people", "trajectories"]
DEFAULT_K = 10
"""The group size that risks are compared with where none is given."""
Precision = Literal["year", "month", "day", "hour", "minute", "second"]
_CLOCK = {"year": "Y", "month": "M", "day": "D", "hour": "h", "minute": "m", "second": "s"}


@dataclass(frozen=True, eq=False)
class LocationHistories:
    """The locations of units, which are people or single trajectories, in order of time.

    Attributes
    ----------
    location
        The location of each record, as a number below `locations`; with its time where times are known too.
    offsets
        The records of unit i are offsets[i] to offsets[i + 1].
    label
        The owner of each unit: groups are counted in labels.
    locations
        Number of locations of targets and candidates.
    """

    location: Ints
    offsets: Ints
    label: Ints
    locations: int

    def __len__(self) -> int:
        return len(self.label)

    @property
    def labels(self) -> int:
        """Return one more than the greatest label."""
        return int(self.label.max(initial=-1)) + 1

    @cached_property
    def profiles(self) -> tuple[Ints, Ints, Ints]:
        """Return the distinct locations of each unit, rising: offsets of units, locations, and visits of the unit."""
        index, location = self.index, row_slices(self.index.location_offsets)
        order = np.lexsort((location, index.unit))
        return group_offsets(index.unit, len(self)), location[order], index.count[order]

    @cached_property
    def index(self) -> LocationIndex:
        """Return the units by location."""
        order = np.argsort(self.location, kind="stable")
        location, unit = self.location[order], row_slices(self.offsets)[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (location[1:] != location[:-1]) | (unit[1:] != unit[:-1])
        ends = np.searchsorted(location[begins], np.arange(self.locations + 1))
        return LocationIndex(
            ends, unit[begins], np.append(np.flatnonzero(begins), len(order)), order - self.offsets[unit]
        )

    def share(self, of_unit: Ints, count: Ints) -> Floats:
        """Return counts as shares of all records of their unit."""
        shares: Floats = count / np.diff(self.offsets)[of_unit]
        return shares


@dataclass(frozen=True, eq=False)
class LocationIndex:
    """Units by location: those at location p are unit[location_offsets[p]:location_offsets[p + 1]], rising; each was there at the
    positions position[first[q]:first[q + 1]] in the order of its records.
    """

    location_offsets: Ints
    unit: Ints
    first: Ints
    position: Ints

    @property
    def count(self) -> Ints:
        """Return the number of visits of each unit to the location."""
        return np.diff(self.first)


@dataclass(frozen=True, eq=False)
class AdversaryView:
    """Targets with background knowledge, and candidates for them: the same in the original.

    Attributes
    ----------
    targets
        Units of the original.
    candidates
        Units of the original, or of the release.
    released
        Whether the candidates are released: then known records may be missing among them.
    paired
        Whether the owners of published units are known: then a group counts only with the target in it.
    """

    targets: LocationHistories
    candidates: LocationHistories
    released: bool = False
    paired: bool = True

    @property
    def wanted(self) -> Ints:
        """Return the label that a group must include, for each target; -1 for any."""
        return self.targets.label if self.paired else np.full(len(self.targets), -1)


@dataclass(frozen=True, eq=False)
class AttackScenario:
    """Trajectories, and a release of them where the adversary searches it.

    Attributes
    ----------
    data
        The source of the background knowledge.
    release
        The release, if any.
    units
        Whose records are one history: those of a person, or of a single trajectory.
    k_unit
        The unit of groups: people where they are known.
    look
        The data that the adversary searches: the original, or the release if there is one.
    """

    data: Trajectories
    release: TrajectoryRelease | None = None
    units: Units = "people"
    k_unit: Units = "people"
    look: Literal["original", "release"] = "release"
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def on_original(self) -> AttackScenario:
        """Return the scenario with the adversary searching the original; both share what was computed."""
        return replace(self, look="original")

    def view(self, tile_m: float | None, precision: Precision | None = None) -> AdversaryView:
        """Return the view by square tiles (exact positions where `tile_m` is None), with times where they are known."""
        targets, published = self.remember((tile_m, precision), lambda: self._histories(tile_m, precision))
        if published is None or self.look == "original":
            return AdversaryView(targets, targets)
        return AdversaryView(
            targets, published, released=True, paired=self.release is not None and self.release.source is not None
        )

    def remember(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return a value that several attacks need, made once."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def _histories(
        self, tile_m: float | None, precision: Precision | None
    ) -> tuple[LocationHistories, LocationHistories | None]:
        """Return the histories of targets, and of published candidates."""
        data, release, number = self.data, self.release, self._numbers(tile_m, precision)
        locations, n = int(number.max(initial=-1)) + 1, data.points
        whose = data.person if self.k_unit == "people" else np.arange(len(data))
        linked = self.units == "people"
        targets = _histories(number[:n], data.t, data.offsets, data.person if linked else None, whose, locations)
        if release is None:
            return targets, None
        if linked and release.person is None:
            raise InputError(
                Option("units"),
                "the release does not link the trajectories of a person. Set units to trajectories, or leave it out.",
            )
        label = None if release.source is None else whose[release.source]
        person = release.person if linked else None
        return targets, _histories(number[n:], release.t, release.offsets, person, label, locations)

    def _numbers(self, tile_m: float | None, precision: Precision | None) -> Ints:
        """Return a number for the location, or location and time, of each record, those of the release last; south to north."""
        if precision is not None:
            times = self.data.t if self.release is None else np.concatenate([self.data.t, self.release.t])
            return paired_numbers(self._locations(tile_m), cut(times, precision))
        return self._locations(tile_m)

    def _locations(self, tile_m: float | None) -> Ints:
        """Return a number for the location of each record: its tile (the squares of the methods), or its exact position."""

        def make() -> Ints:
            x, y = (self.data.lon, self.data.lat) if tile_m is None else self.data.xy
            if self.release is not None:
                lon, lat = self.release.lon, self.release.lat
                more = (lon, lat) if tile_m is None else self.data.projection.to_plane(lon, lat)
                x, y = np.concatenate([x, more[0]]), np.concatenate([y, more[1]])
            return paired_numbers(y, x) if tile_m is None else paired_numbers(squares(y, tile_m), squares(x, tile_m))

        return self.remember((tile_m, "locations"), make)


@dataclass(frozen=True, eq=False)
class AggregatedTrajectories:
    """Trajectories that are published as aggregates.

    Attributes
    ----------
    data
        The original trajectories.
    tz
        Time zone of nights and time steps.
    release
        A release of flows of these trajectories, None for heat maps of tiles with at least k people.
    k
        The group size of the release.
    """

    data: Trajectories
    tz: str = "UTC"
    release: WrittenRelease | None = None
    k: int | None = None

    def threshold(self, params: Any) -> int:
        """Return the group size of the published aggregates."""
        return params.k or self.k or DEFAULT_K


def squares(meters: Floats, tile_m: float) -> npt.NDArray[Any]:
    """Return the row or column of tiles of a side, from meters."""
    return np.floor(meters / tile_m).astype(np.int64)


def _histories(
    location: Ints, t: Ints, offsets: Ints, person: Ints | None, label: Ints | None, locations: int
) -> LocationHistories:
    """Return location histories of trajectories, or of people where `person` has the owner of each trajectory."""
    trajectories = len(offsets) - 1
    if person is None:
        return LocationHistories(location, offsets, np.arange(trajectories) if label is None else label, locations)
    people, number = np.unique(person, return_inverse=True)
    of_record = number[row_slices(offsets)]
    order = np.lexsort((t, of_record))
    one = np.zeros(len(people), np.int64)
    one[number] = np.arange(trajectories)
    new = np.searchsorted(of_record[order], np.arange(len(people) + 1))
    return LocationHistories(location[order], new, np.arange(len(people)) if label is None else label[one], locations)


def numbered(*columns: npt.NDArray[Any]) -> Ints:
    """Return a number for each row, rising with the columns, the same for equal rows."""
    number = columns[0]
    for column in columns[1:]:
        number = paired_numbers(number, column)
    return number if len(columns) > 1 else ranks(number)[0]


def paired_numbers(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Ints:
    """Return a number for each row of two columns, rising, the same for equal rows."""
    high, _ = ranks(first)
    low, count = ranks(second)
    return ranks(high * count + low)[0]


def cut(t: Ints, precision: Precision) -> Ints:
    """Return times as whole years, months, …, seconds of the calendar (UTC)."""
    whole: Ints = t.astype("M8[s]").astype(f"M8[{_CLOCK[precision]}]").astype(np.int64)
    return whole
