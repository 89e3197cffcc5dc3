"""Order tiles so that areas are runs of consecutive tiles, as far as possible, from the tiles of each area alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from crowdveil.model.arrays import Ints, Mask

MAX_TRIED = 4000
"""Areas tried for a nested family where not all areas nest."""


@dataclass(frozen=True)
class Runs:
    """Areas as runs of consecutive tiles in an order of all tiles.

    Attributes
    ----------
    position
        The position of each tile in the order.
    offsets, first, last
        The runs of area i are offsets[i] to offsets[i + 1]; a run has the positions from first to below last.
    size
        Tiles of each area.
    """

    position: Ints
    offsets: Ints
    first: Ints
    last: Ints
    size: Ints

    @classmethod
    def of(cls, areas: list[Ints], tiles: int, named: Ints) -> Runs:
        """Order the tiles so that each area is one run if areas nest; else the areas that rows name most often are.

        `named` is the number of rows of each area. An area that is not one run is split, which costs time and changes no result.
        """
        runs = cls._in_order(areas, _nested_order(areas, tiles, range(len(areas))))
        if runs.count.max(initial=0) <= 1:
            return runs
        return cls._in_order(areas, _nested_order(areas, tiles, _nested_family(areas, tiles, named)))

    @classmethod
    def _in_order(cls, areas: list[Ints], order: Ints) -> Runs:
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        # Tiles of all areas in one line, area after area; a run begins where an area does, or where positions jump.
        area, tile = _lines(areas)
        key = distinct(area * (len(order) + 1) + position[tile])
        begins = np.flatnonzero(np.diff(key, prepend=-2) != 1)
        ends = np.append(begins[1:], len(key))[: len(begins)] - 1
        of_area, first = np.divmod(key[begins], len(order) + 1)
        offsets = np.searchsorted(of_area, np.arange(len(areas) + 1))
        size = np.bincount(key // (len(order) + 1), minlength=len(areas))
        return cls(position, offsets, first, key[ends] % (len(order) + 1) + 1, size)

    @property
    def count(self) -> Ints:
        """Return the number of runs of each area."""
        return np.diff(self.offsets)


def add_by_group(group: Ints, values: Ints | Mask, groups: int) -> Ints:
    """Add up values by group, exactly: a count by numpy would add them as floats. Checkers have this of their own."""
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums


def distinct(values: Ints) -> Ints:
    """Return the distinct values, rising. Several times faster than `np.unique` of numpy 2.4, which hashes."""
    values = np.sort(values)
    different: Ints = values[np.diff(values, prepend=values[:1] - 1) != 0]
    return different


def _lines(areas: list[Ints]) -> tuple[Ints, Ints]:
    area = np.repeat(np.arange(len(areas)), [len(tiles) for tiles in areas])
    return area, np.concatenate([np.zeros(0, np.int64), *areas])


def _nested_order(areas: list[Ints], tiles: int, family: Iterable[int]) -> Ints:
    """Return the tiles ordered by their areas, the largest first.

    Of nested areas, all tiles of one lie in the same larger ones, so that the order keeps them together.
    """
    inside: list[list[int]] = [[] for _ in range(tiles)]
    for rank, area in enumerate(sorted(family, key=lambda a: -len(areas[a]))):
        for tile in areas[area].tolist():
            inside[tile].append(rank)
    return np.array(sorted(range(tiles), key=inside.__getitem__), np.int64)


def _nested_family(areas: list[Ints], tiles: int, named: Ints) -> list[int]:
    """Return areas of which any two nest or are disjoint; first those with the highest cost of a split."""
    inside: list[list[int]] = [[] for _ in range(tiles)]
    size = np.array([len(a) for a in areas], np.int64)
    family = []
    for area in np.argsort(-named * (size - 1), kind="stable")[:MAX_TRIED].tolist():
        mine = areas[area].tolist()
        common = Counter(chain.from_iterable(inside[tile] for tile in mine))
        if all(n in (len(mine), size[other]) for other, n in common.items()):
            family.append(area)
            for tile in mine:
                inside[tile].append(area)
    return family
