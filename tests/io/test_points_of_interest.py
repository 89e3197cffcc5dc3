"""Points of interest: read from points or from counts by tile, and assigned to tiles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic import grid_around

from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.points_of_interest import read_points_of_interest
from crowdveil.model.points_of_interest import NO_CATEGORY
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.zones import Zones

ZONES = grid_zones(grid_around(2.0, 48.0, 1000.0, 4, 4))


def _csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_points_are_in_the_tiles_around_them(tmp_path: Path) -> None:
    rows = "".join(f"{ZONES.lon[i]},{ZONES.lat[i]},{name}\n" for i, name in ((3, "shop"), (3, " school "), (7, "")))
    notes = ReadNotes()
    found = read_points_of_interest(_csv(tmp_path / "p.csv", f"lon,lat,category\n{rows}50,10,shop\n"), ZONES, notes)
    assert found.per_tile(len(ZONES))[[3, 7]].tolist() == [2, 1] and found.count.sum() == 3
    assert found.category.tolist() == [1, 0, NO_CATEGORY]  # in order of the names: school, shop
    offsets, category = found.categories_per_tile(len(ZONES))
    assert category[offsets[3] : offsets[4]].tolist() == [0, 1] and offsets[7] == offsets[8]
    assert ["1 of 4 points of interest are in no tile and left out." in note for note in notes.messages].count(
        True
    ) == 1


def test_points_of_a_geojson(tmp_path: Path) -> None:
    features = [
        {
            "type": "Feature",
            "properties": {"amenity": "clinic"},
            "geometry": {"type": "Point", "coordinates": [ZONES.lon[5], ZONES.lat[5]]},
        }
    ]
    path = tmp_path / "p.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    found = read_points_of_interest(path, ZONES)
    assert (found.tile.tolist(), found.category.tolist()) == ([5], [0])


def test_counts_of_tiles(tmp_path: Path) -> None:
    zones = Zones.from_ids(["a", "b", "c"])
    found = read_points_of_interest(
        _csv(tmp_path / "p.csv", "zone_id,category,count\na,shop,3\na,school,0\nb,shop,1\nz,shop,9\n"), zones
    )
    assert found.per_tile(3).tolist() == [3, 1, 0]
    assert np.diff(found.categories_per_tile(3)[0]).tolist() == [1, 1, 0]  # a category with no point is not there
    each = read_points_of_interest(_csv(tmp_path / "q.csv", "zone_id,category\na,x\na,y\n"), zones)
    assert each.per_tile(3).tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("zone_id,count\na,-1\n", "no whole number from 0"),
        ("zone_id,count\na,1.5\n", "no whole number from 0"),
        ("name,count\na,1\n", "Expected columns lon and lat"),
        ("zone_id,count\nz,1\n", "no point of interest is in a tile"),
        ("zone_id,count\n", "a header but no rows"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_points_of_interest(_csv(tmp_path / "p.csv", text), Zones.from_ids(["a", "b"]))
