"""Confidence bounds of noisy volumes: exact chances, number by number, and what an adversary reads from them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_rivals import taxis
from written_flows import written

from crowdveil.engine.progress import no_progress
from crowdveil.guarantees.flows import WellFormedFlows
from crowdveil.guarantees.noise import DifferentialPrivacy
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.methods.od.laplace import LaplaceParams, run
from crowdveil.model.release import VolumeBounds
from crowdveil.registry import find_measure
from crowdveil.run import pipeline, releases
from crowdveil.solve.od.noisy_volumes import volume_bounds

RATES = st.sampled_from([0.2, 0.5, 1.0, 2.5])


def _chances(true: int, rate: float, threshold: int, span: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The chance of each published volume from the threshold on, among those that are published."""
    y = np.arange(threshold, threshold + span)
    chance = np.exp(-rate * np.abs(y - true))
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = chance / chance.sum()
    return found


@examples(150)
@given(rate=RATES, threshold=st.integers(1, 30), true=st.integers(0, 60), beyond=st.sampled_from([0.05, 0.2]))
def test_bounds_hold_among_published_volumes(rate: float, threshold: int, true: int, beyond: float) -> None:
    span = 400
    bounds = volume_bounds(np.arange(threshold, threshold + span), rate, threshold, beyond)
    held = (bounds.low <= true) & (true <= bounds.high)
    assert _chances(true, rate, threshold, span)[held].sum() >= 1 - beyond - 1e-9


@examples(60)
@given(rate=RATES, threshold=st.integers(1, 12), more=st.integers(0, 25))
def test_bounds_are_those_of_the_plain_twin(rate: float, threshold: int, more: int) -> None:
    """All true volumes are tried: those that make a volume as large, or as small, likely enough."""
    y = threshold + more
    likely = []
    for true in range(y + 60):
        chance = _chances(true, rate, threshold, 600)
        if chance[more:].sum() > 0.025 and chance[: more + 1].sum() > 0.025:
            likely.append(true)
    low, high = (int(side[0]) for side in volume_bounds(np.array([y]), rate, threshold, 0.05))
    assert (low, high) == (min([*likely, y]), max([*likely, y]))


def test_a_volume_near_the_threshold_may_be_noise() -> None:
    """At rate 1 chances fall by e: 4 above the threshold has 0.018 of noise alone, below 2.5 %."""
    low, high = volume_bounds(np.array([8, 11, 12, 100]), 1.0, 8, 0.05)
    assert low.tolist()[:2] == [0, 0] and low[2] > 0
    assert (low[3], high[3]) == (97, 103)
    assert (high >= [8, 11, 12, 100]).all()


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 100.0])
def test_extreme_noise(rate: float) -> None:
    low, high = volume_bounds(np.array([1, 5, 10**9]), rate, 1, 0.05)
    width = math.ceil(-math.log(0.025) / rate) + 2
    assert (low >= 0).all() and (high >= [1, 5, 10**9]).all() and (high - low)[2] <= 2 * width
    assert len(volume_bounds(np.zeros(0, np.int64), rate, 1, 0.05).low) == 0


def test_an_adversary_learns_nothing_more_from_bounds() -> None:
    """Bounds around the true volume instead of the noisy one: the adversary takes their middle, and the checker notices."""
    rows = [(0, "a", "b", 12, 12), (0, "b", "a", 12, 12), (0, "a", "a", 30, 30)]
    steps = [(0, 54, None)]
    honest = volume_bounds(np.array([12, 12, 30]), 1.0, 8, 0.05)
    checker = DifferentialPrivacy(epsilon=1, trips=1)
    for low, high, violated in ((honest.low, honest.high, False), (np.array([9, 2, 27]), np.array([15, 12, 33]), True)):
        made = written(rows, steps, k_unit="trips", volume_low=low, volume_high=high)
        assert checker.check(made).violated is violated
        assert not WellFormedFlows().check(made).violated


@pytest.mark.parametrize(
    "extra",
    [
        {"volume_low": [1]},
        {"volume_low": [21], "volume_high": [25]},
        {"volume_low": [1], "volume_high": [19]},
        {"volume_low": [-1], "volume_high": [25]},
        {"volume_low": pa.array([None], pa.int64()), "volume_high": [25]},
    ],
)
def test_bounds_that_are_not_in_order(extra: dict[str, Any]) -> None:
    assert WellFormedFlows().check(written([(0, "a", "b", 20, 20)], **extra)).violated


@pytest.mark.realdata
@pytest.mark.slow
def test_bounds_on_hours_of_taxis(realdata: Path, tmp_path: Path) -> None:
    """At least 95 % of the published volumes lie within their bounds; without the threshold in mind it would be fewer."""
    data = taxis(realdata).at_steps(np.arange(2))
    out = tmp_path / "out"
    pipeline.run(pipeline.Request("laplace", data, out, {}, options={"attack": False, "report": False, "seed": 4}))
    table = pq.read_table(out / "flows.parquet")
    assert [f.outcome.value for _, f in releases.verify(out)] == ["not checked", "holds"]
    params = LaplaceParams()
    release = run(data, params, np.random.default_rng(1), no_progress)
    compared = OdComparison.between(data, release)
    assert find_measure("confidence-coverage").compute(compared).min() >= 0.95
    assert 5 < find_measure("confidence-width").compute(compared).mean() < 20
    naive = VolumeBounds(np.maximum(release.volume - 3, 0), release.volume + 3)
    other = OdComparison.between(data, replace(release, bounds=naive))
    assert find_measure("confidence-coverage").compute(other).mean() < 0.95
    low, high = table["volume_low"].to_numpy(), table["volume_high"].to_numpy()
    again = volume_bounds(table["volume"].to_numpy(), float(params.rate), params.threshold(len(data.zones) ** 2), 0.05)
    assert np.array_equal(low, again.low) and np.array_equal(high, again.high)
