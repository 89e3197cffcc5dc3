"""Filters: what stays, in which order, and how many each removed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from conftest import Ran
from crowdveil.errors import ParameterError
from crowdveil.model.trajectories import Trajectories
from crowdveil.run.filters import Filter, filter_trajectories, leg_speeds_kmh

unhurried = settings(deadline=None, max_examples=tries(100))
GEOD = Geod(ellps="WGS84")


def made(*trajectories: list[tuple[float, float, int]]) -> Trajectories:
    """Trajectories of (lon, lat, t)."""
    points = np.array([p for t in trajectories for p in t], np.float64).reshape(-1, 3)
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in trajectories])]).astype(np.int64)
    n = np.arange(len(trajectories))
    return Trajectories(points[:, 0], points[:, 1], points[:, 2].astype(np.int64), offsets, n, n, n)


def kept(data: Trajectories, *filters: tuple[str, str], tz: str = "UTC") -> tuple[list[int], list[int]]:
    after, removed = filter_trajectories(data, [Filter(n, tuple(v.split(","))) for n, v in filters], tz)
    return after.ids.tolist(), [n for _, n in removed]


spots = st.tuples(st.floats(-180, 180), st.floats(-88, 88))


@unhurried
@given(spots, spots, st.integers(1, 100_000))
def test_speeds_are_near_those_on_the_ellipsoid(a: tuple[float, float], b: tuple[float, float], seconds: int) -> None:
    meters = GEOD.inv(*a, *b)[2]
    speed = leg_speeds_kmh(made([(*a, 0), (*b, seconds)]))
    assert speed.tolist()[1] == 0
    assert speed[0] == pytest.approx(meters / seconds * 3.6, rel=0.006, abs=1e-6)


def test_speeds_do_not_cross_from_one_trajectory_to_the_next() -> None:
    data = made([(0, 0, 0), (0, 1, 3600)], [(50, 50, 3601)], [(0, 0, 3600), (0, 0, 3600), (0, 1, 3600)])
    speed = leg_speeds_kmh(data)
    assert speed[0] == pytest.approx(111.2, rel=0.006)
    assert speed.tolist()[1:] == [0, 0, 0, np.inf, 0]
    assert len(leg_speeds_kmh(made())) == 0


def test_a_leg_that_takes_no_time_is_infinitely_fast_unless_it_goes_nowhere() -> None:
    data = made([(0, 0, 5), (0, 0, 5)], [(0, 0, 5), (0, 1e-7, 5)])
    assert kept(data, ("max_speed", "1000000")) == ([0], [1])


def test_each_filter_keeps_what_meets_it() -> None:
    data = made([(0, 0, 0)], [(1, 1, 10), (1, 1, 20)], [(2, 2, 30), (2, 3, 31), (5, 5, 32)])
    assert kept(data, ("min_locations", "2")) == ([1, 2], [1])
    assert kept(data, ("min_locations", "1")) == ([0, 1, 2], [0])
    assert kept(data, ("max_speed", "1")) == ([0, 1], [1])
    assert kept(data, ("bbox", "0,0,2,3")) == ([0, 1], [1])
    assert kept(data, ("bbox", "-1,-1,5,5")) == ([0, 1, 2], [0])
    # from the first time, up to and without the second
    assert kept(data, ("time_window", "1970-01-01T00:00:10Z,1970-01-01T00:00:32Z")) == ([1], [2])
    assert kept(data, ("time_window", "1970-01-01 01:00:10,1970-01-01 01:00:33"), tz="Europe/Paris") == ([1, 2], [1])


def test_filters_work_in_the_order_given_and_count_what_each_removed() -> None:
    data = made([(0, 0, 0)], [(9, 9, 1)], [(0, 0, 0), (9, 9, 1)], [(1, 1, 1), (1, 1, 2)])
    assert kept(data, ("min_locations", "2"), ("bbox", "0,0,5,5"), ("max_speed", "5")) == ([3], [2, 1, 0])
    assert kept(data, ("max_speed", "5"), ("bbox", "0,0,5,5"), ("min_locations", "2")) == ([3], [1, 1, 1])
    assert kept(data, ("bbox", "50,50,51,51"), ("max_speed", "5"), ("min_locations", "2")) == ([], [4, 0, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [("min_locations", "0"), ("min_locations", "1.5"), ("min_locations", "x"), ("min_locations", "inf"), ("min_locations", "1,2"),
     ("max_speed", "0"), ("max_speed", "-4"), ("max_speed", "nan"), ("max_speed", ""), ("bbox", "1,2,3"), ("bbox", "3,0,1,5"),
     ("bbox", "0,5,1,0"), ("bbox", "0,0,200,1"), ("bbox", "0,0,nan,1"), ("time_window", "2020-01-01"),
     ("time_window", "2020-01-02,2020-01-01"), ("time_window", "2020-01-01,2020-01-01"), ("time_window", "x,y"),
     ("nothing", "1")],
)  # fmt: skip
def test_values_that_mean_nothing_are_refused(name: str, value: str) -> None:
    with pytest.raises(ParameterError, match=name):
        kept(made([(0, 0, 0)]), (name, value))


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


def test_the_command_keeps_rows_and_columns_as_they_are(
    command: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "remark,lat,lon,timestamp,trajectory_id,user_id\n"
        '"a, b",0.10,0,2020-01-01 00:00:09,x,1\nNA,9,9,2020-01-01,y,2\n'
        ",0.1,0,2020-01-01 00:00:01,x,1\nNone,0,0.0,2020/01/01,z,3\n"
    )
    Path("points.csv").write_text(text)
    ran = command("filter", "points.csv", "--bbox", "0,0,5,5", "--min-locations", "2", "-o", "out.csv")
    assert ran.code == 0, ran.err
    wanted = rows_of(text)
    assert rows_of(Path("out.csv").read_text()) == [wanted[0], wanted[1], wanted[3]]
    assert "bbox 0,0,5,5: removed 1 trajectory" in ran.out
    assert "min_locations 2: removed 1 trajectory" in ran.out
    assert ran.out.index("bbox") < ran.out.index("min_locations")
    assert "1 of 3 trajectories, 2 of 4 points" in ran.out
    again = command("filter", "points.csv", "--min-locations", "2", "--bbox", "0,0,5,5", "-o", "out.csv", "--overwrite")
    assert "min_locations 2: removed 2 trajectories" in again.out
    assert "bbox 0,0,5,5: removed 0 trajectories" in again.out


def test_points_of_one_time_keep_their_rows(
    command: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has them in order of position; the file keeps them as they stood, equal rows too."""
    monkeypatch.chdir(tmp_path)
    places = ["3,1", "2,2", "2,1", "3,1", "1,9"]
    text = "lat,lon,t,trajectory_id,remark\n" + "".join(f"{p},1600000000,x,{i}\n" for i, p in enumerate(places))
    Path("points.csv").write_text(text + "1,1,1600000000,y,9\n")
    ran = command("filter", "points.csv", "--min-locations", "2", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert rows_of(Path("out.csv").read_text()) == rows_of(text)


def test_a_run_file_of_mdl_anonymizer_does_the_same(
    command: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text(
        "lat,lon,timestamp,trajectory_id\n0,0,2020/01/01 00:00:00,1\n0,0,2020/01/01 00:00:01,2\n1,1,2020/01/01 00:00:02,2\n"
    )
    run = {"input_filename": "points.csv", "methods": [{"min_locations": 2}, {"max_speed": 300}]}
    Path("run.json").write_text(json.dumps(run))
    ran = command("filter", "-f", "run.json")
    assert ran.code == 0, ran.err
    assert rows_of(Path("filtered_points.csv").read_text()) == [["lat", "lon", "timestamp", "trajectory_id"]]
    assert "min_locations 2: removed 1 trajectory" in ran.out
    assert "max_speed 300: removed 1 trajectory" in ran.out
