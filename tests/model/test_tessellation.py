"""Tiles made here, and which tile a point lies in, against shapely and geodesics."""

from __future__ import annotations

from itertools import pairwise

import h3
import numpy as np
import pytest
import shapely
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod
from synthetic import grid_frame

from crowdveil.errors import InputError, ParameterError
from crowdveil.model import tessellation
from crowdveil.model.globe import Box
from crowdveil.model.tessellation import (
    grid_cells,
    grid_over,
    grid_zones,
    h3_cells,
    h3_cover,
    h3_zones,
    locate,
    voronoi_zones,
)
from crowdveil.model.zones import Zones

unhurried = settings(deadline=None, max_examples=tries(60))
GEOD = Geod(ellps="WGS84")


@st.composite
def clouds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Points of a city or a region, anywhere but at the poles and across the date line."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.0, 0.01, 0.3, 1.5]))
    n = draw(st.integers(1, 40))
    lon0, lat0 = draw(st.floats(-178, 178)), draw(st.floats(-70, 70))
    return lon0 + spread * (rng.random(n) - 0.5), lat0 + spread * (rng.random(n) - 0.5)


@unhurried
@given(clouds(), st.sampled_from([50.0, 500.0, 2000.0, 77_777.0]))
def test_every_point_lies_in_exactly_one_tile_whose_sides_are_meters(
    cloud: tuple[np.ndarray, np.ndarray], size: float
) -> None:
    lon, lat = cloud
    try:
        grid = grid_frame(lon, lat, size)
    except ParameterError:
        assert np.ptp(lon) * np.ptp(lat) * 111_000**2 / size**2 > 100_000, "too many tiles"
        return
    column, row = grid_cells(grid, lon, lat)
    assert ((column >= 0) & (column < grid.columns) & (row >= 0) & (row < grid.rows)).all()
    zones = grid_zones(grid, *(a.astype(np.int32) for a in np.unique([column, row], axis=1)))
    tile = locate(zones, lon, lat)
    assert (tile >= 0).all()
    assert zones.column is not None
    assert zones.row is not None
    assert zones.column[tile].tolist() == column.tolist()
    assert zones.row[tile].tolist() == row.tolist()
    shapes = zones.outlines(np.arange(len(zones), dtype=np.int32))
    if size <= 2000:  # the sides of larger squares bend
        inside = shapely.contains_xy(shapes[None, :], lon[:, None], lat[:, None])
        near = shapely.distance(shapely.boundary(shapes)[None, :], shapely.points(lon, lat)[:, None]) < 1e-7
        assert ((inside.sum(axis=1) == 1) | near.any(axis=1)).all()
        for shape in shapes[:3]:
            corners = np.array(shape.exterior.coords)
            for a, b in pairwise(corners):
                assert GEOD.inv(*a, *b)[2] == pytest.approx(size, rel=0.005)
    area = abs(GEOD.geometry_area_perimeter(shapely.segmentize(shapes[0], 0.05))[0])
    assert area == pytest.approx(size**2, rel=0.005)
    np.testing.assert_allclose(zones.area_m2, size**2)


def test_all_tiles_of_a_grid_hold_every_point_of_its_box() -> None:
    lon, lat = np.array([2.0, 2.05]), np.array([41.0, 41.06])
    zones = grid_zones(grid_frame(lon, lat, 500))
    assert zones.grid is not None
    assert len(zones) == zones.grid.columns * zones.grid.rows
    rng = np.random.default_rng(1)
    x, y = 2.0 + 0.05 * rng.random(2000), 41.0 + 0.06 * rng.random(2000)
    tile = locate(zones, x, y)
    assert (tile >= 0).all()
    assert zones.ids[tile[0]] == f"r{tile[0] // zones.grid.columns}c{tile[0] % zones.grid.columns}"
    outside = locate(zones, np.array([1.9, 2.2, 2.02, 2.02]), np.array([41.02, 41.02, 40.9, 41.2]))
    assert outside.tolist() == [-1] * 4
    middle = locate(zones, zones.lon, zones.lat)
    assert middle.tolist() == list(range(len(zones)))


