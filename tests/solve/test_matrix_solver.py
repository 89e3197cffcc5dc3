"""Matrices that are solved in one call: the same partitions as step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import Plain, problems

from crowdveil.methods.od import joint
from crowdveil.methods.od.joint import JointParams, run
from crowdveil.model.arrays import frozen
from crowdveil.model.flows import Flows
from crowdveil.progress import no_progress
from crowdveil.solve.od import boxes as boxes_module
from crowdveil.solve.od import several_budgets
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.budgeted_steps import BudgetedSteps
from crowdveil.solve.od.matrix_solver import MatrixSolver
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_solver import StepSolution
from crowdveil.synth.profiles import make_profile


def _solutions(
    flows: Flows, k: int, budget: int, near: float | None, *, left: bool = False
) -> tuple[StepSolution, StepSolution | None]:
    """What becomes of the first time step, by several calls and by one."""
    system = RegionSpace.trees(flows)
    steps = BudgetedSteps(lambda step: BoxSpace.of(flows, step, system, k), {0: lambda _: budget}, 0, left, True)
    apart = steps.solve([] if near is None else [np.array([near])], 0)
    solver = MatrixSolver.of(flows, system, k, "generalization")
    assert solver is not None
    return apart, solver.solve(0, lambda _: budget, near, left=left)


def _assert_same(one: StepSolution, other: StepSolution | None) -> None:
    assert other is not None
    for first, second in zip(one, other, strict=True):
        assert first.dtype == second.dtype and np.array_equal(first, second)


@examples(200)
@given(
    problem=problems(),
    k=st.integers(2, 5),
    budget=st.integers(1, 40),
    near=st.none() | st.sampled_from([1e-3, 30.0]) | st.floats(0, 30),
    left=st.booleans(),
)
def test_one_call_finds_what_several_find(problem: Any, k: int, budget: int, near: float | None, left: bool) -> None:
    flows, trips = problem
    if flows.person_ids is not None or flows.total < k:
        return
    apart, at_once = _solutions(flows, k, budget, near, left=left)
    _assert_same(apart, at_once)
    # As many trips of every pair of nodes as a plain count finds.
    plain = Plain(flows, trips, k)
    for a, b, volume, crowd in zip(*(column.tolist() for column in apart[:4]), strict=True):
        assert volume == crowd == len(plain.inside(a, b)) >= k


@pytest.mark.parametrize("small_gap", [0.0, 0.1])
@pytest.mark.parametrize(("k", "share"), [(2, 0.3), (10, 0.05), (40, 0.01), (10, 1.0)])
def test_large_matrices_have_the_same_partitions(
    monkeypatch: pytest.MonkeyPatch, k: int, share: float, small_gap: float
) -> None:
    monkeypatch.setattr(boxes_module, "SMALL_GAP_PERCENT", small_gap)
    flows = make_profile("nyc", np.random.default_rng(4), 1)
    for near in (None, 3.0, 30.0):
        _assert_same(*_solutions(flows, k, int(flows.total * share), near, left=k == 40))


def test_another_way_is_taken_where_keys_are_too_large_or_nothing_may_be_suppressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flows = make_profile("nyc", np.random.default_rng(4), 1)
    assert _solutions(flows, 10, 0, None)[1] is None
    assert _solutions(flows, 10, 50, 2.0**40)[1] is None
    monkeypatch.setattr(several_budgets, "MAX_KEY", 2**20)
    assert _solutions(flows, 10, 50, None)[1] is None


def test_no_search_begins_at_an_infinite_multiplier(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = make_profile("nyc", np.random.default_rng(5), 4)
    system = RegionSpace.trees(flows)
    solver = MatrixSolver.of(flows, system, 10, "generalization")
    begun: list[float | None] = []
    solve = MatrixSolver.solve

    def infinite(self: MatrixSolver, step: int, most: Any, near: float | None, *, left: bool) -> StepSolution | None:
        begun.append(near)
        found = solve(self, step, most, near, left=left)
        return None if found is None else found._replace(facts=np.array((0.0, 0.0, np.inf)))

    monkeypatch.setattr(MatrixSolver, "solve", infinite)
    steps = BudgetedSteps(
        lambda step: BoxSpace.of(flows, step, system, 10), {0: lambda total: total // 10}, 0, False, True, solver
    )
    near = steps.begin(flows.trips_by_step)
    for step in range(4):
        steps.solve(near, step)
    assert near == [] and set(begun) == {None}


def test_only_matrices_whose_crowds_and_costs_add_up_are_solved_in_one_call() -> None:
    flows = make_profile("nyc", np.random.default_rng(4), 1)
    system = RegionSpace.trees(flows)
    assert MatrixSolver.of(flows, system, 10, "generalization") is not None
    assert MatrixSolver.of(flows, system, 10, "reconstruction") is None
    assert MatrixSolver.of(flows, RegionSpace.rectangles(flows), 10, "generalization") is None
    side = replace(system.origins, small_enough=frozen(system.origins.regions.size < 50, np.bool_))
    assert MatrixSolver.of(flows, RegionSpace(side, side), 10, "generalization") is None


@examples(20)
@given(problem=problems())
def test_people_are_counted_in_another_way(problem: Any) -> None:
    flows, trips = problem
    solver = MatrixSolver.of(flows, RegionSpace.trees(flows), 2, "generalization")
    assert (solver is None) == (trips.person is not None)


@pytest.mark.parametrize("given", [{}, {"suppress": 0.0}, {"aggregate_small": True}, {"min_tiles": 3}, {"k": 60}])
def test_a_run_over_many_steps_releases_the_same(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]) -> None:
    flows = make_profile("nyc", np.random.default_rng(5), 4)
    params = JointParams(**({"k": 10} | given))
    monkeypatch.setattr(joint, "MANY", 2)
    solved = []
    solve = MatrixSolver.solve

    def counted(self: MatrixSolver, step: int, *given: Any, **named: Any) -> StepSolution | None:
        solved.append(step)
        return solve(self, step, *given, **named)

    monkeypatch.setattr(MatrixSolver, "solve", counted)
    at_once = run(flows, params, np.random.default_rng(0), no_progress)
    assert set(solved) == set(range(4))
    monkeypatch.setattr(MatrixSolver, "of", lambda *_: None)
    apart = run(flows, params, np.random.default_rng(0), no_progress)
    for name in ("offsets", "origin", "destination", "volume", "people", "state", "suppressed", "figures"):
        assert np.array_equal(getattr(at_once, name), getattr(apart, name))
    assert at_once.facts == apart.facts
