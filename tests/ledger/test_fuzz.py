"""Random sequences of releases of one ledger, attacked by linear algebra over all sets and by bounds of all groups of people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sequences import Attacked, K, Made, Trip, components, group_bounds, random_sequences, smallest_derivable

MOST_ATOMS_OF_PEOPLE = 4


def leaks(seed: int, wanted: int, folder: Path) -> tuple[int, int, int]:
    """Return how many components were attacked, in how many people too, and how many give a small group away."""
    attacked, of_people, found = 0, 0, 0
    for known, made, people in random_sequences(seed, wanted, folder):
        for component in components(known, made):
            smallest = smallest_derivable(component, people)
            attacked += smallest is not None
            found += smallest is not None and smallest < K
            if people and len(component.atoms) <= MOST_ATOMS_OF_PEOPLE:
                of_people += 1
                found += any(low >= 1 and high < K for low, high in group_bounds(component, made, K))
    return attacked, of_people, found


def test_no_group_follows_from_a_few_sequences(tmp_path: Path) -> None:
    attacked, of_people, found = leaks(1, 6, tmp_path)
    assert attacked > 6 and of_people > 0 and found == 0


@pytest.mark.slow
def test_no_group_follows_from_many_sequences(tmp_path: Path) -> None:
    attacked, of_people, found = leaks(20261118, 250, tmp_path)
    assert attacked > 500 and of_people > 200 and found == 0


def component(rows: list[list[int]], volumes: list[int]) -> Attacked:
    trips = [[Trip(0, 0, 0, 0, 0)] * volume for volume in volumes]
    return Attacked(np.array(rows, np.int64), trips)


def test_bounds_of_people_can_single_out_a_group_over_several_releases() -> None:
    """Three hours of exactly k people, each two of them together, and all of them: rounded numbers say who went twice.

    So a release states k in place of numbers of people where an earlier one shares records.
    """
    k = 3
    rows = [[0, 0, 0, -1, 0], [1, 0, -1, 0, 0], [2, -1, 0, 0, 0]]
    volumes = [k, k, k]
    numbers = [[k, k, k], [k], [k], [k], [2 * k]]
    rounded = [Made({}, people, True, {}) for people in numbers]
    least = [rounded[0], *(Made({}, [k], False, {}) for _ in numbers[1:])]
    found, safe = (list(group_bounds(component(rows, volumes), made, k)) for made in (rounded, least))
    assert any(low >= 1 and high < k for low, high in found)
    assert not any(low >= 1 and high < k for low, high in safe)
