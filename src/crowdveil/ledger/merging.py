"""Merge rows of a release: boxes with one area in common become one box."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease

Tiles = frozenset[int]


class MergedRows:
    """The rows of a release while they are merged. A merged row has the number of one of its rows.

    Attributes
    ----------
    final
        The row that each row is part of now, -1 where it was suppressed.
    merges, suppressed
        Number of rows that were merged into others, and that were suppressed.
    """

    def __init__(self, release: FlowRelease) -> None:
        self._release = release
        areas = release.areas
        self._tiles: list[Tiles] = [
            frozenset(areas.tiles[low:high].tolist())
            for low, high in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)
        ]
        self._number = {tiles: area for area, tiles in enumerate(self._tiles)}
        self._origin, self._destination = release.origin.tolist(), release.destination.tolist()
        self._volume: list[int] = release.volume.tolist()
        self._time = self._times(release)
        self._with_origin: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._with_destination: dict[tuple[int, int], set[int]] = defaultdict(set)
        for row in np.flatnonzero(release.state == PUBLISHED).tolist():
            self._index(row)
        self._no_total: set[int] = set()
        self.final: Ints = np.arange(len(release))
        self.merges = self.suppressed = 0

    @staticmethod
    def _times(release: FlowRelease) -> list[int]:
        """Return a number for the time step, or the interval, of each row."""
        number: Ints = release.step
        if release.intervals is not None:
            spans = np.column_stack([release.intervals.first, release.intervals.last])
            number = np.unique(spans, axis=0, return_inverse=True)[1].reshape(-1)
        return [int(n) for n in number]

    def _index(self, row: int) -> None:
        self._with_origin[self._time[row], self._origin[row]].add(row)
        self._with_destination[self._time[row], self._destination[row]].add(row)

    def _forget(self, row: int) -> None:
        self._with_origin[self._time[row], self._origin[row]].discard(row)
        self._with_destination[self._time[row], self._destination[row]].discard(row)

    def row_of(self, row: Ints) -> Ints:
        """Return the rows that records lie in now, from those that they lay in at first; totals come after the rows."""
        n, steps = len(self.final), len(self._release.t)
        total = np.where(np.isin(np.arange(steps), list(self._no_total)), -1, n + np.arange(steps))
        given = self._release.suppressed != NOT_GIVEN
        gone = np.where(given & (total >= 0), total, -1)[self._release.step] if n else self.final
        now = np.where(self.final >= 0, self.final, gone)
        return np.concatenate([now, total, np.full(1, -1, np.int64)])[row]

    def merge_one(self, border: list[int], inside: set[int]) -> set[int]:
        """Merge the row of a border that costs least with a row outside; return the rows that changed.

        Without a row to merge with, a row is suppressed; a suppressed total at the border is not given any more.
        """
        n = len(self.final)
        rows = [row for row in border if row < n]
        for excluded in (inside, set[int]()):  # two rows inside stay a part of the set, but have other neighbors
            found = [cost for row in rows if (cost := self._cheapest(row, excluded)) is not None]
            if found:
                _, row, other = min(found)
                self._merge(row, other)
                return {row, other}
        if rows:
            self._suppress(rows[0])
            return {rows[0]}
        self._no_total.update(row - n for row in border)
        return set(border)

    def _cheapest(self, row: int, inside: set[int]) -> tuple[int, int, int] | None:
        """Return the cost of merging a row, the row and its partner; None where there is no partner."""
        if self._release.state[row] != PUBLISHED:
            return None
        time, origin, destination = self._time[row], self._origin[row], self._destination[row]
        near = (self._with_origin[time, origin] | self._with_destination[time, destination]) - inside - {row}
        return min(((self._cost(row, other), row, other) for other in near), default=None)

    def _cost(self, row: int, other: int) -> int:
        """Return the rise of the sum over trips of the tiles of their boxes."""
        sizes = [len(self._tiles[self._origin[r]]) * len(self._tiles[self._destination[r]]) for r in (row, other)]
        return self._volume[row] * sizes[1] + self._volume[other] * sizes[0]

    def _merge(self, row: int, other: int) -> None:
        """Merge `row` into `other`."""
        for one in (row, other):
            self._forget(one)
        if self._origin[row] == self._origin[other]:
            self._destination[other] = self._joined(self._destination[row], self._destination[other])
        else:
            self._origin[other] = self._joined(self._origin[row], self._origin[other])
        self._volume[other] += self._volume[row]
        self._index(other)
        self.final[self.final == row] = other
        self.merges += 1

    def _joined(self, area: int, other: int) -> int:
        tiles = self._tiles[area] | self._tiles[other]
        if tiles not in self._number:
            self._number[tiles] = len(self._tiles)
            self._tiles.append(tiles)
        return self._number[tiles]

    def _suppress(self, row: int) -> None:
        self._forget(row)
        self.final[self.final == row] = -1
        self.suppressed += 1

    def release(self, people: Ints) -> FlowRelease:
        """Return the release of the merged rows; `people` are their group sizes."""
        before = self._release
        keep = np.zeros(len(before), np.bool_)
        keep[self.final[self.final >= 0]] = True
        areas = before.areas
        more: list[Indices] = [np.array(sorted(tiles), np.int32) for tiles in self._tiles[len(areas) :]]
        gone = np.bincount(before.step, before.volume * (self.final < 0), len(before.t)).astype(np.int64)
        given = (before.suppressed != NOT_GIVEN) & ~np.isin(np.arange(len(before.t)), list(self._no_total))
        counted_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
        merged = replace(
            before,
            areas=areas.and_more(more, "area") if more else areas,
            offsets=counted_before[before.offsets],
            origin=np.array(self._origin, np.int32)[keep],
            destination=np.array(self._destination, np.int32)[keep],
            volume=np.array(self._volume, np.int64)[keep],
            people=people[keep],
            state=before.state[keep],
            suppressed=np.where(given, before.suppressed + gone, NOT_GIVEN),
            intervals=None if before.intervals is None else before.intervals.rows(np.flatnonzero(keep)),
            figures=None,
        )
        return merged.without_unused_areas()
