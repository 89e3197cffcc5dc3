"""Checkers of maps of sectors on files made by hand: a right one passes, and each way to falsify one is found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.errors import InputError
from crowdveil.guarantees import (
    DisjointSectors,
    EveryLocationCounted,
    SectorGuarantee,
    SectorKAnonymity,
    WellFormedSectors,
)
from crowdveil.io.sectors import read_sectors
from crowdveil.model.projection import LocalProjection
from crowdveil.model.trajectories import Trajectories

PLANE = LocalProjection(2.0, 48.0)
CROWD, DISJOINT, COUNTED, FORM = (
    SectorKAnonymity(k=2, k_unit="people"), DisjointSectors(), EveryLocationCounted(k=2), WellFormedSectors(),
)  # fmt: skip
# x and y in meters, and person: two in the west, one of them on the line to the east, three in the east, and two outside.
POINTS = [(10, 10, 0), (20, 90, 1), (100, 0, 0), (150, 50, 2), (190, 99, 2), (-5, 50, 1), (150, 100, 2)]


def original(points: list[tuple[float, float, int]] = POINTS) -> Trajectories:
    x, y, person = (np.array(c) for c in zip(*points, strict=True))
    lon, lat = PLANE.to_globe(x + 1e-3, y + 1e-3)  # there and back again is half a millimeter
    n = len(points)
    return Trajectories(lon, lat, np.zeros(n, int), np.arange(n + 1), np.arange(n), person.astype(int), np.arange(3))


def feature(sector: int, west: float, east: float, locations: int, people: int) -> dict[str, Any]:
    lon, lat = PLANE.to_globe(np.array([west, east, east, west, west]), np.array([0.0, 0, 100, 100, 0]))
    area = (east - west) / 1e4
    return {
        "type": "Feature",
        "properties": {
            "sector": sector, "locations": locations, "people": people, "area_km2": area,
            "locations_per_km2": locations / area, "west_m": west, "south_m": 0.0, "east_m": east, "north_m": 100.0,
        },
        "geometry": {"type": "Polygon", "coordinates": [np.column_stack([lon, lat]).round(6).tolist()]},
    }  # fmt: skip


GOOD: dict[str, Any] = {
    "type": "FeatureCollection",
    "crowdveil": {"k_unit": "people", "suppressed_locations": 2, "plane": {"longitude": 2.0, "latitude": 48.0}},
    "features": [feature(1, 0.0, 100.0, 2, 2), feature(2, 100.0, 200.0, 3, 2)],
}


def findings(content: dict[str, Any], guarantee: SectorGuarantee, folder: Path, data: Trajectories | None) -> bool:
    (folder / "map.geojson").write_text(json.dumps(content))
    found = guarantee.check_sectors(read_sectors(folder / "map.geojson"), data)
    assert found.detail.endswith(".")
    assert found.holds or found.violated or (guarantee is COUNTED and data is None)
    return not found.violated


@pytest.mark.parametrize("guarantee", [CROWD, DISJOINT, COUNTED, FORM], ids=lambda p: p.name)
def test_a_right_map_passes(guarantee: SectorGuarantee, tmp_path: Path) -> None:
    assert findings(GOOD, guarantee, tmp_path, None) and findings(GOOD, guarantee, tmp_path, original())


def _properties(content: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = content["features"][0]["properties"]
    return properties


def _narrower(content: dict[str, Any]) -> None:
    content["features"][0] = feature(1, 0.0, 15.0, 2, 2)


def _wider(content: dict[str, Any]) -> None:
    content["features"][0] = feature(1, 0.0, 101.0, 2, 2)


def _shifted(content: dict[str, Any]) -> None:
    for point in content["features"][1]["geometry"]["coordinates"][0]:
        point[0] -= 0.00001


def _notched(content: dict[str, Any]) -> None:
    ring = content["features"][1]["geometry"]["coordinates"][0]
    ring.insert(1, [(ring[0][0] + ring[1][0]) / 2, (ring[0][1] + ring[2][1]) / 2])


FAULTS: list[tuple[str, SectorGuarantee, bool, Callable[[dict[str, Any]], object]]] = [
    ("too few people", CROWD, False, lambda c: _properties(c).update(people=1)),
    ("too many people stated", CROWD, True, lambda c: _properties(c).update(people=3)),
    ("locations made up", CROWD, True, lambda c: _properties(c).update(locations=4)),
    ("another crowd", CROWD, False, lambda c: [f["properties"].update(trajectories=2) for f in c["features"]]
     and c["crowdveil"].update(k_unit="trajectories")),
    ("bounds that leave a person out", CROWD, True, _narrower),
    ("overlap", DISJOINT, False, _wider),
    ("an outline elsewhere", DISJOINT, False, _shifted),
    ("an outline with a notch", DISJOINT, False, _notched),
    ("twice the same", DISJOINT, False, lambda c: c["features"].append(feature(3, 100.0, 200.0, 3, 2))),
    ("suppressed: another number", COUNTED, True, lambda c: c["crowdveil"].update(suppressed_locations=3)),
    ("suppressed: not stated", COUNTED, True, lambda c: c["crowdveil"].update(suppressed_locations=None)),
    ("suppressed: one", COUNTED, False, lambda c: c["crowdveil"].update(suppressed_locations=1)),
    ("suppressed: less than nothing", COUNTED, False, lambda c: c["crowdveil"].update(suppressed_locations=-1)),
    ("another property", FORM, False, lambda c: _properties(c).update(who="ann")),
    ("another number", FORM, False, lambda c: _properties(c).update(sector=7)),
    ("another area", FORM, False, lambda c: _properties(c).update(area_km2=0.02)),
    ("another density", FORM, False, lambda c: _properties(c).update(locations_per_km2=1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("guarantee", "needs", "fault"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_every_fault_is_found(guarantee: SectorGuarantee, needs: bool, fault: Any, tmp_path: Path) -> None:
    content = copy.deepcopy(GOOD)
    fault(content)
    assert not findings(content, guarantee, tmp_path, original())
    assert needs or not findings(content, guarantee, tmp_path, None)


def test_the_number_of_suppressed_locations_of_few_is_not_given(tmp_path: Path) -> None:
    data = original(POINTS[:-1])  # one location of one person outside
    content = copy.deepcopy(GOOD)
    for stated, holds in ((2, False), (1, False), (0, False), (None, True)):
        content["crowdveil"]["suppressed_locations"] = stated
        assert findings(content, COUNTED, tmp_path, data) is holds


def test_many_columns_are_painted_band_by_band(tmp_path: Path) -> None:
    points = [(10.0 * i + 5, 50.0, p) for i in range(1100) for p in (0, 1)]
    content = copy.deepcopy(GOOD)
    content["features"] = [feature(i + 1, 10.0 * i, 10.0 * i + 10, 2, 2) for i in range(1100)]
    content["crowdveil"]["suppressed_locations"] = 0
    for guarantee in (CROWD, DISJOINT, COUNTED, FORM):
        assert findings(content, guarantee, tmp_path, original(points))
    content["features"].append(feature(1101, 5110.0, 5130.0, 2, 2))
    assert not findings(content, DISJOINT, tmp_path, None)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"type": "FeatureCollection", "features": []}', '{"crowdveil": 3, "features": []}']
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "map.geojson").write_text(text)
    with pytest.raises(InputError, match="written by crowdveil"):
        read_sectors(tmp_path / "map.geojson")
    with pytest.raises(InputError, match="no such file"):
        read_sectors(tmp_path / "none.geojson")
