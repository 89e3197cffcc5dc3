"""Estimate flows between zones, in groups of time steps and in chunks that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crowdveil.analysis.study import StudySide
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.kernels.spreading import spread
from crowdveil.model.arrays import Floats, Indices, Ints, Mask, frozen, row_slices
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.overlaps import Shares

CHUNK_PAIRS = 1_000_000
"""Maximum pairs of a chunk, unless a single group has more."""
ANYWHERE = -1
"""In place of a zone: any origin or any destination."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Flows between zones, sorted by group, origin and destination; pairs that no row touches are not listed.

    Attributes
    ----------
    group
        The group of time steps of each.
    origin, destination
        Zones, or ANYWHERE.
    volume
        The estimate: trips of all rows that touch the pair, each by its shares; a row that spans several time steps is spread
        evenly over them.
    lower, upper
        Trips of rows that lie wholly in the pair and the group, and of rows that touch it. Suppressed trips are in neither.
    """

    group: Ints
    origin: Indices
    destination: Indices
    volume: Floats
    lower: Ints
    upper: Ints

    def __len__(self) -> int:
        return len(self.volume)

    def where(self, keep: Mask) -> Estimates:
        """Return the estimates in `keep`."""
        return Estimates(*(getattr(self, name)[keep] for name in Estimates.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Groups:
    """Group of each time step; groups are numbered from 0."""

    of_step: Ints
    count: int

    @classmethod
    def steps(cls, release: FlowRelease) -> Groups:
        """Return groups of one time step each."""
        return cls(np.arange(len(release.step_starts)), len(release.step_starts))

    @classmethod
    def all(cls, release: FlowRelease) -> Groups:
        """Return one group of all time steps."""
        return cls(np.zeros(len(release.step_starts), np.int64), 1)

    def rows_of(self, release: FlowRelease) -> GroupRows:
        """Return the rows in each group. A row that spans several time steps is in the group of each, with its share of them."""
        if release.intervals is None:
            group = self.of_step[release.step]
            order = np.argsort(group, kind="stable")
            one = np.ones(len(order), np.int64)
            return GroupRows(group[order], order, one, one)
        slot, row = release.intervals.spread()
        rows = max(len(release), 1)
        keys, steps = np.unique(self.of_step[slot] * rows + row, return_counts=True)
        return GroupRows(keys // rows, keys % rows, steps.astype(np.int64), release.steps_spanned[keys % rows])


class GroupRows(NamedTuple):
    """A group and a row for each group that each row is in, in order of groups; and how many of its time steps are in it."""

    group: Ints
    row: Ints
    steps: Ints
    all_steps: Ints


def estimates(side: StudySide, groups: Groups, *, origins: bool = True, destinations: bool = True) -> Estimates:
    """Return all estimates at once. Without `origins`, of all trips to a zone; without `destinations`, of all trips from it."""
    chunks = list(estimate_chunks(side, groups, origins=origins, destinations=destinations))
    columns = [np.concatenate([getattr(c, name) for c in chunks]) for name in Estimates.__dataclass_fields__]
    return Estimates(*columns)


def estimate_chunks(
    side: StudySide,
    groups: Groups,
    *,
    origins: bool = True,
    destinations: bool = True,
    progress: Progress = no_progress,
) -> Iterator[Estimates]:
    """Yield estimates in chunks of whole groups."""
    everywhere = Shares.everywhere(len(side.shares))
    starts, ends = side.shares if origins else everywhere, side.shares_reached if destinations else everywhere
    release, listed = side.release, groups.rows_of(side.release)
    offsets = frozen(np.searchsorted(listed.group, np.arange(groups.count + 1)), np.int64)
    columns = (
        *(c[listed.row] for c in (release.origin, release.destination, release.volume)),
        listed.steps,
        listed.all_steps,
    )
    rows = _Rows(*(frozen(column, column.dtype) for column in columns))
    most = _most_pairs(rows, offsets, starts, ends)

    def estimate(low: int, high: int) -> Estimates:
        found = _spread(rows, offsets[low : high + 1], starts, ends, int(most[low:high].sum()))
        return replace(
            found, group=low + found.group, origin=found.origin if origins else np.full_like(found.origin, ANYWHERE),
            destination=found.destination if destinations else np.full_like(found.destination, ANYWHERE),
        )  # fmt: skip

    for low, high in _cut(most):
        yield estimate(low, high)
        progress(high, groups.count)


class _Rows(NamedTuple):
    """Rows of a release in the order of their groups."""

    origin: Indices
    destination: Indices
    volume: Ints
    steps: Ints
    all_steps: Ints


def _most_pairs(rows: _Rows, offsets: Ints, starts: Shares, ends: Shares) -> Ints:
    """Return an upper bound of the pairs in each group."""
    touched = starts.touched[rows.origin] * ends.touched[rows.destination]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(touched)])
    bound: Ints = np.minimum(np.diff(before[offsets]), starts.zones * ends.zones)
    return bound


def _cut(most: Ints) -> list[tuple[int, int]]:
    """Split groups into chunks of at most CHUNK_PAIRS pairs; at least one chunk, so that columns have their types."""
    cuts, size = [0], 0
    for group, pairs in enumerate(most.tolist()):
        if size and size + pairs > CHUNK_PAIRS:
            cuts.append(group)
            size = 0
        size += pairs
    return list(zip(cuts, [*cuts[1:], len(most)], strict=True))


def _spread(rows: _Rows, offsets: Ints, starts: Shares, ends: Shares, most: int) -> Estimates:
    found, origin, destination, volume, lower, upper = spread(
        offsets, *rows, starts.arrays, ends.arrays, starts.zones, ends.zones, most
    )
    return Estimates(row_slices(found), origin, destination, volume, lower, upper)
