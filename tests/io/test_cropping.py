"""Cropping of trips while they are read: a box, a number of tiles, a time window; and the frame of a grid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import InputError, ParameterError
from crowdveil.io.cropping import in_box, parse_box
from crowdveil.io.flows import read_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Box
from crowdveil.model.tessellation import public_box, public_step
from crowdveil.model.zones import Zones

CITY = "2.0,48.0,2.1,48.1"


def _trips(n: int = 200, far: list[tuple[float, float]] | None = None, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(2.01, 2.09, (2, n)), rng.uniform(48.01, 48.09, (2, n))
    for i, (x, y) in enumerate(far or []):
        lon[i % 2, i], lat[i % 2, i] = x, y
    hours = [f"2026-03-0{1 + i % 3}T{i % 24:02d}:30:00" for i in range(n)]
    return pa.table(
        {
            "origin_lon": lon[0],
            "origin_lat": lat[0],
            "destination_lon": lon[1],
            "destination_lat": lat[1],
            "time": hours,
        }
    )


def _same(a: Flows, b: Flows) -> None:
    for name in ("t", "offsets", "origin", "destination", "volume", "people"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.zones.ids.tolist() == b.zones.ids.tolist()


def test_one_point_at_the_origin_of_degrees_no_longer_stops_a_grid() -> None:
    far = _trips(far=[(0.0, 0.0)])
    with pytest.raises(ParameterError, match="bbox"):
        read_flows(far, zones="grid:100m", step="all")
    cropped = read_flows(far, zones="grid:500m", step="all", bbox=CITY)
    _same(cropped, read_flows(_trips().slice(1), zones="grid:500m", step="all", bbox=CITY))
    assert cropped.total == 199 and len(cropped.zones) < 500


def test_trips_outside_are_not_counted_anywhere(tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import pyarrow.csv as pacsv

    for name, far in (("one", [(0.0, 0.0)]), ("three", [(0.0, 0.0), (9.0, 9.0), (2.0, 10.0)])):
        pacsv.write_csv(_trips(far=far), f"{name}.csv")
    notes = [ReadNotes(), ReadNotes()]
    for note, name in zip(notes, ("one", "three"), strict=True):
        read_flows(f"{name}.csv", zones="grid:1km", step="all", bbox=CITY, notes=note)
    assert notes[0].sentences() == notes[1].sentences() and not notes[0].dropped
    arguments = ("--zones", "grid:1km", "--step", "all", "--bbox", CITY, "--k", "3", "--no-report", "-o", "out")
    assert command("anonymize", "suppression", "one.csv", *arguments).code == 0
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["input"]["options"]["bbox"] == CITY and not manifest["input"]["dropped"]
    assert command("measure", "one.csv", "out", "-m", "S").code == 0  # the box is that of the release


def test_a_frame_does_not_show_the_outermost_trips() -> None:
    first = read_flows(_trips(seed=1), zones="grid:500m", step="all").zones
    second = read_flows(_trips(seed=2), zones="grid:500m", step="all").zones
    assert first.grid == second.grid and first.ids.tolist() == second.ids.tolist()
    assert (
        public_step(500) == 0.05 and public_step(1000) == pytest.approx(0.1) and public_step(30) == pytest.approx(0.005)
    )


@given(
    st.floats(-179, 178),
    st.floats(-85, 84),
    st.floats(0, 0.9),
    st.floats(0, 0.9),
    st.sampled_from([30.0, 200.0, 500.0, 3000.0]),
)
def test_a_public_box_covers_the_box_and_lies_on_the_public_grid(
    west: float, south: float, width: float, height: float, size: float
) -> None:
    box, step = Box(west, south, west + width, south + height), public_step(size)
    found = public_box(box, size)
    assert found.west <= box.west and found.south <= box.south and found.east >= box.east and found.north >= box.north
    assert found.east - found.west < width + 2.001 * step and found.north - found.south < height + 2.001 * step
    for side in (found.west, found.south, found.east, found.north):
        assert abs(side / step - round(side / step)) < 1e-6 or abs(side) in (180.0, 89.0)


def test_zones_of_a_file_are_cropped_by_their_centers(tmp_path: Path) -> None:
    lines = ["id,lon,lat", "a,2.01,48.01", "b,2.05,48.05", "c,3.0,48.0", "d,2.09,48.02"]
    (tmp_path / "zones.csv").write_text("\n".join(lines) + "\n")
    table = pa.table({"origin": ["a", "c", "b", "d"], "destination": ["b", "a", "d", "a"], "volume": [5, 6, 7, 8]})
    flows = read_flows(table, zones=tmp_path / "zones.csv", bbox=CITY)
    assert flows.zones.ids.tolist() == ["a", "b", "d"]
    named = [(flows.zones.ids[o], flows.zones.ids[d]) for o, d in zip(flows.origin, flows.destination, strict=True)]
    assert named == [("a", "b"), ("b", "d"), ("d", "a")] and flows.volume.tolist() == [5, 7, 8]
    with pytest.raises(InputError, match="bbox"):
        read_flows(table, bbox=CITY)
    with pytest.raises(InputError, match="among the zones"):  # an unknown zone is still an error
        read_flows(
            pa.table({"origin": ["x"], "destination": ["a"], "volume": [1]}), zones=tmp_path / "zones.csv", bbox=CITY
        )


@pytest.mark.parametrize("window", ["2026-03-02,2026-03-03", "2026-03-01T23:00Z,2026-03-02T23:00Z"])
def test_a_time_window_takes_the_first_time_and_not_the_second(window: str) -> None:
    data = _trips(96)
    flows = read_flows(data, zones="grid:1km", time_window=window, tz="Europe/Paris")
    assert flows.total == 32 and flows.steps == len({i % 24 for i in range(96) if i % 3 == 1})
    with pytest.raises(InputError, match="no column of times"):
        read_flows(data.drop_columns(["time"]), zones="grid:1km", time_window=window)


def test_rows_outside_a_time_window_are_no_problem() -> None:
    """Even if their zones are unknown; a row without a time is one, since it may lie in the window."""
    times = ["2026-03-02T08:00", "2026-03-09T08:00", "2026-03-02T09:00"]
    table = pa.table({"origin": ["a", "x", "b"], "destination": ["b"] * 3, "time": times})
    flows = read_flows(table, zones=Zones.from_ids(["a", "b"]), time_window="2026-03-02,2026-03-03")
    assert flows.total == 2
    without = table.set_column(2, "time", [pa.array([None, *times[1:]], pa.string())])
    with pytest.raises(InputError, match=r"row 1\) has no usable time"):
        read_flows(without, zones=Zones.from_ids(["a", "b"]), time_window="2026-03-02,2026-03-03")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bbox": "2,48,1,49"}, "west,south,east,north"),
        ({"bbox": "2,48,3"}, "west,south,east,north"),
        ({"bbox": "a,b,c,d"}, "west,south,east,north"),
        ({"time_window": "2026-03-02"}, "two times"),
        ({"time_window": "2026-03-03,2026-03-02"}, "two times"),
    ],
)
def test_what_is_no_box_or_window_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        read_flows(_trips(9), **{"zones": "grid:1km", **options})


def test_a_box_may_cross_the_date_line() -> None:
    box = parse_box(["170", "-10", "-170", "10"])
    lon = np.array([175.0, -175.0, 165.0, -165.0, 0.0])
    assert in_box(box, lon, np.zeros(5)).tolist() == [True, True, False, False, False]
