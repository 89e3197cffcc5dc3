"""Data across the date line is treated as data elsewhere: the release of shifted data is the shifted release."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from examples import tries
from given_boxes import with_boxes
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import grid_frame
from towns import HERE, TRACKS, people, released, walks

from crowdveil.analysis.quadtree_heatmap import HeatMapParams
from crowdveil.analysis.quadtree_heatmap import run as heat_map
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.geojson import read_outlines, write_zones
from crowdveil.io.release_writer import area_features
from crowdveil.io.zones import read_zones
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Box, Reach, cut_at_date_line, in_one_piece, near, wrapped
from crowdveil.model.projection import LocalProjection
from crowdveil.model.release import FlowRelease
from crowdveil.model.tessellation import grid_zones, h3_cells, h3_zones, locate, voronoi_zones
from crowdveil.model.zones import Zones
from crowdveil.registry import METHODS, find_method
from crowdveil.report import trajectory_picture
from crowdveil.report.shapes import PictureFrame, Rings
from crowdveil.run import pipeline, releases
from crowdveil.run.filters import Filter

SHIFT = 170.0
"""Puts it on both sides of the date line."""
FLOWS = [m for m in map(find_method, METHODS) if m.takes is Flows]


def _shifted(lon: Any) -> Any:
    return wrapped(np.asarray(lon) + SHIFT)


def _moved(xy: Any) -> Any:
    return np.column_stack([xy[:, 0] + SHIFT, xy[:, 1]])


def _back(lon: Any) -> Any:
    return near(np.asarray(lon) - SHIFT, HERE)


@pytest.mark.parametrize("method", TRACKS, ids=[m.name for m in TRACKS])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_release_of_shifted_trajectories_is_the_shifted_release(method: Method, seed: int) -> None:
    here = people(np.random.default_rng(seed))
    there = replace(here, lon=_shifted(here.lon))
    assert there.lon.min() < -179 and there.lon.max() > 179
    found, across = released(method, here), released(method, there)
    assert len(found) > 0 and np.all((across.lon >= -180) & (across.lon < 180))
    one, two = walks(found, found.lon), walks(across, _back(across.lon))
    assert [w[0] for w in one] == [w[0] for w in two]
    for a, b in zip(one, two, strict=True):
        # Half of the last published decimal may fall to either side.
        assert np.allclose(a[1], b[1], rtol=0, atol=1.5e-5) and np.allclose(a[2], b[2], rtol=0, atol=1.5e-5)


@pytest.mark.parametrize(
    "aggregation", ["mean-trajectory", "closest-trajectory", "closest-locations", "composed-trajectory"]
)
def test_every_aggregation_stays_at_the_date_line(aggregation: str) -> None:
    data = replace(data := people(np.random.default_rng(3)), lon=_shifted(data.lon))
    method = find_method("microaggregation")
    params = method.params.checked({"k": 2, "aggregation": aggregation})
    release = method.run(data, params, np.random.default_rng(1), no_progress)
    assert np.abs(near(release.lon, 180.0) - 180).max() < 0.1


@pytest.mark.parametrize("strategy", ["avg", "centroid"])
def test_protected_generalization_stays_at_the_date_line(strategy: str) -> None:
    here = people(np.random.default_rng(3))
    method = find_method("protected-generalization")
    params = method.params.checked({"k": 2, "strategy": strategy, "tile_size_m": 2000})
    found = [
        method.run(data, params, np.random.default_rng(1), no_progress)
        for data in (here, replace(here, lon=_shifted(here.lon)))
    ]
    assert len(found[0]) > 0
    assert np.allclose(found[0].lon, _back(found[1].lon), rtol=0, atol=1.5e-6)
    assert np.allclose(found[0].lat, found[1].lat, rtol=0, atol=1.5e-6)


def _cells() -> tuple[Zones, Zones]:
    """Cells around twenty points, here and across the date line."""
    rng = np.random.default_rng(9)
    lon, lat = HERE + np.round(rng.uniform(-0.03, 0.03, 20), 6), np.round(rng.uniform(49.98, 50.02, 20), 6)
    return voronoi_zones(np.arange(20), lon, lat), voronoi_zones(np.arange(20), _shifted(lon), lat)


def _grids() -> tuple[Zones, Zones]:
    """Four by four squares, here and across the date line."""
    lon, lat = HERE + np.array([-0.02, 0.02]), np.array([49.99, 50.01])
    frames = grid_frame(lon, lat, 700.0), grid_frame(_shifted(lon), lat, 700.0)
    n = np.arange(16, dtype=np.int32)
    return tuple(grid_zones(frame, n % 4, n // 4) for frame in frames)  # type: ignore[return-value]


def _flows(zones: Zones) -> Flows:
    rng = np.random.default_rng(4)
    pairs = np.sort(rng.choice(3 * len(zones) ** 2, 300, replace=False))
    step, pair = np.divmod(pairs, len(zones) ** 2)
    origin, destination = np.divmod(pair, len(zones))
    volume = rng.integers(1, 9, len(pairs))
    return Flows.from_rows(zones, step * 3600, origin, destination, volume, step_s=3600)


@pytest.mark.parametrize("method", FLOWS, ids=[m.name for m in FLOWS])
def test_the_release_of_shifted_zones_is_the_shifted_release(method: Method) -> None:
    both = map(_flows, _grids() if method.name == "uniform" else _cells())
    one, two = (released(method, with_boxes(data, 1) if method.name == "fixed" else data) for data in both)
    assert isinstance(one, FlowRelease) and len(one) > 0
    for name in ("origin", "destination", "volume", "step", "state"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert one.areas.names.tolist() == two.areas.names.tolist()
    (lon, lat), (across, north) = one.areas.centers(6), two.areas.centers(6)
    assert np.allclose(lon, _back(across), rtol=0, atol=1.5e-6) and np.allclose(lat, north, rtol=0, atol=1.5e-6)
    drawn = np.ones(len(one.areas), np.bool_)
    for (_, a), (_, b) in zip(area_features(one.areas, drawn), area_features(two.areas, drawn), strict=True):
        assert b.is_valid
        there, back = (cut_at_date_line(shape) for shape in (shapely.transform(a, _moved), b))
        assert shapely.symmetric_difference(there, back).area < 1e-7
    cut = [cut_at_date_line(shape) for _, shape in area_features(two.areas, drawn)]
    assert all(abs(shape.bounds[0]) <= 180 and abs(shape.bounds[2]) <= 180 and shape.is_valid for shape in cut)


def test_written_areas_across_the_date_line_are_cut_there_and_read_in_one_piece(tmp_path: Path) -> None:
    flows = _flows(_cells()[1])
    out = tmp_path / "out"
    pipeline.run(pipeline.Request("mondrian", flows, out, {"k": 3}))
    assert not any(finding.violated for _, finding in releases.verify(out))
    # Some guarantees can only be checked with the original data.
    assert all(finding.holds for _, finding in releases.verify(out, flows))
    features = json.loads((out / "areas.geojson").read_text())["features"]
    kinds = {f["geometry"]["type"] for f in features}
    assert "MultiPolygon" in kinds
    shapes = shapely.from_geojson([json.dumps(f["geometry"]) for f in features])
    assert shapely.is_valid(shapes).all() and np.abs(shapely.bounds(shapes)[:, [0, 2]]).max() <= 180
    rings = Rings.of(read_outlines(features))
    frame = PictureFrame.around(rings.lon, rings.lat)
    x, _ = frame.to_cells(rings.lon, rings.lat)
    assert x.min() >= 0 and x.max() <= frame.width and frame.meters * frame.width < 7000
    assert len(rings.start) - 1 < len(shapely.get_rings(shapely.get_parts(shapes)))  # no seam is drawn


def test_zones_in_parts_or_beyond_180_are_understood(tmp_path: Path) -> None:
    whole = shapely.box(179.9, 10, 180.1, 10.1)
    parts = shapely.MultiPolygon([shapely.box(179.9, 10, 180, 10.1), shapely.box(-180, 10, -179.9, 10.1)])
    neighbor = shapely.box(-179.9, 10, -179.8, 10.1)
    points = np.array([179.95, -179.95, -179.85, 0.0]), np.full(4, 10.05)
    for number, shape in enumerate((whole, parts)):
        file = tmp_path / f"{number}.geojson"
        features = [
            {"type": "Feature", "properties": {"zone_id": name}, "geometry": json.loads(shapely.to_geojson(s))}
            for name, s in (("a", shape), ("b", neighbor))
        ]
        file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        zones = read_zones(file)
        assert locate(zones, *points).tolist() == [0, 0, 1, -1]
        assert np.allclose(near(zones.lon, 180), [180, 180.15]) and np.all(np.abs(zones.lon) <= 180)
        assert np.isclose(zones.area_m2[0], 2 * zones.area_m2[1], rtol=1e-3)
        assert shapely.get_type_id(zones.polygons).tolist() == [3, 3]
        write_zones(zones, tmp_path / f"again{number}.geojson")
        again = read_zones(tmp_path / f"again{number}.geojson")
        assert shapely.area(shapely.symmetric_difference(zones.polygons, again.polygons)).max() < 1e-9
    wrong = shapely.Polygon([(179.9, 10), (-179.9, 10), (-179.9, 10.1), (179.9, 10.1)])
    feature = {"type": "Feature", "properties": {"zone_id": "a"}, "geometry": json.loads(shapely.to_geojson(wrong))}
    (tmp_path / "wrong.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(InputError, match="date line"):
        read_zones(tmp_path / "wrong.geojson")


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "shp", "fgb", "parquet"])
def test_zones_of_every_format_are_in_one_piece(ending: str, tmp_path: Path) -> None:
    import geopandas

    parts = shapely.MultiPolygon([shapely.box(179.9, 10, 180, 10.1), shapely.box(-180, 10, -179.9, 10.1)])
    frame = geopandas.GeoDataFrame(
        {"zone_id": ["a", "b"]}, geometry=[parts, shapely.box(-179.9, 10, -179.8, 10.1)], crs="EPSG:4326"
    )
    path = tmp_path / f"zones.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_file(path, engine="pyogrio")
    for zones in (read_zones(path), read_zones(frame)):
        # Some formats make every shape one of several parts.
        assert len(shapely.get_parts(zones.polygons)) == 2
        assert np.ptp(shapely.total_bounds(zones.polygons)[[0, 2]]) < 1
        assert locate(zones, np.array([179.95, -179.95, -179.85, 0.0]), np.full(4, 10.05)).tolist() == [0, 0, 1, -1]


def test_cells_across_the_date_line_hold_their_points() -> None:
    rng = np.random.default_rng(6)
    lon, lat = _shifted(HERE + rng.uniform(-0.2, 0.2, 40)), rng.uniform(50, 50.2, 40)
    h3 = h3_zones(h3_cells(lon, lat, 6))
    for zones in (voronoi_zones(np.arange(40), lon, lat), h3, grid_zones(grid_frame(lon, lat, 2000.0))):
        tile = locate(zones, lon, lat)
        shapes = zones.outlines(np.arange(len(zones), dtype=np.int32))
        assert (tile >= 0).all() and np.ptp(shapely.total_bounds(shapes)[[0, 2]]) < 1
        assert shapely.is_valid(shapes).all()
        west, _, east, _ = shapely.total_bounds(shapes)
        held = shapely.distance(shapes[tile], shapely.points(near(lon, (west + east) / 2), lat))
        assert held.max() < 1e-4  # sides that are straight on the plane are not in degrees


def test_a_heat_map_across_the_date_line_is_the_shifted_one(tmp_path: Path) -> None:
    here = people(np.random.default_rng(8), 60)
    # The middle of a map is rounded to a tenth of a degree: sectors must not end at the date line by chance.
    here = replace(here, lon=HERE + 10 * (here.lon - HERE))
    found = []
    for number, data in enumerate((here, replace(here, lon=wrapped(here.lon + SHIFT - 0.1)))):
        heat_map(data, HeatMapParams(min_k=3, min_sector_length_m=100)).write(tmp_path / f"{number}.geojson")
        found.append(json.loads((tmp_path / f"{number}.geojson").read_text())["features"])
    assert [f["properties"] for f in found[0]] == [f["properties"] for f in found[1]]
    assert "MultiPolygon" in {f["geometry"]["type"] for f in found[1]}
    for one, two in zip(*found, strict=True):
        a, b = (shapely.from_geojson(json.dumps(f["geometry"])) for f in (one, two))
        assert abs(a.area - b.area) < 1e-8 and b.is_valid and np.abs(np.array(b.bounds)[[0, 2]]).max() <= 180


def test_trajectories_are_drawn_in_one_piece() -> None:
    here = people(np.random.default_rng(8))
    pictures = [trajectory_picture.original(data) for data in (here, replace(here, lon=_shifted(here.lon)))]
    frames = [PictureFrame.around(p.lon, p.lat) for p in pictures]
    assert (frames[0].width, frames[0].height) == (frames[1].width, frames[1].height)
    places = [frame.to_cells(p.lon, p.lat) for frame, p in zip(frames, pictures, strict=True)]
    assert np.abs(places[0][0] - places[1][0]).max() <= 1


def test_a_box_may_cross_the_date_line() -> None:
    data = replace(data := people(np.random.default_rng(8)), lon=_shifted(data.lon))
    assert Filter("bbox", ("179", "49", "-179", "51")).keeps(data, "UTC").all()
    assert not Filter("bbox", ("175", "49", "179", "51")).keeps(data, "UTC").any()
    with pytest.raises(ParameterError, match="west before east"):
        Filter("bbox", ("12", "49", "10", "51")).keeps(data, "UTC")


longitudes = st.lists(st.floats(-180, 180), min_size=1, max_size=8)


@settings(max_examples=tries(200), deadline=None)
@given(longitudes, st.integers(1, 4))
def test_the_box_is_the_complement_of_the_largest_gap(lon: list[float], parts: int) -> None:
    """By brute force over all gaps, where the smallest arc is less than half of the globe; and joined from parts."""
    values = np.array(lon)
    box = Box.of(values, np.zeros(len(lon)))
    rising = np.sort(values % 360)
    gaps = np.diff(np.append(rising, rising[0] + 360))
    width = 360 - gaps.max()
    assert box.east >= box.west
    assert all(box.west - 1e-9 <= v <= box.east + 1e-9 for v in near(values, box.middle[0]))
    if width < 180:
        assert np.isclose(box.east - box.west, width, rtol=0, atol=1e-9)
    pieces = [Reach.of(values[i::parts], np.zeros(len(values[i::parts]))) for i in range(parts)]
    assert Reach.merge(pieces).box == box


@given(st.floats(-1000, 1000), st.floats(-180, 180))
def test_turned_longitudes_are_the_same_position(lon: float, middle: float) -> None:
    for found in (float(near(np.array([lon]), middle)[0]), float(wrapped(np.array([lon]))[0])):
        assert abs((found - lon + 180) % 360 - 180) < 1e-9
    assert abs(float(near(np.array([lon]), middle)[0]) - middle) <= 180 + 1e-9


def test_data_away_from_the_date_line_is_not_touched() -> None:
    lon = np.array([-74.1, -73.9, 2.35])
    assert np.array_equal(near(lon, -74), lon) and np.array_equal(wrapped(lon), lon)
    shapes = np.array([shapely.box(-74.1, 40, -74, 41), shapely.box(2, 40, 3, 41)], dtype=object)
    assert in_one_piece(shapes) is shapes


@pytest.mark.parametrize(("lon", "lat"), [((0.0, 10.0), (89.5, 89.6)), ((-120.0, 0.0, 120.0), (80.0, 81.0, 80.0))])
def test_a_pole_is_refused_in_one_sentence(lon: tuple[float, ...], lat: tuple[float, ...]) -> None:
    for side in (1, -1):
        with pytest.raises(InputError, match="pole"):
            LocalProjection.around(np.array(lon), side * np.array(lat))
