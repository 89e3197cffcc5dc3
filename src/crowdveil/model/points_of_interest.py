"""Define points of interest: shops, schools, clinics and other locations that trips may lead to, in the tiles of OD data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.model.arrays import Ints, freeze_columns, group_sums

NO_CATEGORY = -1


@dataclass(frozen=True, eq=False)
class PointsOfInterest:
    """Points of interest, as entries of a tile, a category and a number of points.

    Attributes
    ----------
    tile
        The tile of each entry.
    category
        Number of its category, `NO_CATEGORY` where it has none.
    count
        Points of the entry.
    """

    tile: Ints
    category: Ints
    count: Ints

    def __post_init__(self) -> None:
        freeze_columns(self)

    def per_tile(self, tiles: int) -> Ints:
        """Return the number of points of each tile."""
        return group_sums(self.tile, self.count, tiles)

    def categories_per_tile(self, tiles: int) -> tuple[Ints, Ints]:
        """Return the categories of each tile, each once: those of tile i are categories[offsets[i]:offsets[i + 1]]."""
        named = (self.category != NO_CATEGORY) & (self.count > 0)
        pairs = np.unique(np.column_stack([self.tile[named], self.category[named]]), axis=0)
        return np.searchsorted(pairs[:, 0], np.arange(tiles + 1)), pairs[:, 1]
