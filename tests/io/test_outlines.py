"""Outlines of areas that are joined from faces: those of a union on the grid, whatever the borders of tiles are like."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.io.geojson import GRID, snap_to_grid, union_outline
from crowdveil.io.release_writer import TileFaces


def _tiles(seed: int, side: int, noise: float) -> np.ndarray:
    """Quadrilaterals of a grid whose corners are drawn for each tile anew, so that borders of neighbors do not agree."""
    rng = np.random.default_rng(seed)
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    places = np.array([(x, y) for x in range(side) for y in range(side)], float)
    drawn = [0.01 * (place + corners) + rng.normal(0, noise, (4, 2)) for place in places]
    return snap_to_grid(np.array([shapely.Polygon(ring) for ring in drawn], dtype=object))


@examples(40)
@given(
    st.integers(0, 1000), st.integers(2, 5), st.sampled_from([0.0, 2e-7, 5e-6, 1e-3]), st.sets(st.integers(0, 24), min_size=2)
)  # fmt: skip
def test_it_is_the_union(seed: int, side: int, noise: float, chosen: set[int]) -> None:
    tiles = _tiles(seed, side, noise)
    which = np.unique(np.array(sorted(chosen)) % len(tiles))
    outline, union = TileFaces(tiles).outline(which), union_outline(tiles[which])
    assert outline.is_valid and outline.geom_type in ("Polygon", "MultiPolygon")
    # A border may move by the last decimal, along all of it.
    assert outline.symmetric_difference(union).area <= 2 * GRID * shapely.length(tiles).sum()
    xy = shapely.get_coordinates(outline)
    assert np.array_equal(np.round(xy, 6), xy)


def test_points_and_faces_that_do_not_fit_are_left_to_the_union(monkeypatch: pytest.MonkeyPatch) -> None:
    points = shapely.points([[0.0, 0.0], [1.0, 0.0]])
    assert TileFaces(points).outline(np.array([0, 1])).equals(shapely.MultiPoint([(0, 0), (1, 0)]))
    tiles, both = _tiles(1, 2, 0.0), np.array([0, 1])
    monkeypatch.setattr(shapely, "coverage_union_all", lambda faces: shapely.Polygon())
    assert TileFaces(tiles).outline(both).equals(union_outline(tiles[both]))

    def fail(faces: object) -> None:
        raise shapely.errors.GEOSException("cannot be joined")

    monkeypatch.setattr(shapely, "coverage_union_all", fail)
    assert TileFaces(tiles).outline(both).equals(union_outline(tiles[both]))
