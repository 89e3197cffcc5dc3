"""Where people were who are not published changes no byte of a release, as long as they stay in a cell of the public grid."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import crowdveil
from crowdveil.engine.progress import no_progress
from crowdveil.methods.trajectory import simple_generalization
from crowdveil.methods.trajectory.protected_generalization import ProtectedGeneralizationParams, run
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.globe import Box
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.tessellation import grid_cells, public_box
from crowdveil.model.trajectories import Extent, Trajectories
from crowdveil.registry import find_method
from crowdveil.solve.trajectory.visits import tiles_of
from crowdveil.testing import trajectories

MIDNIGHT = 1_700_006_400
"""2023-11-15 00:00 UTC."""
FAR = (2.73, 48.94)
"""The place of people who are far from all others, in the middle of a cell of a tenth of a degree."""
SHIFTS = [(0.0, 0.0, 0), (0.063, 0.057, 37), (-0.029, -0.038, -4_000), (0.0004, 0.02, 11)]
"""Degrees and seconds: inside one cell, and one day."""
ON_TILES: dict[str, dict[str, Any]] = {
    "means": {},
    "centers": {"strategy": "centroid", "time_interval_s": 0},
    "large tiles": {"tile_size_m": 3_000.0},
    "own times": {"time_strategy": "keep"},
}
RELEASES: dict[str, tuple[str, dict[str, Any]]] = {
    "protected-generalization": ("protected-generalization", {}),
    "w4m": ("w4m", {}),
    "swap-locations": ("swap-locations", {"max_radius_m": 1_000.0, "max_time_s": 900}),
    "swap-locations-2012": ("swap-locations-2012", {}),
    "swapmob": ("swapmob", {"max_distance_m": 500.0, "max_time_s": 300}),
    "microaggregation": ("microaggregation", {"suppress": "7%"}),
    "parts": ("time-partitioned-microaggregation", {"suppress": "7%"}),
    "segments": ("segment-microaggregation", {"suppress": "7%", "segment_s": 86_400}),
    "couplings": ("frechet-microaggregation", {"suppress": "7%", "pivots": 1}),
    "least cost": ("log-cost-generalization", {"suppress": "7%"}),
}


def _points(shift: tuple[float, float, int], far: int = 1) -> pa.Table:
    """Rides between four places, and people far away, of whom the last is moved by degrees and seconds and sets out first."""
    rng = np.random.default_rng(8)
    places = [(2.312, 48.813), (2.309, 48.836), (2.338, 48.829), (2.341, 48.815)]
    rows: dict[str, list[Any]] = {name: [] for name in ("lon", "lat", "timestamp", "trajectory_id", "user_id")}

    def ride(user: int, begin: tuple[float, float], end: tuple[float, float], start: int) -> None:
        number = len(rows["lon"]) // 6
        for i in range(6):
            for name, axis in (("lon", 0), ("lat", 1)):
                rows[name].append(begin[axis] + i / 5 * (end[axis] - begin[axis]) + rng.uniform(-1e-4, 1e-4))
            rows["timestamp"].append(start + 60 * i)
            rows["trajectory_id"].append(number)
            rows["user_id"].append(user)

    for i in range(48):
        ride(i % 24, places[i % 4], places[(i + 1) % 4], MIDNIGHT + 30_000 + 20 * (i // 4))
    for i in range(far):
        apart = 0.03 * (far - 1 - i)
        lon, lat, t = (
            now + more for now, more in zip((*FAR, 25_000), shift if i == far - 1 else (apart, 0, 0), strict=True)
        )
        ride(24 + i, (lon, lat), (lon - 0.02, lat - 0.03 - apart), MIDNIGHT + int(t))
    return pa.table(rows)


def _content(folder: Path) -> dict[str, str]:
    """The text of each file, without the moment of the run."""
    # The report names the hash of the manifest, which says when it was made.
    files = {file.name: file.read_text() for file in sorted(folder.iterdir()) if file.name != "report.html"}
    return {name: re.sub(r'"created": "[^"]*"', "", text) for name, text in files.items()}


@pytest.mark.parametrize("name", ON_TILES)
def test_a_removed_person_moves_and_no_byte_changes(name: str, tmp_path: Path) -> None:
    made = []
    for i, shift in enumerate(SHIFTS):
        folder = tmp_path / str(i)
        crowdveil.anonymize(
            _points(shift), folder, method="protected-generalization", k=3, **ON_TILES[name], seed=3, format="csv"
        )
        made.append(_content(folder))
    assert len(made[0]["trajectories.csv"].splitlines()) > 50 and "[2.7" not in made[0]["areas.geojson"]
    assert all(content == made[0] for content in made[1:])


def _rows(release: TrajectoryRelease) -> list[Any]:
    columns = [release.lon, release.lat, release.t, release.offsets, release.source]
    return [None if column is None else column.tolist() for column in columns]


@pytest.mark.parametrize("name", RELEASES)
def test_a_removed_person_moves_and_no_point_changes(name: str) -> None:
    """Trajectories keep their numbers here, so that random draws are the same."""
    method_name, options = RELEASES[name]
    method, far = find_method(method_name), 3 if "suppress" in options else 1
    k = {} if method_name == "swapmob" else {"k": 3}
    params = method.params.checked(k | options)
    made = []
    for shift in SHIFTS:
        points = _points(shift, far).to_pydict()
        t = np.array(points["timestamp"])
        person = np.array(points["user_id"])[::6]
        data = Trajectories(
            np.array(points["lon"]), np.array(points["lat"]), t, np.arange(0, len(t) + 1, 6), np.arange(len(person)), person,
            np.unique(person),
        )  # fmt: skip
        release = method.run(data, params, np.random.default_rng(4), no_progress)
        assert release.source is not None and len(release.source) > 20 and not np.any(data.person[release.source] >= 24)
        made.append(_rows(release))
    assert all(rows == made[0] for rows in made[1:])


def test_a_suppressed_person_moves_and_no_sector_changes(tmp_path: Path) -> None:
    made = []
    for i, shift in enumerate(SHIFTS):
        file = tmp_path / f"{i}.geojson"
        found = crowdveil.quadtree_heatmap(_points(shift), file, min_k=3, suppress=0.2)
        assert found.cut.suppressed > 0
        made.append(file.read_bytes())
    assert len(set(made)) == 1


@given(st.floats(-179, 179), st.floats(-88, 88), st.floats(0, 0.999), st.floats(0, 0.999), st.integers(0, 10**9))
def test_an_extent_shows_cells_and_days(lon: float, lat: float, across: float, up: float, t: int) -> None:
    """A point anywhere inside the cell of another one has the same extent, grid and plane."""
    cell = public_box(Box(lon, lat, lon, lat), 1_000)
    inside = cell.west + across * (cell.east - cell.west), cell.south + up * (cell.north - cell.south)
    assume(public_box(Box(*inside, *inside), 1_000) == cell)
    day = t // 86_400 * 86_400
    found = [
        Extent.of_points(np.array([x, lon]), np.array([y, lat]), np.array([moment, t]))
        for x, y, moment in ((lon, lat, t), (*inside, day + 86_399))
    ]
    assert found[0] == found[1] and found[0].start == day


def _inside_their_tiles(data: Trajectories, points: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    zones, _ = tiles_of(data, 500.0)
    grid = zones.grid
    assert grid is not None
    column, row = grid_cells(grid, data.lon[points], data.lat[points])
    x, y = (
        start + (number + rng.uniform(0.05, 0.95, len(points))) * grid.size_m
        for start, number in ((grid.x0, column), (grid.y0, row))
    )
    lon, lat = data.lon.copy(), data.lat.copy()
    lon[points], lat[points] = grid.projection.to_globe(x, y)
    return lon, lat


@given(data=trajectories(max_trajectories=12), k=st.integers(2, 3), seed=st.integers(0, 2**32))
def test_removed_trajectories_move_inside_their_tiles_and_nothing_changes(
    data: Trajectories, k: int, seed: int
) -> None:
    data = replace(data, lon=data.lon + 0.03, lat=data.lat + 0.03)  # away from the lines of the public grid
    params = ProtectedGeneralizationParams(k=k, tile_size_m=500.0, time_interval_s=300)

    def release(data: Trajectories) -> TrajectoryRelease:
        return run(data, params, np.random.default_rng(0), no_progress)

    before = release(data)
    removed = np.setdiff1d(np.arange(len(data)), before.source if before.source is not None else [])
    lon, lat = _inside_their_tiles(data, np.flatnonzero(np.isin(data.trajectory, removed)), np.random.default_rng(seed))
    after = release(replace(data, lon=lon, lat=lat))
    for name in ("lon", "lat", "t", "offsets", "source"):
        assert np.array_equal(getattr(before, name), getattr(after, name))
    assert before.areas is not None and after.areas is not None
    assert [tiles.tolist() for tiles in before.areas.centers(6)] == [tiles.tolist() for tiles in after.areas.centers(6)]


@given(data=trajectories(), seed=st.integers(0, 2**32))
def test_all_points_move_inside_their_tiles_and_centers_stay(data: Trajectories, seed: int) -> None:
    data = replace(data, lon=data.lon + 0.03, lat=data.lat + 0.03)
    lon, lat = _inside_their_tiles(data, np.arange(data.points), np.random.default_rng(seed))
    made = [
        simple_generalization.run(
            one, simple_generalization.SimpleGeneralizationParams(), np.random.default_rng(0), no_progress
        )
        for one in (data, replace(data, lon=lon, lat=lat))
    ]
    assert _rows(made[0]) == _rows(made[1])
