"""Releases before they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from crowdveil.errors import InputError
from crowdveil.model.areas import Areas
from crowdveil.model.release import NOT_GIVEN, FlowRelease, TrajectoryRelease
from crowdveil.model.zones import Zones

SHAPES = np.array([shapely.box(2 + i / 10, 41, 2.1 + i / 10, 41.1) for i in range(3)], dtype=object)
ZONES = Zones(np.array(["a", "b", "c"]), np.array([2.05, 2.15, 2.25]), np.full(3, 41.05), SHAPES)
AREAS = Areas(ZONES, np.array(["ab", "c"], dtype=object), np.array([0, 2, 3]), np.array([0, 1, 2]))


def test_areas_are_sets_of_tiles() -> None:
    assert AREAS.size.tolist() == [2, 1]
    np.testing.assert_allclose(AREAS.area_m2, [ZONES.area_m2[:2].sum(), ZONES.area_m2[2]])
    single = Areas.of_tiles(ZONES, np.array([2, 0], np.int32))
    assert single.names.tolist() == ["c", "a"]
    np.testing.assert_allclose(single.area_m2, ZONES.area_m2[[2, 0]])
    assert len(Areas.of_tiles(ZONES, np.zeros(0, np.int32)).area_m2) == 0


def test_areas_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="names must be unique"):
        Areas(ZONES, np.array(["x", "x"], dtype=object), np.array([0, 2, 3]), np.array([0, 1, 2]))
    with pytest.raises(InputError, match="column names has 1 rows instead of 2"):
        Areas(ZONES, np.array(["x"], dtype=object), np.array([0, 2, 3]), np.array([0, 1, 2]))
    with pytest.raises(InputError, match="offsets must rise"):
        Areas(ZONES, np.array(["x", "y"], dtype=object), np.array([0, 2, 2]), np.array([0, 1, 2]))


GOOD: dict[str, Any] = {
    "t": [0, 3600], "offsets": [0, 1, 2], "origin": [0, 1], "destination": [1, 1], "volume": [5, 6], "people": [3, 4],
    "state": [0, 1], "suppressed": [7, NOT_GIVEN],
}  # fmt: skip


def flow_release(**changed: Any) -> FlowRelease:
    return FlowRelease(AREAS, **{k: np.array(v) for k, v in {**GOOD, **changed}.items()}, k_unit="people", step_s=3600)


def test_a_release_of_flows() -> None:
    release = flow_release()
    assert len(release) == 2
    assert release.step.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        release.volume[0] = 0


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [("origin", [0, 2], "area that does not exist"), ("destination", [-1, 0], "area that does not exist"),
     ("volume", [1], "column volume has 1 rows instead of 2"), ("state", [0], "column state"),
     ("suppressed", [1], "column suppressed"),
     ("t", [0], "column t"), ("offsets", [0, 1, 3], "offsets must rise")],
)  # fmt: skip
def test_rows_that_do_not_fit_are_refused(column: str, values: list[int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        flow_release(**{column: values})


def trajectory_release(**changed: Any) -> TrajectoryRelease:
    columns: dict[str, Any] = {
        "lon": [2.0, 2.1],
        "lat": [41.0, 41.1],
        "t": [5, 6],
        "offsets": [0, 1, 2],
        "person": [2, 1],
    }
    columns |= changed
    return TrajectoryRelease(**{k: None if v is None else np.array(v) for k, v in columns.items()})


def test_a_release_of_trajectories() -> None:
    release = trajectory_release(source=[9, 4])
    assert (len(release), release.points) == (2, 2)
    assert trajectory_release(person=None).person is None
    with pytest.raises(ValueError, match="read-only"):
        release.lon[0] = 0


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [("lat", [41.0], "column lat"), ("lon", [2.0, 181.0], "not degrees of lon"), ("person", [1], "column person"),
     ("source", [1, 2, 3], "column source"), ("offsets", [0, 3], "offsets must rise")],
)  # fmt: skip
def test_points_that_do_not_fit_are_refused(column: str, values: list[Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        trajectory_release(**{column: values})


def test_the_table_of_points_is_the_same_in_chunks() -> None:
    t, person = np.arange(9), np.array([4, 7, 7])
    release = TrajectoryRelease(np.arange(9.0), np.arange(9.0) / 2, t, np.array([0, 2, 3, 9]), person)
    whole = release.to_arrow()
    assert whole["published_id"].to_pylist() == [1, 1, 2, 3, 3, 3, 3, 3, 3]
    assert whole["user_id"].to_pylist() == [4, 4, 7, 7, 7, 7, 7, 7, 7]
    for size in range(1, 10):
        chunks = [release.chunk(slice(low, min(low + size, 9))) for low in range(0, 9, size)]
        assert pa.concat_tables(chunks).equals(whole)
    nothing = TrajectoryRelease(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(1))
    assert nothing.to_arrow().num_rows == 0
