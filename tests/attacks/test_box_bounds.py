"""Bounds of boxes: an adversary reads members' exact coordinates from unrounded ones, and not from those on a public grid."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil.model.arrays import Floats
from crowdveil.model.box_bounds import BoxBounds
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import no_progress
from crowdveil.registry import find_method

UNROUNDED = {"box_grid_m": 1.0, "box_grid_s": 1}
DECIMALS = 5


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    """Ninety trajectories of five points a minute apart, none at a place of another."""
    rng = np.random.default_rng(5)
    lon, lat = (middle + np.round(rng.normal(0, 0.02, 450), 6) for middle in (2.35, 48.85))
    t = np.repeat(rng.integers(0, 600, 90), 5) + np.tile(np.arange(5) * 60, 90)
    people = np.array([f"p{i}" for i in range(90)], dtype=object)
    return Trajectories(lon, lat, t, np.arange(91) * 5, np.arange(90), np.arange(90), people, "people")


def _bounds(data: Trajectories, values: dict[str, float]) -> BoxBounds:
    method = find_method("microaggregation")
    params = method.params.checked({"k": 3, "aggregation": "box"} | values)
    boxes = method.run(data, params, np.random.default_rng(1), no_progress).boxes
    assert isinstance(boxes, BoxBounds)
    return boxes


def _exact_matches(degrees: Floats, low: Floats, high: Floats) -> float:
    """Return the share of an adversary's candidate coordinates that a bound shows to the last digit."""
    down, up = np.floor(degrees * 10**DECIMALS), np.ceil(degrees * 10**DECIMALS)
    return float(np.mean(np.isin(down, np.rint(low * 10**DECIMALS)) | np.isin(up, np.rint(high * 10**DECIMALS))))


def _advantage(data: Trajectories, boxes: BoxBounds) -> float:
    """Return how much more often true coordinates match than places a few meters away from them."""
    rng = np.random.default_rng(3)
    aside = rng.choice([-1, 1], data.points) * rng.uniform(2e-5, 7e-5, data.points)
    sides = ((data.lon, boxes.lon_min, boxes.lon_max), (data.lat, boxes.lat_min, boxes.lat_max))
    return max(_exact_matches(c, *bounds) - _exact_matches(c + aside, *bounds) for c, *bounds in sides)


def test_exact_coordinates_are_found_in_unrounded_bounds_alone(movers: Trajectories) -> None:
    assert _advantage(movers, _bounds(movers, UNROUNDED)) > 0.4
    # What is left is chance: one coordinate in nine or more lies next to a line, and the adversary cannot see which.
    assert _advantage(movers, _bounds(movers, {})) < 1 / 9
    assert _advantage(movers, _bounds(movers, {"box_grid_m": 100.0})) < 1 / 90


def test_exact_times_are_found_in_unrounded_bounds_alone(movers: Trajectories) -> None:
    shown = _bounds(movers, UNROUNDED)
    assert np.isin(shown.t_min, movers.t).all() and np.isin(shown.t_max, movers.t).all()
    assert len(np.unique(shown.t_min % 10)) > 5
    rounded = _bounds(movers, {})
    assert not (rounded.t_min % 10).any() and not (rounded.t_max % 10).any()
