"""The number of tiles that a published area must have at least (l-diversity)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.model.arrays import Indices, Ints, Mask, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.solve.od.dyadic_regions import DyadicRegions


@dataclass(frozen=True)
class AreaContent:
    """What an area must contain at least.

    Attributes
    ----------
    tiles
        Fewest tiles; only those that count in the data, such as visited ones, where it says so.
    """

    tiles: int = 1

    def regions_that_fit(self, regions: Hierarchy | DyadicRegions, data: Flows) -> Mask:
        """Return whether each region contains enough; then all regions around it do, too."""
        return np.asarray(regions.subtree_sums(counted_tiles(data)) >= self.tiles)

    def areas_that_fit(self, data: Flows, offsets: Ints, tiles: Ints | Indices) -> Mask:
        """Return whether areas, given by their tiles, contain enough."""
        return slice_sums(offsets, counted_tiles(data)[tiles]) >= self.tiles

    def asks_for_tiles(self, data: Flows) -> bool:
        """Return whether an area may have too few tiles."""
        return self.tiles > 1 or data.counted is not None


def counted_tiles(data: Flows) -> Ints:
    """Return 1 for each tile that counts, else 0."""
    return np.ones(len(data.zones), np.int64) if data.counted is None else data.counted.tiles.astype(np.int64)
