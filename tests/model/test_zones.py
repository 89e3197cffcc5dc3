"""The list of tiles."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from pyproj import Geod

from crowdveil.errors import InputError
from crowdveil.model.zones import Zones


def test_ids_are_text_and_found_by_it() -> None:
    zones = Zones(np.array([7, 12]), np.array([2.0, 3.0]), np.array([41.0, 42.0]), kind="centroids")
    assert zones.ids.tolist() == ["7", "12"]
    assert [zones.index_of(i) for i in ("7", "12", "07", "")] == [0, 1, -1, -1]
    assert len(zones) == 2
    assert zones.located
    assert np.isnan(zones.area_m2).all()


def test_names_alone_are_nowhere() -> None:
    zones = Zones.from_ids(["a", "b"])
    assert not zones.located
    with pytest.raises(InputError, match="meters need the positions of the zones"):
        _ = zones.xy
    assert len(Zones.from_ids([])) == 0


def test_areas_are_those_on_the_ground() -> None:
    shapes = np.array([shapely.box(2, 41, 2.1, 41.1), shapely.box(2.1, 41, 2.15, 41.1)], dtype=object)
    zones = Zones(np.array(["a", "b"]), np.array([2.05, 2.125]), np.array([41.05, 41.05]), shapes)
    wanted = [abs(Geod(ellps="WGS84").geometry_area_perimeter(s)[0]) for s in shapes]
    np.testing.assert_allclose(zones.area_m2, wanted, rtol=1e-4)


@pytest.mark.parametrize(
    ("lon", "lat", "says"),
    [([200.0, 2.0], [1.0, 1.0], "1 values that are not degrees of lon"),
     ([1.0, 2.0], [-91.0, 99.0], "2 values that are not degrees of lat"),
     ([np.nan, 2.0], [1.0, 1.0], "1 values that are not degrees of lon"),
     ([1.0], [1.0, 2.0], "column lon has 1 rows instead of 2")],
)  # fmt: skip
def test_zones_off_the_globe_are_refused(lon: list[float], lat: list[float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Zones(np.array(["a", "b"]), np.array(lon), np.array(lat), kind="centroids")


def test_ids_must_be_unique_and_are_not_revealed() -> None:
    with pytest.raises(InputError, match=r"2 rows \(rows 2 and 4\) repeat an earlier id") as refused:
        Zones.from_ids(["secret", "secret", "b", "b"])
    assert "secret" not in str(refused.value)


def test_a_grid_needs_its_frame() -> None:
    with pytest.raises(InputError, match="lacks its frame"):
        Zones(np.array(["a"]), np.array([1.0]), np.array([1.0]), kind="grid")


def test_zones_do_not_change() -> None:
    lon = np.array([1.0, 2.0])
    zones = Zones(np.array(["a", "b"]), lon, lon, kind="centroids")
    for column in (zones.ids, zones.lon, zones.lat):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    assert lon.flags.writeable, "the caller's own array is left alone"
