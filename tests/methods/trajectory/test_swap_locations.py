from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_swaps import Point, in_grid, rare_steps, swap_locations
from plain_swaps import remove_rare_steps as plain_without
from run_files import read_run_file

from crowdveil.engine.progress import no_progress
from crowdveil.errors import ParameterError
from crowdveil.io.trajectories import read_trajectories
from crowdveil.methods.trajectory import swap_locations as method
from crowdveil.methods.trajectory.swap_locations import SwapLocationsParams, run
from crowdveil.model.canonical import canonical, points_in_order
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline
from crowdveil.solve.trajectory.swapping import owners, remove_rare_steps
from crowdveil.testing import trajectories

Row = tuple[float, float, int]
WIDE = {"min_radius_m": 300, "max_radius_m": 2000, "min_time_s": 60, "max_time_s": 300}


def _release(data: Trajectories, seed: int = 5, **parameters: Any) -> TrajectoryRelease:
    return run(data, SwapLocationsParams(**parameters), np.random.default_rng(seed), no_progress)


def _rows(data: Trajectories | TrajectoryRelease) -> list[list[Row]]:
    rows = list(zip(data.lon.tolist(), data.lat.tolist(), data.t.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def _places(data: Trajectories, owner: np.ndarray, meters: float, seconds: int) -> list[Point]:
    x, y = data.xy
    trajectory = data.trajectory.tolist()
    points = [
        Point(i, trajectory[i], int(owner[trajectory[i]]), float(x[i]), float(y[i]), int(data.t[i]))
        for i in range(data.points)
    ]
    return in_grid(points, meters, seconds)


@given(
    data=trajectories(),
    k=st.integers(2, 4),
    meters=st.sampled_from([(200.0, 200.0), (300.0, 1500.0), (500.0, 4000.0)]),
    seconds=st.sampled_from([(60, 60), (30, 200), (100, 500)]),
    alone=st.booleans(),
)
def test_is_the_plain_twin(
    data: Trajectories, k: int, meters: tuple[float, float], seconds: tuple[int, int], alone: bool
) -> None:
    params = SwapLocationsParams(
        k=k, min_radius_m=meters[0], max_radius_m=meters[1], min_time_s=seconds[0], max_time_s=seconds[1]
    )
    owner, rng = owners(data, alone), np.random.default_rng(5)
    places = _places(data, owner, meters[1], seconds[1])
    for p, draw in zip(places, rng.random(data.points), strict=True):
        p.draw = float(draw)
    wanted = swap_locations(places, rng.permutation(data.points).tolist(), k, meters, seconds)
    given_to = method._swapped(data, params, owner, np.random.default_rng(5), no_progress)
    assert given_to.tolist() == [wanted.get(i, -1) for i in range(data.points)]
    for point, to in wanted.items():
        assert owner[data.trajectory[point]] != owner[to]


@given(data=trajectories(), least=st.integers(1, 4), size=st.sampled_from([400.0, 1000.0, 3000.0]))
def test_steps_are_those_of_the_plain_twin(data: Trajectories, least: int, size: float) -> None:
    data = points_in_order(data)  # the order of points of one time is that of their positions
    x, y = data.xy
    tiles = list(zip(np.floor(x / size).tolist(), np.floor(y / size).tolist(), strict=True))
    bounds = list(zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True))
    walks = {i: tiles[a:b] for i, (a, b) in enumerate(bounds)}
    left = remove_rare_steps(data, data.trajectory, data.person, least, size)
    stay = plain_without(walks, data.person.tolist(), least)
    wanted = np.full(data.points, -1)
    for i, places in stay.items():
        wanted[bounds[i][0] + np.array(places, np.int64)] = i
    assert left.tolist() == wanted.tolist()
    assert not rare_steps({i: [walks[i][p] for p in places] for i, places in stay.items()}, data.person, least)


@given(data=trajectories(), k=st.integers(2, 3))
def test_every_trajectory_gets_as_many_points_as_it_gives(data: Trajectories, k: int) -> None:
    release = _release(data, k=k, min_pair_people=1, **WIDE)
    gave = dict.fromkeys(release.source.tolist(), 0)
    whose = {row: i for i, path in enumerate(_rows(data)) for row in path}
    rows = [row for path in _rows(data) for row in path]
    if len(set(rows)) < len(rows):
        return  # equal points do not show who gave which
    for path in _rows(release):
        for row in path:
            gave[whose[row]] += 1
    assert gave == dict(zip(release.source.tolist(), np.diff(release.offsets).tolist(), strict=True))


def _crowd(n: int, spread_m: float) -> Trajectories:
    """One point of each of n people, at one time, along the equator."""
    lon = np.arange(n) * spread_m / 111_319.49
    people = np.array([f"p{i}" for i in range(n)], dtype=object)
    return Trajectories(lon, np.zeros(n), np.zeros(n), np.arange(n + 1), np.arange(n), np.arange(n), people)


def test_k_people_are_swapped_and_fewer_are_left_out() -> None:
    crowd = _crowd(5, 10.0)
    release = _release(crowd, k=5)
    assert len(release) == 5
    assert all(crowd.lon[s] != path[0][0] for s, path in zip(release.source, _rows(release), strict=True))
    assert len(_release(crowd, k=6)) == 0


def test_all_circles_are_equally_likely() -> None:
    """Of four people there are six circles; a permutation of two pairs is none."""
    seen: dict[tuple[float, ...], int] = {}
    crowd = _crowd(4, 10.0)
    for seed in range(600):
        release = _release(crowd, seed=seed, k=4)
        order = np.argsort(release.source)
        key = tuple(release.lon[order].tolist())
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 6 and min(seen.values()) > 60


def test_the_radius_grows_until_there_are_k_people() -> None:
    """Points 150 m apart: 100 m hold one person, 300 m five, 500 m seven; with k = 3 the first seed's five change hands."""
    crowd = _crowd(40, 150.0)
    release = _release(crowd, k=3, min_pair_people=1)
    moved = np.abs(release.lon - crowd.lon[release.source]) * 111_319.49
    assert moved.min() > 0 and moved.max() <= 1000.5


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"min_radius_m": 600}, "parameters: Expected min_radius_m to be at most max_radius_m."),
        ({"min_time_s": 130}, "parameters: Expected min_time_s to be at most max_time_s."),
    ],
)
def test_radii_in_the_wrong_order(bad: dict[str, int], sentence: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        SwapLocationsParams.checked(bad)
    assert str(refusal.value) == sentence


def test_progress_in_stretches_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data, reported = _crowd(40, 60.0), []
    whole = _release(data)
    monkeypatch.setattr(method, "BATCH", 7)
    pieces = run(
        data, SwapLocationsParams(), np.random.default_rng(5), lambda done, total: reported.append((done, total))
    )
    assert _rows(pieces) == _rows(whole) and reported[-1] == (40, 40) and len(reported) == 6


@pytest.mark.parametrize("name", ["SwapAllLocations", "SwapLocations"])
def test_a_run_file_of_mdl_anonymizer(name: str, tmp_path: Path) -> None:
    params = {"k": 5, "max_r_s": 600, "max_r_t": 200, "min_r_s": 150, "min_r_t": 10, "tile_size": 900, "seed": 42}
    content = {"method": name, "input_file": "a.csv", "output_folder": "o", "params": params}
    (tmp_path / "run.json").write_text(json.dumps(content))
    request = read_run_file(tmp_path / "run.json")
    assert (request.method, request.options["seed"]) == ("swap-locations", 42)
    assert SwapLocationsParams.checked(request.parameters) == SwapLocationsParams(
        k=5, min_radius_m=150, max_radius_m=600, min_time_s=10, max_time_s=200, tile_size_m=900
    )


@pytest.mark.realdata
def test_cabs(realdata: Path, tmp_path: Path) -> None:
    source = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    result = pipeline.run(
        pipeline.Request(
            "swap-locations", source, tmp_path / "out", {"k": 5}, options={"attack": False, "report": False}
        )
    )
    release, data = result.release, canonical(read_trajectories(source))  # the order that `release.source` counts in
    assert 0.8 < len(release) / len(data) < 0.98
    measured = result.manifest["method"]["facts"]["measured"]
    assert measured["found_percent"] < 5
    # Every published point is near one of the trajectory that it stands for: within twice the radii.
    x, y = data.projection.to_plane(release.lon, release.lat)
    for i, s in enumerate(release.source.tolist()):
        own = slice(data.offsets[s], data.offsets[s + 1])
        here = slice(release.offsets[i], release.offsets[i + 1])
        far = np.hypot(x[here, None] - data.xy[0][own], y[here, None] - data.xy[1][own])
        late = np.abs(release.t[here, None] - data.t[own])
        assert ((far <= 1000) & (late <= 240)).any(axis=1).all()
