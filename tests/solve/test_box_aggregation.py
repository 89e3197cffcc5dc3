"""Boxes in place of points: against all walks on tiny trajectories, and that they contain what they stand for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.trajectory import box_alignment
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.aggregation import BOX, DECIMALS, aggregate
from crowdveil.solve.trajectory.distances import make_distance
from crowdveil.testing import trajectories

Walk = list[tuple[int, int]]
colors = st.lists(st.integers(0, 3), min_size=8, max_size=8)
meters = st.integers(-50, 50).map(float)
paths = st.lists(st.tuples(meters, meters, st.integers(0, 60).map(float)), min_size=1, max_size=4)


def _walks(n: int, m: int) -> list[Walk]:
    """All walks along two paths of n and m points: forward on one of them or on both, to the end of both."""
    if n == m == 1:
        return [[(0, 0)]]
    shorter = [(n - 1, m - 1), (n - 1, m), (n, m - 1)]
    return [[*walk, (n - 1, m - 1)] for a, b in shorter if a and b for walk in _walks(a, b)]


def _cost(walk: Walk, own: list, goal: list, worth: float) -> float:  # type: ignore[type-arg]
    far = ((own[i], goal[j]) for i, j in walk)
    return sum((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (worth * (a[2] - b[2])) ** 2 for a, b in far)


@settings(max_examples=tries(60), deadline=None)
@given(own=paths, goal=paths, worth=st.sampled_from([0.0, 0.5]))
def test_no_walk_has_a_smaller_sum_of_squares(own: list, goal: list, worth: float) -> None:  # type: ignore[type-arg]
    columns = [tuple(np.array(column) for column in zip(*path, strict=True)) for path in (own, goal)]
    found = [tuple(pair) for pair in box_alignment.shortest_walk(*columns, worth).tolist()]
    every = _walks(len(own), len(goal))
    assert found in every
    assert _cost(found, own, goal, worth) == min(_cost(walk, own, goal, worth) for walk in every)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (4, 1), (5, 3), (3, 7)])
def test_an_even_walk_visits_all_points_in_order(n: int, m: int) -> None:
    walk = box_alignment.even_walk(n, m)
    assert walk[0].tolist() == [0, 0] and walk[-1].tolist() == [n - 1, m - 1]
    assert (np.diff(walk, axis=0) >= 0).all() and (np.diff(walk, axis=0) <= 1).all()


@settings(max_examples=tries(60), deadline=None)
@given(data=trajectories(), color=colors, weight=st.sampled_from([0.0, 0.7]))
def test_every_point_is_in_a_box_and_every_box_has_a_point_of_each(
    data: Trajectories, color: list[int], weight: float
) -> None:
    shade = np.array(color[: len(data)], np.int64)
    members = np.argsort(shade, kind="stable")
    sizes = np.bincount(shade)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[sizes > 0])])
    made = aggregate(data, make_distance(data, "spatiotemporal", weight), members, offsets, BOX)
    boxes = made.boxes
    assert boxes is not None
    assert boxes.contains(made.lon, made.lat, made.t).all()
    assert all((np.round(side, DECIMALS) == side).all() for side in boxes[:4])
    for g in range(len(offsets) - 1):
        here = np.arange(made.offsets[g], made.offsets[g + 1])
        assert all(a <= b for times in (boxes.t_min, boxes.t_max) for a, b in pairwise(times[here].tolist()))
        points = [
            (p, i)
            for i in members[offsets[g] : offsets[g + 1]].tolist()
            for p in range(data.offsets[i], data.offsets[i + 1])
        ]
        for p, _ in points:
            assert any(_inside(boxes, b, data, p) for b in here.tolist())
        for b in here.tolist():
            inside = [(p, i) for p, i in points if _inside(boxes, b, data, p)]
            assert {i for _, i in inside} == set(members[offsets[g] : offsets[g + 1]].tolist())
            # No side is farther out than it must be: each has a point of the group within the rounding.
            assert min(abs(data.lat[p] - boxes.lat_min[b]) for p, _ in inside) < 2 * 10**-DECIMALS
            assert max(data.t[p] for p, _ in inside) == boxes.t_max[b]


def _inside(boxes: object, b: int, data: Trajectories, p: int) -> bool:
    west, east, south, north, first, last = (side[b] for side in boxes)  # type: ignore[attr-defined]
    return bool(west <= data.lon[p] <= east and south <= data.lat[p] <= north and first <= data.t[p] <= last) or bool(
        west > east and (data.lon[p] >= west or data.lon[p] <= east)
    )
