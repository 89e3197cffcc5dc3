"""The map of a time step, painted row by row: is a pair of tiles painted twice, and which row lies over it?

Tiles are put into an order in which areas are runs of consecutive tiles, as far as that can be. A row of a release is
then one rectangle of pairs, or a few, and is painted as stripes: from one tile of its origin to a run of tiles of its
destination. Sorted stripes of one tile overlap if and only if two neighbours do. Nothing is known here of trees, only
which tiles each area has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from crowdveil.model.arrays import Ints, Mask

MOST_TRIED = 4000
"""Of areas that do not all nest, so many are tried for a family that does."""
MOST_STRIPES = 1 << 18
"""Time steps are painted together up to so many stripes."""
MOST_STEPS = 256
"""Time steps that are painted together."""


@dataclass(frozen=True)
class Runs:
    """Areas as runs of consecutive tiles in an order of all tiles.

    Attributes
    ----------
    place
        The place of each tile in the order.
    offsets, first, last
        The runs of area i are offsets[i] to offsets[i + 1]; a run holds the places from first up to, not with, last.
    size
        Tiles of each area.
    """

    place: Ints
    offsets: Ints
    first: Ints
    last: Ints
    size: Ints

    @classmethod
    def of(cls, areas: list[Ints], tiles: int, named: Ints) -> Runs:
        """Order the tiles so that each area is one run if areas nest; else the areas that rows name most often are.

        `named` says how often. An area that is not one run is split, which costs time and changes no answer.
        """
        runs = cls._in_order(areas, _nested_order(areas, tiles, range(len(areas))))
        if runs.count.max(initial=0) <= 1:
            return runs
        return cls._in_order(areas, _nested_order(areas, tiles, _nested_family(areas, tiles, named)))

    @classmethod
    def _in_order(cls, areas: list[Ints], order: Ints) -> Runs:
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        # Tiles of all areas in one line, area after area; a run begins where an area does, or where places jump.
        area, tile = _lines(areas)
        key = distinct(area * (len(order) + 1) + place[tile])
        begins = np.flatnonzero(np.diff(key, prepend=-2) != 1)
        ends = np.append(begins[1:], len(key))[: len(begins)] - 1
        of_area, first = np.divmod(key[begins], len(order) + 1)
        offsets = np.searchsorted(of_area, np.arange(len(areas) + 1))
        size = np.bincount(key // (len(order) + 1), minlength=len(areas))
        return cls(place, offsets, first, key[ends] % (len(order) + 1) + 1, size)

    @property
    def count(self) -> Ints:
        """Runs of each area."""
        return np.diff(self.offsets)


def distinct(values: Ints) -> Ints:
    """Different values, rising. Several times faster than `np.unique` of numpy 2.4, which hashes."""
    values = np.sort(values)
    different: Ints = values[np.diff(values, prepend=values[:1] - 1) != 0]
    return different


def by_step(step: Ints, *columns: Ints) -> tuple[Ints | None, tuple[Ints, ...]]:
    """Steps and columns of rows in the order of steps; and that order, None where rows are in it already."""
    if bool(np.all(step[1:] >= step[:-1])):
        return None, (step, *columns)
    order = np.argsort(step, kind="stable")
    return order, tuple(column[order] for column in (step, *columns))


def _lines(areas: list[Ints]) -> tuple[Ints, Ints]:
    area = np.repeat(np.arange(len(areas)), [len(tiles) for tiles in areas])
    return area, np.concatenate([np.zeros(0, np.int64), *areas])


def _nested_order(areas: list[Ints], tiles: int, family: Iterable[int]) -> Ints:
    """Tiles by the areas that they lie in, the largest first.

    Of areas that nest, all tiles of one lie in the same larger ones, so that the order keeps them together.
    """
    inside: list[list[int]] = [[] for _ in range(tiles)]
    for rank, area in enumerate(sorted(family, key=lambda a: -len(areas[a]))):
        for tile in areas[area].tolist():
            inside[tile].append(rank)
    return np.array(sorted(range(tiles), key=inside.__getitem__), np.int64)


def _nested_family(areas: list[Ints], tiles: int, named: Ints) -> list[int]:
    """Areas of which any two nest or are apart; those come first that would cost most if they were split."""
    inside: list[list[int]] = [[] for _ in range(tiles)]
    size = np.array([len(a) for a in areas], np.int64)
    family = []
    for area in np.argsort(-named * (size - 1), kind="stable")[:MOST_TRIED].tolist():
        mine = areas[area].tolist()
        common = Counter(chain.from_iterable(inside[tile] for tile in mine))
        if all(n in (len(mine), size[other]) for other, n in common.items()):
            family.append(area)
            for tile in mine:
                inside[tile].append(area)
    return family


@dataclass(frozen=True)
class Painted:
    """The rows of a few time steps, painted.

    Attributes
    ----------
    steps
        The time steps, rising.
    crossed
        Whether a pair of tiles is painted twice, in each of `steps`. Nothing can be looked up there.
    """

    steps: Ints
    crossed: Mask
    _turned: bool
    _tiles: int
    _bits: int
    _keys: Ints
    """Sorted: number of the step, tile that stands alone, first tile of the run; in the low bits the rectangle."""
    _last: Ints
    """One past the last tile of each rectangle's runs."""
    _row: Ints
    """The row that each rectangle is part of."""

    def row_at(self, number: Ints, origin: Ints, destination: Ints) -> Ints:
        """The row that lies over each pair of places, in the step of this number in `steps`.

        -1 where none does, or where a place is negative.
        """
        alone, along = (destination, origin) if self._turned else (origin, destination)
        if len(self._keys) == 0:
            return np.full(len(number), -1, np.int64)
        line = number * self._tiles + alone
        # The last stripe that begins at the place or before it; if there is none, the last of all, in another line.
        next_cell = (line * self._tiles + along + 1) << self._bits
        key = self._keys[np.searchsorted(self._keys, next_cell) - 1]
        rectangle = key & ((1 << self._bits) - 1)
        key >>= self._bits
        found = (key <= line * self._tiles + along) & (key >= line * self._tiles) & (along < self._last[rectangle])
        found &= alone >= 0  # a negative place along a line is before all of it
        return np.where(found, self._row[rectangle], -1)


