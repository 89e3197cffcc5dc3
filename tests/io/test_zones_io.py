"""Zones from every format are the same zones."""

from __future__ import annotations

from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from plain_rivals import taxi_zones

from crowdveil.errors import InputError
from crowdveil.io.flows import read_flows, read_trips
from crowdveil.io.notes import ReadNotes
from crowdveil.io.zones import read_voronoi, read_zones
from crowdveil.model.tessellation import locate
from crowdveil.model.zones import Zones

NAMES = ["north", "7", "Ünit"]
SHAPES = [shapely.box(2.0, 41.0, 2.1, 41.1), shapely.box(2.1, 41.0, 2.2, 41.1), shapely.box(2.0, 41.1, 2.2, 41.2)]
IN_ORDER = [1, 0, 2]
"""Zones come in the order of their ids, numbers first."""


@pytest.fixture
def frame() -> gpd.GeoDataFrame:
    return gpd.GeoDataFrame({"zone_id": NAMES, "size": [1.5, None, 3.0]}, geometry=SHAPES, crs="EPSG:4326")


def same_zones(zones: Zones, atol: float = 1e-7) -> None:
    assert zones.ids.tolist() == [NAMES[i] for i in IN_ORDER]
    assert zones.kind == "polygons"
    assert zones.polygons is not None
    np.testing.assert_allclose(zones.lon, [2.15, 2.05, 2.1], atol=atol)
    np.testing.assert_allclose(zones.lat, [41.05, 41.05, 41.15], atol=1e-4)
    np.testing.assert_allclose(shapely.bounds(zones.polygons), shapely.bounds(SHAPES)[IN_ORDER], atol=atol)


FORMATS = [
    (e, c)
    for e in ("geojson", "gpkg", "shp", "fgb", "parquet")
    for c in (4326, 3857, 25831)
    if e != "geojson" or c == 4326
]


@pytest.mark.parametrize(("ending", "crs"), FORMATS)
def test_every_format_and_coordinate_system_gives_the_same_zones(
    ending: str, crs: int, frame: gpd.GeoDataFrame, tmp_path: Path
) -> None:
    file = tmp_path / f"zones.{ending}"
    projected = frame.to_crs(crs)
    if ending == "parquet":
        projected.to_parquet(file)
    else:
        projected.to_file(file, **({"SPATIAL_INDEX": "NO"} if ending == "fgb" else {}))
    # The corners of a box in meters are the same places, though its sides bend.
    same_zones(read_zones(file), atol=1e-7 if crs == 4326 else 2e-3)
    same_zones(read_zones(str(file), zone_id="zone_id"), atol=1e-7 if crs == 4326 else 2e-3)


def test_a_geodataframe_is_taken_as_it_is(frame: gpd.GeoDataFrame) -> None:
    same_zones(read_zones(frame))
    same_zones(read_zones(frame.to_crs(3857)), atol=1e-7)
    same_zones(read_zones(frame.rename_geometry("outline")))
    zones = read_zones(frame)
    assert read_zones(zones) is zones


def test_a_file_without_coordinate_system_is_taken_as_degrees(frame: gpd.GeoDataFrame, tmp_path: Path) -> None:
    frame.to_file(tmp_path / "zones.shp")
    (tmp_path / "zones.prj").unlink()
    notes = ReadNotes()
    same_zones(read_zones(tmp_path / "zones.shp", notes=notes))
    assert any("name no coordinate system" in sentence for sentence in notes.messages)


def test_centroids_in_csv_and_points_in_geojson_are_the_same_zones(tmp_path: Path) -> None:
    x, y = [2.0, 2.1, 2.2], [41.0, 41.1, 41.0]
    points = gpd.GeoDataFrame({"zone_id": NAMES}, geometry=gpd.points_from_xy(x, y, crs=4326))
    points.to_file(tmp_path / "points.geojson")
    rows = "".join(f"{n},{a},{b}\n" for n, a, b in zip(NAMES, x, y, strict=True))
    (tmp_path / "points.csv").write_text("zone_id,longitude,latitude\n" + rows, encoding="utf-8")
    for file in ("points.geojson", "points.csv"):
        zones = read_zones(tmp_path / file)
        assert zones.kind == "centroids"
        assert zones.ids.tolist() == [NAMES[i] for i in IN_ORDER]
        np.testing.assert_allclose(zones.lon, np.array(x)[IN_ORDER])
        np.testing.assert_allclose(zones.lat, np.array(y)[IN_ORDER])
        cells = read_voronoi(tmp_path / file)
        assert cells.kind == "voronoi"
        assert locate(cells, zones.lon, zones.lat).tolist() == [0, 1, 2]


