"""What a published area must contain at least (l-diversity): tiles, visited tiles, points of interest and their categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Indices, Ints, Mask, row_slices, slice_sums, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.points_of_interest import PointsOfInterest
from crowdveil.solve.od.dyadic_regions import DyadicRegions


@dataclass(frozen=True)
class AreaContent:
    """What an area must contain at least.

    Attributes
    ----------
    tiles, inhabited
        Fewest tiles, and fewest tiles that anyone visits.
    pois, categories
        Fewest points of interest, and fewest different categories of them.
    """

    tiles: int = 1
    inhabited: int = 0
    pois: int = 0
    categories: int = 0

    def regions_that_fit(self, regions: Hierarchy | DyadicRegions, data: Flows) -> Mask:
        """Return whether each region contains enough; all regions around one that does contain enough too."""
        fits: Mask = regions.size >= self.tiles
        if self.inhabited > 0:
            fits = fits & (regions.subtree_sums(data.visited.astype(np.int64)) >= self.inhabited)
        if self.pois > 0:
            fits = fits & (regions.subtree_sums(points_of(data).per_tile(len(data.zones))) >= self.pois)
        if self.categories > 0:
            offsets, category = points_of(data).categories_per_tile(len(data.zones))
            tile, different = row_slices(offsets), np.zeros(len(fits), np.int64)
            for one in np.unique(category).tolist():
                there = np.zeros(len(data.zones), np.int64)
                there[tile[category == one]] = 1
                different += regions.subtree_sums(there) > 0
            fits = fits & (different >= self.categories)
        return fits

    def areas_that_fit(self, data: Flows, offsets: Ints, tiles: Ints | Indices) -> Mask:
        """Return whether areas, given by their tiles, contain enough."""
        fits: Mask = np.diff(offsets) >= self.tiles
        fits = fits & (slice_sums(offsets, data.visited.astype(np.int64)[tiles]) >= self.inhabited)
        if self.pois > 0:
            fits = fits & (slice_sums(offsets, points_of(data).per_tile(len(data.zones))[tiles]) >= self.pois)
        if self.categories > 0:
            begin, category = points_of(data).categories_per_tile(len(data.zones))
            entries, of_tile = take_slices(begin, tiles.astype(np.int64))
            area = np.repeat(row_slices(offsets), np.diff(of_tile))
            pairs = np.unique(np.column_stack([area, category[entries]]), axis=0)
            fits = fits & (np.bincount(pairs[:, 0], minlength=len(fits)) >= self.categories)
        return fits


def points_of(data: Flows) -> PointsOfInterest:
    """Return the points of interest of the data; raise if none were given."""
    if data.pois is None:
        raise InputError(
            f"{Option('min_pois')} and {Option('min_poi_categories')} count points of interest, but none are given. Name their "
            f"table with {Option('pois')}."
        )
    return data.pois