def paint(runs: Runs, step: Ints, origin: Ints, destination: Ints) -> Iterator[Painted]:
    """Paint rows a few time steps at a time. Steps are numbers from 0, rising; origins and destinations are areas."""
    starts = np.flatnonzero(np.diff(step, prepend=-1))
    bounds, tiles = np.append(starts, len(step)), max(len(runs.place), 1)
    # Rows with more pairs of tiles than there are overlap for sure, and need not be painted.
    crowded = _sums(runs.size[origin] * runs.size[destination], starts) > tiles**2
    by_origin = _sums(runs.size[origin] * runs.count[destination], starts)
    by_destination = _sums(runs.count[origin] * runs.size[destination], starts)
    turned = bool(by_destination.sum() < by_origin.sum())
    alone, along = (destination, origin) if turned else (origin, destination)
    stripes = np.where(crowded, 0, by_destination if turned else by_origin)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(stripes)])
    # Step, two tiles and the rectangle share the 63 bits of a key.
    most_steps = max(1, min(MOST_STEPS, 2**62 // (2 * MOST_STRIPES * tiles**2)))
    low = 0
    while low < len(starts):
        high = int(np.searchsorted(before, before[low] + MOST_STRIPES, "right")) - 1
        high = min(max(high, low + 1), low + most_steps, len(starts))
        rows = np.arange(bounds[low], bounds[high])
        number = np.repeat(np.arange(high - low), np.diff(bounds[low : high + 1]))
        kept = ~crowded[low:high][number]
        rows, number = rows[kept], number[kept]
        yield _paint(runs, step[starts[low:high]], crowded[low:high], rows, number, alone[rows], along[rows], turned)
        low = high


def _sums(values: Ints, starts: Ints) -> Ints:
    """Sums of the slices that begin at `starts`."""
    sums: Ints = np.add.reduceat(values, starts) if len(starts) else np.zeros(0, np.int64)
    return sums


def _paint(
    runs: Runs, steps: Ints, crowded: Mask, rows: Ints, number: Ints, alone: Ints, along: Ints, turned: bool
) -> Painted:
    tiles = max(len(runs.place), 1)
    row, alone_run, along_run = _rectangles(runs, alone, along)
    bits = len(row).bit_length()
    height = runs.last[alone_run] - runs.first[alone_run]
    corner = (number[row] * tiles + runs.first[alone_run]) * tiles + runs.first[along_run]
    # Each rectangle once for every tile that stands alone: its corner, moved on by a line each time.
    down = np.arange(height.sum()) - np.repeat(np.cumsum(height) - height, height)
    keys = np.repeat((corner << bits) + np.arange(len(row)), height) + ((down * tiles) << bits)
    keys.sort()
    # A stripe ends in its own line, so that it overlaps the next one if and only if that begins before its end.
    cell, last = keys >> bits, runs.last[along_run]
    width = (last - runs.first[along_run])[keys & ((1 << bits) - 1)]
    twice = cell[1:] < (cell + width)[:-1]
    crossed = crowded.copy()
    crossed[cell[1:][twice] // tiles**2] = True
    return Painted(steps, crossed, turned, tiles, bits, keys, last, rows[row])


def _rectangles(runs: Runs, alone: Ints, along: Ints) -> tuple[Ints, Ints, Ints]:
    """Every run of a row's one area with every run of the other: the row, and the two runs."""
    wide = runs.count[along]
    each = runs.count[alone] * wide
    row: Ints = np.repeat(np.arange(len(each)), each)
    within = np.arange(len(row)) - np.repeat(np.cumsum(each) - each, each)
    return row, runs.offsets[alone][row] + within // wide[row], runs.offsets[along][row] + within % wide[row]