def test_ids_come_from_the_first_usual_column_that_can_be_one(frame: gpd.GeoDataFrame) -> None:
    notes = ReadNotes()
    bare = frame.drop(columns="zone_id")
    names = bare.assign(
        zone=["a", "a", "b"], OBJECTID=[5.0, 6.0, 7.0]
    )  # names of zones may repeat: they are no ids then
    assert read_zones(names, notes=notes).ids.tolist() == ["5", "6", "7"]
    assert any("OBJECTID" in sentence for sentence in notes.messages)
    unusable = bare.assign(zone=["a", "a", "b"])
    assert read_zones(unusable, numbered=True, notes=notes).ids.tolist() == ["1", "2", "3"]
    assert any("numbered from 1" in sentence for sentence in notes.messages)


@pytest.mark.parametrize("column", ["TAZ", "GEOID10", "GEOID20", "code", "geo_code", "NO", "zone_code"])
def test_usual_names_of_ids_come_before_the_number_of_a_feature(frame: gpd.GeoDataFrame, column: str) -> None:
    other = frame.drop(columns="zone_id").assign(OBJECTID=[1, 2, 3], **{column: ["12", "7", "9"]})
    assert read_zones(other).ids.tolist() == ["7", "9", "12"]


def test_zones_are_numbered_only_where_the_data_have_coordinates(frame: gpd.GeoDataFrame, tmp_path: Path) -> None:
    zones = frame.rename(columns={"zone_id": "quarter"}).assign(quarter=["2", "3", "1"])
    ids, places = tmp_path / "ids.csv", tmp_path / "places.csv"
    ids.write_text("origin,destination\n1,2\n", encoding="utf-8")
    places.write_text("o_lon,o_lat,d_lon,d_lat\n2.05,41.05,2.15,41.05\n", encoding="utf-8")
    refusal = r"zones: Expected a column of zone ids, got columns quarter, size\. Name it with zone_id=\."
    for read in (read_zones, lambda z: read_flows(ids, zones=z), lambda z: read_trips(ids, zones=z)):
        with pytest.raises(InputError, match=refusal):
            read(zones)
    with pytest.raises(InputError, match="got no columns"):
        read_zones(frame[["geometry"]])
    assert read_zones(frame[["geometry"]], numbered=True).ids.tolist() == ["1", "2", "3"]
    assert read_zones(frame.set_index("zone_id")).ids.tolist() == [NAMES[i] for i in IN_ORDER]
    by_id = read_flows(ids, zones=zones, zone_id="quarter")
    assert by_id.zones.ids[by_id.origin].tolist() == ["1"] and by_id.zones.lat[by_id.origin].item() > 41.1
    located = read_flows(places, zones=zones)
    assert located.zones.ids[located.origin].tolist() == ["1"] and located.zones.lat[located.origin].item() < 41.1


def test_spoiled_ids_are_refused_and_not_replaced_by_another_column(frame: gpd.GeoDataFrame) -> None:
    repeated, gap = frame.assign(zone_id=[1, 1, 2], OBJECTID=[5.0, 6.0, 7.0]), frame.assign(zone_id=["a", None, "b"])
    for spoiled in (repeated, gap):
        with pytest.raises(
            InputError, match=r"1 row \(row 2\) has a missing or repeated id in column zone_id.*zone_id="
        ):
            read_zones(spoiled)
    assert read_zones(repeated, zone_id="OBJECTID").ids.tolist() == ["5", "6", "7"]
    with pytest.raises(InputError, match="columns zone_id and ZONE_ID could each be zone_id"):
        read_zones(frame.assign(zone_id=["a", "b", "c"], ZONE_ID=["d", "e", "f"]))
    twice = frame.assign(zone_id=["a", "b", "c"], other=["d", "e", "f"]).rename(columns={"other": "zone_id"})
    with pytest.raises(InputError, match="its name repeats"):
        read_zones(twice)
    with pytest.raises(InputError, match=r"1 row \(row 2\) has no id in column zone_id"):
        read_zones(gap, zone_id="zone_id")
    with pytest.raises(InputError, match=r"1 row \(row 2\) repeats an earlier id"):
        read_zones(repeated, zone_id="zone_id")


