"""Paint the tile pairs of each row of a time step: find pairs painted twice, and the row of a pair.

Tiles are ordered so that areas are runs; a row of a release is then one rectangle of pairs, or a few. It is painted as
stripes: from one tile of its origin to a run of tiles of its destination. Sorted stripes of one tile overlap if and only
if two neighbors do. Tiles of the same runs have the same stripes, and are painted as one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.guarantees.runs import Runs
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Indices, Ints, Mask

MAX_PAIRS = 1 << 20
"""Pairs of tiles of a map: few enough for the processor's cache."""
MAX_STRIPES = 1 << 15
"""Stripes painted at once, unless one time step has more."""
MAX_FLOWS = 1 << 16
"""Flows looked up at once, unless one time step has more."""
MAX_STEPS = 256
"""Time steps painted at once."""


@dataclass
class CrossedSteps:
    """How many time steps of written files have a pair of tiles in two rows: counted once, though several checkers paint them.

    Attributes
    ----------
    lock
        Held while a checker counts them.
    count
        None until they are counted.
    """

    lock: Any = field(default_factory=Lock)
    count: int | None = None

    @classmethod
    def of(cls, written: WrittenRelease) -> CrossedSteps:
        """Return what the checkers of a release share."""
        found: CrossedSteps = written.cached("crossed steps", cls)
        return found


@dataclass(frozen=True)
class Block:
    """Rows of a few time steps that are painted together.

    Attributes
    ----------
    steps
        The time steps, rising.
    rows
        The slice of their rows.
    """

    steps: Ints
    rows: slice
    _runs: Runs
    _bounds: Ints
    _origin: Ints
    _destination: Ints
    _turned: bool

    def painted(self) -> Painted:
        """Paint the rows, except of time steps with more pairs in rows than tiles squared: these overlap for certain."""
        runs, origin, destination = self._runs, self._origin, self._destination
        number = np.repeat(np.arange(len(self.steps)), np.diff(self._bounds))
        crowded = _sums(runs.size[origin] * runs.size[destination], self._bounds[:-1]) > len(runs.position) ** 2
        row = np.flatnonzero(~crowded[number])
        if len(row) < len(number):
            number, origin, destination = number[row], origin[row], destination[row]
        alone, along = (destination, origin) if self._turned else (origin, destination)
        side = len(runs.position) + 1
        at, down, across = _rectangles(runs, alone, along)
        top, bottom = (number[at] * side + ends[down] for ends in (runs.first, runs.last))
        line = _lines(top, bottom, len(crowded), side)
        corner = line[top] * side + runs.first[across]
        # Each rectangle once for every line: its corner, shifted by a line each time.
        height, bits = line[bottom] - line[top], len(at).bit_length()
        keys = np.repeat((corner << bits) + np.arange(len(at)), height)
        keys += _counted(height) * (side << bits)
        keys.sort()
        rectangle = keys & ((1 << bits) - 1)
        keys >>= bits
        # A stripe ends in its own line, so that it overlaps the next one if and only if that begins before its end.
        last = keys + (runs.last[across] - runs.first[across])[rectangle]
        painted = Painted(crowded, self._turned, side, line, keys, last, rectangle, row[at])
        painted.crossed[painted.number(keys[1:][keys[1:] < last[:-1]])] = True
        return painted


def by_step(step: Ints, *columns: Ints) -> tuple[Ints | None, tuple[Ints, ...]]:
    """Return steps and columns of rows in the order of steps; and that order, None where rows are sorted already."""
    if bool(np.all(step[1:] >= step[:-1])):
        return None, (step, *columns)
    order = np.argsort(step, kind="stable")
    return order, tuple(column[order] for column in (step, *columns))


