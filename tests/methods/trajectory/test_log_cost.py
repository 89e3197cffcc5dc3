"""Log costs, bounds of them and groups, against their twins in plain Python."""

from __future__ import annotations

import math

import numpy as np
import plain_log_cost as plain
import pytest
from examples import ALL, tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.engine.progress import no_progress
from crowdveil.methods.baselines.log_cost_generalization import (
    LogCost,
    best_savings,
    lower_bounds,
    put_together,
)
from crowdveil.model.arrays import row_slices
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.testing import paths

WEIGHTS = st.sampled_from([(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (2.0, 0.5), (0.0, 0.0)])
SHARES = st.sampled_from([1.0, 0.6, 0.3, 0.05])


def _boxes(data: Paths) -> list[list[plain.Box]]:
    return [plain.boxes_of(list(zip(*(c.tolist() for c in data.one(i)), strict=True))) for i in range(len(data))]


def _columns(sides: np.ndarray) -> list[plain.Box]:
    return [tuple(column) for column in sides.T.tolist()]


def _spread(data: Paths, seed: int) -> Paths:
    """Places and times of real size, with few equal ones."""
    rng = np.random.default_rng(seed)
    x, y, t = (a * 300 + rng.uniform(0, wide, len(a)) for a, wide in ((data.x, 500), (data.y, 500), (data.t, 100)))
    trajectory = row_slices(data.offsets)
    return Paths(x, y, t[np.lexsort((t, trajectory))], data.offsets)


@settings(max_examples=tries(60))
@given(data=paths(min_paths=2, max_paths=2, max_points=4), weights=WEIGHTS, share=SHARES)
def test_the_cost_is_the_least_of_all_ways_to_match(data: Paths, weights: tuple[float, float], share: float) -> None:
    cost, (a, b) = LogCost(data, *weights, share), _boxes(data)
    s, p, q = _columns_of(data), len(a), len(b)
    own, other = s[:, :p].copy(), s[:, p:].copy()
    saved = best_savings(own, other, cost.costs)[-1, -1]
    assert math.isclose((p + q) * cost.costs[0] - saved, plain.cost_of_all_ways(a, b, cost.costs), abs_tol=1e-9)
    assert saved == plain.savings(a, b, cost.costs)[-1][-1]
    assert _columns(put_together(own, other, cost.costs)) == plain.put_together(a, b, cost.costs)


def _columns_of(data: Paths) -> np.ndarray:
    return np.stack([data.x, data.x, data.y, data.y, data.t, data.t])


@given(
    data=paths(max_paths=7), weights=WEIGHTS, share=SHARES, k=st.integers(2, 4), growing=st.booleans(), draw=st.data()
)
def test_groups_are_those_of_the_plain_twin(
    data: Paths, weights: tuple[float, float], share: float, k: int, growing: bool, draw: st.DataObject
) -> None:
    data = _spread(data, 1) if draw.draw(st.booleans()) else data
    person = np.array([draw.draw(st.integers(0, len(data) - 1)) for _ in range(len(data))])
    cost = LogCost(data, *weights, share)
    found = cost.groups(person, k, growing, np.random.default_rng(5), no_progress)
    order = np.random.default_rng(5).permutation(len(data)).tolist()
    wanted = plain.groups(_boxes(data), person.tolist(), k, growing, order, cost.costs)
    assert [(g.members.tolist(), _columns(g.sides)) for g in found] == wanted


@pytest.mark.parametrize("growing", [True, False])
def test_long_trajectories_are_put_into_the_groups_of_the_plain_twin(growing: bool) -> None:
    """More points than chunks, so that every bound has something to say."""
    data = _walks(30, 7, 40)
    cost = LogCost(data)
    found = cost.groups(np.arange(30) // 2, 3, growing, np.random.default_rng(2))
    order = np.random.default_rng(2).permutation(30).tolist()
    wanted = plain.groups(_boxes(data), (np.arange(30) // 2).tolist(), 3, growing, order, cost.costs)
    assert [(g.members.tolist(), _columns(g.sides)) for g in found] == wanted


def test_matches_that_are_passed_over_change_no_group_of_long_trajectories() -> None:
    data = _walks(12, 180, 260) if ALL else _walks(8, 100, 140)
    n, cost = len(data.offsets) - 1, LogCost(data)
    found = cost.groups(np.arange(n), 3, True, np.random.default_rng(2))
    order = np.random.default_rng(2).permutation(n).tolist()
    wanted = plain.groups(_boxes(data), list(range(n)), 3, True, order, cost.costs)
    assert [(g.members.tolist(), _columns(g.sides)) for g in found] == wanted


def test_costs_are_looked_up_again_when_a_group_has_grown() -> None:
    """1 and 2 are equally near to 0, on two sides; when 1 has joined, 3 is nearer than 2."""
    data = Paths(np.array([0.0, 10.0, -10.0, 12.0]), np.zeros(4), np.zeros(4), np.arange(5))
    for seed in range(12):
        found = LogCost(data).groups(np.arange(4), 3, True, np.random.default_rng(seed))
        order = np.random.default_rng(seed).permutation(4).tolist()
        wanted = plain.groups(_boxes(data), list(range(4)), 3, True, order, LogCost(data).costs)
        assert [(g.members.tolist(), _columns(g.sides)) for g in found] == wanted
        if order[0] == 0:
            assert found[0].members.tolist() == [0, 1, 3, 2]


def _walks(n: int, least: int, most: int) -> Paths:
    """Walks across a town in quarters of an hour."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(least, most, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = [np.cumsum(rng.normal(rng.normal(0, 60, 2), 40, (m, 2)), axis=0) + rng.normal(0, 2000, 2) for m in lengths]
    t = np.concatenate([rng.integers(0, 3600) + np.sort(rng.integers(0, 900, m)) for m in lengths]).astype(np.float64)
    x, y = np.concatenate(steps).T
    return Paths(x.copy(), y.copy(), t, offsets)


@settings(max_examples=tries(40))
@given(seed=st.integers(0, 10**6), weights=WEIGHTS, share=SHARES)
def test_a_bound_is_a_bound(seed: int, weights: tuple[float, float], share: float) -> None:
    rng = np.random.default_rng(seed)
    boxes = np.empty((6, 60))
    for axis, scale in enumerate((1000, 3000, 600)):
        middle, half = np.cumsum(rng.normal(0, scale / 5, 60)), rng.exponential(scale / 10, 60) * rng.integers(0, 2, 60)
        boxes[2 * axis], boxes[2 * axis + 1] = middle - half, middle + half
    cut = int(rng.integers(1, 59))
    costs = (share * 25.0, *weights)
    own, rest = boxes[:, :cut].copy(), 60 - cut
    exact = rest * costs[0] - best_savings(own, boxes[:, cut:].copy(), costs)[-1, -1]
    bound = lower_bounds(own, boxes, np.array([0, cut, 60]), np.array([1]), costs)[0]
    # No more matches than the shorter one has boxes, and none saves more than two boxes that are left out.
    assert rest * costs[0] - 2 * costs[0] * min(cut, rest) - 1e-6 <= bound <= exact


@given(data=paths(min_paths=2), k=st.integers(2, 3), share=SHARES, growing=st.booleans())
def test_a_point_of_every_member_is_in_every_box_in_order(data: Paths, k: int, share: float, growing: bool) -> None:
    person = np.arange(len(data))
    for group in LogCost(data, suppression=share).groups(person, k, growing, np.random.default_rng(0)):
        assert len(group.members) >= k
        assert (np.diff(group.sides[4]) >= 0).all() and (np.diff(group.sides[5]) >= 0).all()
        for j in group.members.tolist():
            points = iter(_boxes(data)[j])
            for box in _columns(group.sides):
                assert any(plain.around(box, point) == box for point in points)


def test_everybody_is_in_one_group_and_nobody_without_a_crowd() -> None:
    data = _walks(23, 3, 9)
    for k in (2, 5, 7, 23):
        found = LogCost(data).groups(np.arange(23), k, True, np.random.default_rng(k))
        assert sorted(np.concatenate([g.members for g in found]).tolist()) == list(range(23))
        assert len(found) == 23 // k
    assert LogCost(data).groups(np.arange(23), 24, True, np.random.default_rng(0)) == []
    assert LogCost(data).groups(np.zeros(23, np.int64), 2, True, np.random.default_rng(0)) == []
