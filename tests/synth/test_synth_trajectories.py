"""Made-up drives: on the streets, at the speeds of a city, in order of time, exact and repeatable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic import make_trajectories

from crowdveil.errors import ParameterError
from crowdveil.model.trajectories import Trajectories
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import CHUNK, street_m, trajectory_chunks, write_trajectories
from crowdveil.synth.trips import trip_chunks

PERIOD = {"days": 7, "start": "2026-03-02"}


@pytest.fixture(scope="module")
def city() -> City:
    return City.make(3, tiles=900, people=5000)


@pytest.fixture(scope="module")
def drives(city: City) -> Trajectories:
    return make_trajectories(city, 3000, seed=8)


@pytest.fixture(scope="module")
def plane(city: City, drives: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Meters from the corner of the grid."""
    x, y = city.zones.projection.to_plane(drives.lon, drives.lat)
    return x - city.grid.x0, y - city.grid.y0


def inside_legs(drives: Trajectories) -> np.ndarray:
    """Which rows have their successor in the same drive."""
    return np.diff(drives.trajectory) == 0


def off_street(position: np.ndarray, street: float) -> np.ndarray:
    return np.abs((position / street) % 1 - 0.5) * street


def test_as_many_as_asked_with_two_points_at_least(drives: Trajectories) -> None:
    assert len(drives) == 3000
    assert np.diff(drives.offsets).min() >= 2
    assert drives.k_unit == "people" and 1000 < drives.people < 3000


def test_times_are_whole_seconds_that_rise_by_about_half_a_minute_to_a_minute(drives: Trajectories) -> None:
    gap = np.diff(drives.t)[inside_legs(drives)]
    assert gap.min() >= 15 and gap.max() <= 100
    assert 35 < gap.mean() < 55
    assert np.mean((gap >= 25) & (gap <= 65)) > 0.9


def test_points_lie_on_streets_up_to_the_noise_of_a_receiver(
    city: City, drives: Trajectories, plane: tuple[np.ndarray, np.ndarray]
) -> None:
    assert street_m(city) == 125.0
    off = np.minimum(off_street(plane[0], 125.0), off_street(plane[1], 125.0))
    assert np.mean(off < 25) > 0.99
    assert 3 < off.mean() < 9
    assert np.mean(np.maximum(off_street(plane[0], 125.0), off_street(plane[1], 125.0)) > 25) > 0.3


def test_most_legs_are_parallel_to_an_axis(drives: Trajectories, plane: tuple[np.ndarray, np.ndarray]) -> None:
    here = inside_legs(drives)
    dx, dy = (np.abs(np.diff(c))[here] for c in plane)
    far = np.maximum(dx, dy) > 100
    assert far.mean() > 0.7
    assert np.mean(np.minimum(dx, dy)[far] < 45) > 0.7
    assert 0.35 < np.mean(dx[far] > dy[far]) < 0.65
    start = drives.offsets[:-1]
    dx, dy = (np.abs(c[start + 1] - c[start]) for c in plane)
    assert 0.4 < np.mean(dx > dy) < 0.6


def test_speeds_are_a_citys_and_lower_in_the_center(
    city: City, drives: Trajectories, plane: tuple[np.ndarray, np.ndarray]
) -> None:
    here = inside_legs(drives)
    dx, dy = (np.abs(np.diff(c))[here] for c in plane)
    kmh = (dx + dy) / np.diff(drives.t)[here] * 3.6
    radius = np.hypot(plane[0] - city.reach_m, plane[1] - city.reach_m)[:-1][here]
    center, outside = kmh[radius < 0.2 * city.reach_m], kmh[radius > 0.8 * city.reach_m]
    assert np.quantile(kmh, 0.99) < 55
    assert 14 < np.median(center) < 28
    assert np.median(outside) > 1.4 * np.median(center)


