from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from examples import ALL, tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rivals import plain_noise, taxis

import crowdveil
from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.methods.od.laplace import (
    LaplaceParams,
    _trips,
    above,
    falls,
    noise_bound,
    noisy_matrix,
    one_sided,
    pick,
    run,
    two_sided,
)
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN
from crowdveil.registry import find_measure
from crowdveil.run import pipeline, releases

DRAWS = 200_000
SURE = 5.0
"""Standard deviations: with fixed seeds a test fails always or never, and a right sampler hardly ever gets there."""

ZONES = {"zones": testing.Zones.from_ids(["a", "b"])}


def _is_near(found: int, chance: float, draws: int = DRAWS) -> None:
    assert abs(found - draws * chance) <= SURE * math.sqrt(draws * chance * (1 - chance)) + 1, (found, draws * chance)


@pytest.mark.parametrize(
    "rate", [Fraction(1), Fraction(1, 10), Fraction(3, 7), Fraction(5, 2), Fraction(123_457, 10**6)]
)
def test_noise_has_the_chances_of_discrete_laplace(rate: Fraction) -> None:
    noise, alpha = two_sided(rate, DRAWS, np.random.default_rng(1)), math.exp(-rate)
    for x in range(-4, 5):
        _is_near(int((noise == x).sum()), (1 - alpha) / (1 + alpha) * alpha ** abs(x))
    for least in (1, 2, 5):
        _is_near(int((noise >= least).sum()), above(rate, least))


def test_it_is_the_plain_twin_in_distribution() -> None:
    """A full matrix, every cell with noise of its own, as the definition has it."""
    params, pair, volume, cells, rounds = (
        LaplaceParams(epsilon=0.7, min_volume=1),
        np.array([1, 2, 5]),
        np.array([1, 4, 9]),
        8,
        6000 if ALL else 2000,
    )
    ours, plain = np.random.default_rng(2), np.random.default_rng(3)
    counts = np.zeros((2, cells, 14), np.int64)
    for _ in range(rounds):
        found, volumes = noisy_matrix(pair, volume, cells, params, ours)
        matrix = np.zeros(cells, np.int64)
        matrix[found] = volumes
        for which, values in enumerate((matrix, plain_noise(pair.tolist(), volume.tolist(), cells, 0.7, plain))):
            counts[which, np.arange(cells), np.minimum(values, 13)] += 1
    apart = np.abs(counts[0] - counts[1])
    assert np.all(apart <= SURE * np.sqrt(counts.sum(axis=0)) + 1)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(2, 5)])
def test_one_sided_noise_is_geometric(rate: Fraction) -> None:
    drawn = one_sided(rate, DRAWS, np.random.default_rng(4))
    for x in range(5):
        _is_near(int((drawn == x).sum()), (1 - math.exp(-rate)) * math.exp(-rate * x))


@pytest.mark.parametrize(("x", "t"), [(0, 3), (1, 3), (3, 3), (1, 1)])
def test_falls_with_the_exponential(x: int, t: int) -> None:
    _is_near(int(falls(np.full(DRAWS, x), t, np.random.default_rng(5)).sum()), math.exp(-x / t))


@settings(max_examples=tries(100))
@given(cells=st.integers(0, 50), chance=st.sampled_from([0.0, 1e-12, 0.01, 0.3, 0.9, 1.0]), seed=st.integers(0, 9))
def test_picked_cells_rise_and_are_cells(cells: int, chance: float, seed: int) -> None:
    found = pick(cells, chance, np.random.default_rng(seed))
    assert np.all(np.diff(found) > 0) and np.all((found >= 0) & (found < cells))
    assert len(found) == (cells if chance == 1 else 0 if chance == 0 else len(found))


def test_each_cell_is_picked_as_often() -> None:
    rng, times = np.random.default_rng(6), np.zeros(10, np.int64)
    for _ in range(20_000):
        times[pick(10, 0.3, rng)] += 1
    for count in times.tolist():
        _is_near(count, 0.3, 20_000)


