"""Planar meters against geodesics."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from crowdveil.model.projection import LocalProjection

unhurried = settings(deadline=None, max_examples=tries(60))
GEOD = Geod(ellps="WGS84")


@unhurried
@given(st.floats(-179, 179), st.floats(-80, 80), st.floats(0, 360), st.floats(1, 400_000))
def test_distances_from_the_middle_and_back_are_true(lon: float, lat: float, bearing: float, meters: float) -> None:
    there = GEOD.fwd(lon, lat, bearing, meters)[:2]
    plane = LocalProjection(lon, lat)
    x, y = plane.to_plane(*(np.array([v]) for v in there))
    assert np.hypot(x, y)[0] == pytest.approx(meters, rel=0.001, abs=0.01)
    back = plane.to_globe(x, y)
    assert GEOD.inv(*there, back[0][0], back[1][0])[2] < 0.01


@unhurried
@given(st.floats(-170, 170), st.floats(-75, 75), st.floats(0.001, 2))
def test_areas_are_true(lon: float, lat: float, size: float) -> None:
    box = shapely.segmentize(shapely.box(lon, lat, lon + size, lat + size), size / 50)
    planar = LocalProjection(lon, lat).polygons_to_plane(box)
    assert planar.area == pytest.approx(abs(GEOD.geometry_area_perimeter(box)[0]), rel=1e-4)


def test_the_middle_is_that_of_the_box() -> None:
    assert LocalProjection.around(np.array([2.0, 3.0, 2.1]), np.array([41.0, 40.0, 40.9])) == LocalProjection(2.5, 40.5)
    assert LocalProjection.around(np.zeros(0), np.zeros(0)) == LocalProjection(0.0, 0.0)
    x, y = LocalProjection(2.5, 40.5).to_plane(np.array([2.5, 2.6]), np.array([40.5, 40.5]))
    assert (x[0], y[0]) == pytest.approx((0, 0), abs=1e-6)
    assert x[1] > 0


def test_one_point_alone_has_the_position_that_it_has_among_others() -> None:
    """With numpy below 2.4, pyproj takes an array of one for a number, and gives no array back."""
    plane = LocalProjection.around_point(2.3, 48.8, 4)
    lon, lat = np.array([2.1, 2.4]), np.array([48.9, 48.7])
    x, y = plane.to_plane(lon, lat)
    for i in range(2):
        one = slice(i, i + 1)
        assert [found.tolist() for found in plane.to_plane(lon[one], lat[one])] == [[x[i]], [y[i]]]
        back = plane.to_globe(x, y)
        assert [f.tolist() for f in plane.to_globe(x[one], y[one])] == [[back[0][i]], [back[1][i]]]
