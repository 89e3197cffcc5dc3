"""Trajectories from aggregates: assignments against all others, and worlds in which people can or cannot be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import crowdveil
from crowdveil.attacks.adversary_view import AggregatedTrajectories
from crowdveil.errors import InputError
from crowdveil.experiments.linked_aggregates import assign, entropy_gain, link_days, match_people
from crowdveil.experiments.trajectory_recovery import RecoveryParams, run
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.trajectories import Trajectories

points = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)


@settings(max_examples=tries(300), deadline=None)
@given(first=points, second=points)
def test_equal_locations_first_is_a_best_assignment(first: list[Any], second: list[Any]) -> None:
    a, b = np.array(first, float), np.array(second, float)
    i, j = assign(a, b)
    cost = cdist(a, b)
    assert len(i) == len(set(i.tolist())) == len(set(j.tolist())) == min(len(a), len(b))
    assert cost[i, j].sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum())


def test_entropy_that_is_gained() -> None:
    from scipy.stats import entropy  # slow to import

    rng = np.random.default_rng(0)
    first, second = (rng.dirichlet(np.ones(5), 4) * (rng.random((4, 5)) < 0.6) for _ in range(2))
    first, second = (side / np.maximum(side.sum(axis=1, keepdims=True), 1e-9) for side in (first, second))
    expected = [[entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2 for q in second] for p in first]
    full = (first.sum(axis=1) > 0)[:, None] & (second.sum(axis=1) > 0)[None, :]
    assert entropy_gain(first, second)[full] == pytest.approx(np.array(expected)[full])


def test_days_are_linked_by_their_places() -> None:
    days = [np.array([[0, 1, 0], [2, 3, 2]]), np.array([[2, 3, 2], [0, 1, 1], [4, 4, 4]])]
    assert link_days(days, 5).tolist() == [[0, 1, 0, 0, 1, 1], [2, 3, 2, 2, 3, 2], [-1, -1, -1, 4, 4, 4]]


def test_each_recovered_trajectory_is_taken_once() -> None:
    truth = [(np.arange(2), np.array(tiles)) for tiles in ([0, 0], [1, 1], [2, 0])]
    right = match_people(np.array([[0, 1, 2]]), truth, 2, 3)
    assert right.tolist() == [1.0, 0.0]


def trajectories(x: Floats, y: Floats, step_s: int = 3600) -> Trajectories:
    """Return people (rows) with a record in the middle of each step (columns), in meters around a point."""
    n, steps = x.shape
    ids = np.array([str(i) for i in range(n)], dtype=object)
    t = np.tile(np.arange(steps) * step_s + step_s // 2, n)
    lon, lat = 2 + x.ravel() / 74_500, 48 + y.ravel() / 111_200
    return Trajectories(lon, lat, t, np.arange(0, n * steps + 1, steps), ids, np.arange(n), ids, "people")


def test_people_who_live_far_apart_are_recovered_over_days() -> None:
    """Ten people stay within a kilometer of homes 20 km apart, over two days; k = 2 leaves nothing of them."""
    rng = np.random.default_rng(3)
    x = np.arange(10)[:, None] * 20_000 + rng.uniform(-500, 500, (10, 48))
    found = run(AggregatedTrajectories(trajectories(x, np.zeros_like(x))), RecoveryParams(tile_m=2000, k=2))
    assert found.values["accuracy_percent_before"] == 100
    assert found.values["accuracy_percent_after"] == 0 and found.values["recovered_trajectories_after"] == 0
    assert found.values["accuracy_of_random_links_percent_before"] < 50


def test_people_of_one_place_cannot_be_told_apart_by_day() -> None:
    """All meet in one tile in every second step, and go on to random ones: links through the crowd are guesses."""
    rng = np.random.default_rng(4)
    places: Ints = rng.integers(0, 30, (40, 12))
    places[:, ::2] = 15
    found = run(AggregatedTrajectories(trajectories(places * 3000.0, places * 0.0)), RecoveryParams(k=2))
    assert found.values["accuracy_percent_before"] < 75


def test_people_who_drive_on_are_linked_by_their_velocity() -> None:
    """Two drive towards each other and pass: by distance alone they would turn around; by day they go on."""
    x = np.array([np.arange(10) * 3000.0, 27_000 - np.arange(10) * 3000.0])
    data = AggregatedTrajectories(trajectories(x, np.zeros_like(x)), "Etc/GMT-8")  # it is 8 o'clock at the start
    assert run(data, RecoveryParams(k=2)).values["accuracy_percent_before"] == 100
    night = RecoveryParams(k=2, night_from=0, night_to=23)
    assert run(data, night).values["accuracy_percent_before"] < 100


def test_command_and_release_of_flows(tmp_path: Path, command: Any) -> None:
    rng = np.random.default_rng(5)
    x, y = (np.repeat(rng.choice([0.0, 4000.0], (30, 1)), 6, axis=1) + rng.uniform(0, 900, (30, 6)) for _ in range(2))
    x[:, 3:] += 4000
    data = trajectories(x, y)
    cabs = tmp_path / "cabs.parquet"
    import pyarrow.parquet as pq

    columns = {"lat": data.lat, "lon": data.lon, "timestamp": data.t, "trajectory_id": np.repeat(np.arange(30), 6)}
    import pyarrow as pa

    pq.write_table(pa.table({**columns, "user_id": columns["trajectory_id"]}), cabs)
    trips = crowdveil.trips(cabs, by="transitions", zones="grid:1000m")
    crowdveil.anonymize(trips, tmp_path / "flows", method="joint", zones="grid:1000m", k=3, report=False)
    found = crowdveil.attack("trajectory-recovery", cabs, tmp_path / "flows", tile_m=1000)["trajectory-recovery"]
    assert found.values["people"] == 30 and found.values["recovered_trajectories_after"] > 0
    done = command("attack", "trajectory-recovery", cabs, "--tile-m", 1000, "--k", 5)
    assert done.code == 0 and "confidential" in done.out and "reported, not guaranteed" in done.out
    with pytest.raises(InputError):
        crowdveil.attack("trajectory-recovery", cabs, step="all")