@settings(max_examples=tries(100))
@given(data=testing.flows(), epsilon=st.sampled_from([0.001, 0.5, 3.0, 100.0]), least=st.integers(1, 5))
def test_a_release_has_no_exact_figure(data: Flows, epsilon: float, least: int) -> None:
    params = LaplaceParams(epsilon=epsilon, min_volume=least)
    release = run(data, params, np.random.default_rng(0), no_progress)
    assert release.k_unit == "trips" and np.array_equal(release.volume, release.people)
    assert np.all(release.suppressed == NOT_GIVEN) and np.all(release.volume >= least)
    assert len(release.areas) == len(data.zones) and np.all(np.isin(data.t, release.t))
    key = (release.step * len(data.zones) + release.origin) * len(data.zones) + release.destination
    assert np.all(np.diff(key) > 0)
    if epsilon == 100 and data.k_unit == "trips":  # noise is 0 but for a chance of e^-100
        keep = data.volume >= least
        columns = (
            (release.origin, data.origin),
            (release.destination, data.destination),
            (release.volume, data.volume),
        )
        assert all(np.array_equal(ours, theirs[keep]) for ours, theirs in columns)


def test_the_manifest_has_no_exact_figure(tmp_path: Path) -> None:
    trips = tmp_path / "trips.csv"
    trips.write_text("origin,destination\n" + "a,b\n" * 7 + "b,a\n" * 4)
    result = pipeline.run(
        pipeline.Request("laplace", trips, tmp_path / "out", {"epsilon": 1.0}, ZONES, {"seed": 987_654_321})
    )
    written = (tmp_path / "out" / "manifest.json").read_text()
    manifest = json.loads(written)
    assert manifest["method"]["seed_given"] is True and "987654321" not in written
    assert (
        manifest["input"]["data"] == {"kind": "table", "people_about": None}
        and "suppressed_volume_percent" not in manifest["cost"]
    )
    assert any("keep it secret" in note for note in result.notes.messages) and manifest["input"]["notes"] == []
    names = [finding[0].name for finding in releases.verify(tmp_path / "out", trips, ZONES)]
    assert names == ["differential-privacy", "well-formed-flows"]


def test_zones_that_come_from_the_data_are_refused(tmp_path: Path) -> None:
    trips = tmp_path / "trips.csv"
    trips.write_text("origin,destination\na,b\n")
    with pytest.raises(ParameterError, match="must not show which ones have trips"):
        pipeline.run(pipeline.Request("laplace", trips, tmp_path / "out"))
    points = tmp_path / "points.csv"
    points.write_text("origin_lon,origin_lat,destination_lon,destination_lat\n2,48,2.1,48.1\n")
    for reading in ({"zones": "grid:500m"}, {"zones": "h3:8"}):
        with pytest.raises(ParameterError, match="must not show which ones have trips"):
            pipeline.run(pipeline.Request("laplace", points, tmp_path / "out", {}, reading))
    assert not (tmp_path / "out").exists()


def test_all_time_steps_of_the_period_are_listed(tmp_path: Path) -> None:
    """Hours without trips get noise as others do: which of them have trips is not shown."""
    trips = tmp_path / "trips.csv"
    lines = [f"a,b,2020-03-01T{hour:02}:10:00" for hour in (0, 5)]
    trips.write_text("origin,destination,time\n" + "\n".join(lines) + "\n")
    reading, parameters = ZONES | {"step": "1h"}, {"epsilon": 0.01, "min_volume": 1}
    done = pipeline.run(pipeline.Request("laplace", trips, tmp_path / "out", parameters, reading, {"seed": 1}))
    steps = pq.read_table(tmp_path / "out" / "steps.parquet") if (tmp_path / "out" / "steps.parquet").exists() else None
    listed = (tmp_path / "out" / "steps.csv").read_text().count("\n") - 1 if steps is None else len(steps)
    assert listed == 6 and done.manifest["method"]["facts"]["epsilon_of_the_release"] == 0.06
    assert len(np.unique(done.release.step)) > 2, "at this epsilon most hours have rows"
    assert "the period from the first to the last time step, are public" in done.manifest["guarantees"][0]["statement"]


