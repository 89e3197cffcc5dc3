"""Define areas: sets of tiles with ids that depend on the tiles alone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from crowdveil.model.arrays import (
    Floats,
    Indices,
    Ints,
    Labels,
    check_lengths,
    check_offsets,
    freeze_columns,
    frozen,
    require,
    take_slices,
)
from crowdveil.model.globe import rounded
from crowdveil.model.tabular import Tabular
from crowdveil.model.zones import Zones


class Nodes(Protocol):
    """A tree, or another set of numbered regions."""

    def __len__(self) -> int: ...

    def tiles_of(self, nodes: Ints, /) -> tuple[Ints, Ints]:
        """Return the tiles of several nodes one after the other, as offsets and tiles."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Areas(Tabular):
    """The areas that a release names, each a set of tiles.

    Attributes
    ----------
    zones
        The tiles.
    names
        The name of each area in the written files. An area of one tile has the tile's own id.
    offsets, tiles
        The tiles of area i are tiles[offsets[i]:offsets[i + 1]].
    """

    zones: Zones
    names: Labels
    offsets: Ints
    tiles: Indices

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozen(self.names, object))
        freeze_columns(self)
        check_offsets(self.offsets, len(self.tiles), "areas")
        check_lengths("areas", len(self.offsets) - 1, names=self.names)
        require(bool(np.all(np.diff(self.offsets) > 0)), "areas: every area must have a tile.")
        require(len(set(self.names)) == len(self.names), "areas: names must be unique.")

    @classmethod
    def of_tiles(cls, zones: Zones, tiles: Indices) -> Areas:
        """Return areas of one tile each."""
        return cls(zones, zones.ids[tiles], np.arange(len(tiles) + 1), tiles)

    @classmethod
    def of_parts(cls, zones: Zones, part: Ints) -> Areas:
        """Return the areas of a partition of the map, from the part of each tile; parts are 0, 1, …, each with a tile."""
        order = np.argsort(part, kind="stable")
        offsets = np.searchsorted(part[order], np.arange(int(part.max(initial=-1)) + 2))
        prefix = _free_prefix(zones, "area")
        parts = zip(offsets[:-1], np.diff(offsets), strict=True)
        names = [zones.ids[order[low]] if size == 1 else f"{prefix}-{i}" for i, (low, size) in enumerate(parts)]
        return cls(zones, np.array(names, dtype=object), offsets, order.astype(np.int32))

    @classmethod
    def of_nodes(cls, zones: Zones, nodes: Sequence[tuple[Nodes, Ints]]) -> tuple[Areas, list[Ints]]:
        """Return areas of nodes of one or more trees, or of regions; also the area of each node, tree by tree.

        In every tree, a node of one tile is that tile; others are named after the tree and the node.
        """
        parts = [tree.tiles_of(wanted) for tree, wanted in nodes]
        size = np.concatenate([np.diff(offsets) for offsets, _ in parts])
        tiles = np.concatenate([flat for _, flat in parts])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
        # A number for each area: its tile, or its node after those of earlier trees.
        begin = np.cumsum([len(zones), *(len(tree) for tree, _ in nodes)])
        key = np.concatenate([low + wanted for low, (_, wanted) in zip(begin[:-1], nodes, strict=True)])
        key[size == 1] = tiles[offsets[:-1][size == 1]]
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        kept = np.sort(first)
        area = np.searchsorted(kept, first)[which]
        rows, kept_offsets = take_slices(offsets, kept)
        of_area = np.repeat(np.arange(len(kept)) * len(zones), size[kept])
        flat = (np.sort(of_area + tiles[rows]) - of_area).astype(np.int32)
        prefix = _free_prefix(zones, "area")
        tree_of, first_of = np.searchsorted(begin, key[kept], "right") - 1, begin.tolist()
        names = [
            zones.ids[number] if tree < 0 else f"{prefix}{'-to' if tree else ''}-{number - first_of[tree]}"
            for number, tree in zip(key[kept].tolist(), tree_of.tolist(), strict=True)
        ]
        of_trees = np.split(area, np.cumsum([len(wanted) for _, wanted in nodes])[:-1])
        return cls(zones, np.array(names, dtype=object), kept_offsets, flat), of_trees

    @classmethod
    def of_sets(cls, zones: Zones, sets: Sequence[Indices]) -> tuple[Areas, Ints]:
        """Return the different areas among sets of tiles, each set rising, and which one each has; see `and_more` for names."""
        number: dict[bytes, int] = {}
        place = np.array([number.setdefault(tiles.tobytes(), len(number)) for tiles in sets], np.int64)
        different = [np.frombuffer(tiles, np.int32) for tiles in number]
        return cls.of_tiles(zones, np.zeros(0, np.int32)).and_more(different, "area"), place

    def and_more(self, tiles: Sequence[Indices], word: str) -> Areas:
        """Return these areas and more, named after a word and a digest of their tiles.

        A running number would depend on the rest of the release; with a digest a time step has the same names in any release.
        """
        word = _free_prefix(self.zones, word)
        names = [self.zones.ids[here[0]] if len(here) == 1 else f"{word}-{_digest(here)}" for here in tiles]
        offsets = np.cumsum([len(self.tiles), *(len(here) for here in tiles)])
        return Areas(
            self.zones,
            np.concatenate([self.names, np.array(names, dtype=object)]),
            np.concatenate([self.offsets, offsets[1:]]),
            np.concatenate([self.tiles, *tiles]),
        )

    def only(self, used: Ints) -> Areas:
        """Return the areas in `used`."""
        rows, offsets = take_slices(self.offsets, used)
        return Areas(self.zones, self.names[used], offsets, self.tiles[rows])

    def __len__(self) -> int:
        return len(self.names)

    def to_arrow(self) -> pa.Table:
        """Return a table of the areas and the number of their tiles."""
        return pa.table({"area": pa.array(self.names, pa.string()), "tiles": self.size})

    def summary(self) -> str:
        """Return the number of areas and of their tiles."""
        return f"{len(self):,} areas of {len(self.zones):,} zones"

    @property
    def size(self) -> Ints:
        """Return the number of tiles of each area."""
        return np.diff(self.offsets)

    @property
    def area_m2(self) -> Floats:
        """Return the square meters of each area; NaN where the tiles have no outlines."""
        if not len(self):
            return np.zeros(0)
        tile_area = self.zones.area_m2[self.tiles]
        sums: Floats = np.add.reduceat(tile_area, self.offsets[:-1])
        return sums

    def centers(self, decimals: int) -> tuple[Floats, Floats]:
        """Return longitude and latitude of each area, rounded: its tile's, or the mean of its tiles' in planar meters."""
        if not len(self):
            return np.zeros(0), np.zeros(0)
        zones, first = self.zones, self.tiles[self.offsets[:-1]]
        lon, lat = zones.lon[first], zones.lat[first]
        many = self.size > 1
        if many.any():
            x, y = (np.add.reduceat(c[self.tiles], self.offsets[:-1]) / self.size for c in zones.xy)
            lon[many], lat[many] = zones.projection.to_globe(x[many], y[many])
        return rounded(lon, decimals), np.round(lat, decimals)


def _digest(tiles: Indices) -> str:
    """Return twelve letters and digits that identify a set of tiles."""
    digest = hashlib.blake2b(np.ascontiguousarray(tiles, "<i4").tobytes(), digest_size=10).digest()
    return base64.b32encode(digest).decode("ascii").lower()[:12]


def _free_prefix(zones: Zones, word: str) -> str:
    """Return a word that no zone id begins with, so that names made of it are new."""
    while any(name.startswith(word) for name in zones.ids):
        word = "_" + word
    return word
