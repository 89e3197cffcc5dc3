"""Mirror data at a meridian or at the equator: the release is the mirrored one, and nothing depends on the side of the globe."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from towns import HERE, TRACKS, people, released, walks

from crowdveil.io.zones import read_zones
from crowdveil.methods.base import Method
from crowdveil.model.globe import cut_at_date_line, near
from crowdveil.model.projection import LocalProjection, centroids

LAST = 1.5e-5
"""Half of the last published decimal may fall to either side."""
DRAWN = {"swap-locations", "swapmob"}
"""Methods that draw in order of places, so that a mirror changes the draws; they publish points of the data alone."""
AVERAGES = [m for m in TRACKS if m.name not in DRAWN]


def east_west(data: Any) -> Any:
    """Mirror at the meridian that the data lies around."""
    return replace(data, lon=2 * HERE - data.lon)


def north_south(data: Any) -> Any:
    """Mirror at the equator."""
    return replace(data, lat=-data.lat)


Mirror = Callable[[Any], Any]
MIRRORS = [east_west, north_south]


@pytest.mark.parametrize("mirror", MIRRORS)
@pytest.mark.parametrize("method", AVERAGES, ids=[m.name for m in AVERAGES])
def test_the_release_of_mirrored_trajectories_is_the_mirrored_release(method: Method, mirror: Mirror) -> None:
    here = people(np.random.default_rng(1))
    one, two = released(method, here), mirror(released(method, mirror(here)))
    assert len(one) > 0
    for a, b in zip(walks(one, one.lon), walks(two, two.lon), strict=True):
        assert a[0] == b[0]
        assert np.allclose(a[1], b[1], rtol=0, atol=LAST) and np.allclose(a[2], b[2], rtol=0, atol=LAST)


@pytest.mark.parametrize("mirror", MIRRORS)
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_points_that_are_drawn_are_points_of_the_mirrored_data(name: str, mirror: Mirror) -> None:
    data = mirror(people(np.random.default_rng(1)))
    found = released(next(m for m in TRACKS if m.name == name), data)
    known = shapely.STRtree(shapely.points(data.lon, data.lat))
    _, apart = known.query_nearest(shapely.points(found.lon, found.lat), return_distance=True, all_matches=False)
    assert len(found) > 0 and apart.max() < LAST


def _tall(lon: float, side: int) -> Any:
    """A triangle that is wide at one side and 20° high: its centroid in degrees is kilometers from that of its area."""
    return shapely.Polygon([(lon - 8, side * 50), (lon + 8, side * 50), (lon, side * 70)])


def _read(shapes: list[Any], folder: Path) -> Any:
    features = [
        {
            "type": "Feature",
            "properties": {"zone_id": str(i)},
            "geometry": json.loads(shapely.to_geojson(cut_at_date_line(shape))),
        }
        for i, shape in enumerate(shapes)
    ]
    (folder / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return read_zones(folder / "zones.geojson")


@pytest.mark.parametrize("lon", [HERE, 180.0, -179.0])
@pytest.mark.parametrize("side", [1, -1])
def test_centroids_of_zones_are_those_of_their_areas(lon: float, side: int, tmp_path: Path) -> None:
    """By hand: the mean of many points that are spread evenly over the area, on the plane."""
    shapes = [_tall(lon, side), shapely.box(lon + 8, side * 60 - 1, lon + 10, side * 60 + 1)]
    zones = _read(shapes, tmp_path)
    plane = LocalProjection.around_point(lon + 1, side * 60, 4)
    for i, shape in enumerate(shapes):
        flat = plane.polygons_to_plane(shapely.segmentize(shape, 0.1))
        west, south, east, north = flat.bounds
        x, y = (grid.ravel() for grid in np.meshgrid(np.linspace(west, east, 400), np.linspace(south, north, 400)))
        inside = shapely.contains_xy(flat, x, y)
        middle = plane.to_globe(x[inside].mean(keepdims=True), y[inside].mean(keepdims=True))
        assert near(zones.lon[i] - middle[0], 0.0) == pytest.approx(0, abs=0.02)
        assert zones.lat[i] == pytest.approx(middle[1][0], abs=0.02)
    assert abs(shapely.centroid(shapes[0]).y - zones.lat[0]) > 0.2, "in degrees it would be another place"


def test_centroids_of_zones_all_over_the_globe_are_in_them() -> None:
    cells = np.array([shapely.box(x, y, x + 20, y + 20) for x in range(-180, 180, 20) for y in range(-80, 80, 20)])
    lon, lat = centroids(cells)
    assert shapely.contains_xy(cells, lon, lat).all()