@pytest.mark.parametrize(("first", "last", "step", "steps"), [
    ("2026-03-27", "2026-04-02", "1d", 7), ("2026-10-23", "2026-10-27", "1d", 5), ("2026-10-25", "2026-10-26", "1h", 25),
])  # fmt: skip
def test_epsilon_adds_up_over_all_time_steps_where_clocks_change(
    tmp_path: Path, first: str, last: str, step: str, steps: int
) -> None:
    """The days around a change of clocks have 23 and 25 hours: each is one time step, and counts once."""
    trips = tmp_path / "trips.csv"
    lines = [f"a,b,{day}T00:10:00" for day in (first, last)]
    trips.write_text("origin,destination,time\n" + "\n".join(lines) + "\n")
    reading, ledger = ZONES | {"step": step, "tz": "Europe/Berlin"}, tmp_path / "ledger"
    crowdveil.ledger_init(ledger)
    crowdveil.anonymize(trips, tmp_path / "out", method="laplace", epsilon=1.0, ledger=ledger, seed=1, **reading)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"]["facts"]["epsilon_of_the_release"] == steps
    assert manifest["ledger"]["epsilon_of_all_releases"] == steps


def test_weighted_volumes_are_refused() -> None:
    one = np.ones(1, np.int64)
    zones = testing.Zones.from_ids(["a"])
    data = Flows(zones, 0 * one, np.array([0, 1]), 0 * one, 0 * one, 30 * one, 3 * one)
    with pytest.raises(InputError, match="weights"):
        run(data, LaplaceParams(), np.random.default_rng(0), no_progress)


@pytest.mark.parametrize(("epsilon", "trips", "tiles", "expected"), [(1, 1, 263, 8), (0.5, 3, 263, 44), (9, 1, 1, 1)])
def test_the_automatic_threshold(epsilon: float, trips: int, tiles: int, expected: int) -> None:
    """By hand: 0.65 · ln(263²) = 7.24; three trips at 0.5 are six times that; one tile has one pair, ln 1 = 0."""
    params = LaplaceParams(epsilon=epsilon, trips_per_person=trips)
    assert params.threshold(tiles**2) == expected and LaplaceParams(min_volume=3).threshold(tiles**2) == 3


@pytest.mark.parametrize(("rate", "cells"), [(Fraction(1), 1), (Fraction(1, 3), 1), (Fraction(1), 100)])
def test_confidence_bounds_hold_and_are_the_smallest(rate: Fraction, cells: int) -> None:
    """Against the sum of the chances of discrete Laplace noise, number by number."""
    alpha = math.exp(-rate)

    def inside(width: int) -> float:
        one = sum((1 - alpha) / (1 + alpha) * alpha ** abs(x) for x in range(-width, width + 1))
        return float(one**cells)

    width = noise_bound(rate, cells)
    assert inside(width) >= 0.95 and (width == 0 or inside(width - 1) < 0.95)


def _one_more(trips: int) -> tuple[Flows, Flows]:
    """Return a time step of two people on two tiles, and the same with a person who made many trips."""
    zones = testing.Zones.from_ids(["a", "b"])
    cells = [(0, 0), (0, 1), (1, 0), (1, 1)][:trips]
    found = []
    for people in ([[0, 1]] + [[]] * 3, [[0, 1, 2]] + [[2]] * (len(cells) - 1)):
        held = [(cell, ids) for cell, ids in zip(cells, people, strict=False) if ids]
        size = np.array([len(ids) for _, ids in held])
        found.append(Flows(
            zones, np.array([0]), np.array([0, len(held)]), np.array([c[0] for c, _ in held]),
            np.array([c[1] for c, _ in held]), size, size, "people", 3600, "UTC", np.concatenate([[0], np.cumsum(size)]),
            np.array([i for _, ids in held for i in ids]),
        ))  # fmt: skip
    return found[0], found[1]


