"""Every polygon that is written is valid as it stands in the file, and no place is lost or added."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import shapely
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rivals import taxi_zones

from crowdveil.io.geojson import GRID, snap_to_grid, union_outline, write_features, write_zones
from crowdveil.io.release_writer import area_features
from crowdveil.io.zones import read_zones
from crowdveil.model.areas import Areas
from crowdveil.model.tessellation import voronoi_zones
from crowdveil.model.zones import Zones

ZONES: dict[str, tuple[str, Callable[[Path], Zones]]] = {
    "nyc": ("realdata", taxi_zones),
    "counties": ("commuting", lambda folder: read_zones(min(folder.glob("*.geojson")))),
}
"""The fixture of the folder with the file, and what reads it."""


def _written(zones: Zones, parts: int, file: Path) -> tuple[Areas, np.ndarray]:
    """Zones joined to areas by where they lie, as in a release, and the outlines in the file."""
    x, y = zones.xy
    side = int(np.ceil(np.sqrt(parts)))
    cell = np.minimum((side * (x - x.min()) / np.ptp(x)).astype(int), side - 1) * side
    cell += np.minimum((side * (y - y.min()) / np.ptp(y)).astype(int), side - 1)
    areas = Areas.of_parts(zones, np.unique(cell, return_inverse=True)[1])
    write_features(area_features(areas, np.ones(len(areas), np.bool_)), file)
    features = json.loads(file.read_text())["features"]
    return areas, np.asarray(shapely.from_geojson([json.dumps(f["geometry"]) for f in features]), dtype=object)


def _check(zones: Zones, parts: int, file: Path) -> None:
    areas, shapes = _written(zones, parts, file)
    assert shapely.is_valid(shapes).all()
    assert np.isin(shapely.get_type_id(shapes), (3, 6)).all()
    pieces = [snap_to_grid(zones.polygons[t]) for t in _tiles(areas)]
    wholes = np.array([shapely.union_all(zones.polygons[t]) for t in _tiles(areas)], dtype=object)
    around = np.array([shapely.length(piece).sum() for piece in pieces])
    # A border may move by the last decimal, along all of it.
    assert np.all(np.abs(shapely.area(shapes) - shapely.area(wholes)) <= GRID * around)
    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    first, second = first[first < second], second[first < second]
    # Zones of a file may overlap a little; areas do so no more.
    common, before = (shapely.area(shapely.intersection(s[first], s[second])) for s in (shapes, wholes))
    assert np.all(common <= before + GRID * np.minimum(around[first], around[second]))
    # Nor is anything left open between them.
    gaps = shapely.union_all(wholes).area - shapely.union_all(shapes).area
    assert abs(gaps) <= GRID * around.sum()


def _tiles(areas: Areas) -> list[np.ndarray]:
    return [areas.tiles[a:b] for a, b in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)]


@pytest.mark.realdata
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "nyc")) for name in ZONES])
@pytest.mark.parametrize("parts", [9, pytest.param(10_000, marks=pytest.mark.slow)])
def test_areas_of_real_zones_are_valid(name: str, parts: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder, read = ZONES[name]
    _check(read(request.getfixturevalue(folder)), parts, tmp_path / "areas.geojson")


@pytest.mark.realdata
def test_the_release_of_new_yorks_zones_is_valid_whole(realdata: Path, tmp_path: Path) -> None:
    """Zones as they are written by themselves, with corners on the written decimals."""
    zones = taxi_zones(realdata)
    write_zones(zones, tmp_path / "zones.geojson")
    again = read_zones(tmp_path / "zones.geojson")
    assert len(again) == len(zones)


@settings(max_examples=tries(15), deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(4, 60), size=st.sampled_from([1e-4, 0.01, 1.0]))
def test_areas_of_a_voronoi_map_are_valid(
    seed: int, n: int, size: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    zones = voronoi_zones(np.arange(n), 7 + size * rng.random(n), 45 + size * rng.random(n))
    _check(zones, 6, tmp_path_factory.mktemp("v") / "areas.geojson")


def test_a_spike_thinner_than_the_last_decimal_is_put_on_the_grid() -> None:
    """Rounded corner by corner its sides would cross."""
    spike = shapely.Polygon([(0, 0), (1, 0), (1, 1), (0.5000004, 1e-7), (0.4999996, 1.4e-6), (0, 1)])
    assert spike.is_valid
    found = snap_to_grid(np.array([spike], dtype=object))
    assert shapely.is_valid(found).all() and abs(found[0].area - spike.area) < 1e-5


def test_a_shape_smaller_than_the_last_decimal_stays() -> None:
    dot = shapely.box(1e-8, 1e-8, 3e-8, 3e-8)
    assert snap_to_grid(np.array([dot], dtype=object))[0].equals(dot)


def test_neighbors_are_joined_without_a_seam() -> None:
    """The corner of one lies on the side of the other, and is rounded away from it."""
    left = shapely.Polygon([(0, 0), (1 / 3, 0), (2 / 3, 1), (0, 1)])
    middle = (1 / 3 + 2 / 3) / 2, 0.5
    right = shapely.Polygon([(1 / 3, 0), (1, 0), (1, 1), (2 / 3, 1), middle])
    both = union_outline(snap_to_grid(np.array([left, right], dtype=object)))
    assert both.geom_type == "Polygon" and both.is_valid and not both.interiors and abs(both.area - 1) < GRID
