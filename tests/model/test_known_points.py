from __future__ import annotations

import numpy as np

from crowdveil.model.known_points import measured_lines, measured_linkage
from crowdveil.model.swapping import equal_points
from crowdveil.model.trajectories import Trajectories


def _walks(n: int, length: int) -> Trajectories:
    """n people, a trajectory each, all at different places."""
    lon = np.arange(n * length) / 1000
    return Trajectories(
        lon, np.zeros(len(lon)), np.tile(np.arange(length), n), np.arange(n + 1) * length, np.arange(n), np.arange(n),
        np.array([f"p{i}" for i in range(n)], dtype=object),
    )  # fmt: skip


def _measured(data: Trajectories, paths: list[list[int]]) -> dict[str, int | None]:
    points = np.array([p for path in paths for p in path], np.int64)
    offsets = np.cumsum([0, *map(len, paths)])
    return measured_linkage(data, points, offsets, equal_points(data), np.random.default_rng(1))


def test_the_original_itself_is_found_and_true() -> None:
    data = _walks(50, 6)
    found = _measured(data, [list(range(6 * i, 6 * i + 6)) for i in range(50)])
    assert (found["found_percent"], found["true_points_percent"]) == (100, 100)
    assert found["trajectories_tried"] == 50 and found["found_percent_in_the_original"] == 100


def test_single_points_lead_nowhere() -> None:
    found = _measured(_walks(50, 6), [[i] for i in range(300)])
    assert (found["found_percent"], found["true_points_percent"]) == (0, None)
    assert measured_lines({"measured": found}) == [
        "found by 2 known points  0 % of trajectories (in the original 100 %)"
    ]


def test_halves_of_two_people_are_found_two_times_in_five_and_are_two_fifths_true() -> None:
    """Two of six points lie in one half of three in 6 of 15 cases; of the 4 other points there 1 is the same person's."""
    data = _walks(600, 6)
    paths = [
        [*range(6 * i, 6 * i + 3), *range(6 * j + 3, 6 * j + 6)]
        for i in range(600)
        for j in [i + 1 if i % 2 == 0 else i - 1]
    ]
    found = _measured(data, paths)
    assert abs(found["found_percent"] - 40) <= 6 and found["true_points_percent"] == 25


def test_points_that_everybody_has_lead_to_nobody() -> None:
    data = _walks(50, 6)
    alike = Trajectories(
        np.tile(data.lon[:6], 50), data.lat, data.t, data.offsets, data.ids, data.person, data.people_ids
    )
    found = _measured(alike, [list(range(6 * i, 6 * i + 6)) for i in range(50)])
    assert (found["found_percent"], found["found_percent_in_the_original"]) == (0, 0)


def test_nothing_to_try_says_nothing() -> None:
    found = _measured(_walks(3, 1), [[0], [1], [2]])
    assert found["trajectories_tried"] == 0 and found["found_percent"] is None
    assert measured_lines({"measured": found}) == [] == measured_lines({})
