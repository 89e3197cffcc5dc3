"""What several releases reveal together, from their files alone, against linear algebra and linear programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from plain_ledger import bounds

import crowdveil
from crowdveil.attacks.base import FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.attacks.od.release_overlaps import TimedRows
from crowdveil.attacks.od.releases import PublishedReleases, recover, run
from crowdveil.errors import InputError
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.model.zones import Zones

TILES = 4
ZONES = Zones.from_ids([f"tile {i}" for i in range(TILES)])


def small_release(rng: np.random.Generator, cells: Ints, k: int, hours: int) -> FlowRelease:
    """Anonymize a table (hour, origin, destination) of trips: boxes of a random partition, small ones suppressed."""
    tiles: list[tuple[int, ...]] = []
    rows: list[list[Any]] = []
    steps = np.arange(0, cells.shape[0], hours)
    suppressed, offsets = [], [0]
    for step in steps:
        held = cells[step : step + hours].sum(axis=0)
        rest = 0
        for o, d in _boxes(rng, (0, TILES), (0, TILES)):
            volume = int(held[o[0] : o[1], d[0] : d[1]].sum())
            if volume < k:
                rest += volume
                continue
            for side in (o, d):
                if tuple(range(*side)) not in tiles:
                    tiles.append(tuple(range(*side)))
            rows.append([tiles.index(tuple(range(*o))), tiles.index(tuple(range(*d))), volume])
        offsets.append(len(rows))
        suppressed.append(rest if (rest >= k or rest == 0) and rng.random() < 0.5 else NOT_GIVEN)
    areas = Areas(
        ZONES, np.array([f"area {i}" for i in range(len(tiles))], dtype=object), np.cumsum([0, *map(len, tiles)]),
        np.array([t for one in tiles for t in one], np.int32),
    )  # fmt: skip
    origin, destination, volume = (np.array([r[i] for r in rows], np.int64) for i in range(3))
    return FlowRelease(
        areas, steps * 3600, np.array(offsets), origin.astype(np.int32), destination.astype(np.int32), volume, volume,
        np.zeros(len(rows), np.uint8), np.array(suppressed), "trips", hours * 3600,
    )  # fmt: skip


def _boxes(
    rng: np.random.Generator, o: tuple[int, int], d: tuple[int, int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    sides = [(i, side) for i, side in enumerate((o, d)) if side[1] - side[0] > 1]
    if not sides or rng.random() < 0.3:
        return [(o, d)]
    i, (low, high) = sides[int(rng.integers(len(sides)))]
    cut = int(rng.integers(low + 1, high))
    parts = [((low, cut), d), ((cut, high), d)] if i == 0 else [(o, (low, cut)), (o, (cut, high))]
    return [box for part in parts for box in _boxes(rng, *part)]


def rows_of_cells(release: FlowRelease, hours: int, all_hours: int) -> Ints:
    """Return the row of each cell (hour, origin, destination); totals are numbered after the rows of the table."""
    row = np.full((all_hours, TILES, TILES), -1, np.int64)
    number = len(release)
    for step in range(len(release.t)):
        inside = slice(step * hours, (step + 1) * hours)
        if release.suppressed[step] != NOT_GIVEN:
            row[inside] = number
            number += 1
        for i in range(release.offsets[step], release.offsets[step + 1]):
            areas = release.areas
            o, d = (
                areas.tiles[areas.offsets[a] : areas.offsets[a + 1]]
                for a in (release.origin[i], release.destination[i])
            )
            row[inside][np.ix_(range(hours), o, d)] = i
    return row.ravel()


def test_bounds_are_those_of_linear_programs_over_all_cells() -> None:
    rng = np.random.default_rng(6)
    small = 0
    for _ in range(tries(150)):
        cells = rng.poisson(0.8, (2, TILES, TILES))
        k, hours = int(rng.integers(2, 8)), int(rng.integers(1, 3))
        made = small_release(rng, cells, k, 1), small_release(rng, cells, k, hours)
        got = recover(*(TimedRows.of(one, (0, 1)) for one in made), k)
        assert got is not None
        rows = [rows_of_cells(made[0], 1, 2), rows_of_cells(made[1], hours, 2)]
        exact = bounds(rows, cells.ravel())
        atoms = np.unique(np.stack(rows, axis=1)[np.any(np.stack(rows) >= 0, axis=0)], axis=0)
        found = {}
        for i, overlap in enumerate(got.leaking.tolist()):
            pair = int(got.found.overlaps.first[overlap]), int(got.found.overlaps.second[overlap])
            found[pair] = float(got.lowest[i]), float(got.highest[i])
        expected = {(int(a), int(b)): (low, high) for (a, b), (low, high) in zip(atoms, exact, strict=True)}
        for pair, (low, high) in expected.items():
            if 0.5 < high < k - 0.5:
                small += 1
                assert found.pop(pair) == pytest.approx((low, high))
        # Totals of both may share no cell, which the adversary does not check.
        assert all(len(made[0]) <= pair[0] and (pair[1] < 0 or len(made[1]) <= pair[1]) for pair in found)
    assert small > tries(150) // 5


def test_releases_of_other_trips_contradict_each_other() -> None:
    rng = np.random.default_rng(1)
    made = [small_release(rng, np.full((1, TILES, TILES), volume), 1, 1) for volume in (10, 20)]
    published = PublishedReleases(("a", "b"), tuple(Published(one) for one in made))
    found = run(published, FlowAttackParams(k=5))
    assert found.values["pairs_that_contradict"] == 1 and "not of the same trips" in found.explanation


def test_releases_that_are_too_large_do_not_contradict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    made = [small_release(rng, np.full((1, TILES, TILES), 10), 1, 1) for _ in range(2)]
    published = PublishedReleases(("a", "b"), tuple(Published(one) for one in made))
    monkeypatch.setattr("crowdveil.attacks.od.releases.MAX_TOTAL", 2 * 10 * TILES**2 - 1)
    found = run(published, FlowAttackParams(k=5))
    assert (found.values["pairs_too_large"], found.values["pairs_that_contradict"]) == (1, 0)
    assert "1 pair of releases not compared" in found.explanation


def test_noise_cannot_be_subtracted() -> None:
    rng = np.random.default_rng(1)
    made = [small_release(rng, np.full((1, TILES, TILES), 10), 1, 1) for _ in range(2)]
    published = PublishedReleases(("a", "b"), tuple(Published(one, row_semantics="noisy") for one in made))
    assert "No two releases can be subtracted" in run(published, FlowAttackParams()).explanation


def test_one_tile_that_is_left_is_a_flow() -> None:
    """Tiles 0 and 1 to tile 2 have 12 trips in one release; tile 0 alone has 10 in the other one."""
    made = []
    for tiles in ([0, 1], [0]):
        areas = Areas(
            ZONES, np.array(["origin", "destination"]), np.array([0, len(tiles), len(tiles) + 1]), np.array([*tiles, 2])
        )
        volume = np.array([12 if len(tiles) == 2 else 10])
        made.append(
            FlowRelease(areas, np.zeros(1), np.array([0, 1]), np.array([0]), np.array([1]), volume, volume,
                        np.zeros(1, np.uint8), np.array([NOT_GIVEN]), "trips", 3600)
        )  # fmt: skip
    published = PublishedReleases(("a", "b"), tuple(Published(one) for one in made))
    found = run(published, FlowAttackParams(k=5))
    assert (found.worst, found.values["overlaps_recovered"], found.values["flows_recovered"]) == (2, 1, 1)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Nine trips a to b and two a to c, hours of a day: the day publishes both, the hours one of them."""
    hours = ["2020-01-01 08:10"] * 9 + ["2020-01-01 09:10"] * 2 + ["2020-01-01 10:10"] * 9
    trips = pa.table({"origin": ["a"] * 20, "destination": ["b"] * 20, "time": hours})
    zones = tmp_path / "zones.csv"
    zones.write_text("zone_id,lon,lat\na,2.0,48.0\nb,2.1,48.0\nc,2.2,48.1\n", encoding="utf-8")
    for name, step in (("hours", "1h"), ("day", "1d")):
        crowdveil.anonymize(trips, tmp_path / name, method="suppression", zones=zones, step=step, k=5, report=False)
    pq.write_table(trips, tmp_path / "trips.parquet")
    return tmp_path / "hours", tmp_path / "day", tmp_path


