"""Generalize origins towards a target volume, then destinations for each origin under one budget of suppressed trips.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed, or the run stops and says which
step cannot be done. A time step with fewer than k people in all is suppressed whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
The method of the paper, on trees of any shape. Origins are the best pruning for the penalty (v_target − outgoing
volume)². Destinations of all origins are then partitioned at one price, which is searched in exact fractions; the piece
right of the last breakpoint is taken, which keeps the budget. Where many flows are equal, as in thin matrices, that leaves a part
of the budget; `spend_rest` spends it. Origins that do not reach k are suppressed whole, and a target
volume may make them hold more than the budget. With `v_target = auto` a grid of target volumes is tried on each matrix, and
the one with the least generalization error is kept: that is the best that the method can do, and takes as many times as long.
With `v_target = sample` the target is chosen once, as in the papers: the one of the grid at which origins and destinations
have the nearest mean sizes, over 24 matrices spread evenly over the data; where a matrix has no solution with it, the next
larger one that has is taken. The manifest says which targets were used, and how far the result is at most from the best one
for its origins.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(ATG-Dual; problems P and D, Specific Breakpoints Algorithm).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

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
from crowdveil.solve.od.targets import Attempt, Targets, gap_percent, one_target, tell_gaps, tell_targets


class AtgDualParams(Budgeted, FlowParams):
    """Parameters of ATG-Dual."""

    v_target: TargetVolume = "auto"
    """Volume that should leave each origin; auto takes the best of a grid for each matrix, sample one for all."""
    spend_rest: bool = False
    """Spend what is left of the budget on the splits that gain most for each trip; the published method leaves it."""


def run(data: Flows, params: AtgDualParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the best destinations of all of them."""

    def attempt(matrix: Matrix, origins: Ints) -> Attempt:
        forest = Forest.of(matrix, origins, params.k)
        return forest, forest.within(params.most_suppressed(matrix.total))

    def error(forest: Forest, solved: Solved) -> float:
        return solved.cost / max(forest.total - solved.suppressed, 1)

    targets = Targets(params.v_target, params.k, attempt, error)

    def solver(system: RegionSpace) -> Callable[[int], StepSolution]:
        choices = targets.choices(data, system)

        def solve(step: int) -> StepSolution:
            matrix = Matrix.of(data, step, system)
            target, forest, solved = targets.best(matrix, choices(matrix))
            budget = params.most_suppressed(matrix.total)
            final = forest.spend(solved, budget) if params.spend_rest else solved
            gap = gap_percent(final.cost, solved.least(budget))
            return forest.outcome(final.published, target, gap, left=params.aggregate_small)

        return solve

    steps = StepRange(params.k, lambda: RegionSpace.trees(data), solver, params.reporting, partial(tell, params))
    return solve_steps(data, steps, progress)


def tell(params: AtgDualParams, facts: Floats) -> dict[str, Any]:
    """The targets that were used, and how far the results are from the best."""
    return {**tell_targets(params.v_target, facts[:, 0]), **tell_gaps(facts[:, 1])}


def guarantees(data: Flows, params: AtgDualParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    budget = SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k)
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows(), budget)


METHOD = Method(
    "atg-dual",
    takes=Flows,
    params=AtgDualParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    summarize_diagnostics=tell,
    partitioning=one_target,
    needs_person_ids=True,
    aliases=("ATG-Dual",),
)