def blocks(runs: Runs, step: Ints, origin: Ints, destination: Ints, flows: Ints | None = None) -> Iterator[Block]:
    """Split rows into blocks of a few time steps. Steps are numbers from 0, rising; origins and destinations are areas.

    `flows` is the number of flows to look up in each time step.
    """
    bounds = np.append(np.flatnonzero(np.diff(step, prepend=-1)), len(step))
    steps, side = step[bounds[:-1]], len(runs.position) + 1
    by_origin = _sums(runs.size[origin] * runs.count[destination], bounds[:-1])
    by_destination = _sums(runs.count[origin] * runs.size[destination], bounds[:-1])
    turned = bool(by_destination.sum() < by_origin.sum())
    # The share of one block that each step takes.
    share = (by_destination if turned else by_origin) / MAX_STRIPES
    if side**2 <= MAX_PAIRS:
        share = np.maximum(share, side**2 / MAX_PAIRS)
    if flows is not None:
        share = np.maximum(share, flows[steps] / MAX_FLOWS)
    # Step, two tiles and the rectangle share the 63 bits of a key.
    most_steps = max(1, min(MAX_STEPS, 2**62 // (2 * MAX_STRIPES * side**2)))
    for low, high in _cuts(share, most_steps):
        rows = slice(int(bounds[low]), int(bounds[high]))
        ends = bounds[low : high + 1] - rows.start
        yield Block(steps[low:high], rows, runs, ends, origin[rows], destination[rows], turned)


def _cuts(share: npt.NDArray[np.float64], limit: int) -> Iterator[tuple[int, int]]:
    """Return ranges of consecutive steps whose shares add up to at most 1, or one step with more."""
    before = np.append(0.0, np.cumsum(share))
    low = 0
    while low < len(share):
        high = int(np.searchsorted(before, before[low] + 1.0, "right")) - 1
        high = min(max(high, low + 1), low + limit, len(share))
        yield low, high
        low = high


def _sums(values: Ints, starts: Ints) -> Ints:
    """Return the sums of the slices that begin at `starts`."""
    sums: Ints = np.add.reduceat(values, starts) if len(starts) else np.zeros(0, np.int64)
    return sums


@dataclass(frozen=True)
class Painted:
    """The painted rows of a few time steps. Steps, rows and positions are numbered from 0, the first of the block.

    Attributes
    ----------
    crossed
        Whether a pair of tiles is painted twice, in each of the steps. Lookups there are invalid.
    """

    crossed: Mask
    _turned: bool
    """Whether destinations have lines of their own, and origins lie along them."""
    _side: int
    """Positions along a line: the tiles, and one for tiles in no area."""
    _line: Ints
    """The line of each tile, step after step, rising."""
    _first: Ints
    """Where each stripe begins, rising: the line, and the first tile along it."""
    _last: Ints
    """One past its end."""
    _rectangle: Ints
    """The rectangle that each stripe is part of."""
    _row: Ints
    """The row that each rectangle is part of."""

    def number(self, cell: Ints) -> Ints:
        """Return the number of the step of each cell."""
        return np.searchsorted(self._line[:: self._side], cell // self._side, "right") - 1

    def row_at(self, number: Ints, origin: Ints, destination: Ints) -> Ints:
        """Return the row of each pair of positions, in the step of this number; -1 where there is none.

        The position behind the last tile lies in no area.
        """
        alone, along = (destination, origin) if self._turned else (origin, destination)
        at = self._line.take(number * self._side + alone)
        at *= self._side
        at += along
        if self._map is not None:
            return self._map.take(at).astype(np.int64)
        if len(self._first) == 0:
            return np.full(len(at), -1, np.int64)
        # The last stripe that begins at the position or before it; without one, the last of all, which lies elsewhere.
        stripe = np.searchsorted(self._first, at, "right") - 1
        found = (self._first[stripe] <= at) & (at < self._last[stripe])
        return np.where(found, self._row[self._rectangle[stripe]], -1)

    @cached_property
    def _map(self) -> Indices | None:
        """Return the row of every position, -1 where there is none; None where there are too many positions."""
        positions = (int(self._line[-1]) + 1) * self._side
        if positions > MAX_PAIRS:
            return None
        kept = ~self.crossed[self.number(self._first)] if self.crossed.any() else slice(None)
        # No row lies between the end of a stripe and the beginning of the next.
        first, last = self._first[kept], self._last[kept]
        rows = np.full(2 * len(first) + 1, -1, np.int32)
        rows[1::2] = self._row[self._rectangle[kept]]
        bounds = np.zeros(len(rows) + 1, np.int64)
        bounds[1:-1:2], bounds[2::2], bounds[-1] = first, last, positions
        return np.repeat(rows, np.diff(bounds))


def _lines(top: Ints, bottom: Ints, steps: int, side: int) -> Ints:
    """Number the tiles of all steps so that those of a step between two ends of runs have one number."""
    begins = np.zeros(steps * side, np.int64)
    begins[top] = begins[bottom] = begins[::side] = 1
    line: Ints = np.cumsum(begins) - 1
    return line


def _rectangles(runs: Runs, one: Ints, other: Ints) -> tuple[Ints, Ints, Ints]:
    """Return every pair of a run of one area and a run of the other: the row, and the two runs."""
    wide = runs.count[other]
    each = runs.count[one] * wide
    if bool(np.all(each == 1)):
        return np.arange(len(each)), runs.offsets[one], runs.offsets[other]
    row: Ints = np.repeat(np.arange(len(each)), each)
    within = _counted(each)
    return row, runs.offsets[one][row] + within // wide[row], runs.offsets[other][row] + within % wide[row]


def _counted(lengths: Ints) -> Ints:
    """Return 0, 1, … below each length."""
    counted: Ints = np.arange(int(lengths.sum()))
    counted -= np.repeat(np.cumsum(lengths) - lengths, lengths)
    return counted
