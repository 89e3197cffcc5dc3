"""Make tiles (square grid, H3 cells, Voronoi cells) and their outlines, and find the tile of a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import h3
import numpy as np
import shapely

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.model.arrays import Floats, Indices, Ints, Labels
from crowdveil.model.globe import MOST_LATITUDE, Box, cut_at_date_line, near
from crowdveil.model.projection import LocalProjection
from crowdveil.model.zones import Grid, Zones

MAX_TILES = 4_000_000
MAX_CELLS = 1 << 40
"""Cells of a grid of which only some are tiles: squares of 25 m cover the globe, and numbers of cells stay whole."""
H3_RESOLUTIONS = range(16)


def grid_over(box: Box, size_m: float, most: int = MAX_TILES) -> Grid:
    """Return the grid of squares of `size_m` meters on the ground that covers a box, with at most `most` cells.

    `MAX_CELLS` is for those who make tiles only of some cells; others make a tile of each.
    """
    projection = LocalProjection.around_box(box)
    x, y = projection.to_plane(*box.outline())
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ParameterError(
            Text("a grid cannot cover points all around the globe. Leave out far points with {bbox}, or use H3 cells.")
        )
    x0, y0 = np.floor(x.min() / size_m) * size_m, np.floor(y.min() / size_m) * size_m
    columns, rows = int((x.max() - x0) // size_m) + 1, int((y.max() - y0) // size_m) + 1
    if columns * rows > most:
        raise ParameterError(
            Text(
                "a grid of {size_m:g} m over these points has {tiles:,} tiles, and at most {most:,} are possible. Choose "
                "larger tiles, or leave out far points with {bbox}.",
                size_m=size_m,
                tiles=columns * rows,
                most=most,
            )
        )
    return Grid(projection, float(x0), float(y0), float(size_m), columns, rows)


PUBLIC_TILES = 10
"""Tiles in a step of the public grid, at least."""


def public_step(size_m: float) -> float:
    """Return the step of the public grid for tiles of a size: 1, 2 or 5 times a power of ten, degrees."""
    least = PUBLIC_TILES * size_m / 111_320
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(f * power for f in (1, 2, 5, 10) if f * power >= least * (1 - 1e-9)))


def public_box(box: Box, size_m: float) -> Box:
    """Return a box rounded outward to the public grid, so that it does not show the exact positions at its sides."""
    step = public_step(size_m)
    west, south = (_line_below(side, step) for side in (box.west, box.south))
    east, north = (-_line_below(-side, step) for side in (box.east, box.north))
    east, north = (high if high > low else high + step for low, high in ((west, east), (south, north)))
    if box.west >= -180 and box.east <= 180:
        west, east = max(west, -180.0), min(east, 180.0)
    most = max(MOST_LATITUDE, -box.south, box.north)
    return Box(west, max(south, -most), east, min(north, most))


def _line_below(degrees: float, step: float) -> float:
    """Return the last line of the public grid that is not above some degrees."""
    nearest = float(np.round(np.round(degrees / step) * step, 9))
    return nearest if nearest <= degrees else float(np.round(nearest - step, 9))


def grid_cells(grid: Grid, lon: Floats, lat: Floats) -> tuple[Indices, Indices]:
    """Return column and row of each point; a point on a border belongs to the tile north or east of it."""
    x, y = grid.projection.to_plane(lon, lat)
    column = np.floor((x - grid.x0) / grid.size_m).astype(np.int32)
    row = np.floor((y - grid.y0) / grid.size_m).astype(np.int32)
    return column, row


def grid_zones(grid: Grid, column: Indices | None = None, row: Indices | None = None) -> Zones:
    """Return the tiles of a grid as zones: all of them, or those at the given columns and rows. Ids are like r3c14."""
    if column is None or row is None:
        number = np.arange(grid.columns * grid.rows)
        column, row = (number % grid.columns).astype(np.int32), (number // grid.columns).astype(np.int32)
    x: Floats = grid.x0 + (column.astype(np.float64) + 0.5) * grid.size_m
    y: Floats = grid.y0 + (row.astype(np.float64) + 0.5) * grid.size_m
    lon, lat = grid.projection.to_globe(x, y)
    ids = np.array([f"r{r}c{c}" for r, c in zip(row.tolist(), column.tolist(), strict=True)], dtype=object)
    return Zones(ids, lon, lat, kind="grid", grid=grid, column=column, row=row)


def zones_at(zones: Zones, index: Ints) -> Zones:
    """Return some of the zones, in the given order."""
    columns = {
        name: getattr(zones, name) for name in ("ids", "lon", "lat", "polygons", "column", "row", "names", "regions")
    }
    return replace(zones, **{name: values[index] for name, values in columns.items() if values is not None})


def h3_zones(cells: Sequence[str]) -> Zones:
    """Return H3 cells, all of one resolution, as zones."""
    ids = sorted(set(cells))
    if not all(h3.is_valid_cell(c) for c in ids):
        raise InputError(Option("zones"), "some ids are not H3 cells. Give hexadecimal H3 indexes.")
    resolutions = {h3.get_resolution(c) for c in ids}
    if len(resolutions) > 1:
        raise InputError(Option("zones"), f"H3 cells of {len(resolutions)} resolutions are mixed. Give cells of one.")
    middles = np.array([h3.cell_to_latlng(c) for c in ids], np.float64).reshape(-1, 2)
    return Zones(
        np.array(ids, dtype=object),
        middles[:, 1],
        middles[:, 0],
        kind="h3",
        h3_resolution=resolutions.pop() if resolutions else None,
    )


def h3_cells(lon: Floats, lat: Floats, resolution: int) -> list[str]:
    """Return the H3 cell of each point."""
    return [h3.latlng_to_cell(y, x, resolution) for x, y in zip(lon.tolist(), lat.tolist(), strict=True)]


def h3_cover(shapes: Labels, resolution: int) -> list[str]:
    """Return the H3 cells of a resolution that cover shapes (degrees), and some neighbors."""
    # Half an edge between points along a border misses no cell by more than one ring around those found.
    spacing = float(h3.average_hexagon_edge_length(resolution, unit="m")) / 111_320 / 2
    cells: set[str] = set()
    for shape in shapely.get_parts(cut_at_date_line(shapely.union_all(shapes))):
        cells.update(h3_cells(*_along(shape, spacing), resolution))
        if shape.geom_type == "Polygon":
            cells.update(h3.geo_to_cells(shape, resolution))
    return sorted({near for cell in cells for near in h3.grid_disk(cell, 1)})


def _along(shape: Any, spacing: float) -> tuple[Floats, Floats]:
    """Return points along the borders of a shape, with its corners, at most `spacing` degrees apart."""
    corners, ring = shapely.get_coordinates(shapely.get_rings(shape), return_index=True)
    if not len(corners):
        corners = shapely.get_coordinates(shape)
        return corners[:, 0], corners[:, 1]
    here = np.flatnonzero(ring[1:] == ring[:-1])
    step = corners[here + 1] - corners[here]
    pieces = np.ceil(np.hypot(step[:, 0], step[:, 1]) / spacing).astype(np.int64)
    which = np.repeat(np.arange(len(here)), pieces)
    share = (np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) / pieces[which]
    points = corners[here[which]] + share[:, None] * step[which]
    return points[:, 0], points[:, 1]


def voronoi_zones(ids: Labels, lon: Floats, lat: Floats, reach: float | None = None) -> Zones:
    """Return the Voronoi cell of each point, in planar meters, clipped to the box of all points with a margin of a tenth.

    With `reach`, a cell also ends at that many times the median distance between a point and its nearest other one. So no cell is
    large, neither of points at the edge nor of one that lies far from all others.
    """
    projection = LocalProjection.around(lon, lat)
    x, y = projection.to_plane(lon, lat)
    if len(np.unique(np.column_stack([x, y]), axis=0)) < len(x):
        raise InputError(Option("zones"), "some points have the same position. Keep each position once.")
    margin = max(float(np.ptp(x)), float(np.ptp(y)), 1000.0) / 10
    box = shapely.box(x.min() - margin, y.min() - margin, x.max() + margin, y.max() + margin)
    cells = [box] if len(x) == 1 else _voronoi_cells(x, y, box)
    if reach is not None and len(x) > 1:
        cells = shapely.intersection(
            cells, shapely.buffer(shapely.points(x, y), reach * _median_spacing(x, y), quad_segs=8)
        )
    polygons = projection.polygons_to_globe(np.array(cells, dtype=object))
    return Zones(ids, lon, lat, polygons=polygons, kind="voronoi")


def _median_spacing(x: Floats, y: Floats) -> float:
    """Return the median distance between a point and its nearest other one."""
    from scipy.spatial import cKDTree

    points = np.column_stack([x, y])
    return float(np.median(cKDTree(points).query(points, k=2)[0][:, 1]))


def _voronoi_cells(x: Floats, y: Floats, box: Any) -> Any:
    points = shapely.multipoints(np.column_stack([x, y]))
    collection = shapely.voronoi_polygons(points, extend_to=box)
    cells = shapely.get_parts(collection)
    # The cells come in no order: give each point its own cell.
    point, cell = shapely.STRtree(cells).query(shapely.points(x, y), predicate="intersects")
    order = np.empty(len(x), np.int64)
    order[point] = cell
    cut = shapely.intersection(cells[order], box)
    # A cell that touches a side of the box from within may include a line of that side, which is no part of a zone.
    return np.where(shapely.get_type_id(cut) == 3, cut, shapely.buffer(cut, 0))


def locate(zones: Zones, lon: Floats, lat: Floats) -> Indices:
    """Return the tile of each point, -1 where it lies in none. A point on a border gets the first of its tiles."""
    zones.need_location("points")
    if len(lon) == 0 or len(zones) == 0:
        return np.full(len(lon), -1, np.int32)
    if zones.grid is not None:
        return _locate_in_grid(zones, lon, lat)
    if zones.kind == "h3":
        cells = h3_cells(lon, lat, zones.h3_resolution or 0)
        return np.fromiter((zones.index_of(c) for c in cells), np.int32, len(cells))
    if zones.kind == "polygons" and zones.polygons is not None:
        return _locate_in_polygons(zones.polygons, lon, lat)
    from scipy.spatial import cKDTree

    x, y = zones.projection.to_plane(lon, lat)
    _, nearest = cKDTree(np.column_stack(zones.xy)).query(np.column_stack([x, y]))
    return np.asarray(nearest, np.int32)


def _locate_in_grid(zones: Zones, lon: Floats, lat: Floats) -> Indices:
    grid = zones.grid
    if grid is None or zones.column is None or zones.row is None:
        raise InputError(Option("zones"), "a grid lacks its frame.")
    column, row = grid_cells(grid, lon, lat)
    inside = (column >= 0) & (column < grid.columns) & (row >= 0) & (row < grid.rows)
    wanted = row[inside].astype(np.int64) * grid.columns + column[inside]
    own = zones.row.astype(np.int64) * grid.columns + zones.column
    tile = np.full(len(lon), -1, np.int32)
    order = np.argsort(own)
    at = np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)
    tile[inside] = np.where(own[order[at]] == wanted, order[at], -1)
    return tile


def _locate_in_polygons(polygons: Labels, lon: Floats, lat: Floats) -> Indices:
    """Return the tile of each point. Points are sorted by longitude, so that a polygon tests only those in its range."""
    west, _, east, _ = shapely.total_bounds(polygons)
    lon = near(lon, (west + east) / 2)
    order = np.argsort(lon, kind="stable")
    x, y = lon[order], lat[order]
    tile = np.full(len(lon), -1, np.int32)
    bounds = shapely.bounds(polygons)
    shapely.prepare(polygons)
    first, last = np.searchsorted(x, bounds[:, 0], "left"), np.searchsorted(x, bounds[:, 2], "right")
    for i in range(len(polygons)):
        candidates = np.arange(first[i], last[i])
        at = y[candidates]
        candidates = candidates[(at >= bounds[i, 1]) & (at <= bounds[i, 3]) & (tile[candidates] < 0)]
        if len(candidates):
            hit = shapely.intersects_xy(polygons[i], x[candidates], y[candidates])
            tile[candidates[hit]] = i
    result = np.empty_like(tile)
    result[order] = tile
    return result
