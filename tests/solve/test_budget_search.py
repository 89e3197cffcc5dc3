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
from crowdveil.kernels.od.structures import COLUMNS, MOST_PARTITIONS, PARTS, WHOLE
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
from crowdveil.solve.od.solved_budget import SolvedBudget
from crowdveil.solve.od.step_solver import StepSolution
from crowdveil.synth.profiles import make_profile

MANY = [0, 1, 2, 3, 5, 8, 13, 21, 34]


def _best(found: BoxSolution | SolvedBudget | InputError) -> BoxSolution:
    """The partition of a multiplier; where budgets were solved together, its choices are those after the rest was spent."""
    assert not isinstance(found, InputError)
    return found.best if isinstance(found, SolvedBudget) else found


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
            best = _best(solution)
            assert (best.cost, best.suppressed) == min(
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
            assert (_best(found).cost, _best(found).suppressed) == (alone.cost, alone.suppressed)
            chosen, gaps, _ = boxes.improve(alone, budget)
            if isinstance(found, SolvedBudget):
                for left in (False, True):
                    _assert_same(
                        found.outcome(budget, lambda: boxes, left=left), boxes.outcome(chosen, *gaps, 0.0, left=left)
                    )
                continue
            found_chosen, found_gaps, published = boxes.improve(_best(found), budget)
            assert found_gaps == gaps and boxes.cost_of(found_chosen) == boxes.cost_of(chosen)
            if published is not None:
                assert np.array_equal(published, published_boxes(found_chosen, boxes.splits)[0])


def _assert_same(one: StepSolution, other: StepSolution) -> None:
    """The same boxes, and the same gaps; multipliers may differ."""
    for first, second in zip(one._replace(facts=one.facts[:2]), other._replace(facts=other.facts[:2]), strict=True):
        assert np.array_equal(first, second)


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
        alone, best = boxes.solve_for_budget(budget), _best(found)
        assert best.multiplier == _best(from_nothing[budget]).multiplier or len(from_nothing) == 1
        assert (best.cost, best.suppressed) == (alone.cost, alone.suppressed)
        assert best.lower_bound(budget) == alone.lower_bound(budget)
        kept = published_boxes(best.choice, boxes.splits)[0]
        cost, suppressed = int(boxes.cost[kept].sum()), boxes.total - int(boxes.volume[kept].sum())
        if isinstance(found, SolvedBudget):
            columns = [column[kept] for column in (boxes.origin, boxes.destination, boxes.volume, boxes.crowd)]
            assert np.array_equal(found.columns, columns)
            assert cost <= best.cost - found.saved and best.suppressed + found.spent <= suppressed <= budget
        else:
            assert (cost, suppressed) == (best.cost, best.suppressed)


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
    wanted = [boxes.solve_for_budget(b).suppressed for b in budgets]
    assert [_best(found[b]).suppressed for b in budgets] == wanted
    assert len(searched) == (len(budgets) if "MAX_KEY" in limit else 0)


def test_more_budgets_than_a_word_has_bits_have_the_same_partitions() -> None:
    boxes = _boxes_of_city(4)
    budgets = [boxes.total * place // 200 for place in range(1, MOST_PARTITIONS + 5)]
    for budget, found in search_budgets(boxes, budgets):
        alone = boxes.solve_for_budget(budget)
        assert (_best(found).cost, _best(found).suppressed) == (alone.cost, alone.suppressed)
        assert isinstance(found, SolvedBudget)
        chosen, gaps, _ = boxes.improve(alone, budget)
        _assert_same(found.outcome(budget, lambda: boxes, left=False), boxes.outcome(chosen, *gaps, 0.0, left=False))


def test_a_budget_that_nothing_keeps_fails_alone() -> None:
    every = _boxes_of_city(4)
    large = every.volume > 40
    boxes = replace(every, allowed=frozen(np.where(large, every.allowed - WHOLE, every.allowed), np.int8))
    found = dict(search_budgets(boxes, [0, boxes.total]))
    assert isinstance(found[0], InputError) and _best(found[boxes.total])


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
    # Runs that share their areas leave out none of them.
    assert all(map(_same, alone, (release.without_unused_areas() for release in together)))
    assert not _same(alone[1], alone[3])


@pytest.mark.parametrize("begin", ["nothing", "similar boxes"])
def test_multipliers_are_tried_on_both_sides_of_each_budget(begin: str) -> None:
    flows = make_profile("senegal", np.random.default_rng(4), 2)
    one, other = (BoxSpace.of(flows, step, RegionSpace.trees(flows), 10) for step in range(2))
    shares = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)
    near = [float(other.solve_for_budget(other.total * share // 100).multiplier or 0) for share in shares]
    budgets = [one.total * share // 100 for share in shares]
    tried = several_budgets._Tried(one, near if begin == "similar boxes" else (), 2 * len(budgets))
    tried.narrow(budgets, near if begin == "similar boxes" else ())
    wide = 0
    for budget in budgets:
        (left, left_p, right, right_p), found = tried.ends(budget), one.solve_for_budget(budget)
        assert found.multiplier is not None and min(left, right) >= 0
        assert left_p <= PARTS * found.multiplier <= right_p
        wide += right_p > 1.06 * left_p
    assert wide <= 2  # otherwise many boxes are open between them
    assert len(tried.tries) <= COLUMNS + 2 * len(budgets)