def test_the_hour_that_was_suppressed_is_the_rest_of_the_day(two: tuple[Path, Path, Path], command: Any) -> None:
    hours, day, folder = two
    found = crowdveil.attack("releases", hours, day)["releases"]
    assert found.below_k and found.worst == 2
    assert found.values["overlaps_recovered"] == 1
    assert "1 row of " in found.explanation and "minus 2 rows of " in found.explanation
    done = command("attack", "releases", hours, day, "-o", folder / "found.json")
    assert done.code == 0 and "finds groups of fewer than 5" in done.out
    assert json.loads((folder / "found.json").read_text())["attacks"]["releases"]["worst"] == 2
    original = folder / "trips.parquet"
    scored = crowdveil.attack("releases", hours, day, original=original, zones=folder / "zones.csv")["releases"]
    assert scored.values["original_flows_below_k"] == 1
    assert scored.values["flows_recovered"] == 0  # the hour of the two trips is not known
    assert "Expected the folders of two or more" in command("attack", "releases", hours).sentence


def test_releases_in_memory_are_compared(two: tuple[Path, Path, Path]) -> None:
    options: dict[str, Any] = {"method": "suppression", "zones": two[2] / "zones.csv", "k": 5, "report": False}
    hours, day = (crowdveil.anonymize(two[2] / "trips.parquet", step=step, **options) for step in ("1h", "1d"))
    for others in (day, [day]):
        assert crowdveil.attack("releases", hours, others)["releases"].worst == 2


def test_one_release_is_not_enough(two: tuple[Path, Path, Path]) -> None:
    with pytest.raises(InputError):
        crowdveil.attack("releases", two[0])
    with pytest.raises(crowdveil.errors.ParameterError, match="zones: Expected the original with this option"):
        crowdveil.attack("releases", two[0], two[1], zones="zones.csv")
    with pytest.raises(crowdveil.errors.ParameterError, match="have no pairing"):
        crowdveil.attack("releases", two[0], two[1], pairing="pairing.csv")
    with pytest.raises(crowdveil.errors.ParameterError):
        crowdveil.attack("homogeneity", two[0], original="trips.csv")
