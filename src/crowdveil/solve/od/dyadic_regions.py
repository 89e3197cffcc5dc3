"""Dyadic regions: rectangles that are halved in x or in y, again and again, so that a region has more than one split.

Tiles are ranked by x and by y (a grid keeps its columns and rows), and each axis is halved down to single
tiles. Rectangles that hold the same tiles are one region. A quadtree is one path through them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdveil.errors import InputError, Option, Text
from crowdveil.kernels.od.structures import DyadicArrays
from crowdveil.model.arrays import AnyArray, Indices, Ints, Mask, frozen, row_slices, take_slices
from crowdveil.model.zones import Zones

MAX_REGIONS = 40_000
"""Largest number of regions that can be compared; use a tree for larger maps."""


@dataclass(frozen=True, eq=False)
class DyadicRegions:
    """All dyadic rectangles of a map, smaller ones first; the last is the whole map.

    Attributes
    ----------
    tile_offsets, tiles
        The tiles of region i are tiles[tile_offsets[i]:tile_offsets[i + 1]], rising.
    split_offsets, first, second
        The splits of region i are split_offsets[i] to split_offsets[i + 1]; split s gives the halves first[s] and second[s].
    """

    tile_offsets: Ints
    tiles: Ints
    split_offsets: Ints
    first: Ints
    second: Ints

    @classmethod
    def of(cls, zones: Zones) -> DyadicRegions:
        """Make the dyadic rectangles over zones."""
        if len(zones) == 0:
            raise InputError("dyadic splits need at least one zone.")
        x, y, span = tile_positions(zones, "dyadic splits")
        found, halves = _explore(x, y, span)
        return _ordered(found, halves)

    @property
    def arrays(self) -> DyadicArrays:
        """Return the regions as kernels take them."""
        return DyadicArrays(self.tile_offsets, self.tiles, self.split_offsets, self.first, self.second)

    def __len__(self) -> int:
        return len(self.tile_offsets) - 1

    @property
    def size(self) -> Ints:
        """Return the number of tiles of each region."""
        return np.diff(self.tile_offsets)

    @property
    def root(self) -> int:
        """Return the region of the whole map."""
        return len(self) - 1

    def node_tiles(self, region: int) -> Indices:
        """Return the tiles of a region."""
        return self.tiles[self.tile_offsets[region] : self.tile_offsets[region + 1]].astype(np.int32)

    def subtree_sums(self, values_by_tile: AnyArray) -> AnyArray:
        """Sum a number of each tile over each region."""
        total: AnyArray = np.add.reduceat(values_by_tile[self.tiles], self.tile_offsets[:-1])
        return total

    def halves(self, regions: Ints, split: Ints) -> tuple[Ints, Ints]:
        """Return both halves of each region by the given one of its splits, rising, and the position of the region."""
        at = self.split_offsets[regions] + split
        both = np.sort(np.column_stack([self.first[at], self.second[at]]), axis=1)
        return both.ravel(), np.repeat(np.arange(len(regions)), 2)

    def with_blocks(self, block: int) -> tuple[DyadicRegions, Mask]:
        """Return the regions, those of at most `block` tiles with their most equal halves alone, and which are still used."""
        size = self.size
        of_split = row_slices(self.split_offsets)
        unequal = np.abs(size[self.first] - size[self.second])
        best = np.lexsort((np.arange(len(of_split)), unequal, of_split))
        most_equal = np.zeros(len(of_split), np.bool_)
        most_equal[best[np.flatnonzero(np.diff(of_split[best], prepend=-1))]] = True
        keep = most_equal | (size[of_split] > block)
        used = np.zeros(len(self), np.bool_)
        used[self.root] = True
        # Halves have smaller numbers: from the whole map down it is known whether a region is used.
        for split in np.flatnonzero(keep)[::-1].tolist():
            if used[of_split[split]]:
                used[self.first[split]] = used[self.second[split]] = True
        counts = np.bincount(of_split[keep], minlength=len(self))
        regions = replace(
            self,
            split_offsets=frozen(np.concatenate([[0], np.cumsum(counts)]), np.int64),
            first=frozen(self.first[keep], np.int64),
            second=frozen(self.second[keep], np.int64),
        )
        return regions, used

    def holds(self, regions: Ints, tiles: Ints) -> Mask:
        """Return whether each region holds the tile given with it."""
        span = int(self.tile_offsets[-1] - self.tile_offsets[-2]) + 1  # the whole map is the last region
        keys = row_slices(self.tile_offsets) * span + self.tiles
        wanted = regions * span + tiles
        contains: Mask = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return contains

    def tiles_of(self, regions: Ints) -> tuple[Ints, Ints]:
        """Return the tiles of several regions one after the other, as offsets and tiles."""
        rows, offsets = take_slices(self.tile_offsets, regions)
        return offsets, self.tiles[rows]


def tile_positions(zones: Zones, purpose: str) -> tuple[Ints, Ints, int]:
    """Return the position of each tile on both axes, and the number of positions; on a grid a power of two, as in a quadtree.

    Raises with the `purpose` where the positions of zones are not known.
    """
    if zones.column is not None and zones.row is not None:
        x, y = zones.column.astype(np.int64), zones.row.astype(np.int64)
        x, y = x - x.min(), y - y.min()
        widest = int(max(x.max(), y.max())) + 1
        span = 1 << (widest - 1).bit_length()
    else:
        zones.need_location(purpose)
        # Millimeters, so that the noise of a projection does not decide between equal coordinates.
        east, north = (np.round(c, 3) for c in zones.xy)
        x, y = np.empty(len(zones), np.int64), np.empty(len(zones), np.int64)
        x[np.lexsort((north, east))] = np.arange(len(zones))
        y[np.lexsort((east, north))] = np.arange(len(zones))
        span = len(zones)
    return x, y, span


def _explore(x: Ints, y: Ints, span: int) -> tuple[list[Ints], list[list[tuple[int, int]]]]:
    """Find all regions that the whole map can be halved into, with their halves."""
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
        if len(found) > MAX_REGIONS:
            raise InputError(
                Text(
                    "dyadic splits of {zones:,} zones give too many regions. Use {splits} for such a map.",
                    zones=len(x),
                    splits=Option("splits", "tree"),
                )
            )
    return found, halves


def _halved(tiles: Ints, place: Ints, span: int) -> tuple[Ints, Ints] | None:
    """Split tiles by the halves of the smallest dyadic interval that holds them; None if they have one position."""
    here = place[tiles]
    first, last = int(here.min()), int(here.max())
    if first == last:
        return None
    low, high = 0, span
    while True:
        middle = (low + high) // 2
        if last < middle:
            high = middle
        elif first >= middle:
            low = middle
        else:
            return tiles[here < middle], tiles[here >= middle]


def _ordered(found: list[Ints], halves: list[list[tuple[int, int]]]) -> DyadicRegions:
    """Put smaller regions first: halves come before the regions that they are halves of."""
    size = np.array([len(tiles) for tiles in found])
    order = np.argsort(size, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    splits = [halves[i] for i in order]
    pairs = rank[np.array([pair for split in splits for pair in split], np.int64).reshape(-1, 2)]
    return DyadicRegions(
        frozen(np.cumsum([0, *size[order]]), np.int64),
        frozen(np.concatenate([found[i] for i in order]), np.int64),
        frozen(np.cumsum([0, *(len(split) for split in splits)]), np.int64),
        frozen(pairs[:, 0], np.int64),
        frozen(pairs[:, 1], np.int64),
    )
