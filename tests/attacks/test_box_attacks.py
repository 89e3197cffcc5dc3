"""Attacks on boxes: a person's own boxes always match, and a box unlike those of its class is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.attacks import box_view
from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.risk import attack_release
from crowdveil.errors import InputError
from crowdveil.guarantees import TrajectoryKAnonymity
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import no_progress
from crowdveil.registry import find_attack, find_method
from crowdveil.synth.movers import make_movers
from crowdveil.synth.network import street_grid

TILE = 300.0


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    return make_movers(street_grid(2, side=12), 60, seed=5)


@pytest.fixture(scope="module")
def boxes(movers: Trajectories) -> TrajectoryRelease:
    method = find_method("microaggregation")
    params = method.params.checked({"k": 3, "aggregation": "box"})
    made = method.run(movers, params, np.random.default_rng(1), no_progress)
    assert isinstance(made, TrajectoryRelease)
    return made


@pytest.mark.parametrize("name", box_view.SEARCH_BOXES)
def test_everyone_is_found_among_at_least_k(name: str, movers: Trajectories, boxes: TrajectoryRelease) -> None:
    attack = find_attack(name)
    scenario = AttackScenario(movers, boxes, "trajectories", "trajectories")
    for known in (1, 2, 3):
        values = {"tile_m": TILE, "knowledge": known, "people": 10, "max_combinations": 500, "samples": 100}
        found = attack.run(scenario, attack.params.checked(values), no_progress)
        assert (found.group_size >= 3).all()
        before = attack.run(scenario.on_original(), attack.params.checked(values), no_progress)
        assert before.mean.value >= found.mean.value


@pytest.mark.parametrize("precision", [None, "minute"])
def test_matches_are_the_boxes_that_meet_a_tile(
    precision: str | None, movers: Trajectories, boxes: TrajectoryRelease
) -> None:
    """Each known location of some targets, compared with every box by its sides."""
    scenario = AttackScenario(movers, boxes, "trajectories", "trajectories")
    view = scenario.view(TILE, precision, 1)  # type: ignore[arg-type]
    assert boxes.boxes is not None
    west, east, south, north = boxes.boxes.sides(movers.projection)
    x, y = movers.xy
    for point in range(0, movers.points, movers.points // 40):
        column, row, minute = np.floor(x[point] / TILE), np.floor(y[point] / TILE), movers.t[point] // 60
        meets = (np.floor(west / TILE) <= column) & (column <= np.floor(east / TILE))
        meets &= (np.floor(south / TILE) <= row) & (row <= np.floor(north / TILE))
        if precision:
            meets &= (boxes.boxes.t_min // 60 <= minute) & (minute <= boxes.boxes.t_max // 60)
        wanted = np.unique(np.searchsorted(boxes.offsets, np.flatnonzero(meets), side="right") - 1)
        index, location = view.candidates.index, view.targets.location[point]
        found = index.unit[index.location_offsets[location] : index.location_offsets[location + 1]]
        assert np.array_equal(found, wanted)


def test_one_box_unlike_its_class_fails_the_run(movers: Trajectories, boxes: TrajectoryRelease) -> None:
    """All boxes of two members of each class are shrunk to points elsewhere: the third is found alone."""
    assert boxes.boxes is not None and boxes.source is not None
    north = boxes.boxes.lat_max.copy()
    south = boxes.boxes.lat_min.copy()
    alone = boxes.offsets[1]
    away = slice(alone, None)
    north[away], south[away] = north[away] + 5, south[away] + 5
    broken = replace(boxes, boxes=boxes.boxes._replace(lat_min=south, lat_max=north))
    goal = TrajectoryKAnonymity(k=3, k_unit="trajectories")
    found = attack_release(movers, broken, [goal], "proven")
    assert any(trial.stops for trial in found)
    assert not any(trial.stops for trial in attack_release(movers, boxes, [goal], "proven"))


def test_attacks_that_count_visits_say_why_not(movers: Trajectories, boxes: TrajectoryRelease) -> None:
    scenario = AttackScenario(movers, boxes, "trajectories", "trajectories")
    for name in ("frequency", "probability", "proportion", "home-work"):
        attack = find_attack(name)
        with pytest.raises(InputError, match="it has boxes, which show no visits"):
            attack.run(scenario, attack.params.checked({"tile_m": TILE, "people": 2}), no_progress)
    location = find_attack("location")
    with pytest.raises(InputError, match="the release has boxes; give the side"):
        location.run(scenario, location.params.checked({"people": 2}), no_progress)


def test_tiles_grow_where_boxes_meet_too_many(
    movers: Trajectories, boxes: TrajectoryRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_view, "MAX_RECORDS", 20_000)
    goal = TrajectoryKAnonymity(k=3, k_unit="trajectories")
    found = attack_release(movers, boxes, [goal], "proven")
    assert any("by 500 m" not in trial.knowledge and " m" in trial.knowledge for trial in found[:3])
