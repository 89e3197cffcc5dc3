"""Generalize origins towards a target volume, then find the very best destinations for them within the budget.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget, with `scope = matrix`: in each time step at most the given share (or number) of trips is suppressed, or the run
stops and says which step cannot be done. A time step with fewer than k people in all is suppressed whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
What `atg-dual` comes near to: the constrained optimum, by dynamic programming over lists of (cost, suppressed volume), one list a
box, without those that another beats in both. The price of `atg-dual` says which states cannot lead to anything better than
what it found, so that lists stay short. The manifest tells how far `atg-dual` is from it.

With `scope = origin` each origin is solved on its own and may suppress its share of what leaves it; origins that do
not reach k are suppressed whole. `delta` is what a suppressed trip costs besides, as a share of being generalized to
the whole map at either end; where it is not given it is 0.01 on a quadtree, as published, and 0 on other trees.

References
----------
Matet et al., A lightweight approach for origin-destination matrix anonymization (the tree knapsack and G with delta);
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices (problem H).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError
from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee, SuppressionBudget
from crowdveil.method import Method
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams, TargetVolume
from crowdveil.progress import Progress
from crowdveil.solve.od.forest import Forest, Solved
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import StepRange, StepSolution, solve_steps
from crowdveil.solve.od.targets import Attempt, Targets, gap_percent, one_target, tell_targets

QUADTREE_DELTA = 0.01


class AtgExactParams(Budgeted, FlowParams):
    """Parameters of exact tree generalization."""

    scope: Literal["matrix", "origin"] = "matrix"
    """The suppression budget is one for each time step, or one for each origin."""
    v_target: TargetVolume = "auto"
    """Volume that should leave each origin; auto takes the best of a grid for each matrix, sample one for all."""
    delta: float | None = Field(None, ge=0, lt=1)
    """What a suppressed trip costs besides, as a share of the whole map; not given: 0.01 on a quadtree, else 0."""

    def lost_cost(self, system: RegionSpace) -> Fraction:
        """What a suppressed trip costs, in tiles."""
        tree = system.origins.tree
        delta = self.delta if self.delta is not None else QUADTREE_DELTA if tree.kind == "quadtree" else 0.0
        return 2 * Fraction(delta).limit_denominator(10_000) * tree.tiles


def run(data: Flows, params: AtgExactParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the cheapest destinations within the budget."""

    def attempt(matrix: Matrix, origins: Ints) -> Attempt:
        forest = Forest.of(matrix, origins, params.k, params.lost_cost(matrix.system))
        if params.scope == "origin":
            return forest, by_origin(forest, params, exact=False)
        return forest, forest.within(params.most_suppressed(matrix.total))

    def error(forest: Forest, solved: Solved) -> float:
        return solved.cost / max(forest.total - solved.suppressed, 1)

    targets = Targets(params.v_target, params.k, attempt, error)

    def solver(system: RegionSpace) -> Callable[[int], StepSolution]:
        choices = targets.choices(data, system)

        def solve(step: int) -> StepSolution:
            matrix = Matrix.of(data, step, system)
            target, forest, near = targets.best(matrix, choices(matrix))
            if params.scope == "origin":
                best = by_origin(forest, params, exact=True)
            else:
                best = exactly(forest, params.most_suppressed(matrix.total), near)
            return forest.outcome(
                best.published, target, gap_percent(near.cost, best.cost), left=params.aggregate_small
            )

        return solve

    steps = StepRange(params.k, lambda: RegionSpace.trees(data), solver, params.reporting, partial(tell, params))
    return solve_steps(data, steps, progress)


def tell(params: AtgExactParams, facts: Floats) -> dict[str, Any]:
    """The targets that were used, and how far atg-dual is from the results."""
    gap = facts[:, 1]
    told = {"gap_of_atg_dual_percent_mean": gap.mean(), "gap_of_atg_dual_percent_largest": gap.max()}
    return {**tell_targets(params.v_target, facts[:, 0]), **{name: round(float(x), 4) for name, x in told.items()}}


def by_origin(forest: Forest, budget: Budgeted, *, exact: bool) -> Solved:
    """Each origin on its own, within its share of what leaves it."""
    published = np.zeros(len(forest.part), np.bool_)
    cost, suppressed, at = 0, int(forest.gone.sum()), 0
    for tree in forest.trees():
        leaving = int(tree.volume[-1])
        near = tree.within(budget.most_suppressed(leaving))
        if isinstance(near, int):  # cannot be: the whole map is a destination, and suppresses nothing
            raise InputError("an origin cannot keep its budget.")
        best = exactly(tree, budget.most_suppressed(leaving), near) if exact else near
        published[at : at + len(tree.part)] = best.published
        cost, suppressed, at = cost + best.cost, suppressed + best.suppressed, at + len(tree.part)
    return Solved(None, cost + forest.lost_cost * int(forest.gone.sum()), suppressed, published)


def exactly(forest: Forest, budget: int, near: Solved) -> Solved:
    """The cheapest partition within a budget."""
    best = forest.exact(budget, near)
    if best is None:
        raise InputError(
            "the best partition takes too many states to look for here; use atg-dual, which is near to it."
        )
    return best


def guarantees(data: Flows, params: AtgExactParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    made = (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())
    return (
        made
        if params.scope == "origin"
        else (*made, SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k))
    )


METHOD = Method(
    "atg-exact",
    takes=Flows,
    params=AtgExactParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    summarize_diagnostics=tell,
    partitioning=one_target,
    needs_person_ids=True,
)
