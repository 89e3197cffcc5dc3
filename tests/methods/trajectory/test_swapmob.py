from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_swaps import Point, changes, in_grid, swapmob
from run_files import read_run_file

from crowdveil.engine.progress import no_progress
from crowdveil.errors import ParameterError
from crowdveil.io.trajectories import read_trajectories
from crowdveil.methods.trajectory import swapmob as method
from crowdveil.methods.trajectory.swapmob import SwapMobParams, run
from crowdveil.model.canonical import points_in_order
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline
from crowdveil.solve.trajectory.swapping import equal_points, owners, sure_owners
from crowdveil.testing import trajectories

Row = tuple[float, float, int]


def _release(data: Trajectories, seed: int = 5, **parameters: Any) -> TrajectoryRelease:
    return run(data, SwapMobParams(**parameters), np.random.default_rng(seed), no_progress)


def _rows(data: Trajectories | TrajectoryRelease) -> list[list[Row]]:
    rows = list(zip(data.lon.tolist(), data.lat.tolist(), data.t.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def _points(data: Trajectories, owner: np.ndarray) -> list[Point]:
    x, y = data.xy
    sure = sure_owners(owner[data.trajectory], equal_points(data)) >= 0
    trajectory = data.trajectory.tolist()
    return [
        Point(i, trajectory[i], int(owner[trajectory[i]]), float(x[i]), float(y[i]), int(data.t[i]), sure=bool(sure[i]))
        for i in range(data.points)
    ]


def _line(*walks: tuple[int, list[tuple[float, int]]]) -> Trajectories:
    """Walks along the equator: (person, [(meters from the middle, seconds), …])."""
    n = [len(points) for _, points in walks]
    flat = [point for _, points in walks for point in points]
    lon = np.array([x / 111_319.49 for x, _ in flat])
    return Trajectories(
        lon, np.zeros(len(flat)), np.array([t for _, t in flat]), np.cumsum([0, *n]), np.arange(len(walks)),
        np.array([p for p, _ in walks]), np.array([f"p{i}" for i in range(9)], dtype=object),
    )  # fmt: skip


@given(
    data=trajectories(),
    meters=st.sampled_from([150.0, 500.0, 3000.0]),
    seconds=st.sampled_from([20, 90, 600]),
    least=st.integers(1, 3),
    alone=st.booleans(),
)
def test_is_the_plain_twin(data: Trajectories, meters: float, seconds: int, least: int, alone: bool) -> None:
    data = points_in_order(data)
    params = {"max_distance_m": meters, "max_time_s": seconds, "min_n_swaps": least, "count_trajectories": alone}
    points = _points(data, owners(data, alone))
    for p, draw in zip(in_grid(points, meters, seconds), np.random.default_rng(5).random(data.points), strict=True):
        p.draw = float(draw)
    wanted = {
        name: [(float(data.lon[p.number]), float(data.lat[p.number]), p.t) for p in path]
        for name, path in swapmob(points, meters, seconds, least).items()
        if changes(path) >= least and len(path) > 1
    }
    release = _release(data, **params)
    assert dict(zip(release.source.tolist(), _rows(release), strict=True)) == wanted


def _crowded(seed: int, meters: int = 600) -> Trajectories:
    """Many people on few places and moments, so that points coincide and windows and cells are full."""
    rng = np.random.default_rng(seed)
    return _line(*(
        (i % 7, list(zip(rng.integers(0, meters // 50, 8) * 50.0, np.sort(rng.integers(0, 20, 8) * 15), strict=True)))
        for i in range(12)
    ))  # fmt: skip


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_is_the_plain_twin_in_dense_data(seed: int, least: int) -> None:
    data = points_in_order(_crowded(seed))
    points = _points(data, data.person)
    for p, draw in zip(in_grid(points, 60.0, 30), np.random.default_rng(5).random(data.points), strict=True):
        p.draw = float(draw)
    wanted = {
        name: [(float(data.lon[p.number]), float(data.lat[p.number]), p.t) for p in path]
        for name, path in swapmob(points, 60.0, 30, least).items()
        if changes(path) >= least and len(path) > 1
    }
    release = _release(data, max_distance_m=60, max_time_s=30, min_n_swaps=least)
    assert len(wanted) > 1
    assert dict(zip(release.source.tolist(), _rows(release), strict=True)) == wanted


@pytest.mark.parametrize("stretch", [1, 7])
def test_progress_in_stretches_changes_nothing(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    data = _line(*((i % 4, [(float(x), 30 * j) for j, x in enumerate(rng.integers(0, 900, 8))]) for i in range(6)))
    whole = _release(data)
    reported: list[tuple[int, int]] = []
    monkeypatch.setattr(method, "BATCH", stretch)
    pieces = run(data, SwapMobParams(), np.random.default_rng(5), lambda done, total: reported.append((done, total)))
    assert _rows(pieces) == _rows(whole)
    assert reported == sorted(reported) and reported[-1] == (data.points, data.points) and len(reported) > 1


def test_two_that_meet_exchange_their_tails() -> None:
    there, back = [(0.0, 0), (500.0, 60), (1000.0, 120)], [(1000.0, 5), (510.0, 65), (0.0, 125)]
    release = _release(_line((0, there), (1, back)), max_distance_m=50)
    meters = [[(round(x * 111_319.49), t) for x, _, t in row] for row in _rows(release)]
    assert sorted(meters) == [[(0, 0), (500, 60), (0, 125)], [(1000, 5), (510, 65), (1000, 120)]]


def test_a_crossing_at_the_border_of_windows_is_found() -> None:
    """At 29 and 31 seconds, in different windows of 30 seconds."""
    data = _line((0, [(0.0, 0), (500.0, 29), (900.0, 300)]), (1, [(900.0, 1), (500.0, 31), (0.0, 301)]))
    assert len(_release(data, max_distance_m=50)) == 2


def test_whole_trajectories_are_not_exchanged() -> None:
    """Both end where they meet: exchanging would only give them other names."""
    data = _line((0, [(0.0, 0), (500.0, 60)]), (1, [(900.0, 0), (500.0, 61)]))
    assert len(_release(data, max_distance_m=50)) == 0


def test_no_person_swaps_with_themselves_unless_trajectories_are_counted() -> None:
    data = _line((0, [(0.0, 0), (500.0, 60), (900.0, 120)]), (0, [(900.0, 0), (500.0, 61), (0.0, 121)]))
    assert len(_release(data, max_distance_m=50)) == 0
    assert len(_release(data, max_distance_m=50, count_trajectories=True)) == 2


def test_times_never_fall_although_the_partner_was_there_earlier() -> None:
    """One is there at 100, the other at 80 and, elsewhere, at 90: its point at 90 stays with what came before."""
    data = _line((0, [(0.0, 0), (500.0, 100), (900.0, 200)]), (1, [(900.0, 1), (500.0, 80), (400.0, 90), (0.0, 201)]))
    release = _release(data, max_distance_m=50)
    assert sorted([t for _, _, t in row] for row in _rows(release)) == [[0, 100, 201], [1, 80, 90, 200]]


@given(data=trajectories(), least=st.integers(1, 3))
def test_no_piece_is_lost_or_made_up(data: Trajectories, least: int) -> None:
    release = _release(data, max_distance_m=2000, max_time_s=300, min_n_swaps=least)
    rows, everything = [row for path in _rows(release) for row in path], [row for path in _rows(data) for row in path]
    for row in set(rows):
        assert rows.count(row) <= everything.count(row)
    assert len(set(release.source.tolist())) == len(release) <= len(data)


def test_a_run_file_of_mdl_anonymizer_is_in_kilometers(tmp_path: Path) -> None:
    params = {"spatial_thold": 0.1, "temporal_thold": 60, "min_n_swap": 2, "seed": 42}
    content = {"method": "SwapMob", "input_file": "a.csv", "output_folder": "o", "params": params}
    (tmp_path / "run.json").write_text(json.dumps(content))
    request = read_run_file(tmp_path / "run.json")
    assert (request.method, request.options["seed"]) == ("swapmob", 42)
    assert request.parameters == {"max_distance_m": 100, "max_time_s": 60, "min_n_swaps": 2}
    (tmp_path / "run.json").write_text(json.dumps(content | {"params": {"spatial_thold": "near"}}))
    with pytest.raises(ParameterError, match="max_distance_m: Expected a number"):
        SwapMobParams.checked(read_run_file(tmp_path / "run.json").parameters)


@pytest.mark.realdata
def test_cabs(realdata: Path, tmp_path: Path) -> None:
    source = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    result = pipeline.run(pipeline.Request("swapmob", source, tmp_path / "out"))
    release, data = result.release, read_trajectories(source)
    assert 0.7 < len(release) / len(data) < 0.9
    kept = set(map(tuple, _rows(release)))
    assert not kept & set(map(tuple, _rows(data)))
    assert all(p["with_original"] for p in result.manifest["guarantees"] if "well-formed" not in p["name"])
    measured = result.manifest["method"]["facts"]["measured"]
    assert measured["found_percent"] < 30 < 95 < measured["found_percent_in_the_original"]
    assert any("known points" in line for line in result.cost)
