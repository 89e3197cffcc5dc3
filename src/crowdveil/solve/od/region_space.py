"""Regions that boxes are made of: nodes of trees, or dyadic rectangles; what each costs, and which may be published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from crowdveil.errors import InputError, Option, Text
from crowdveil.kernels.od.structures import DestinationTree, OriginTree
from crowdveil.model.arrays import Floats, Indices, Ints, Mask, frozen, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trees import ward
from crowdveil.solve.od.dyadic_regions import DyadicRegions

Objective = Literal["generalization", "area", "reconstruction"]
Regions = Hierarchy | DyadicRegions
_HECTARE_M2 = 10_000
_KM2_M2 = 1e6


@dataclass(frozen=True)
class RegionExtent:
    """The least content of a published area, and its largest size.

    Attributes
    ----------
    tiles
        Fewest tiles; only those that count in the data, such as visited ones, where it says so.
    most_km2
        Largest area; None for any size.
    """

    tiles: int = 1
    most_km2: float | None = None

    def regions_that_fit(self, regions: Regions, data: Flows) -> Mask:
        """Return whether each region contains enough; then all regions around it do, too."""
        return np.asarray(regions.subtree_sums(counted_tiles(data)) >= self.tiles)

    def areas_that_fit(self, data: Flows, offsets: Ints, tiles: Ints | Indices) -> Mask:
        """Return whether areas, given by their tiles, contain enough."""
        return slice_sums(offsets, counted_tiles(data)[tiles]) >= self.tiles

    def asks_for_tiles(self, data: Flows) -> bool:
        """Return whether an area may have too few tiles."""
        return self.tiles > 1 or data.counted is not None


ANY_EXTENT = RegionExtent()


def counted_tiles(data: Flows) -> Ints:
    """Return 1 for each tile that counts, else 0."""
    return np.ones(len(data.zones), np.int64) if data.counted is None else data.counted.tiles.astype(np.int64)


def check_tree(data: Flows, _params: Any) -> None:
    """Raise unless there is a tree over the zones, or positions to make one of."""
    if len(data) and data.origin_tree is None and data.destination_tree is None:
        data.zones.need_location("Ward trees")


def check_positions(data: Flows, _params: Any, purpose: str = "clusters of flows") -> None:
    """Raise unless the positions of the zones are known."""
    if len(data):
        data.zones.need_location(purpose)


def check_outlines(data: Flows, what: Option) -> None:
    """Raise unless all zones have an area."""
    if np.isnan(data.zones.area_m2).any():
        raise InputError(Text("{what} needs zones with outlines. Give polygons with {zones}, or a grid.", what=what))


@dataclass(frozen=True, eq=False)
class RegionSide:
    """The regions of one side, origins or destinations, with their costs and permitted sizes.

    Attributes
    ----------
    regions
        The nodes of a tree, or rectangles.
    cost
        Cost of each for a trip.
    large_enough
        Whether each is large enough to be published; all that hold one that is are too.
    small_enough
        Whether each is small enough to be published.
    """

    regions: Regions
    cost: Ints
    large_enough: Mask
    small_enough: Mask

    @classmethod
    def of(cls, regions: Regions, data: Flows, objective: Objective, extent: RegionExtent) -> RegionSide:
        """Compute costs and permitted sizes of regions over the zones of the data."""
        large_enough = extent.regions_that_fit(regions, data)
        small_enough = np.ones(len(regions.size), np.bool_)
        if extent.most_km2 is not None:
            area = _areas_m2(data, Option("max_area_km2"))
            small_enough = regions.subtree_sums(area) <= extent.most_km2 * _KM2_M2
        cost = regions.subtree_sums(tile_cost(data, objective))
        return cls(regions, frozen(cost, np.int64), frozen(large_enough, np.bool_), frozen(small_enough, np.bool_))

    @cached_property
    def all_small_enough(self) -> bool:
        """Return whether every region is small enough to be published."""
        return bool(self.small_enough.all())

    @cached_property
    def anchor(self) -> Ints:
        """Return the lowest node above each leaf of a tree that is large enough; the root where none is."""
        tree = self.tree
        lowest = np.arange(len(tree))
        # Parents have larger numbers: from the root down the answer of the node above is known.
        for node in np.flatnonzero(~self.large_enough)[::-1].tolist():
            lowest[node] = lowest[tree.parent[node]] if node != tree.root else node
        return frozen(lowest[tree.leaf_node], np.int64)

    @cached_property
    def as_origins(self) -> OriginTree:
        """Return what kernels need of a tree of origins."""
        tree = self.tree
        arrays = (tree.child_offsets, tree.child_nodes, tree.first_leaf, tree.leaf_tile, self.large_enough)
        return OriginTree(*(frozen(a, np.int64) for a in arrays))

    @cached_property
    def as_destinations(self) -> DestinationTree:
        """Return what kernels need of a tree of destinations."""
        tree = self.tree
        leaf, first_node, is_leaf = (
            frozen(a, np.int64) for a in (tree.tile_leaf, tree.leaf_node[tree.first_leaf], tree.is_leaf)
        )
        table, exponent = (frozen(a, np.int32) for a in join_table(_joins(tree)))
        return DestinationTree(leaf, self.anchor, table, exponent, first_node, int(tree.depth.max()), is_leaf)

    @property
    def tree(self) -> Hierarchy:
        """Return the regions as a tree; raise TypeError if they are rectangles."""
        if not isinstance(self.regions, Hierarchy):
            raise TypeError("rectangles are no tree")
        return self.regions


@dataclass(frozen=True, eq=False)
class RegionSpace:
    """Both sides. Trees may differ; rectangles are the same for origins and destinations."""

    origins: RegionSide
    destinations: RegionSide

    @cached_property
    def widest(self) -> int:
        """Return what a trip from the whole map to the whole map costs."""
        return int(self.origins.cost[-1]) + int(self.destinations.cost[-1])

    def with_blocks(self, block: int) -> RegionSpace:
        """Return dyadic regions with the same numbers; those of at most `block` tiles are halved in one direction only."""
        rectangles = self.origins.regions
        if not isinstance(rectangles, DyadicRegions):
            raise TypeError("only rectangles are halved in several directions")
        regions, used = rectangles.with_blocks(block)
        large_enough = frozen(self.origins.large_enough & used, np.bool_)
        side = replace(self.origins, regions=regions, large_enough=large_enough)
        return RegionSpace(side, side)

    @classmethod
    def trees(
        cls,
        data: Flows,
        objective: Objective = "generalization",
        extent: RegionExtent = ANY_EXTENT,
    ) -> RegionSpace:
        """Take the trees of the data, or the Ward tree of its zones."""
        origins = data.origin_tree or data.destination_tree or ward(data.zones)
        destinations = data.destination_tree or origins
        side = RegionSide.of(origins, data, objective, extent)
        return cls(side, side if destinations is origins else RegionSide.of(destinations, data, objective, extent))

    @classmethod
    def rectangles(
        cls,
        data: Flows,
        objective: Objective = "generalization",
        extent: RegionExtent = ANY_EXTENT,
    ) -> RegionSpace:
        """Make the dyadic rectangles over the zones of the data."""
        side = RegionSide.of(DyadicRegions.of(data.zones), data, objective, extent)
        return cls(side, side)


def large_enough_map(space: RegionSpace) -> RegionSpace:
    """Return the regions; raise if not even the whole map is large enough to be published."""
    if not (space.origins.large_enough[-1] and space.destinations.large_enough[-1]):
        raise InputError("the whole map has fewer tiles that count than each area must have. Choose a smaller number.")
    return space


def tile_cost(data: Flows, objective: Objective) -> Ints:
    """Return what a tile costs a trip: 1, or its area, in hectares or, where tiles are smaller, in parts of a tile."""
    if objective == "area":
        area = _areas_m2(data, Option("objective", "area"))
        return np.rint(area / _area_unit_m2(area)).astype(np.int64)
    return np.ones(len(data.zones), np.int64)


def mean_tile_area(data: Flows) -> float:
    """Return the cost of a tile of mean size for a trip where areas count."""
    area = _areas_m2(data, Option("objective", "area"))
    return float(area.mean() / _area_unit_m2(area))


def _area_unit_m2(area_m2: Floats) -> float:
    """Return the area that costs 1: a hectare, or a hundredth of a mean tile below that, which would cost 0."""
    mean = float(area_m2.mean())
    return _HECTARE_M2 if mean >= _HECTARE_M2 else mean / 100


def _areas_m2(data: Flows, what: Option) -> Floats:
    check_outlines(data, what)
    return data.zones.area_m2


def _joins(tree: Hierarchy) -> Ints:
    """Return the lowest common ancestor of each leaf and the next."""
    join = np.zeros(max(tree.tiles - 1, 0), np.int64)
    below = np.arange(len(tree) - 1)
    above = tree.parent[:-1]
    inner = tree.last_leaf[:-1] != tree.last_leaf[above]
    join[tree.last_leaf[below[inner]] - 1] = above[inner]
    return frozen(join, np.int64)


def join_table(join: Ints) -> tuple[Ints, Ints]:
    """Build the table in which the lowest common ancestor of two leaves is looked up.

    `join` has the lowest common ancestor of each leaf and the next. In post-order ancestors have larger numbers, so
    of two leaves it is the largest between them: the table has the largest of 1, 2, 4, … in a row, one row after the other,
    and the second array the exponent of the longest row that fits into each length.
    """
    n = len(join)
    exponent = np.maximum(np.frexp(np.arange(n + 2))[1] - 1, 0)
    table = np.zeros((int(exponent[n + 1]) + 1, max(n, 1)), np.int64)
    table[0, :n] = join
    half, row = 1, 1
    while 2 * half <= n:
        count = n - 2 * half + 1
        table[row, :count] = np.maximum(table[row - 1, :count], table[row - 1, half : half + count])
        half, row = 2 * half, row + 1
    return table.ravel(), exponent