def test_borders_that_nearly_fit_are_no_overlap(frame: gpd.GeoDataFrame) -> None:
    nearly = frame.set_geometry([shapely.box(2.0, 41.0, 2.1005, 41.1), *SHAPES[1:]], crs=4326)
    assert len(read_zones(nearly)) == 3
    over = frame.set_geometry([shapely.box(2.0, 41.0, 2.102, 41.1), *SHAPES[1:]], crs=4326)
    with pytest.raises(InputError, match=r"1 pair of zones overlap: 2 rows \(rows 1 and 2\)"):
        read_zones(over)


def test_a_zone_inside_another_is_an_overlap(frame: gpd.GeoDataFrame) -> None:
    inside = frame.set_geometry([shapely.box(2.12, 41.02, 2.13, 41.03), *SHAPES[1:]], crs=4326)
    with pytest.raises(InputError, match="1 pair of zones overlap"):
        read_zones(inside)


@pytest.mark.parametrize(
    ("text", "says"),
    [("zone_id,lon,lat\na,2,\n", r"1 row \(row 1\) has no usable value in column lat"),
     ("zone_id,lon,lat\na,2,41\nb,181,41\n", r"1 row \(row 2\) has no usable value in column lon"),
     ("zone_id,north\na,41\n", "Expected columns lon and lat")],
)  # fmt: skip
def test_centroids_that_are_nowhere_are_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(text)
    with pytest.raises(InputError, match=says):
        read_zones(tmp_path / "zones.csv")


def test_broken_files_of_every_format_are_refused(tmp_path: Path) -> None:
    for ending in ("geojson", "gpkg", "shp", "fgb", "zip", "parquet"):
        file = tmp_path / f"zones.{ending}"
        file.write_bytes(b"nothing of the kind, but long enough to look like something")
        with pytest.raises(InputError, match="broken"):
            read_zones(file)
        with pytest.raises(InputError, match="no such file"):
            read_zones(tmp_path / f"nowhere.{ending}")


@pytest.mark.parametrize("about", [b"{", b"[]", b"{}", b'{"primary_column": "zone_id", "columns": {"zone_id": {}}}'])
def test_geoparquet_that_does_not_say_what_it_holds_is_refused(
    about: bytes, frame: gpd.GeoDataFrame, tmp_path: Path
) -> None:
    frame.to_parquet(tmp_path / "zones.parquet")
    table = pq.read_table(tmp_path / "zones.parquet").replace_schema_metadata({b"geo": about})
    pq.write_table(table, tmp_path / "zones.parquet")
    with pytest.raises(InputError, match="broken"):
        read_zones(tmp_path / "zones.parquet")


@pytest.mark.realdata
def test_taxi_zones(realdata: Path) -> None:
    zones = taxi_zones(realdata)
    assert sorted(map(int, zones.ids)) == list(range(1, 264))
    with pytest.raises(InputError, match="repeat an earlier id"):
        read_zones(realdata / "nyc_taxi" / "taxi_zones.geojson", zone_id="LocationID")
    inside = locate(zones, np.array([-73.9855, -73.7781]), np.array([40.7580, 40.6413]))
    assert zones.ids[inside].tolist() == ["230", "132"], "Times Square, JFK Airport"


def test_ids_that_are_no_text_are_reported(frame: gpd.GeoDataFrame, tmp_path: Path) -> None:
    frame.to_file(tmp_path / "z.geojson")
    content = (tmp_path / "z.geojson").read_bytes()
    (tmp_path / "z.geojson").write_bytes(content.replace(NAMES[0].encode(), b"\xad" * 2, 1))
    with pytest.raises(InputError, match="the file is broken or holds no zones"):
        read_zones(tmp_path / "z.geojson")


def test_empty_parts_of_a_multipolygon_are_left_out() -> None:
    """GEOS ended the process when it measured such a shape."""
    shape = shapely.from_wkt("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), EMPTY)")
    zones = read_zones(gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=[shape, shapely.box(5, 5, 6, 6)], crs=4326))
    assert [p.geom_type for p in zones.polygons] == ["MultiPolygon", "Polygon"]
    assert len(shapely.get_parts(zones.polygons[0])) == 1
