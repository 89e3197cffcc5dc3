"""The search for the multiplier of a budget: the corner of the curve of costs, wherever the search begins."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import Plain, on_hull, problems

from crowdveil.errors import InputError
from crowdveil.experiments.profiles import make_profile
from crowdveil.kernels.od.partition import published_boxes
from crowdveil.kernels.od.structures import WHOLE
from crowdveil.model.arrays import frozen
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace
from crowdveil.solve.od.region_space import RegionSpace


@lru_cache(maxsize=2)
def _boxes_of_city(seed: int, splits: str = "trees") -> BoxSpace:
    """Boxes of a matrix of New York, built once for tests in a row."""
    flows = make_profile("nyc", np.random.default_rng(seed), 1)
    return BoxSpace.of(flows, 0, getattr(RegionSpace, splits)(flows), 10)


@lru_cache(maxsize=6)
def _from_nothing(splits: str, share: int) -> tuple[int, BoxSolution]:
    """A budget, and its partition by a search that begins at no given multiplier."""
    boxes = _boxes_of_city(5, splits)
    return boxes.total * share // 100, boxes.solve_for_budget(boxes.total * share // 100)


@examples(200)
@given(problem=problems(), k=st.integers(2, 5), budget=st.sampled_from([0, 1, 2, 3, 5, 8, 13, 21, 34]))
def test_every_budget_has_its_corner_of_the_curve(problem: Any, k: int, budget: int) -> None:
    flows, trips = problem
    everything = Plain(flows, trips, k).all()
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows), k)
    if not everything:
        return
    if min(s for _, s in everything) > budget:
        with pytest.raises(InputError, match=f"at most {budget}"):
            boxes.solve_for_budget(budget)
        return
    best = boxes.solve_for_budget(budget)
    assert (best.cost, best.suppressed) == min(
        (a, s) for a, s in everything if s <= budget and on_hull((a, s), everything)
    )


@pytest.mark.parametrize("part", [0.1, 0.88, 0.97, 1, 1.05, 1.5, 20])
@pytest.mark.parametrize("splits", ["trees", "rectangles"])
def test_a_multiplier_near_or_far_leads_to_the_same_partition(splits: str, part: float) -> None:
    boxes = _boxes_of_city(5, splits)
    for share in (1, 5, 10):
        budget, expected = _from_nothing(splits, share)
        # What it suppresses itself is found at once where it is the best at a multiplier that is tried.
        for now in (budget, expected.suppressed):
            found = boxes.solve_for_budget(now, Fraction(float(expected.multiplier or 1) * part))
            assert (found.cost, found.suppressed) == (expected.cost, expected.suppressed)
            for one, other in zip(*(published_boxes(x.choice, boxes.splits) for x in (found, expected)), strict=True):
                assert np.array_equal(one, other)


@examples(200)
@given(
    problem=problems(),
    k=st.integers(2, 5),
    budget=st.integers(1, 40),
    near=st.sampled_from([0.0, 1e-3, 30.0]) | st.floats(0, 30),
)
def test_where_the_search_begins_does_not_matter(problem: Any, k: int, budget: int, near: float) -> None:
    flows, _ = problem
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows), k)
    if len(boxes) == 0:
        return
    expected, best = boxes.solve_for_budget(budget), boxes.solve_for_budget(budget, Fraction(near))
    assert (best.cost, best.suppressed) == (expected.cost, expected.suppressed)
    assert best.lower_bound(budget) == expected.lower_bound(budget)
    kept = published_boxes(best.choice, boxes.splits)[0]
    cost, suppressed = int(boxes.cost[kept].sum()), boxes.total - int(boxes.volume[kept].sum())
    assert (cost, suppressed) == (best.cost, best.suppressed)


def test_a_budget_that_nothing_keeps_is_refused() -> None:
    every = _boxes_of_city(4)
    large = every.volume > 40
    boxes = replace(every, allowed=frozen(np.where(large, every.allowed - WHOLE, every.allowed), np.int8))
    with pytest.raises(InputError, match="no partition of the map suppresses fewer"):
        boxes.solve_for_budget(0)
    assert boxes.solve_for_budget(boxes.total).suppressed <= boxes.total
