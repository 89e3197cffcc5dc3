"""Adversaries on a quarter of an hour of San Francisco's cabs: what must hold whatever the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crowdveil
from crowdveil.attacks.base import Risk
from crowdveil.report.attack_results import AttackResults

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def cabs(realdata: Path) -> crowdveil.Trajectories:
    return crowdveil.read_trajectories(realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv")


@pytest.fixture(scope="module")
def risks(cabs: crowdveil.Trajectories) -> dict[int, dict[str, Risk]]:
    """All attacks with one, two and three known places."""
    made = {}
    for knowledge in (1, 2, 3):
        found = crowdveil.attack("all", cabs, tile_m=500, knowledge=knowledge, samples=20_000)
        assert isinstance(found, AttackResults)
        made[knowledge] = {name: before for name, (before, _) in found.risks.items()}
    return made


def test_more_background_knowledge_finds_more(risks: dict[int, dict[str, Risk]]) -> None:
    """More places, their order, their times and how often they were visited only ever make a crowd smaller."""
    one, two, three = risks[1], risks[2], risks[3]
    for name in one:
        assert np.all(one[name].group_size >= two[name].group_size) and np.all(
            two[name].group_size >= three[name].group_size
        ), name
        assert all(found[name].exact for found in (one, two, three)), name
    for less, more in (("location", "sequence"), ("location", "time"), ("unique-location", "frequency"),
                       ("unique-location", "proportion"), ("unique-location", "probability"), ("proportion", "frequency"),
                       ("unique-location", "location")):  # fmt: skip
        assert np.all(three[less].group_size >= three[more].group_size), (less, more)


def test_the_average_is_below_the_worst_and_in_its_interval(
    cabs: crowdveil.Trajectories, risks: dict[int, dict[str, Risk]]
) -> None:
    many, few = risks[2], crowdveil.attack("location", cabs, tile_m=500, samples=400, seed=3)
    for risk in many.values():
        assert risk.average.low <= risk.average.value <= risk.mean.value + 1e-9
    estimate = few["location"][0].average
    assert estimate.low <= many["location"].average.value <= estimate.high


def test_copies_of_three_people_are_never_found_with_more_than_a_third(
    cabs: crowdveil.Trajectories, tmp_path: Path
) -> None:
    crowdveil.anonymize(cabs, tmp_path / "out", method="microaggregation", k=3, attack=False, report=False)
    found = crowdveil.attack("all", cabs, tmp_path / "out", tile_m=500, knowledge=3)
    assert isinstance(found, AttackResults) and found.k == 3
    for name, (_, after) in found.risks.items():
        assert after is not None and after.highest <= 1 / 3, name
