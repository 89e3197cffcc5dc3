"""Attacks on a sample find the same with and without an index of all records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crowdveil.attacks import sampled_view, search
from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack
from crowdveil.attacks.risk import attack_release
from crowdveil.attacks.sampled_view import _Places
from crowdveil.attacks.trajectory import location, sequence, time
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import no_progress
from crowdveil.registry import find_method

Risks = Callable[[], list[object]]


def _walks(trajectories: int, points: int) -> Trajectories:
    rng = np.random.default_rng(4)
    n = trajectories * points
    lon, lat = (middle + np.cumsum(rng.normal(0, 0.004, n)).round(3) % 0.05 for middle in (2.3, 48.8))
    person = np.arange(trajectories) // 2
    return Trajectories(
        lon, lat, np.tile(np.arange(points) * 900, trajectories), np.arange(trajectories + 1) * points,
        np.arange(trajectories), person, np.arange(person[-1] + 1),
    )  # fmt: skip


def _released(data: Trajectories) -> TrajectoryRelease:
    method = find_method("simple-generalization")
    release = method.run(data, method.params.checked({"tile_size_m": 1000}), np.random.default_rng(1), no_progress)
    assert isinstance(release, TrajectoryRelease) and len(release)
    return release


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Callable[[Risks], None]:
    """Compare what is found with and without an index of all."""

    def compare(risks: Risks) -> None:
        sampled = risks()
        monkeypatch.setattr(search, "is_sampled", lambda *_: False)
        monkeypatch.setattr("crowdveil.attacks.risk.is_sampled", lambda *_: False)
        assert sampled == risks()

    return compare


@pytest.mark.parametrize("attack", [location.ATTACK, sequence.ATTACK, time.ATTACK], ids=lambda attack: attack.name)
@pytest.mark.parametrize("tile_m", [None, 300.0])
def test_a_sample_is_found_as_among_all(
    attack: Attack, tile_m: float | None, compared: Callable[[Risks], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampled_view, "CHUNK", 50)
    data = _walks(150, 6)
    params = attack.params.checked({"people": 20, "samples": 100, "tile_m": tile_m})
    scenario = AttackScenario(data, _released(data), "trajectories", "people")

    def risks() -> list[object]:
        found = [attack.run(s, params, no_progress) for s in (scenario, scenario.on_original())]
        return [(r.group_size.tolist(), r.tried.tolist(), r.average, r.exact, r.paired) for r in found]

    compared(risks)


@pytest.mark.parametrize("name", ["microaggregation", "protected-generalization"])
def test_risks_of_a_release_are_those_of_all_records(name: str, compared: Callable[[Risks], None]) -> None:
    data, method = _walks(260, 5), find_method(name)
    params = method.params.checked({"k": 2})
    release = method.run(data, params, np.random.default_rng(1), no_progress)
    guarantees = method.guarantees(data, params)
    assert len(release) > 200
    compared(lambda: list(attack_release(data, release, guarantees, "proven")))


def test_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = _Places._hashed

    def few(places: _Places, columns: object) -> object:
        return hashed(places, columns) % np.uint64(7) if places.salt < 3 else hashed(places, columns)

    monkeypatch.setattr(_Places, "_hashed", few)
    columns = np.arange(40) // 2, np.arange(40) % 2 * 0.5
    places = _Places(columns)
    assert places.salt == 3 and places.find(columns).tolist() == list(range(40))
    assert places.find((np.array([3, 50]), np.array([0.25, 0.0]))).tolist() == [-1, -1]
