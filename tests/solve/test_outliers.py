"""Suppression of the groups with the largest distortion: against a plain twin, and by brute force on few groups."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import plain_trajectories as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.engine.progress import no_progress
from crowdveil.guarantees import SuppressedTrajectories
from crowdveil.methods.base import Facts
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_method
from crowdveil.solve.trajectory.aggregation import plane_paths
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.solve.trajectory.microaggregation import largest_within
from crowdveil.testing import trajectories

GROUPING = (
    "microaggregation",
    "time-partitioned-microaggregation",
    "frechet-microaggregation",
    "log-cost-generalization",
)


def _run(name: str, data: Trajectories, **parameters: Any) -> Any:
    method = find_method(name)
    params = method.params.checked({"k": 2, **parameters})
    return method.run(data, params, np.random.default_rng(5), no_progress)


def _content(release: Any) -> list[tuple[tuple[float, float, int], ...]]:
    """Return the points of each published trajectory."""
    points = list(zip(release.lon.tolist(), release.lat.tolist(), release.t.tolist(), strict=True))
    return [
        tuple(points[a:b]) for a, b in zip(release.offsets[:-1].tolist(), release.offsets[1:].tolist(), strict=True)
    ]


@pytest.mark.parametrize("name", GROUPING)
@settings(max_examples=tries(25), deadline=None)
@given(data=trajectories(max_trajectories=12, max_points=4), percent=st.sampled_from([10, 30, 50]))
def test_suppressed_are_whole_groups_by_falling_distortion(name: str, data: Trajectories, percent: int) -> None:
    """The twin takes the complete release apart, and computes distortions and the budget from their definitions."""
    weight = 0.3 if "frechet" not in name and "log-cost" not in name else 0.0
    more = {"time_weight": weight} if weight else {}
    whole, some = _run(name, data, **more), _run(name, data, suppress=f"{percent}%", **more)
    groups: dict[Any, list[int]] = {}
    for source, content in zip(whole.source.tolist(), _content(whole), strict=True):
        groups.setdefault(content, []).append(source)
    published = dict(zip(some.source.tolist(), _content(some), strict=True))
    for content, members in groups.items():
        kept = [m for m in members if m in published]
        assert all(published[m] == content for m in kept), "what is published for others has changed"
    budget = int(Fraction(percent, 100) * len(data)) - (len(data) - len(whole))
    assert len(whole) - len(some) <= max(budget, 0)
    absent = set(whole.source.tolist()) - set(published)
    assert not absent or len({int(data.person[m]) for m in absent}) >= 2
    # Groups with equal content are one equivalence class here, and may be several groups of the method.
    if len(groups) < 2 or any(0 < sum(m in published for m in members) < len(members) for members in groups.values()):
        return
    paths, made = Paths.of(data), plane_paths(data, whole)
    listed = [list(zip(*(c.tolist() for c in paths.one(i)), strict=True)) for i in range(len(data))]
    copies = [list(zip(*(c.tolist() for c in made.one(i)), strict=True)) for i in range(len(whole))]
    row = {source: i for i, source in enumerate(whole.source.tolist())}

    def distortion(members: list[int]) -> float:
        squares = [plain.spatiotemporal(copies[row[m]], listed[m], weight) ** 2 for m in members]
        return sum(squares) / len(squares)

    left = budget
    for members in sorted(groups.values(), key=lambda m: -distortion(m)):
        is_suppressed = members[0] not in published
        assert is_suppressed == (len(members) <= left) or _tied(members, groups, distortion)
        left -= len(members) if is_suppressed else 0


def _tied(members: list[int], groups: Any, distortion: Any) -> bool:
    """Return whether another group is as distorted up to rounding, so that either may come first."""
    own = distortion(members)
    return any(other is not members and abs(distortion(other) - own) <= 1e-6 * own for other in groups.values())


@settings(max_examples=tries(100))
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(2, 4)), max_size=6), st.integers(0, 12))
def test_no_set_of_groups_within_the_budget_comes_first(groups: list[tuple[int, int]], budget: int) -> None:
    """Brute force: of all sets of groups within the budget, the one that is first when groups are taken by distortion."""
    distortion, sizes = np.array([float(d) for d, _ in groups]), np.array([s for _, s in groups], np.int64)
    order = sorted(range(len(groups)), key=lambda g: (-distortion[g], g))
    sets = [set(some) for n in range(len(groups) + 1) for some in combinations(range(len(groups)), n)]
    within = [some for some in sets if sum(int(sizes[g]) for g in some) <= budget]
    first = max(within, key=lambda some: [g in some for g in order])
    assert set(np.flatnonzero(largest_within(distortion, sizes, budget)).tolist()) == first


def test_the_far_group_is_suppressed_and_facts_do_not_count_it() -> None:
    """Ten pairs of neighbors, and two people far from all and from one another, who are a group for lack of others."""
    lon = np.repeat(np.concatenate([np.arange(20) // 2 * 0.01, [0.5, 0.9]]), 2)
    n = 22
    t = np.tile([0, 60], n)
    data = Trajectories(lon, np.zeros(2 * n), t, np.arange(0, 2 * n + 1, 2), *[np.arange(n)] * 3)
    for name in GROUPING:
        release = _run(name, data, suppress="10%")
        assert not {20, 21} & set(release.source.tolist()), name
        assert len(release) >= 20, name
    clusters = {_run("frechet-microaggregation", data, suppress=s).facts["clusters"] for s in ("0%", "10%")}
    assert len(clusters) == 2
    late = Trajectories(
        lon, np.zeros(2 * n), t + np.repeat(np.arange(n) >= 20, 2) * 10**6, data.offsets, *[np.arange(n)] * 3
    )
    parts = [_run("time-partitioned-microaggregation", late, suppress=s).facts["parts"] for s in ("0%", "10%")]
    assert parts == [2, 1]


def test_the_guarantee_is_stated_only_where_nothing_else_is_left_out() -> None:
    def stated(name: str, **parameters: Any) -> bool:
        method = find_method(name)
        found = method.guarantees(method.params.checked(parameters), Facts("people"))
        return any(isinstance(g, SuppressedTrajectories) for g in found)

    assert all(stated(name, suppress="2%") and not stated(name) for name in GROUPING)
    assert not stated("microaggregation", suppress="2%", distance="graph")
    assert not stated("frechet-microaggregation", suppress="2%", left_over="drop")
    assert not stated("log-cost-generalization", suppress="2%", suppression_cost=0.5)
