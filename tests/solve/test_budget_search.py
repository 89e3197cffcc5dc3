"""Search for several budgets at once: the same partitions as one search for each."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest
from examples import ALL, examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import Plain, on_hull, problems

from crowdveil.errors import InputError
from crowdveil.kernels.od.partition import published_boxes
from crowdveil.kernels.od.structures import WHOLE
from crowdveil.methods.od.joint import JointParams, run
from crowdveil.model.arrays import frozen
from crowdveil.model.flows import Flows
from crowdveil.progress import no_progress
from crowdveil.solve.od import several_budgets
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.budget_search import BoxSolution
from crowdveil.solve.od.kept_boxes import keep_boxes
from crowdveil.solve.od.region_space import Objective, RegionSpace
from crowdveil.solve.od.several_budgets import search_budgets
from crowdveil.synth.profiles import make_profile

MANY = [0, 1, 2, 3, 5, 8, 13, 21, 34]


@lru_cache(maxsize=2)
def _boxes_of_city(seed: int, splits: str = "trees", objective: Objective = "generalization") -> BoxSpace:
    """Boxes of a matrix of New York, built once for tests in a row."""
    flows = make_profile("nyc", np.random.default_rng(seed), 1)
    return BoxSpace.of(flows, 0, getattr(RegionSpace, splits)(flows, objective), 10, objective)


@lru_cache(maxsize=6)
def _alone(splits: str, share: int) -> tuple[int, BoxSolution]:
    """A budget, and its partition by a search of its own."""
    boxes = _boxes_of_city(5, splits)
    return boxes.total * share // 100, boxes.solve_for_budget(boxes.total * share // 100)


@examples(200)
@given(problem=problems(), k=st.integers(2, 5), budgets=st.lists(st.sampled_from(MANY), min_size=1, max_size=6))
def test_every_budget_has_its_corner_of_the_curve(problem: Any, k: int, budgets: list[int]) -> None:
    flows, trips = problem
    everything = Plain(flows, trips, k).all()
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows), k)
    if not everything:
        return
    found = dict(search_budgets(boxes, budgets))
    assert found.keys() == set(budgets)
    for budget, solution in found.items():
        if min(s for _, s in everything) > budget:
            assert isinstance(solution, InputError) and f"at most {budget}" in solution.text
        else:
            assert isinstance(solution, BoxSolution)
            assert (solution.cost, solution.suppressed) == min(
                (a, s) for a, s in everything if s <= budget and on_hull((a, s), everything)
            )


SHARES = (0, 1, 2, 5, 6, 7, 20, 50, 100) if ALL else (0, 2, 5, 6, 50)
"""Percentages of trips that may be suppressed."""


@pytest.mark.parametrize("objective", ["generalization", "reconstruction"])
@pytest.mark.parametrize("splits", ["trees", "rectangles"])
def test_partitions_are_those_of_one_search_for_each(objective: Objective, splits: str) -> None:
    boxes = _boxes_of_city(4, splits, objective)
    budgets = [boxes.total * share // 100 for share in SHARES]
    for near in ([], [float(boxes.solve_for_budget(budgets[2]).multiplier or 1)]):
        for budget, found in search_budgets(boxes, budgets, near):
            alone = boxes.solve_for_budget(budget)
            assert isinstance(found, BoxSolution)
            assert (found.cost, found.suppressed) == (alone.cost, alone.suppressed)
            for one, other in zip(*(published_boxes(x.choice, boxes.splits) for x in (found, alone)), strict=True):
                assert np.array_equal(one, other)
            if found.published is not None:
                assert np.array_equal(found.published, published_boxes(found.choice, boxes.splits)[0])
            chosen, gaps, published = boxes.improve(found, budget)
            alone_chosen, alone_gaps, _ = boxes.improve(alone, budget)
            assert gaps == alone_gaps and boxes.cost_of(chosen) == boxes.cost_of(alone_chosen)
            if published is not None:
                assert np.array_equal(published, published_boxes(chosen, boxes.splits)[0])


@pytest.mark.parametrize("part", [0.1, 0.88, 0.97, 1, 1.05, 1.5, 20])
@pytest.mark.parametrize("splits", ["trees", "rectangles"])
def test_a_multiplier_near_or_far_leads_to_the_same_partition(splits: str, part: float) -> None:
    boxes = _boxes_of_city(5, splits)
    for share in (1, 5, 10):
        budget, alone = _alone(splits, share)
        # What it suppresses itself is found at once where it is the best at a multiplier that is tried.
        for now in (budget, alone.suppressed):
            ((_, found),) = search_budgets(boxes, [now], [float(alone.multiplier or 1) * part])
            assert isinstance(found, BoxSolution)
            assert (found.cost, found.suppressed) == (alone.cost, alone.suppressed)
            for one, other in zip(*(published_boxes(x.choice, boxes.splits) for x in (found, alone)), strict=True):
                assert np.array_equal(one, other)


@examples(200)
@given(
    problem=problems(),
    k=st.integers(2, 5),
    budgets=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    near=st.lists(st.sampled_from([0.0, 1e-3, 30.0]) | st.floats(0, 30), max_size=4),
)
def test_where_the_search_begins_does_not_matter(problem: Any, k: int, budgets: list[int], near: list[float]) -> None:
    flows, _ = problem
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows), k)
    if len(boxes) == 0:
        return
    from_nothing = dict(search_budgets(boxes, budgets))
    for budget, found in search_budgets(boxes, budgets, near):
        alone, other = boxes.solve_for_budget(budget), from_nothing[budget]
        assert isinstance(found, BoxSolution) and isinstance(other, BoxSolution)
        assert found.multiplier == other.multiplier or len(from_nothing) == 1
        assert (found.cost, found.suppressed) == (alone.cost, alone.suppressed)
        published = [published_boxes(x.choice, boxes.splits)[0] for x in (found, alone)]
        assert len({int(boxes.cost[kept].sum()) for kept in published} | {found.cost}) == 1
        assert len({boxes.total - int(boxes.volume[kept].sum()) for kept in published} | {found.suppressed}) == 1
        assert found.lower_bound(budget) == alone.lower_bound(budget)


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("limit", [{}, {"MAX_KEY": 2**20}, {"MAX_BYTES": 2**22}])
def test_budgets_that_need_another_way_have_the_same_partitions(
    monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], many: bool
) -> None:
    boxes = _boxes_of_city(4)
    budgets = [boxes.total * share // 100 for share in (1, 2, 3, 5, 8, 13, 100)]
    searched = []

    def alone(search: Any, *given: Any) -> BoxSolution:
        searched.append(given[1])
        found: BoxSolution = search(*given)
        return found

    for name in ("search_budget", "search_budget_near"):
        monkeypatch.setattr(several_budgets, name, partial(alone, getattr(several_budgets, name)))
    for name, value in limit.items():
        monkeypatch.setattr(several_budgets, name, value)
    found = dict(search_budgets(boxes, budgets, many=many))
    assert [found[b].suppressed for b in budgets] == [boxes.solve_for_budget(b).suppressed for b in budgets]  # type: ignore[union-attr]
    assert len(searched) == (len(budgets) if "MAX_KEY" in limit else 0)


def test_a_budget_that_nothing_keeps_fails_alone() -> None:
    every = _boxes_of_city(4)
    large = every.volume > 40
    boxes = replace(every, allowed=frozen(np.where(large, every.allowed - WHOLE, every.allowed), np.int8))
    found = dict(search_budgets(boxes, [0, boxes.total]))
    assert isinstance(found[0], InputError) and isinstance(found[boxes.total], BoxSolution)


def _same(one: Any, other: Any) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("offsets", "origin", "destination", "volume", "people", "state", "suppressed")
    ) and list(one.areas.names) == list(other.areas.names)


@pytest.mark.parametrize("given", [{}, {"aggregate_small": True}, {"refine": True, "trim": True}])
def test_runs_that_are_solved_together_release_the_same(given: dict[str, Any]) -> None:
    flows: Flows = make_profile("nyc", np.random.default_rng(5), 3)
    runs = [JointParams(suppress=share, **given) for share in (0.0, 0.05, 0.1, 0.3)]
    runs.append(JointParams(suppress_trips=100, suppress=None, **given))
    alone = [run(flows, params, np.random.default_rng(0), no_progress) for params in runs]
    with keep_boxes(flows, runs):
        together = [run(flows, params, np.random.default_rng(0), no_progress) for params in runs]
    assert all(map(_same, alone, together))
    assert not _same(alone[1], alone[3])
