"""Shares of the areas of a release in the zones of a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from crowdveil.errors import InputError, Text
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import (
    Floats,
    Indices,
    Ints,
    Labels,
    Mask,
    check_lengths,
    check_offsets,
    freeze_columns,
    row_slices,
    take_slices,
)
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import locate
from crowdveil.model.zones import Zones

SLIVER = 0.001
"""Two shapes that share less than this of the smaller one are neighbors whose borders were drawn twice, and do not touch."""

ROUNDS = 30
"""Iterations of spreading trips to estimate those of tiles; more change little."""


@dataclass(frozen=True, eq=False)
class Shares:
    """For each area (or tile) the zones that it touches, and how much of it lies in each.

    Attributes
    ----------
    zones
        Number of zones.
    offsets, zone
        The zones of area i are zone[offsets[i]:offsets[i + 1]], rising.
    part, whole
        The share of entry e of area i is part[e] / whole[i]. They stay apart so that a share of one tile in seven is exact.
    inside
        Whether the area lies in the zone of the entry alone.
    """

    zones: int
    offsets: Ints
    zone: Indices
    part: Floats
    whole: Floats
    inside: Mask

    def __post_init__(self) -> None:
        freeze_columns(self)
        check_offsets(self.offsets, len(self.zone), "shares")
        check_lengths("shares", len(self.zone), part=self.part, inside=self.inside)
        check_lengths("shares", len(self.offsets) - 1, whole=self.whole)

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def touched(self) -> Ints:
        """Number of zones that each area touches."""
        return np.diff(self.offsets)

    @classmethod
    def everywhere(cls, areas: int) -> Shares:
        """Put all areas into one zone: for flows of which one end does not matter."""
        one = np.ones(areas)
        return cls(1, np.arange(areas + 1), np.zeros(areas, np.int32), one, one, np.ones(areas, np.bool_))

    @classmethod
    def of_entries(cls, areas: int, zones: int, area: Ints, zone: Ints, part: Floats, inside: Mask) -> Shares:
        """Make shares from entries in any order, each pair of area and zone once, with wholes of 1."""
        order = np.lexsort((zone, area))
        offsets = np.searchsorted(area[order], np.arange(areas + 1))
        return cls(zones, offsets, zone[order].astype(np.int32), part[order], np.ones(areas), inside[order])


def in_own_tiles(areas: Areas, weight: Floats | None = None) -> tuple[Shares, int]:
    """Return the shares of areas in their own tiles, each tile by its weight; and how many areas have no weight and are spread
    evenly.
    """
    part, total, without = _weights(areas, weight)
    # The tiles of an area need not rise, but the zones of an entry do.
    order = np.lexsort((areas.tiles, row_slices(areas.offsets)))
    inside = np.repeat(areas.size == 1, areas.size)
    return Shares(len(areas.zones), areas.offsets, areas.tiles[order], part[order], total, inside), without


def in_zones(areas: Areas, tiles: Shares, weight: Floats | None = None) -> tuple[Shares, int]:
    """Return the shares of areas in any zones: over the tiles by their weight, and from a tile to zones by the tile's own
    shares.
    """
    part, total, without = _weights(areas, weight)
    entry, _ = take_slices(tiles.offsets, areas.tiles.astype(np.int64))
    area, lengths = row_slices(areas.offsets), tiles.touched[areas.tiles]
    key = np.repeat(area, lengths) * tiles.zones + tiles.zone[entry]
    of_tile = tiles.part[entry] / np.repeat(tiles.whole[areas.tiles], lengths)
    keys, place = np.unique(key, return_inverse=True)
    number = keys // tiles.zones
    parts = np.asarray(np.bincount(place, np.repeat(part, lengths) * of_tile, len(keys)), np.float64)
    tiles_inside = np.bincount(place, tiles.inside[entry], len(keys))
    offsets = np.searchsorted(number, np.arange(len(areas) + 1))
    inside = tiles_inside == areas.size[number]
    return Shares(tiles.zones, offsets, (keys % tiles.zones).astype(np.int32), parts, total, inside), without


def tile_trips(areas: Areas, trips: Ints | Floats, rounds: int = ROUNDS) -> Floats:
    """Estimate the trips of each tile from the trips of all areas: tiles that are published alone, or in small areas, at some
    hours show how to spread the large areas of other hours.

    Each round spreads the trips of every area over its tiles by what the last round found (expectation maximization, for tiles
    whose share of any area stays the same). No trips are lost, and a tile of areas without trips has none.
    """
    area, found = row_slices(areas.offsets), np.ones(len(areas.zones))
    for _ in range(rounds):
        part = found[areas.tiles]
        total = np.bincount(area, part, len(areas))
        level = np.divide(trips, total, out=np.zeros(len(areas)), where=total > 0)
        found = np.asarray(np.bincount(areas.tiles, level[area] * part, len(areas.zones)), np.float64)
    return found


def _weights(areas: Areas, weight: Floats | None) -> tuple[Floats, Floats, int]:
    """Return the weight of each tile of each area, their sums, and how many areas have none, whose tiles all count the same."""
    if weight is None or not len(areas):
        return np.ones(len(areas.tiles)), areas.size.astype(np.float64), 0
    part = weight[areas.tiles]
    none = np.add.reduceat(part, areas.offsets[:-1]) <= 0
    part = np.where(np.repeat(none, areas.size), 1.0, part)
    return part, np.add.reduceat(part, areas.offsets[:-1]), int(none.sum())


def overlaps(shapes: Labels, zones: Zones) -> Shares:
    """Return the shares of shapes (degrees) in zones, by the area that they have in common; points by the zone that they lie
    in.
    """
    if zones.kind in ("ids", "centroids"):
        raise InputError("the zones to reconstruct on need outlines. Give polygons, a grid or H3 cells.")
    if len(shapes) and np.all(np.isin(shapely.get_type_id(shapes), (0, 4))):
        return _points_in(shapes, zones)
    if np.any(~np.isin(shapely.get_type_id(shapes), (3, 6))):
        raise InputError(Text("some areas of the release have no outline. Give the zones of the release with {zones}."))
    targets = zones.outlines(np.arange(len(zones), dtype=np.int32))
    bounds = np.concatenate([shapely.bounds(shapes), shapely.bounds(targets)])
    plane = LocalProjection.around(bounds[:, [0, 2]].ravel(), bounds[:, [1, 3]].ravel())
    areas, outlines = plane.polygons_to_plane(shapes), plane.polygons_to_plane(targets)
    area, zone, common = _common(areas, outlines)
    size, other = shapely.area(areas), shapely.area(outlines)
    share = common / size[area]
    # Slivers count here, since several of them together may be more than a sliver.
    full = np.bincount(area, share, len(shapes)) >= 1 - SLIVER
    touch = common > SLIVER * np.minimum(size[area], other[zone])
    return _without_slivers(full, len(zones), area[touch], zone[touch], share[touch])


def _common(areas: Labels, outlines: Labels) -> tuple[Ints, Ints, Floats]:
    """Return pairs of shapes that meet, and the area that they have in common.

    Most zones lie inside an area or outside of it. That is seen quickly; only those on its border are cut.
    """
    tree = shapely.STRtree(outlines)
    area, zone = tree.query(areas, predicate="intersects")
    contained = np.isin(
        area * len(outlines) + zone, np.array([len(outlines), 1]) @ tree.query(areas, predicate="contains")
    )
    common = shapely.area(outlines)[zone]
    common[~contained] = shapely.area(shapely.intersection(areas[area[~contained]], outlines[zone[~contained]]))
    return area, zone, common


def _without_slivers(full: Mask, zones: int, area: Ints, zone: Ints, share: Floats) -> Shares:
    """Return the shares with slivers given back to areas that zones cover in full."""
    areas = len(full)
    covered = np.bincount(area, share, areas)
    share = np.where(full[area], share / np.where(full, covered, 1.0)[area], share)
    alone = np.bincount(area, minlength=areas) == 1
    inside = (alone & full)[area]
    return Shares.of_entries(areas, zones, area, zone, np.where(inside, 1.0, share), inside)


def _points_in(shapes: Labels, zones: Zones) -> Shares:
    """Return the shares of places of which only points are known, each as much as another."""
    points, area = shapely.get_parts(shapes, return_index=True)
    zone = locate(zones, shapely.get_x(points), shapely.get_y(points)).astype(np.int64)
    number = np.bincount(area, minlength=len(shapes))
    keys, count = np.unique((area * len(zones) + zone)[zone >= 0], return_counts=True)
    of = keys // len(zones)
    return Shares.of_entries(
        len(shapes), len(zones), of, keys % len(zones), count / number[of], count == number[of]
    )  # fmt: skip
