from __future__ import annotations

import numpy as np
import pytest

from crowdveil.engine.progress import no_progress
from crowdveil.measures.rounding import round_share
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.release import Release
from crowdveil.model.zones import Zones
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import TrajectoryCost, cost_lines, cost_of


def _release(method: Method, data: Flows) -> Release:
    return method.run(data, method.params.checked({"k": 10}), np.random.default_rng(0), no_progress)


def test_costs_of_flows() -> None:
    zones = Zones.from_ids(["a", "b"])
    rows = (np.array(c, np.int64) for c in ([0, 0, 3600], [0, 1, 0], [1, 0, 1], [90, 9, 1]))
    data = Flows.from_rows(zones, *rows, step_s=3600)
    release = _release(find_method("suppression"), data)
    assert cost_lines(data, release, cost_of(data, release)) == [
        "trips published        90 of 100 (90.0 %)",
        "flows published        1 of 3 (33.3 %)",
        "time steps with flows  1 of 2",
    ]
    assert cost_of(data, release).numbers(10) == {
        "published_flows": 1,
        "published_volume": 90,
        "suppressed_volume_percent": 10,
        "published_time_steps": 1,
    }


def test_kinds_must_fit() -> None:
    with pytest.raises(TypeError):
        cost_of("data", "release")  # type: ignore[arg-type]


def test_costs_of_trajectories_name_what_they_count() -> None:
    cost = TrajectoryCost(trajectories=3, points=10, all_trajectories=4, all_points=40)
    assert cost.lines() == ["trajectories published 3 of 4 (75.0 %)", "points published       10 of 40 (25.0 %)"]
    cost = TrajectoryCost(trajectories=300, points=10, all_trajectories=400, all_points=40)
    assert cost.numbers(4)["suppressed_trajectories_percent"] == 25


@pytest.mark.parametrize("k", [2, 3, 7, 10])
def test_a_share_never_shows_a_small_suppressed_group(k: int) -> None:
    """The adversary knows the published number and the share, and tries every number that may be suppressed."""
    for published in range(150):
        consistent: dict[int, list[int]] = {}
        for suppressed in range(published + 4 * k):
            consistent.setdefault(round_share(suppressed, published + suppressed, k), []).append(suppressed)
        for share, numbers in consistent.items():
            assert numbers[0] == 0 or numbers[-1] >= k, (published, share, numbers)
