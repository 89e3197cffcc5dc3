"""Bad zones and hierarchies: one sentence, exit code 2, no value of the data, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bad_input import (
    K2,
    PLACES,
    TRIPS,
    ZONES,
    Command,
    anonymized,
    refused,
    square,
    zones_json,
)

SHAPES = {
    "overlapping polygons": (
        zones_json(("Zurbano", square(2.17, 41.38)), ("Ymirstad", square(2.175, 41.38))),
        ("1 pair of zones overlap", "2 rows (rows 1 and 2)"),
    ),
    "bow-tie": (
        zones_json(("Zurbano", square(2.17, 41.38)), ("Ymirstad", [[2.18, 41.38], [2.19, 41.39], [2.19, 41.38],
                                                                  [2.18, 41.39], [2.18, 41.38]])),
        ("1 row (row 2)", "invalid"),
    ),
    "cut off": (ZONES[: len(ZONES) // 2], ("zones.geojson", "broken")),
    "no JSON": ("no JSON at all", ("zones.geojson", "broken")),
    "empty": ("", ("zones.geojson", "empty")),
    "no features": (zones_json(), ("zones.geojson", "no zones")),
    "JSON of another kind": ('{"a": 1}', ("zones.geojson",)),
    "null shape": (ZONES.replace('{"type": "Polygon", "coordinates": ' + json.dumps([square(2.18, 41.38)]) + "}", "null"),
                   ("1 row (row 2)", "no shape")),
    "lines": (ZONES.replace("Polygon", "MultiLineString"), ("2 rows (rows 1 and 2)", "no polygon")),
    "meters": (zones_json(("Zurbano", square(430000, 4580000, 100)), ("Ymirstad", square(430100, 4580000, 100))),
               ("not degrees",)),
    "ids twice": (zones_json(("Zurbano", square(2.17, 41.38)), ("Zurbano", square(2.18, 41.38))), ("1 row (row 2)", "--zone-id")),
}  # fmt: skip


CENTROIDS = "zone_id,lon,lat\nZurbano,2.17,41.38\nYmirstad,2.18,41.39\n"
TABLES = {
    "decimal commas": (CENTROIDS.replace(",", ";").replace(".", ","), ("2 rows (rows 1 and 2)", "decimal comma in column lon")),
    "quoted decimal commas": (CENTROIDS.replace("2.17", '"2,17"'), ("1 row (row 1)", "decimal comma in column lon")),
    "rows with another delimiter": (CENTROIDS.replace(",", ";").replace(";", ",", 2), ("row 1", "semicolons", "commas")),
    "unknown delimiter": (CENTROIDS.replace(",", "^"), ("one column", "semicolons")),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["", "voronoi:"])
@pytest.mark.parametrize("name", TABLES)
def test_a_bad_table_of_zones_is_refused_with_its_cause(name: str, kind: str, here: Path, command: Command) -> None:
    content, says = TABLES[name]
    (here / "zones.csv").write_text(content)
    (here / "places.csv").write_text(PLACES)
    sentence = refused(command, here, *anonymized("places.csv", "--zones", f"{kind}zones.csv", *K2))
    for part in says:
        assert part in sentence


@pytest.mark.parametrize("name", SHAPES)
def test_bad_zones_are_refused(name: str, here: Path, command: Command) -> None:
    content, says = SHAPES[name]
    (here / "zones.geojson").write_text(content)
    (here / "trips.csv").write_text(TRIPS)
    more = ("--zone-id", "zone_id") if name == "ids twice" else ()
    sentence = refused(command, here, *anonymized("trips.csv", "--zones", "zones.geojson", *more, *K2))
    for part in says:
        assert part in sentence


def test_an_unknown_column_of_zones_is_named(here: Path, command: Command) -> None:
    (here / "zones.geojson").write_text(ZONES)
    (here / "trips.csv").write_text(TRIPS)
    args = anonymized("trips.csv", "--zones", "zones.geojson", "--zone-id", "zoneid", *K2)
    assert "Did you mean zone_id?" in refused(command, here, *args)


CENTROIDS = "zone_id,lon,lat\nZurbano,2.17511,41.38522\nYmirstad,2.18511,41.38522\nXativa,2.19511,41.38522\n"
TREES = {
    "cycle": ("node,parent\nZurbano,Bx-1\nYmirstad,Bx-1\nXativa,By-2\nBx-1,By-2\nBy-2,Bx-1\n", ("not a tree", "circle")),
    "two parents": ("node,parent\nZurbano,Bx-1\nYmirstad,Bx-1\nZurbano,By-2\nXativa,By-2\nBx-1,Top-9\nBy-2,Top-9\n",
                    ("not a tree", "second parent", "row 3")),
    "unit in two districts": ("zone,tract,district\nZurbano,Bx-1,Dist-1\nYmirstad,Bx-1,Dist-2\nXativa,By-2,Dist-2\n",
                              ("not a tree", "column tract", "column district", "row 2")),
    "unknown tile": ("zone,tract\nZurbano,Bx-1\nYmirstad,Bx-1\nAtlantis,By-2\n", ("row 3",)),
    "tile lacking": ("zone,tract\nZurbano,Bx-1\nYmirstad,Bx-1\n", ("1 tile",)),
    "unit missing": ("zone,tract\nZurbano,Bx-1\nYmirstad,\nXativa,Bx-1\n", ("column tract", "row 2")),
    "one column": ("zone\nZurbano\nYmirstad\nXativa\n", ("column",)),
    "empty": ("", ("tree.csv", "empty")),
    "two roots": ("node,parent\nZurbano,Bx-1\nYmirstad,Bx-1\nXativa,By-2\nBx-1,\nBy-2,\n", ("not a tree", "root")),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_a_hierarchy_that_is_no_tree_is_refused(name: str, here: Path, command: Command) -> None:
    content, says = TREES[name]
    (here / "zones.csv").write_text(CENTROIDS)
    (here / "tree.csv").write_text(content)
    sentence = refused(command, here, "hierarchy", "zones.csv", "--hierarchy", "tree.csv", "-o", "out.csv")
    for part in says:
        assert part in sentence


@pytest.mark.parametrize("kind", ["wards", "nowhere.csv", "h3"])
def test_a_hierarchy_of_no_known_kind_is_refused(kind: str, here: Path, command: Command) -> None:
    (here / "zones.csv").write_text(CENTROIDS)
    refused(command, here, "hierarchy", "zones.csv", "--hierarchy", kind, "-o", "out.csv")
