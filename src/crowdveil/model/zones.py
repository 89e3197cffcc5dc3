"""Define zones: the tiles of OD data, its smallest units of space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import h3
import numpy as np
import pyarrow as pa
import shapely

from crowdveil.errors import InputError, Option, Text, rows_that
from crowdveil.model.arrays import (
    Floats,
    Indices,
    Ints,
    Labels,
    check_coordinates,
    check_lengths,
    freeze_columns,
    frozen,
    require,
)
from crowdveil.model.globe import turned
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tabular import Tabular

ZoneKind = Literal["polygons", "grid", "h3", "voronoi", "centroids", "ids"]


@dataclass(frozen=True)
class Grid:
    """A square grid in the plane of a local projection."""

    projection: LocalProjection
    x0: float
    """West edge, meters."""
    y0: float
    """South edge, meters."""
    size_m: float
    """Side of a tile, meters on the ground."""
    columns: int
    rows: int

    def outlines(self, column: Indices, row: Indices) -> Labels:
        """Return the squares (degrees) of some tiles."""
        x0, y0 = self.x0 + column * self.size_m, self.y0 + row * self.size_m
        squares = shapely.box(x0, y0, x0 + self.size_m, y0 + self.size_m)
        return np.asarray(self.projection.polygons_to_globe(squares), dtype=object)


@dataclass(frozen=True, eq=False, repr=False)
class Zones(Tabular):
    """A list of tiles. The position of a tile in the list is its index everywhere else.

    Attributes
    ----------
    ids
        The tile's name as text, unique.
    lon, lat
        The tile's centroid, degrees WGS84; NaN where only names are known (kind `ids`).
    polygons
        The tile's outline (shapely, degrees WGS84), or None where there are no outlines.
    kind
        The source of the tiles; it decides how points are assigned to them.
    grid, column, row
        For kind `grid`: the grid, and each tile's column and row in it.
    h3_resolution
        For kind `h3`: the resolution of the cells.
    names, regions
        Readable name of each tile, and the name of a larger unit that it is in, such as a borough; None where not known.
    units
        Named units of a tree that the user gave, such as the districts of a table of levels: names, and tiles of each.
    """

    ids: Labels
    lon: Floats
    lat: Floats
    polygons: Labels | None = None
    kind: ZoneKind = "polygons"
    grid: Grid | None = None
    column: Indices | None = None
    row: Indices | None = None
    h3_resolution: int | None = None
    names: Labels | None = None
    regions: Labels | None = None
    units: tuple[tuple[str, Ints], ...] = ()
    _index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ids = np.empty(len(self.ids), dtype=object)
        ids[:] = [str(i) for i in self.ids]
        ids.flags.writeable = False
        object.__setattr__(self, "ids", ids)
        freeze_columns(self)
        n = len(ids)
        check_lengths("zones", n, lon=self.lon, lat=self.lat)
        if self.kind != "ids":
            check_coordinates("zones", self.lon, self.lat)
        check_lengths("zones", n, polygons=self.polygons, names=self.names, regions=self.regions)
        if self.kind == "grid":
            require(
                self.grid is not None and self.column is not None and self.row is not None,
                "zones: a grid lacks its frame.",
            )
        index: dict[str, int] = {}
        repeated = [i + 1 for i, name in enumerate(ids) if index.setdefault(name, i) != i]
        if repeated:
            raise InputError(
                Option("zones"),
                Text(
                    "ids must be unique, but {repeated}; name another id column with {zone_id}.",
                    repeated=rows_that(repeated, len(repeated), "repeat an earlier id"),
                ),
            )
        object.__setattr__(self, "_index", index)

    @classmethod
    def from_ids(cls, ids: Sequence[str]) -> Zones:
        """Return tiles with ids alone."""
        unknown = np.full(len(ids), np.nan)
        return cls(np.array(list(ids), dtype=object), unknown, unknown, kind="ids")

    def to_arrow(self) -> pa.Table:
        """Return the ids and centroids as a table; the outlines are in `to_geopandas()`."""
        return pa.table({"zone_id": pa.array(self.ids, pa.string()), "lon": self.lon, "lat": self.lat})

    def shapes(self) -> Labels:
        """Return the outline of each zone."""
        return self.outlines(np.arange(len(self), dtype=np.int32))

    def summary(self) -> str:
        """Return the number of zones and their kind."""
        return f"{len(self):,} zones ({self.kind})"

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def located(self) -> bool:
        """Return whether the tiles' positions are known."""
        return self.kind != "ids"

    def index_of(self, zone_id: str) -> int:
        """Return the index of a tile by its id, -1 if there is none."""
        return self._index.get(zone_id, -1)

    @cached_property
    def projection(self) -> LocalProjection:
        """Return the projection in which the tiles' meters are measured."""
        if self.grid is not None:
            return self.grid.projection
        self.need_location("meters")
        return LocalProjection.around(self.lon, self.lat)

    @cached_property
    def xy(self) -> tuple[Floats, Floats]:
        """Return centroids in planar meters."""
        x, y = self.projection.to_plane(self.lon, self.lat)
        return frozen(x, np.float64), frozen(y, np.float64)

    @cached_property
    def in_order(self) -> tuple[Ints, Ints]:
        """Return the tiles in order of x of their centroids, and in order of y."""
        x, y = (frozen(np.argsort(values, kind="stable"), np.int64) for values in self.xy)
        return x, y

    @cached_property
    def area_m2(self) -> Floats:
        """Return the areas of the tiles in square meters; NaN where there are no outlines."""
        if self.grid is not None:
            return np.full(len(self), self.grid.size_m**2)
        if self.polygons is None:
            return np.full(len(self), np.nan)

        planar: Any = self.projection.polygons_to_plane(self.polygons)
        return np.asarray(shapely.area(planar), np.float64)

    def outlines(self, tiles: Indices) -> Labels:
        """Return the shapes (degrees) of some tiles: polygons, points where only centroids are known, else None."""
        if self.polygons is not None:
            return self.polygons[tiles]
        if self.grid is not None and self.column is not None and self.row is not None:
            return self.grid.outlines(self.column[tiles], self.row[tiles])
        if self.kind == "h3":
            rings = [[(x, y) for y, x in h3.cell_to_boundary(self.ids[i])] for i in tiles]
            return turned(np.array([shapely.Polygon(ring) for ring in rings], dtype=object), self.projection.lon0)
        if self.located:
            return np.asarray(shapely.points(self.lon[tiles], self.lat[tiles]), dtype=object)
        return np.full(len(tiles), None, dtype=object)

    def need_location(self, purpose: str) -> None:
        """Raise unless the tiles' positions are known."""
        if not self.located:
            raise InputError(
                Text(
                    "{purpose} need the positions of the zones, but only their ids are known. Give {zones}, such as grid:500m "
                    "for data with coordinates.",
                    purpose=purpose,
                )
            )