def test_tiles_of_a_grid_with_few_of_them_are_found_as_in_a_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lon, lat = np.array([2.0, 2.05]), np.array([41.0, 41.06])
    grid = grid_frame(lon, lat, 500)
    rng = np.random.default_rng(1)
    number = rng.permutation(grid.columns * grid.rows)[:40]
    zones = grid_zones(grid, (number % grid.columns).astype(np.int32), (number // grid.columns).astype(np.int32))
    x, y = 1.99 + 0.07 * rng.random(2000), 40.99 + 0.08 * rng.random(2000)
    dense = locate(zones, x, y)
    monkeypatch.setattr(tessellation, "MAX_TILES", 10)
    assert locate(zones, x, y).tolist() == dense.tolist() and (dense >= 0).any() and (dense < 0).any()


def test_a_point_on_a_border_belongs_to_the_tile_north_or_east_of_it() -> None:
    grid = grid_frame(np.array([2.0, 2.1]), np.array([41.0, 41.1]), 1000)
    x, y = grid.x0 + 3 * 1000.0, grid.y0 + 5 * 1000.0
    plane = type(grid.projection)

    class Exact(plane):  # type: ignore[valid-type, misc]
        def to_plane(self, lon: np.ndarray, lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.array([x, x - 1e-6, x]), np.array([y, y, y - 1e-6])

    exact = type(grid)(
        Exact(grid.projection.lon0, grid.projection.lat0), grid.x0, grid.y0, grid.size_m, grid.columns, grid.rows
    )
    column, row = grid_cells(exact, np.zeros(3), np.zeros(3))
    assert (column.tolist(), row.tolist()) == ([3, 2, 3], [5, 5, 4])


def test_a_grid_of_the_whole_world_is_refused_or_made() -> None:
    lon, lat = np.array([-179.9, -60.0, 60.0, 179.9]), np.array([-85.0, 0.0, 0.0, 85.0])
    with pytest.raises(ParameterError, match="Choose larger tiles"):
        grid_frame(lon, lat, 500)
    with pytest.raises(ParameterError, match="all around the globe"):
        grid_over(Box(-180.0, 0.0, 180.0, 0.0), 500_000)
    for corners in (
        (lon, lat),
        (np.array([-60.0, 90.0]), np.array([-80.0, 85.0])),
        (np.array([-179.9, 179.9]), np.array([-85.0, 85.0])),
    ):
        grid = grid_frame(*corners, 500_000)
        column, row = grid_cells(grid, *corners)
        assert ((column >= 0) & (column < grid.columns) & (row >= 0) & (row < grid.rows)).all()


@unhurried
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_points_are_found_in_polygons_as_shapely_finds_them(seed: int, n: int) -> None:
    """Cells of a Voronoi diagram, some left out so that there are holes, some joined to polygons of several parts."""
    rng = np.random.default_rng(seed)
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(rng.random((n + 2, 2)))))
    groups = rng.integers(0, max(n // 2, 1) + 1, len(cells))
    shapes = np.array(
        [shapely.union_all(cells[groups == g]) for g in np.unique(groups)][: max(n // 2, 1)], dtype=object
    )
    zones = Zones(np.arange(len(shapes)), np.full(len(shapes), 0.5), np.full(len(shapes), 0.5), shapes, "polygons")
    lon, lat = rng.random(200) * 1.4 - 0.2, rng.random(200) * 1.4 - 0.2
    wanted = [
        next((i for i, s in enumerate(shapes) if s.contains(shapely.Point(x, y))), -1)
        for x, y in zip(lon, lat, strict=True)
    ]
    assert locate(zones, lon, lat).tolist() == wanted


def test_a_point_on_the_border_of_two_polygons_gets_the_first() -> None:
    shapes = np.array([shapely.box(1, 0, 2, 1), shapely.box(0, 0, 1, 1)], dtype=object)
    zones = Zones(np.array(["b", "a"]), np.array([1.5, 0.5]), np.array([0.5, 0.5]), shapes)
    assert locate(zones, np.array([1.0, 0.0, 2.0, 0.5, 2.1]), np.array([0.5, 0.0, 1.0, 0.5, 0.5])).tolist() == [
        0,
        1,
        0,
        1,
        -1,
    ]
    assert locate(zones, np.zeros(0), np.zeros(0)).tolist() == []


@unhurried
@given(clouds(), st.integers(1, 12))
def test_points_go_to_the_nearest_centroid_and_to_its_cell(cloud: tuple[np.ndarray, np.ndarray], n: int) -> None:
    lon, lat = cloud
    spots = np.unique(np.round(np.column_stack([lon, lat]), 6), axis=0)[:n]
    x, y = spots[:, 0], spots[:, 1]
    centroids = Zones(np.arange(len(x)), x, y, kind="centroids")
    cells = voronoi_zones(np.arange(len(x)).astype(object), x, y)
    assert locate(centroids, x, y).tolist() == list(range(len(x)))
    assert cells.polygons is not None
    assert shapely.intersects_xy(cells.polygons, x, y).all(), "each point lies in its own cell"
    nearest = locate(centroids, lon, lat)
    distance = np.array(
        [[GEOD.inv(a, b, c, d)[2] for c, d in zip(x, y, strict=True)] for a, b in zip(lon, lat, strict=True)]
    )
    chosen = distance[np.arange(len(lon)), nearest]
    assert (chosen <= distance.min(axis=1) * 1.002 + 0.001).all()
    assert locate(cells, lon, lat).tolist() == nearest.tolist()


def test_voronoi_cells_of_points_in_rows_are_polygons() -> None:
    """Sides of the box and of the cells lie on each other here, which leaves lines behind."""
    i = np.arange(16)
    cells = voronoi_zones(i.astype(object), 2.005 + 0.01 * (i % 4), 48.005 + 0.01 * (i // 4))
    assert cells.polygons is not None and set(shapely.get_type_id(cells.polygons)) == {3}


def test_h3_cells_cover_shapes() -> None:
    shapes = np.array(
        [shapely.box(2.0, 48.0, 2.3, 48.01), shapely.Point(2.5, 48.2), shapely.box(2.0, 48.2, 2.001, 48.201)]
    )
    zones = h3_zones(h3_cover(shapes, 7))
    union = shapely.union_all(zones.outlines(np.arange(len(zones), dtype=np.int32)))
    assert all(shapely.covers(shapely.buffer(union, 1e-9), shape) for shape in shapes)


def test_voronoi_cells_do_not_overlap_and_fill_their_box() -> None:
    rng = np.random.default_rng(4)
    x, y = 2 + rng.random(30) / 5, 41 + rng.random(30) / 5
    zones = voronoi_zones(np.arange(30).astype(object), x, y)
    assert zones.polygons is not None
    planar = zones.projection.polygons_to_plane(zones.polygons)
    assert shapely.area(planar).sum() == pytest.approx(shapely.area(shapely.union_all(planar)), rel=1e-6)
    with pytest.raises(InputError, match="same position"):
        voronoi_zones(np.array(["a", "b"]), np.array([2.0, 2.0]), np.array([41.0, 41.0]))


@pytest.mark.parametrize("points", [[(2.0, 41.0)], [(2.0, 41.0), (2.1, 41.0)], [(2.0, 41.0), (2.1, 41.0), (2.2, 41.0)]])
def test_few_points_or_points_on_a_line_have_cells(points: list[tuple[float, float]]) -> None:
    x, y = (np.array(c) for c in zip(*points, strict=True))
    zones = voronoi_zones(np.arange(len(x)).astype(object), x, y)
    assert zones.polygons is not None
    assert shapely.intersects_xy(zones.polygons, x, y).all()
    assert (zones.area_m2 > 0).all()


@unhurried
@given(clouds(), st.integers(0, 10))
def test_h3_cells_hold_their_points(cloud: tuple[np.ndarray, np.ndarray], resolution: int) -> None:
    lon, lat = cloud
    cells = h3_cells(lon, lat, resolution)
    assert cells == [h3.latlng_to_cell(b, a, resolution) for a, b in zip(lon, lat, strict=True)]
    zones = h3_zones(cells)
    assert zones.ids.tolist() == sorted(set(cells))
    assert zones.ids[locate(zones, lon, lat)].tolist() == cells
    elsewhere = np.where(lat > 0, lat - 70, lat + 70)
    assert locate(zones, lon, elsewhere).tolist() == [-1] * len(lon)


def test_h3_cells_that_are_none_or_of_two_sizes_are_refused() -> None:
    fine, coarse = h3.latlng_to_cell(41.0, 2.0, 9), h3.latlng_to_cell(41.0, 2.0, 8)
    with pytest.raises(InputError, match="not H3 cells"):
        h3_zones([fine, "zebra"])
    with pytest.raises(InputError, match="2 resolutions"):
        h3_zones([fine, coarse])


def test_outlines_are_what_is_known() -> None:
    both = np.array([0, 1], np.int32)
    cell = h3.latlng_to_cell(41.0, 2.0, 9)
    assert Zones.from_ids(["a", "b"]).outlines(both).tolist() == [None, None]
    points = Zones(np.array(["a", "b"]), np.array([1.0, 2.0]), np.array([3.0, 4.0]), kind="centroids").outlines(both)
    assert [p.wkt for p in points] == ["POINT (1 3)", "POINT (2 4)"]
    hexagon = h3_zones([cell]).outlines(both[:1])[0]
    assert hexagon.contains(shapely.Point(2.0, 41.0))
    assert len(hexagon.exterior.coords) == 7


def test_points_cannot_be_found_in_zones_that_are_nowhere() -> None:
    with pytest.raises(InputError, match="Give zones="):
        locate(Zones.from_ids(["a"]), np.array([1.0]), np.array([1.0]))