def test_trajectories_lead_from_the_origin_to_the_destination_of_a_trip(
    city: City, drives: Trajectories, plane: tuple[np.ndarray, np.ndarray]
) -> None:
    # The drives' trips come first from their generators, so the same seed gives them on their own.
    ((_, trips),) = trip_chunks(city, 3000, **PERIOD, seed=8, purpose=2, chunk=3000)  # type: ignore[arg-type]
    for rows, tiles in ((drives.offsets[:-1], trips.origin), (drives.offsets[1:] - 1, trips.destination)):
        column, row = (np.floor(c[rows] / city.grid.size_m).astype(int) for c in plane)
        assert (row * city.grid.columns + column == tiles).mean() > 0.999
    np.testing.assert_array_equal(drives.t[drives.offsets[:-1]], trips.departure)
    np.testing.assert_array_equal(drives.people_ids[drives.person], trips.person)


def test_no_trajectory_leaves_the_city(city: City, plane: tuple[np.ndarray, np.ndarray]) -> None:
    for position, tiles in zip(plane, (city.grid.columns, city.grid.rows), strict=True):
        assert position.min() > 0 and position.max() < tiles * city.grid.size_m


def test_a_file_has_the_columns_in_order_and_the_same_trajectories(
    city: City, drives: Trajectories, tmp_path: Path
) -> None:
    reported: list[tuple[int, int]] = []
    write_trajectories(city, tmp_path / "t", 3000, seed=8, progress=lambda done, of: reported.append((done, of)))
    table = pq.read_table(tmp_path / "t")
    assert table.column_names == ["lat", "lon", "timestamp", "trajectory_id", "user_id"]
    assert table.schema.field("timestamp").type == pa.timestamp("us")
    assert table.schema.field("trajectory_id").type == pa.int64()
    np.testing.assert_array_equal(table["lat"].to_numpy(), drives.lat)
    np.testing.assert_array_equal(table["lon"].to_numpy(), drives.lon)
    np.testing.assert_array_equal(table["trajectory_id"].to_numpy(), drives.trajectory)
    np.testing.assert_array_equal(table["user_id"].to_numpy(), drives.people_ids[drives.person][drives.trajectory])
    np.testing.assert_array_equal(table["timestamp"].to_numpy().astype("datetime64[s]").astype(int), drives.t)
    assert reported == [(3000, 3000)]


def test_same_seed_same_bytes(city: City, tmp_path: Path) -> None:
    for name, seed in (("a", 8), ("b", 8), ("c", 9)):
        write_trajectories(city, tmp_path / name, 300, seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_chunks_are_bounded_and_add_up(city: City) -> None:
    chunks = list(trajectory_chunks(city, 250, **PERIOD, seed=8, chunk=100))  # type: ignore[arg-type]
    assert [len(rows.person) for rows in chunks] == [100, 100, 50]
    assert all(rows.offsets[-1] == len(rows.lon) for rows in chunks)


def test_numbers_go_on_from_chunk_to_chunk(city: City, tmp_path: Path) -> None:
    write_trajectories(city, tmp_path / "t", CHUNK + 5, seed=8)
    file = pq.ParquetFile(tmp_path / "t")
    assert file.metadata.num_row_groups == 2
    numbers = file.read(["trajectory_id"])["trajectory_id"].to_numpy()
    np.testing.assert_array_equal(np.unique(numbers), np.arange(CHUNK + 5))


def test_no_trajectories_are_empty(city: City, tmp_path: Path) -> None:
    write_trajectories(city, tmp_path / "t", 0, seed=1)
    assert pq.read_table(tmp_path / "t").num_rows == 0
    assert len(make_trajectories(city, 0, seed=1)) == 0


def test_small_tiles_have_a_street_each() -> None:
    small = City.make(1, tiles=16, people=20, tile_m=50.0)
    assert street_m(small) == 50.0
    assert len(make_trajectories(small, 40, seed=1)) == 40


def test_a_negative_number_of_trajectories_is_refused(city: City, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="trajectories"):
        write_trajectories(city, tmp_path / "trajectories.parquet", -1, seed=1)