@pytest.mark.parametrize("trips", [1, 2])
def test_membership_is_hidden(trips: int) -> None:
    """The adversary knows all trips but the four of one person, and compares the chances of a release with and without them.

    The largest ratio of the chances of two noisy matrices is exp(rate · their distance).
    """
    params = LaplaceParams(epsilon=1.0, trips_per_person=trips)
    with_person, without = (_matrix(d, _trips(d, params, [1, 2, 3, 4])) for d in reversed(_one_more(4)))
    assert params.rate * int(np.abs(with_person - without).sum()) <= 1.0
    unlimited = [_matrix(d, d.volume) for d in _one_more(4)]
    assert (
        params.rate * int(np.abs(unlimited[0] - unlimited[1]).sum()) > 1.0
    )  # or the test would not notice a missing limit


def _matrix(data: Flows, trips: Ints) -> Ints:
    matrix = np.zeros((2, 2), np.int64)
    matrix[data.origin, data.destination] = trips
    return matrix


def test_a_person_in_the_whole_release(tmp_path: Path) -> None:
    """The manifest states the unit, the period and the sum of epsilon; files are verified as for any method."""
    trips = tmp_path / "trips.csv"
    lines = [f"{o},{d},u{u},2020-03-0{day}T0{h}:10:00" for u in range(6) for day in (1, 2) for h, o, d in
             ((7, "a", "b"), (8, "b", "a"))]  # fmt: skip
    trips.write_text("origin,destination,user,time\n" + "\n".join(lines) + "\n")
    facts = {}
    for unit in ("person-step", "person"):
        out = tmp_path / unit
        done = pipeline.run(pipeline.Request("laplace", trips, out, {"unit": unit, "trips_per_person": 2}, ZONES))
        assert [f.outcome.value for _, f in releases.verify(out, trips, ZONES)] == ["not checked", "holds"]
        facts[unit] = done.manifest["method"]["facts"]
        assert done.manifest["guarantees"][0]["parameters"]["unit"] == "person"
    step, whole = facts["person-step"], facts["person"]
    assert (step["privacy_unit"], step["privacy_period"], step["epsilon_of_the_release"]) == ("person", "time step", 26)
    assert (whole["privacy_period"], whole["epsilon_of_the_release"]) == ("release", 1)


def test_a_person_needs_people() -> None:
    one = np.ones(1, np.int64)
    data = Flows(testing.Zones.from_ids(["a"]), 0 * one, np.array([0, 1]), 0 * one, 0 * one, 3 * one, 3 * one)
    with pytest.raises(InputError, match="people are not known"):
        run(data, LaplaceParams(unit="person"), np.random.default_rng(0), no_progress)


@pytest.mark.realdata
def test_the_automatic_threshold_is_usable(realdata: Path) -> None:
    """On hours of taxi trips at epsilon 1, cells are off by 0.6 of the trips at most; without a threshold by more than them."""
    data = taxis(realdata)
    error = {}
    for least in ("auto", 1):
        release = run(data, LaplaceParams(min_volume=least), np.random.default_rng(3), no_progress)
        error[least] = float(np.mean(find_measure("E").compute(OdComparison.between(data, release))))
    assert error["auto"] < 0.6 < 1 < error[1]


@pytest.mark.realdata
def test_taxis(realdata: Path) -> None:
    """The noise of all flows together is what it should be, and so is the number of rows where there are no trips."""
    data, rate = taxis(realdata), 0.5
    release = run(data, LaplaceParams(epsilon=rate, min_volume=1), np.random.default_rng(8), no_progress)
    n = len(data.zones)
    cells = [(x.step * n + x.origin) * n + x.destination for x in (data, release)]
    made_up = int((~np.isin(cells[1], cells[0])).sum())
    _is_near(made_up, above(Fraction(rate), 1), data.steps * n * n - len(data))
    large = data.volume >= 60  # noise does not take these below 1
    noise = release.volume[np.searchsorted(cells[1], cells[0][large])] - data.volume[large]
    spread = math.exp(-rate) * 2 / (1 - math.exp(-rate)) ** 2
    assert abs(noise.mean()) <= SURE * math.sqrt(spread / len(noise))
