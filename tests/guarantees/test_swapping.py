"""Checkers of swapped releases on files made by hand: right ones pass, and each way to falsify one is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.guarantees import (
    Guarantee,
    NoOwnPoints,
    OriginalPoints,
    SharedTilePairs,
    SwappedTrajectories,
    guarantee_from_manifest,
)
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.trajectories import Trajectories

# Two people with a trajectory each, and a third trajectory of the second one; points are (lon, t).
ORIGINAL = [[(0.0, 0), (1.0, 60), (2.0, 120)], [(5.0, 0), (6.0, 60), (7.0, 120)], [(8.0, 300), (9.0, 360)]]
SWAPPED = [[(0.0, 0), (1.0, 60), (7.0, 120)], [(5.0, 0), (6.0, 60), (2.0, 120)]]
PEOPLE, TRAJECTORIES = (
    SwappedTrajectories(swaps=1, k_unit="people"),
    SwappedTrajectories(swaps=1, k_unit="trajectories"),
)


def _original(rows: list[list[tuple[float, int]]] = ORIGINAL) -> Trajectories:
    flat = [point for row in rows for point in row]
    return Trajectories(
        np.array([x for x, _ in flat]), np.zeros(len(flat)), np.array([t for _, t in flat]),
        np.cumsum([0, *(len(row) for row in rows)]), np.arange(len(rows)), np.array([0, *[1] * len(rows)][: len(rows)]),
        np.array(["ann", "bob"], dtype=object),
    )  # fmt: skip


def _written(rows: list[list[tuple[float, int]]]) -> WrittenRelease:
    flat = [point for row in rows for point in row]
    table = {
        "lat": [0.0] * len(flat),
        "lon": [x for x, _ in flat],
        "timestamp": pa.array([1000 * t for _, t in flat], pa.timestamp("ms", tz="UTC")),
        "published_id": [i + 1 for i, row in enumerate(rows) for _ in row],
    }
    return WrittenRelease(Path("out"), pa.table(table), None, [])


def _holds(guarantee: Guarantee, rows: Any, source: Any = None, original: Any = ORIGINAL) -> bool:
    finding = guarantee.check_with_trajectories(
        _written(rows), _original(original), None if source is None else np.array(source)
    )
    assert finding.with_original and finding.outcome != "not checked"
    return finding.holds


@pytest.mark.parametrize("guarantee", [OriginalPoints(), PEOPLE, TRAJECTORIES])
def test_a_swapped_release_passes(guarantee: Guarantee) -> None:
    assert _holds(guarantee, SWAPPED)
    assert _holds(guarantee, [])


def test_written_and_original_points_have_one_number_if_they_are_equal() -> None:
    rng = np.random.default_rng(3)
    here, there = ([[(float(x), int(t))] for x, t in rng.integers(0, 4, (n, 2))] for n in (30, 40))
    here[0] = [(-0.0, 1)]
    written, original = _written(here), _original(there)
    numbers = np.concatenate(written.number_points(original)).tolist()
    points = [(x + 0.0, t) for [(x, t)] in here + there]
    same = {(points[i], numbers[i]) for i in range(len(points))}
    assert len(same) == len(set(points)) == len(set(numbers))


def test_points_of_another_original_have_their_own_numbers() -> None:
    written = _written([[(1.0, 1)]])
    for t in range(20):  # a new original often lies where the one before it was in memory
        here, there = written.number_points(_original([[(1.0, t)]]))
        assert (here[0] == there[0]) == (t == 1)


@pytest.mark.parametrize("guarantee", [OriginalPoints(), PEOPLE, TRAJECTORIES, NoOwnPoints(k_unit="people")])
def test_files_alone_say_nothing(guarantee: Guarantee) -> None:
    finding = guarantee.check(_written(SWAPPED))
    assert finding.outcome == "not checked"
    assert guarantee_from_manifest(guarantee.name, guarantee.model_dump(mode="json")) == guarantee


@pytest.mark.parametrize(
    "rows",
    [
        [[(0.0, 0), (1.0, 61)]],  # another time
        [[(0.0, 0), (1.5, 60)]],  # another place
        [[(0.0, 60), (1.0, 0)]],  # the place of one point and the time of another
        [[(0.0, 0), (0.0, 0)]],  # one point twice
        [[(0.0, 0)], [(0.0, 0)]],
    ],
)
def test_points_that_are_not_there(rows: Any) -> None:
    assert not _holds(OriginalPoints(), rows)


def test_points_that_are_there_twice_may_be_published_twice() -> None:
    assert _holds(OriginalPoints(), [[(0.0, 0)], [(0.0, 0)]], original=[[(0.0, 0)], [(0.0, 0), (1.0, 9)]])


def test_a_trajectory_that_was_not_swapped() -> None:
    assert not _holds(TRAJECTORIES, [*SWAPPED, [(8.0, 300), (9.0, 360)]])
    assert not _holds(SwappedTrajectories(swaps=2, k_unit="people"), SWAPPED)
    assert _holds(SwappedTrajectories(swaps=2, k_unit="people"), [[(0.0, 0), (6.0, 60), (2.0, 120)]])


def test_a_swap_with_oneself_counts_only_where_trajectories_do() -> None:
    own = [[(5.0, 0), (6.0, 60), (8.0, 300)]]
    assert _holds(TRAJECTORIES, own) and not _holds(PEOPLE, own)


def test_a_point_of_several_people_proves_no_swap() -> None:
    shared = [[(0.0, 0), (1.0, 60), (2.0, 120)], [(5.0, 0), (1.0, 60), (7.0, 120)]]
    assert not _holds(PEOPLE, [[(0.0, 0), (1.0, 60), (2.0, 120)]], original=shared)
    assert _holds(PEOPLE, [[(0.0, 0), (1.0, 60), (7.0, 120)]], original=shared)


def test_points_that_stayed_at_home() -> None:
    guarantee = NoOwnPoints(k_unit="people")
    assert _holds(guarantee, [[(5.0, 0), (7.0, 120)], [(0.0, 0)]], [0, 1])
    assert not _holds(guarantee, [[(5.0, 0), (1.0, 60)], [(0.0, 0)]], [0, 1])
    assert not _holds(guarantee, [[(5.0, 0), (7.0, 120)]], [0, 1])
    # Of another trajectory of the same person: only where trajectories count is it of another person.
    assert not _holds(guarantee, [[(8.0, 300)]], [1])
    assert _holds(NoOwnPoints(k_unit="trajectories"), [[(8.0, 300)]], [1])


METER = 1 / 111_319.49


def _walks(*walks: list[int]) -> WrittenRelease:
    """Walks along the equator, by the meters east of the corner."""
    flat = [meters for walk in walks for meters in walk]
    table = {
        "lat": [0.001] * len(flat),
        "lon": [meters * METER for meters in flat],
        "timestamp": pa.array([1000 * i for walk in walks for i in range(len(walk))], pa.timestamp("ms", tz="UTC")),
        "published_id": [i + 1 for i, walk in enumerate(walks) for _ in walk],
    }
    return WrittenRelease(Path("out"), pa.table(table), None, [])


def _shared_pairs(least: int, k_unit: str = "people") -> SharedTilePairs:
    return SharedTilePairs.model_validate(
        {"min_group_size": least, "tile_size_m": 1000.0, "lon0": 0.0, "lat0": 0.0, "k_unit": k_unit}
    )


@pytest.mark.parametrize(
    ("walks", "least", "holds"),
    [
        ([[100, 1200], [900, 1900]], 2, True),
        ([[100, 1200], [900, 1900]], 3, False),
        ([[100, 300, 1200], [900, 1900]], 2, True),  # two points in a tile are one visit
        ([[100, 1200], [1200, 100]], 2, False),  # the way back is another step
        ([[100, 1200], [100, 2200]], 2, False),
        ([[100, 1200], [100, 2200, 1200]], 2, False),  # by way of another tile
        ([[100, 900], [1100, 1900]], 2, True),  # no step at all
        ([[100], [1200]], 2, True),  # two trajectories make no step
        ([[100, 1200, 100, 1200]], 2, False),  # twice by the same one is once
    ],
)
def test_steps(walks: list[list[int]], least: int, holds: bool) -> None:
    assert _shared_pairs(least, "trajectories").check(_walks(*walks)).holds is holds
    behind = np.arange(len(walks))
    assert _shared_pairs(least).check_with_people(_walks(*walks), behind).holds is holds


def test_two_trajectories_of_one_person_are_one() -> None:
    written = _walks([100, 1200], [900, 1900])
    assert _shared_pairs(2).check(written).outcome == "not checked"
    finding = _shared_pairs(2).check_with_people(written, np.array([4, 4]))
    assert finding.violated and finding.with_original
    assert _shared_pairs(2, "trajectories").check_with_people(written, np.array([4, 4])).holds
    assert not _shared_pairs(2).check_with_people(written, np.array([4])).holds
