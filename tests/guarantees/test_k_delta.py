"""(k, δ)-anonymity: the checker finds k trajectories that are near one another, by trying all sets of them."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.guarantees import KDeltaAnonymity, k_delta
from crowdveil.io.written_release import WrittenRelease

METERS = 111_194.9  # of a degree on the equator of a round earth
Walks = list[tuple[list[int], list[int]]]


def _written(walks: Walks) -> WrittenRelease:
    """Trajectories along the equator, each of meters and seconds."""
    table = {
        "lat": [0.0 for meters, _ in walks for _ in meters],
        "lon": [m / METERS for meters, _ in walks for m in meters],
        "timestamp": pa.array([s for _, seconds in walks for s in seconds], pa.timestamp("s")),
        "published_id": pa.array([i + 1 for i, (meters, _) in enumerate(walks) for _ in meters], pa.int64()),
    }
    return WrittenRelease(Path("out"), pa.table(table), None, [])


def _alone(walks: Walks, owner: list[int], k: int, delta: float) -> int:
    """How many are in no set of k owners that are near one another at all times, by trying every set."""

    def near(i: int, j: int) -> bool:
        (a, s), (b, t) = walks[i], walks[j]
        return s == t and all(abs(x - y) <= delta for x, y in zip(a, b, strict=True))

    together = [
        chosen
        for chosen in combinations(range(len(walks)), k)
        if len({owner[i] for i in chosen}) == k and all(near(i, j) for i, j in combinations(chosen, 2))
    ]
    return len(set(range(len(walks))) - {i for chosen in together for i in chosen})


@settings(max_examples=tries(80), deadline=None)
@given(
    places=st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=1, max_size=7),
    shifted=st.lists(st.booleans(), min_size=7, max_size=7),
    people=st.lists(st.integers(0, 3), min_size=7, max_size=7),
    k=st.integers(2, 3),
)
def test_every_set_of_k_is_tried(places: list[list[int]], shifted: list[bool], people: list[int], k: int) -> None:
    walks = [([100 * p for p in place], [0, 61 if late else 60]) for place, late in zip(places, shifted, strict=False)]
    owner = people[: len(walks)]
    goal = KDeltaAnonymity(k=k, delta_m=201, k_unit="people")
    alone = _alone(walks, owner, k, 201)
    found = goal.check_with_people(_written(walks), np.array(owner))
    assert found.counts["alone"] == alone and found.violated == (alone > 0)
    counted = KDeltaAnonymity(k=k, delta_m=201, k_unit="trajectories").check(_written(walks))
    assert counted.counts["alone"] == _alone(walks, list(range(len(walks))), k, 201)


def test_one_point_too_far_is_found() -> None:
    near: Walks = [([0, 500], [0, 60]), ([400, 500], [0, 60]), ([200, 300], [0, 60])]
    goal = KDeltaAnonymity(k=3, delta_m=450, k_unit="trajectories")
    assert goal.check(_written(near)).holds
    for change in (([0, 951], [0, 60]), ([0, 500], [0, 61])):
        found = goal.check(_written([change, *near[1:]]))
        assert found.violated and found.detail == (
            "3 trajectories checked, 3 with fewer than 2 others near them at all times."
        )
    assert goal.check(_written([])).holds
    people = KDeltaAnonymity(k=3, delta_m=450, k_unit="people")
    assert people.check(_written(near)).outcome == "not checked"
    assert people.check_with_people(_written(near), np.arange(3)).holds
    assert people.check_with_people(_written(near), np.array([0, 1, 1])).violated
    assert "number of trajectories in the files" in people.check_with_people(_written(near), np.arange(2)).detail


def test_a_search_that_ends_early_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_delta, "MOST_STEPS", 1)
    walks: Walks = [([100 * i], [0]) for i in range(8)]
    found = KDeltaAnonymity(k=4, delta_m=250, k_unit="trajectories").check(_written(walks))
    assert found.outcome == "not checked" and "ended early" in found.detail
