"""The adversary's view of some targets: of all records only those at a location of a target, so that no index of all is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.attacks.adversary_view import (
    AdversaryView,
    AttackScenario,
    LocationHistories,
    Precision,
    cut,
    squares,
)
from crowdveil.model.arrays import AnyArray, Ints, Words, index_type, take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

CHUNK = 1 << 17
"""Records that are looked up in one go."""
MIN_BITS, MIN_TILE_M = 12, 0.01
"""Least bits of a table of hashes, and the side of tiles whose row and column fit into one number."""
_FACTOR, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
Columns = tuple[AnyArray, ...]
"""Columns of the locations of records: equal in all of them are equal locations, and locations rise with them."""


@dataclass(frozen=True, eq=False)
class Records:
    """Records of units, which are trajectories.

    Attributes
    ----------
    columns
        rows → their locations. They are computed where they are needed, since columns of all records take much memory.
    offsets, label
        As in `LocationHistories`.
    """

    columns: Callable[[slice | Ints], Columns]
    offsets: Ints
    label: Ints


def can_sample(scenario: AttackScenario, tile_m: float | None) -> bool:
    """Return whether the records of a scenario have one location each, and units are single trajectories."""
    boxes = scenario.look == "release" and scenario.release is not None and scenario.release.boxes is not None
    return scenario.units == "trajectories" and not boxes and (tile_m is None or tile_m >= MIN_TILE_M)


def scenario_records(
    scenario: AttackScenario, tile_m: float | None, precision: Precision | None
) -> tuple[Records, Records, bool]:
    """Return the records of targets and of candidates, and whether the owners of candidates are known."""
    data, release = scenario.data, scenario.release
    whose = data.person if scenario.k_unit == "people" else np.arange(len(data))
    targets = Records(_columns_of(scenario, data, tile_m, precision), data.offsets, whose)
    if release is None or scenario.look == "original":
        return targets, targets, True
    label = np.arange(len(release)) if release.source is None else whose[release.source]
    columns = _columns_of(scenario, release, tile_m, precision)
    return targets, Records(columns, release.offsets, label), release.source is not None


def _columns_of(
    scenario: AttackScenario,
    points: Trajectories | TrajectoryRelease,
    tile_m: float | None,
    precision: Precision | None,
) -> Callable[[slice | Ints], Columns]:
    """Return a function of rows to their locations: tiles or exact positions, with times where they are known."""
    tile = None if tile_m is None else scenario.remember((id(points), tile_m), lambda: _tiles(scenario, points, tile_m))

    def columns(rows: slice | Ints) -> Columns:
        places = (points.lat[rows], points.lon[rows]) if tile is None else (tile[rows],)
        return places if precision is None else (*places, cut(points.t[rows], precision))

    return columns


def _tiles(scenario: AttackScenario, points: Trajectories | TrajectoryRelease, tile_m: float) -> Ints:
    """Return the square tile of each point in one number, which rises with its row, then its column."""
    tile = np.empty(points.points, np.int64)
    for low in range(0, len(tile), CHUNK):
        rows = slice(low, low + CHUNK)
        x, y = scenario.data.projection.to_plane(points.lon[rows], points.lat[rows])
        tile[rows] = (squares(y, tile_m) << 32) + squares(x, tile_m)
    return tile


def sampled_view(
    targets: Records, candidates: Records, units: Ints, *, released: bool = False, paired: bool = True
) -> AdversaryView:
    """Return the view of some targets, in the order given.

    Locations are numbered in the same order as in the view of all, so that every search finds the same.
    """
    rows, offsets = take_slices(targets.offsets, units)
    known = targets.columns(rows)
    places = _Places(known)
    return AdversaryView(
        LocationHistories(places.find(known), offsets, targets.label[units], len(places)),
        _records_at(places, candidates),
        released,
        paired,
    )


def _records_at(places: _Places, records: Records) -> LocationHistories:
    """Return the histories of all units, with their records at some places alone."""
    n = int(records.offsets[-1])
    rows, found = [np.zeros(0, index_type(n))], [np.zeros(0, np.int64)]
    for low in range(0, n, CHUNK):
        number = places.find(records.columns(slice(low, min(low + CHUNK, n))))
        here = np.flatnonzero(number >= 0)
        rows.append((here + low).astype(rows[0].dtype))
        found.append(number[here])
    offsets = np.searchsorted(np.concatenate(rows), records.offsets)
    return LocationHistories(np.concatenate(found), offsets, records.label, len(places))


class _Places:
    """Different locations, numbered in their order, and a table of their hashes."""

    def __init__(self, columns: Columns) -> None:
        order = np.lexsort(columns[::-1])
        rising = [column[order] for column in columns]
        first = np.append(True, np.any([c[1:] != c[:-1] for c in rising], axis=0))[: len(order)]
        self.columns = [column[first] for column in rising]
        self.salt = np.uint64(0)
        hashed = self._hashed(self.columns)
        while len(np.unique(hashed)) < len(hashed):  # practically never: then another hash is taken
            self.salt += np.uint64(1)
            hashed = self._hashed(self.columns)
        self.by_hash = np.argsort(hashed)
        self.hashed = hashed[self.by_hash]
        self.mask = np.uint64((1 << max((16 * len(hashed)).bit_length(), MIN_BITS)) - 1)
        self.taken = np.zeros(int(self.mask) + 1, np.bool_)
        self.taken[hashed & self.mask] = True

    def __len__(self) -> int:
        return len(self.hashed)

    def find(self, columns: Any) -> Ints:
        """Return the number of the place of each record, -1 where it is none of them."""
        hashed = self._hashed(columns)
        number = np.full(len(hashed), -1, np.int64)
        rows = np.flatnonzero(self.taken[hashed & self.mask])
        if not len(self) or not len(rows):
            return number
        place = self.by_hash[np.minimum(np.searchsorted(self.hashed, hashed[rows]), len(self) - 1)]
        same = np.all([own[place] == column[rows] for own, column in zip(self.columns, columns, strict=True)], axis=0)
        number[rows[same]] = place[same]
        return number

    def _hashed(self, columns: Any) -> Words:
        hashed = np.full(len(columns[0]), self.salt)
        for column in columns:
            bits = (column + 0.0 if column.dtype == np.float64 else column.astype(np.int64)).view(np.uint64)
            hashed = (hashed ^ bits) * _FACTOR
            hashed ^= hashed >> _HALF
        return hashed
