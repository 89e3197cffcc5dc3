"""Estimate flows between zones, in groups of time steps and in chunks that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crowdveil.analysis.study import StudySide
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.model.arrays import AnyArray, Floats, Indices, Ints, Mask, row_slices, take_slices
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
    """The rows of each group, in order of groups; how many of their time steps are in the group, and how many there are."""

    group: Ints
    row: Ints
    steps: Ints
    all_steps: Ints


def estimates(side: StudySide, groups: Groups, *, origins: bool = True, destinations: bool = True) -> Estimates:
    """Return all estimates at once.

    Without `origins`, they are of all trips to a zone; without `destinations`, of all trips from it.
    """
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
    rows = groups.rows_of(side.release)
    offsets = np.searchsorted(rows.group, np.arange(groups.count + 1))
    for low, high in _chunks(side.release, rows, offsets, starts, ends):
        chunk = GroupRows(*(column[offsets[low] : offsets[high]] for column in rows))
        pairs = _spread(side.release, chunk._replace(group=chunk.group - low), high - low, starts, ends)
        anywhere = np.full_like(pairs.origin, ANYWHERE)
        yield replace(
            pairs, group=low + pairs.group, origin=pairs.origin if origins else anywhere,
            destination=pairs.destination if destinations else anywhere,
        )  # fmt: skip
        progress(high, groups.count)


def _chunks(
    release: FlowRelease, rows: GroupRows, offsets: Ints, starts: Shares, ends: Shares
) -> list[tuple[int, int]]:
    """Split groups into chunks of at most CHUNK_PAIRS pairs; at least one chunk, so that columns have their types."""
    touched = starts.touched[release.origin[rows.row]] * ends.touched[release.destination[rows.row]]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(touched)])
    cuts, size = [0], 0
    for group, pairs in enumerate(np.minimum(np.diff(before[offsets]), starts.zones * ends.zones).tolist()):
        if size and size + pairs > CHUNK_PAIRS:
            cuts.append(group)
            size = 0
        size += pairs
    return list(zip(cuts, [*cuts[1:], len(offsets) - 1], strict=True))


def _spread(release: FlowRelease, rows: GroupRows, groups: int, starts: Shares, ends: Shares) -> Estimates:
    """Spread rows over the pairs of zones that they touch.

    Each quantity is the product of two sparse matrices: (group, origin zone) × row, and row × destination zone.
    """
    from scipy.sparse import csr_array

    origin, destination = (end[rows.row].astype(np.int64) for end in (release.origin, release.destination))
    volume = release.volume[rows.row]
    start_entry, start_offsets = take_slices(starts.offsets, origin)
    row = row_slices(start_offsets)
    start = rows.group[row] * starts.zones + starts.zone[start_entry]
    end_entry, end_offsets = take_slices(ends.offsets, destination)

    def product(left: AnyArray, right: AnyArray) -> tuple[Ints, AnyArray]:
        """Return the pairs with a sum that is not 0, and the sums."""
        first = csr_array((left, (start, row)), shape=(groups * starts.zones, len(rows.row)))
        second = csr_array((right, ends.zone[end_entry], end_offsets), shape=(len(rows.row), ends.zones))
        sums = first @ second
        sums.sort_indices()
        return row_slices(sums.indptr) * ends.zones + sums.indices, sums.data

    # A row touches a pair even if its share or its volume is 0.
    pairs, _ = product(np.ones(len(start_entry), np.int64), np.ones(len(end_entry), np.int64))

    def sums(left: AnyArray, right: AnyArray) -> AnyArray:
        some, values = product(left, right)
        of_pair = np.zeros(len(pairs), values.dtype)
        of_pair[np.searchsorted(pairs, some)] = values
        return of_pair

    # A share stays a part of a whole until here, so that a row on whole tiles is divided once, by the number of its cells.
    cells = starts.whole[origin] * ends.whole[destination] * rows.all_steps
    spread = volume[row] * (starts.part[start_entry] * rows.steps[row]) / cells[row]
    inside = volume * (rows.steps == rows.all_steps)
    start_of_pair, zone = np.divmod(pairs, ends.zones)
    group, first_zone = np.divmod(start_of_pair, starts.zones)
    return Estimates(
        group, first_zone.astype(np.int32), zone.astype(np.int32), sums(spread, ends.part[end_entry]),
        sums(inside[row] * starts.inside[start_entry], ends.inside[end_entry].astype(np.int64)),
        sums(volume[row], np.ones(len(end_entry), np.int64)),
    )  # fmt: skip
