from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.attacks import known_points
from crowdveil.attacks.known_points import measured_lines, measured_linkage
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.swapping import equal_points
from crowdveil.testing import trajectories


@pytest.fixture(autouse=True, scope="module")
def of_any_number() -> Iterator[None]:
    """Publish shares of a few trajectories too: the data here is small."""
    before, known_points.FEWEST = known_points.FEWEST, 1
    yield
    known_points.FEWEST = before


def test_shares_of_few_are_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_points, "FEWEST", 50)
    assert known_points._percent(1, 49) is None and known_points._percent(25, 50) == 50


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
    source = np.arange(len(paths)) % len(data)
    return measured_linkage(data, points, offsets, source, equal_points(data), np.random.default_rng(1))


def test_the_original_itself_is_found_and_true() -> None:
    data = _walks(50, 6)
    found = _measured(data, [list(range(6 * i, 6 * i + 6)) for i in range(50)])
    assert (found["found_percent"], found["true_points_percent"]) == (100, 100)
    assert found["linked_percent"] == 100
    assert found["trajectories_tried"] == 50 and found["found_percent_in_the_original"] == 100


def test_single_points_lead_nowhere() -> None:
    found = _measured(_walks(50, 6), [[i] for i in range(300)])
    assert (found["found_percent"], found["true_points_percent"]) == (0, None)
    assert measured_lines({"measured": found}) == [
        "re-identified by 2 known points  0 % of trajectories (in the original 100 %)",
        f"re-identified by the whole trajectory  {found['linked_percent']} % of trajectories",
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


def test_points_that_all_share_re_identify_none() -> None:
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


def test_a_way_under_another_name_is_no_link() -> None:
    data = _walks(50, 6)
    own = [list(range(6 * i, 6 * i + 6)) for i in range(50)]
    assert _measured(data, own[1:] + own[:1])["linked_percent"] == 0


@given(data=trajectories(), seed=st.integers(0, 9))
def test_links_are_those_of_plain_loops(data: Trajectories, seed: int) -> None:
    name = np.random.default_rng(seed).permutation(data.trajectory)
    order = np.lexsort((data.t, name))
    source, lengths = np.unique(name, return_counts=True)
    offsets = np.cumsum([0, *lengths])
    found = measured_linkage(data, order, offsets, source, equal_points(data), np.random.default_rng(1))
    tried = [i for i in range(len(data)) if data.offsets[i + 1] - data.offsets[i] > 1]
    right, (x, y) = 0, data.xy
    for i in tried:
        gain = dict.fromkeys(range(len(source)), 0.0)
        for r in range(data.offsets[i], data.offsets[i + 1]):
            for p in gain:
                near = [q for q in order[offsets[p] : offsets[p + 1]] if abs(data.t[q] - data.t[r]) <= 120]
                gain[p] += max([2000.0 - math.sqrt((x[q] - x[r]) ** 2 + (y[q] - y[r]) ** 2) for q in near] + [0.0])
        best = max(gain.values())
        winners = [p for p, g in gain.items() if g == best and g > 0]
        right += len(winners) == 1 and source[winners[0]] == i
    assert found["linked_percent"] == (round(100 * right / len(tried)) if tried else None)


def test_only_points_near_in_space_and_time_are_compared() -> None:
    """Cells have all points that are near, and few others."""
    rng = np.random.default_rng(5)
    t, lon = np.sort(rng.integers(-3000, 3000, 400)), rng.uniform(-0.1, 0.1, 400)
    data = Trajectories(
        lon, np.zeros(400), t, np.array([0, 400]), np.arange(1), np.arange(1), np.array(["a"], dtype=object)
    )
    rows, points, (x, _) = rng.integers(0, 400, 4), rng.permutation(400), data.xy
    near = [
        i
        for i, p in enumerate(points)
        if np.any((abs(t[p] - t[rows]) <= known_points.NEAR_S) & (abs(x[p] - x[rows]) <= known_points.FAR_M))
    ]
    found = known_points._near_points(data, rows, points).tolist()
    assert 0 < len(near) <= len(found) < 100 and set(near) <= set(found)
