"""Reading trajectories against a plain twin: `sorted` of tuples."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.trajectories import Trajectories

unhurried = settings(deadline=None, max_examples=tries(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
Row = tuple[float, float, int, Any, Any]
"""lat, lon, t, trajectory, user."""


def plain_trajectories(rows: list[Row]) -> list[tuple[Any, Any, list[tuple[float, float, int, int]]]]:
    """(id, user, points with their row) in order of appearance; points by time, then by position, then by row."""
    rows = [(*row[:3], "7" if row[3] == "07" else row[3], row[4]) for row in rows]  # equal numbers are equal
    shared = len({(row[3], row[4]) for row in rows}) > len({row[3] for row in rows})
    found: dict[Any, tuple[Any, Any, list[Any]]] = {}
    for number, (lat, lon, t, trajectory, user) in enumerate(rows):
        key = (trajectory, user) if shared else trajectory
        found.setdefault(key, (trajectory, user, []))[2].append((t or 0, lon, lat or 0.0, number))
    return [(i, u, [(lat, lon, t, number) for t, lon, lat, number in sorted(p)]) for i, u, p in found.values()]


def as_list(model: Trajectories) -> list[tuple[Any, Any, list[tuple[float, float, int, int]]]]:
    assert model.row is not None
    found = []
    for i in range(len(model)):
        points = slice(model.offsets[i], model.offsets[i + 1])
        columns = (model.lat, model.lon, model.t, model.row)
        found.append((
            model.ids[i], model.people_ids[model.person[i]],
            list(zip(*(c[points].tolist() for c in columns), strict=True)),
        ))  # fmt: skip
    return found


@st.composite
def shuffled(draw: st.DrawFn) -> list[Row]:
    ids = draw(
        st.sampled_from(
            [st.integers(-3, 5), st.integers(2**62, 2**63 - 1), st.sampled_from(["a", "b c", "7", "07", "ü"])]
        )
    )
    users = draw(st.sampled_from([st.integers(0, 3), st.sampled_from(["x", "y"])]))
    degrees = st.floats(-59, 77).map(lambda v: round(v, 6))
    rows = draw(st.lists(st.tuples(degrees, degrees, st.integers(0, 9), ids, users), min_size=1, max_size=60))
    if not draw(st.booleans()):  # ids that belong to one user each
        owner: dict[Any, Any] = {}
        rows = [(*row[:4], owner.setdefault(row[3], row[4])) for row in rows]
    return rows


def table_of(rows: list[Row]) -> pa.Table:
    names = ("lat", "lon", "timestamp", "trajectory_id", "user_id")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    return table.set_column(2, "timestamp", table["timestamp"].cast(pa.timestamp("s", "UTC")))


def write_csv(table: pa.Table, file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(table.column_names)
        writer.writerows(row.values() for row in table.to_pylist())


@unhurried
@given(shuffled())
def test_every_way_of_reading_points_agrees_with_the_twin(tmp_path: Path, rows: list[Row]) -> None:
    wanted, table = plain_trajectories(rows), table_of(rows)
    in_text = [(str(i), str(u), points) for i, u, points in wanted]
    pq.write_table(table, tmp_path / "points.parquet")
    write_csv(table, tmp_path / "points.csv")
    for data, expected in (
        (table, wanted), (tmp_path / "points.parquet", wanted), (table.to_pandas(), wanted),
        (str(tmp_path / "points.csv"), in_text),
    ):  # fmt: skip
        model = read_trajectories(data, keep_rows=True)
        assert as_list(model) == expected
        assert model.k_unit == "people"
        assert model.people == len({r[4] for r in rows})


def test_without_users_each_trajectory_is_a_person() -> None:
    table = pa.table({"lat": [1.0, 2.0, 3.0], "lon": [1.0, 2.0, 3.0], "t": [1, 2, 3], "tid": ["b", "a", "b"]})
    notes = ReadNotes()
    model = read_trajectories(table, notes=notes)
    assert model.k_unit == "trajectories"
    assert model.ids.tolist() == ["b", "a"]
    assert model.people == 2
    assert any("no column of users" in sentence for sentence in notes.messages)


def test_without_trajectories_all_points_of_a_user_are_one() -> None:
    table = pa.table({"lat": [1.0, 2.0, 3.0], "lon": [1.0, 2.0, 3.0], "t": [3, 2, 1], "uid": ["b", "a", "b"]})
    model = read_trajectories(table, keep_rows=True)
    assert model.k_unit == "people"
    assert as_list(model) == [("b", "b", [(3.0, 3.0, 1, 2), (1.0, 1.0, 3, 0)]), ("a", "a", [(2.0, 2.0, 2, 1)])]


def test_a_geodataframe_of_points_is_read_in_degrees() -> None:
    frame = gpd.GeoDataFrame(
        {"time": [10, 20], "trajectory_id": [1, 1]},
        geometry=gpd.points_from_xy([2.1, 2.2], [41.3, 41.4], crs="EPSG:4326"),
    )
    for given_frame in (frame, frame.to_crs(3857), frame.rename_geometry("where")):
        model = read_trajectories(given_frame)
        np.testing.assert_allclose(model.lon, [2.1, 2.2], atol=1e-9)
        np.testing.assert_allclose(model.lat, [41.3, 41.4], atol=1e-9)
    with pytest.raises(InputError, match="must hold points"):
        read_trajectories(frame.set_geometry(gpd.GeoSeries.from_wkt(["LINESTRING (0 0, 1 1)"] * 2, crs=4326)))


def test_times_without_zone_are_of_the_zone_that_is_named() -> None:
    table = pa.table({"lat": [1.0], "lon": [1.0], "time": ["2008-06-08 07:00"], "trajectory_id": [1]})
    assert read_trajectories(table, tz="Europe/Paris").t.tolist() == [1212908400 - 7200]
    notes = ReadNotes()
    assert read_trajectories(table, notes=notes).t.tolist() == [1212908400]
    assert any("name no zone" in sentence for sentence in notes.messages)
    zoned = table.set_column(2, "time", pa.array(["2008-06-08 07:00+02:00"]))
    assert read_trajectories(zoned, tz="Asia/Tokyo").t.tolist() == [1212908400 - 7200]


def mostly(good: Any, *bad: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([good] * 12 + list(bad))


mixed = st.tuples(
    mostly(1.0, None, 91.0, float("nan"), float("inf")), mostly(2.0, 200.0, -float("inf")), mostly(5, None),
    st.sampled_from([1, 2, 3, 4] * 4 + [None]), st.sampled_from([7, 8] * 8 + [None]),
)  # fmt: skip


@unhurried
@given(st.lists(mixed, min_size=1, max_size=20))
def test_drop_invalid_leaves_whole_trajectories_out_and_the_others_as_they_are(rows: list[tuple[Any, ...]]) -> None:
    names = ("lat", "lon", "timestamp", "trajectory_id", "user_id")
    kinds = (pa.float64(), pa.float64(), pa.int64(), pa.int64(), pa.int64())
    table = pa.table({
        n: pa.array(c, k, from_pandas=False) for n, c, k in zip(names, zip(*rows, strict=True), kinds, strict=True)
    })  # fmt: skip

    def usable(row: tuple[Any, ...]) -> bool:
        return row[0] == 1.0 and row[1] == 2.0 and row[2] is not None

    owned = [(number, row) for number, row in enumerate(rows) if row[3] is not None and row[4] is not None]
    whole = plain_trajectories([row for _, row in owned])
    good = [t for t in whole if all(usable(owned[number][1]) for *_, number in t[2])]
    wanted = [(i, u, [(*point[:3], owned[point[3]][0]) for point in points]) for i, u, points in good]
    bad = len(owned) < len(rows) or not all(usable(row) for row in rows)
    if bad:
        with pytest.raises(InputError, match=r"ha(s|ve) no usable value in column"):
            read_trajectories(table)
    notes = ReadNotes()
    if not wanted:
        with pytest.raises(InputError):
            read_trajectories(table, drop_invalid=True)
        return
    model = read_trajectories(table, drop_invalid=True, keep_rows=True, notes=notes)
    assert as_list(model) == wanted
    assert sum(notes.dropped.values()) == len(rows) - model.points
    assert model.people == len({u for _, u, _ in wanted})


def test_tiles_come_with_the_points(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("zone_id,lon,lat\na,1,1\nb,2,2\n")
    table = pa.table({"lat": [1.0], "lon": [1.0], "time": [5], "trajectory_id": [1]})
    model = read_trajectories(table, zones=tmp_path / "zones.csv")
    assert model.zones is not None
    assert model.zones.ids.tolist() == ["a", "b"]


@pytest.mark.realdata
@pytest.mark.parametrize(
    "file", ["cabs_dataset_20080608_0700_0715.csv", "cabs_dataset_0700_0715.parquet", "mock_dataset.csv"]
)
def test_cabs_agree_with_the_twin(realdata: Path, file: str) -> None:
    path = realdata / "sf_cabs" / file
    model = read_trajectories(path, keep_rows=True)
    if path.suffix == ".csv":
        with path.open(newline="") as opened:
            raw = [
                (float(r["lat"]), float(r["lon"]), 0, r["trajectory_id"], r["user_id"]) for r in csv.DictReader(opened)
            ]
    else:
        raw = [(r["lat"], r["lon"], 0, r["trajectory_id"], r["user_id"]) for r in pq.read_table(path).to_pylist()]
    assert model.row is not None
    t = np.empty(len(raw), np.int64)
    t[model.row] = model.t
    rows = [(*row[:2], when, *row[3:]) for row, when in zip(raw, t.tolist(), strict=True)]
    assert as_list(model) == plain_trajectories(rows)
