"""The algorithms that the papers name, each equal to the solvers of the package on random matrices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_boxes import problems

from crowdveil.experiments.classical_solvers import all_pieces, best_value, best_within, closure, envelope
from crowdveil.model.arrays import frozen
from crowdveil.model.flows import Flows
from crowdveil.model.trips import Trips
from crowdveil.solve.od.boxes import BoxSpace, BudgetError
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix

Problem = tuple[Flows, Trips]


def forest(flows: Flows, k: int) -> BoxSpace:
    """Boxes of given origins: the single tiles."""
    matrix = Matrix.of(flows, 0, RegionSpace.trees(flows))
    tree = matrix.system.origins.tree
    return BoxSpace.of_origins(matrix, frozen(np.sort(tree.leaf_node), np.int64), k)


def joint(flows: Flows, k: int) -> BoxSpace:
    return BoxSpace.of(flows, 0, RegionSpace.trees(flows), k)


@pytest.mark.parametrize("make", [forest, joint])
@settings(max_examples=tries(150), deadline=None)
@given(problem=problems(), k=st.integers(1, 6), budget=st.integers(0, 40))
def test_all_breakpoints_find_what_the_search_finds(make: Any, problem: Problem, k: int, budget: int) -> None:
    space = make(problem[0], k)
    if not len(space):
        return
    best = best_within(all_pieces(space), budget)
    try:
        found = space.solve_for_budget(budget)
    except BudgetError:
        assert best is None
    else:
        assert (found.suppressed, found.cost) == best


@pytest.mark.parametrize("make", [forest, joint])
@settings(max_examples=tries(100), deadline=None)
@given(problem=problems(), k=st.integers(1, 6), multiplier=st.fractions(0, 12, max_denominator=6))
def test_the_lowest_piece_is_the_best_partition(make: Any, problem: Problem, k: int, multiplier: Fraction) -> None:
    space = make(problem[0], k)
    if not len(space):
        return
    cost, suppressed, _ = space.solve_at(multiplier)
    assert min(a + multiplier * s for s, a in all_pieces(space)) == cost + multiplier * suppressed


@settings(max_examples=tries(150), deadline=None)
@given(problem=problems(), k=st.integers(1, 6), multiplier=st.fractions(0, 12, max_denominator=6))
def test_a_minimum_cut_finds_the_best_partition(problem: Problem, k: int, multiplier: Fraction) -> None:
    space = forest(problem[0], k)
    if not len(space):
        return
    cost, suppressed, _ = space.solve_at(multiplier)
    assert best_value(space, multiplier) == cost + multiplier * suppressed


@settings(max_examples=tries(100), deadline=None)
@given(points=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1))
def test_an_envelope_has_the_points_that_are_best_somewhere(points: list[tuple[int, int]]) -> None:
    prices = [Fraction(n, d) for n in range(1, 60) for d in (1, 7, 400)]
    hull = envelope(points)
    assert all(min(a + x * s for s, a in points) == min(a + x * s for s, a in hull) for x in prices)
    assert hull == envelope(hull) and set(hull) <= set(points)


def test_a_member_of_a_closure_brings_those_above_it() -> None:
    above = {1: 0, 2: 0, 3: 1}
    assert closure({0: -5, 1: 2, 2: 4, 3: 1}, above) == 2
    assert closure({0: -9, 1: 2, 2: 4, 3: 1}, above) == 0
    assert closure({}, {}) == 0
