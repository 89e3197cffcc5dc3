"""The made-up city: its sizes are exact, its shape is a city's, and gravity draws what it says."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil.errors import ParameterError
from crowdveil.synth import city as city_module
from crowdveil.synth.city import City, Gravity, square_zones


@pytest.fixture(scope="module")
def city() -> City:
    return City.make(3, tiles=900, people=20_000)


@pytest.mark.parametrize(("tiles", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (900, 30, 30), (901, 31, 30)])
def test_sizes_are_exact(tiles: int, columns: int, rows: int) -> None:
    made = City.make(1, tiles=tiles, people=50)
    assert (len(made.zones), made.people) == (tiles, 50)
    assert (made.grid.columns, made.grid.rows) == (columns, rows)
    assert len(made.work) == 50


def test_every_centroid_lies_in_the_middle_of_its_square(city: City) -> None:
    grid = city.grid
    x, y = city.zones.xy
    np.testing.assert_allclose((x - grid.x0) / grid.size_m - 0.5, city.zones.column, atol=1e-6)
    np.testing.assert_allclose((y - grid.y0) / grid.size_m - 0.5, city.zones.row, atol=1e-6)
    assert city.zones.ids[31] == "r1c1"
    assert abs(city.zones.lon.mean() - 2.35) < 1e-3 and abs(city.zones.lat.mean() - 48.85) < 1e-3


def test_same_seed_same_city_and_other_seed_another(city: City) -> None:
    again, other = City.make(3, tiles=900, people=20_000), City.make(4, tiles=900, people=20_000)
    for name in ("homes", "jobs", "home", "work"):
        assert getattr(city, name).tobytes() == getattr(again, name).tobytes()
        assert getattr(city, name).tobytes() != getattr(other, name).tobytes()


def test_homes_and_jobs_concentrate_in_the_center_jobs_more_so(city: City) -> None:
    radius = np.hypot(*city.zones.xy)
    center = radius < city.reach_m / 3
    at_edge = radius > city.reach_m
    assert city.homes.sum() == pytest.approx(1) and city.jobs.sum() == pytest.approx(1)
    assert city.homes[center].mean() > 5 * city.homes[at_edge].mean()
    assert city.jobs[center].sum() > city.homes[center].sum() + 0.1


def test_tiles_are_heavy_tailed(city: City) -> None:
    top = np.sort(city.jobs)[::-1][:45].sum()
    assert 0.3 < top < 0.9
    assert np.median(city.homes) < 0.6 * city.homes.mean()
    # Also among tiles that lie equally far out: there is more to it than the fall from the center.
    radius = np.hypot(*city.zones.xy) / city.reach_m
    ring = city.jobs[(radius > 0.3) & (radius < 0.5)]
    assert ring.max() > 6 * np.median(ring)


def test_people_live_where_homes_are_and_work_near_by(city: City) -> None:
    lived = np.bincount(city.home, minlength=900) / city.people
    assert np.corrcoef(lived, city.homes)[0, 1] > 0.95
    x, y = city.zones.xy
    commute = np.hypot(x[city.home] - x[city.work], y[city.home] - y[city.work]).mean()
    stranger = city.work[np.random.default_rng(0).permutation(city.people)]
    anyone = np.hypot(x[city.home] - x[stranger], y[city.home] - y[stranger]).mean()
    assert commute < 0.85 * anyone
    tiles = np.random.default_rng(0).integers(0, 900, (2, 10_000))
    assert commute < 0.6 * np.hypot(x[tiles[0]] - x[tiles[1]], y[tiles[0]] - y[tiles[1]]).mean()


def test_gravity_draws_attraction_times_decay() -> None:
    zones, rng = square_zones(36, 500.0, 2.35, 48.85), np.random.default_rng(5)
    attraction = rng.lognormal(0, 1, 36)
    gravity = Gravity.make(zones, attraction, 900.0)
    drawn = gravity.draw(rng, np.full(200_000, 8, np.int32))
    x, y = zones.xy
    weight = attraction * np.exp(-np.maximum(np.hypot(x - x[8], y - y[8]), 250.0) / 900.0)
    share = weight / weight.sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=36) / 200_000, share, atol=0.004)


def test_large_cities_draw_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(city_module, "MAX_BLOCKS", 10)
    zones, rng = square_zones(35, 500.0, 2.35, 48.85), np.random.default_rng(6)
    attraction = rng.lognormal(0, 1, 35)
    gravity = Gravity.make(zones, attraction, 900.0)
    assert gravity.tables.keep.shape == (9, 9) and gravity.tables.block.max() == 8
    assert gravity.tables.block[[0, 1, 6, 7]].tolist() == [0, 0, 0, 0] and gravity.tables.block[2] == 1
    drawn = np.bincount(gravity.draw(rng, np.full(200_000, 14, np.int32)), minlength=35)
    assert (drawn > 0).all()
    for block in range(9):
        inside = gravity.tables.block == block
        expected = attraction[inside] / attraction[inside].sum()
        np.testing.assert_allclose(drawn[inside] / drawn[inside].sum(), expected, atol=0.05)
    by_block = np.bincount(gravity.tables.block, drawn)
    assert by_block[gravity.tables.block[14]] > by_block[8]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"tiles": 0}, "tiles"), ({"people": 0}, "people"), ({"tile_m": 0}, "tile_m"), ({"errand_m": -1}, "errand_m")],
)
def test_wrong_sizes_are_refused_by_name(wrong: dict[str, int], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        City.make(1, **wrong)  # type: ignore[arg-type]


def test_a_seed_below_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="seed"):
        City.make(-1, tiles=4, people=4)
