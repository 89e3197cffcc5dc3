"""Estimates of flows between zones, in groups of time steps and in pieces that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from crowdveil.analysis.study import StudySide
from crowdveil.io.parallel import run_ordered
from crowdveil.model.arrays import Floats, Indices, Ints, Mask, frozen, row_slices
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.od.overlaps import Shares

PIECE = 1_000_000
"""Pairs that a piece has at most, unless a single group has more."""
ANYWHERE = -1
"""In place of a zone at an end that does not matter."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Flows between zones, sorted by group, origin and destination; a pair that no row touches is not among them.

    Attributes
    ----------
    group
        The group of time steps of each.
    origin, destination
        Zones, or ANYWHERE.
    volume
        The estimate: trips of all rows that touch the pair, each by its shares.
    lower, upper
        Trips of rows that lie wholly in the pair, and of rows that touch it. What was suppressed is in neither.
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
        """Those in `keep`."""
        return Estimates(*(getattr(self, name)[keep] for name in Estimates.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each time step belongs to; groups are numbered from 0."""

    of_step: Ints
    count: int

    @classmethod
    def steps(cls, release: FlowRelease) -> Groups:
        """Each time step by itself."""
        return cls(np.arange(len(release.t)), len(release.t))


def estimates(side: StudySide, groups: Groups, *, origins: bool = True, destinations: bool = True) -> Estimates:
    """All estimates at once. Without `origins`, those of whatever goes to a zone; without `destinations`, of what leaves it."""
    pieces = list(pieces_of(side, groups, origins=origins, destinations=destinations))
    columns = [np.concatenate([getattr(p, name) for p in pieces]) for name in Estimates.__dataclass_fields__]
    return Estimates(*columns)


def pieces_of(
    side: StudySide,
    groups: Groups,
    *,
    origins: bool = True,
    destinations: bool = True,
    progress: Progress = no_progress,
) -> Iterator[Estimates]:
    """Estimates piece by piece, each of whole groups, made some pieces ahead on threads."""
    everywhere = Shares.everywhere(len(side.shares))
    starts, ends = side.shares if origins else everywhere, side.shares_reached if destinations else everywhere
    of_row = groups.of_step[side.release.step]
    order = np.argsort(of_row, kind="stable")
    offsets = frozen(np.searchsorted(of_row[order], np.arange(groups.count + 1)), np.int64)
    release = side.release
    columns = (release.origin, release.destination, release.volume)
    rows = _Rows(*(frozen(column[order], column.dtype) for column in columns))
    most = _most_pairs(rows, offsets, starts, ends)

    def made(low: int, high: int) -> tuple[int, Estimates]:
        found = _spread(rows, offsets[low : high + 1], starts, ends, int(most[low:high].sum()))
        return high, replace(
            found, group=low + found.group, origin=found.origin if origins else np.full_like(found.origin, ANYWHERE),
            destination=found.destination if destinations else np.full_like(found.destination, ANYWHERE),
        )  # fmt: skip

    for done, piece in run_ordered(partial(made, low, high) for low, high in _cut(most)):
        yield piece
        progress(done, groups.count)


class _Rows(NamedTuple):
    """Rows of a release in the order of their groups."""

    origin: Indices
    destination: Indices
    volume: Ints


def _most_pairs(rows: _Rows, offsets: Ints, starts: Shares, ends: Shares) -> Ints:
    """A bound of the pairs in each group."""
    touched = starts.touched[rows.origin] * ends.touched[rows.destination]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(touched)])
    bound: Ints = np.minimum(np.diff(before[offsets]), starts.zones * ends.zones)
    return bound


def _cut(most: Ints) -> list[tuple[int, int]]:
    """Groups in pieces of PIECE pairs at most; always at least one piece, so that columns have their types."""
    cuts, held = [0], 0
    for group, pairs in enumerate(most.tolist()):
        if held and held + pairs > PIECE:
            cuts.append(group)
            held = 0
        held += pairs
    return list(zip(cuts, [*cuts[1:], len(most)], strict=True))


def _spread(rows: _Rows, offsets: Ints, starts: Shares, ends: Shares, most: int) -> Estimates:
    from crowdveil.kernels.analysis.spreading import spread

    found, origin, destination, volume, lower, upper = spread(
        offsets, *rows, starts.offsets, starts.zone, starts.part, starts.whole, starts.inside,
        ends.offsets, ends.zone, ends.part, ends.whole, ends.inside, starts.zones, ends.zones, most,
    )  # fmt: skip
    return Estimates(row_slices(found), origin, destination, volume, lower, upper)
