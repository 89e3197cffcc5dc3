"""Regions that can be split in more than one way: rectangles that are halved in x or in y, again and again.

Tiles are ranked by x and by y (on a grid, columns and rows are taken as they are), and each axis is halved down to single
tiles. Rectangles that hold the same tiles are one region. A quadtree is one path through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Indices, Ints, Mask, frozen, row_slices, take_slices
from crowdveil.model.zones import Zones

MOST_REGIONS = 40_000
"""More are too many to hold against each other; a tree does for such maps."""


@dataclass(frozen=True, eq=False)
class DyadicRegions:
    """All dyadic rectangles of a map, smaller ones first; the last is the whole map.

    Attributes
    ----------
    tile_offsets, tiles
        The tiles of region i are tiles[tile_offsets[i]:tile_offsets[i + 1]], rising.
    way_offsets, first, second
        Region i can be halved in the ways way_offsets[i] to way_offsets[i + 1]; way w gives first[w] and second[w].
    """

    tile_offsets: Ints
    tiles: Ints
    way_offsets: Ints
    first: Ints
    second: Ints

    @classmethod
    def of(cls, zones: Zones) -> DyadicRegions:
        """The dyadic rectangles over zones."""
        if len(zones) == 0:
            raise InputError("dyadic splits need at least one zone.")
        x, y, span = _places(zones)
        found, halves = _explore(x, y, span)
        return _ordered(found, halves)

    def __len__(self) -> int:
        return len(self.tile_offsets) - 1

    @property
    def size(self) -> Ints:
        """Number of tiles of each region."""
        return np.diff(self.tile_offsets)

    @property
    def root(self) -> int:
        """The whole map."""
        return len(self) - 1

    def node_tiles(self, region: int) -> Indices:
        """The tiles of a region."""
        return self.tiles[self.tile_offsets[region] : self.tile_offsets[region + 1]].astype(np.int32)

    def subtree_sums(self, values_by_tile: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum of a number of each tile, for each region."""
        total: npt.NDArray[Any] = np.add.reduceat(values_by_tile[self.tiles], self.tile_offsets[:-1])
        return total

    def halves(self, regions: Ints, way: Ints) -> tuple[Ints, Ints]:
        """Both halves of each region, halved in the given one of its ways, rising, and the place of the region in the list."""
        at = self.way_offsets[regions] + way
        both = np.sort(np.column_stack([self.first[at], self.second[at]]), axis=1)
        return both.ravel(), np.repeat(np.arange(len(regions)), 2)

    def holds(self, regions: Ints, tiles: Ints) -> Mask:
        """Whether each region holds the tile given with it."""
        span = int(self.tile_offsets[-1] - self.tile_offsets[-2]) + 1  # the whole map is the last region
        keys = row_slices(self.tile_offsets) * span + self.tiles
        wanted = regions * span + tiles
        held: Mask = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return held

    def tiles_of(self, regions: Ints) -> tuple[Ints, Ints]:
        """The tiles of several regions one after the other, and where those of each begin and end."""
        rows, offsets = take_slices(self.tile_offsets, regions)
        return offsets, self.tiles[rows]


def _places(zones: Zones) -> tuple[Ints, Ints, int]:
    """The place of each tile on both axes, and the number of places; on a grid that is a power of two, as in a quadtree."""
    if zones.column is not None and zones.row is not None:
        x, y = zones.column.astype(np.int64), zones.row.astype(np.int64)
        x, y = x - x.min(), y - y.min()
        widest = int(max(x.max(), y.max())) + 1
        span = 1 << (widest - 1).bit_length()
    else:
        zones.need_location("dyadic splits")
        # Millimeters, so that the noise of a projection does not decide between equal coordinates.
        east, north = (np.round(c, 3) for c in zones.xy)
        x, y = np.empty(len(zones), np.int64), np.empty(len(zones), np.int64)
        x[np.lexsort((north, east))] = np.arange(len(zones))
        y[np.lexsort((east, north))] = np.arange(len(zones))
        span = len(zones)
    return x, y, span


def _explore(x: Ints, y: Ints, span: int) -> tuple[list[Ints], list[list[tuple[int, int]]]]:
    """All regions that the whole map can be halved into, with their halves."""
    everything = np.arange(len(x))
    number = {everything.tobytes(): 0}
    found: list[Ints] = [everything]
    halves: list[list[tuple[int, int]]] = [[]]
    at = 0
    while at < len(found):
        for axis in (x, y):
            parts = _halved(found[at], axis, span)
            if parts is None:
                continue
            pair = []
            for part in parts:
                key = part.tobytes()
                if key not in number:
                    number[key] = len(found)
                    found.append(part)
                    halves.append([])
                pair.append(number[key])
            if (pair[0], pair[1]) not in halves[at]:
                halves[at].append((pair[0], pair[1]))
        at += 1
        if len(found) > MOST_REGIONS:
            raise InputError(
                f"dyadic splits of {len(x):,} zones give too many regions; use {Option('splits', 'tree')} for such a map."
            )
    return found, halves


def _halved(tiles: Ints, place: Ints, span: int) -> tuple[Ints, Ints] | None:
    """The two halves of the smallest dyadic interval that holds the tiles; None if they have one place."""
    here = place[tiles]
    least, most = int(here.min()), int(here.max())
    if least == most:
        return None
    low, high = 0, span
    while True:
        middle = (low + high) // 2
        if most < middle:
            high = middle
        elif least >= middle:
            low = middle
        else:
            return tiles[here < middle], tiles[here >= middle]


def _ordered(found: list[Ints], halves: list[list[tuple[int, int]]]) -> DyadicRegions:
    """Smaller regions first, so that halves come before what they are halves of."""
    size = np.array([len(tiles) for tiles in found])
    order = np.argsort(size, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    ways = [halves[i] for i in order]
    pairs = rank[np.array([pair for way in ways for pair in way], np.int64).reshape(-1, 2)]
    return DyadicRegions(
        frozen(np.cumsum([0, *size[order]]), np.int64),
        frozen(np.concatenate([found[i] for i in order]), np.int64),
        frozen(np.cumsum([0, *(len(way) for way in ways)]), np.int64),
        frozen(pairs[:, 0], np.int64),
        frozen(pairs[:, 1], np.int64),
    )
