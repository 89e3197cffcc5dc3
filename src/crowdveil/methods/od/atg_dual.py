"""Generalize origins towards a target volume, then destinations for each origin under one budget of suppressed trips.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed, or the run stops and names the
step without a solution. A time step with fewer than k people in all is suppressed whole.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
The method of the paper, on trees of any shape. Origins are the best pruning for the penalty (v_target − outgoing volume)².
Destinations of all origins are then partitioned with one multiplier, which is searched in exact fractions; the solution right
of the last breakpoint is taken, which keeps the budget. Where many flows are equal, as in sparse matrices, that leaves a part
of the budget; `spend_rest` spends it. Origins that do not reach k are suppressed whole, and with some target volumes they
exceed the budget. With `v_target = auto` a grid of target volumes is tried on each matrix, and the one with the smallest
generalization error is kept: the best result of the method, at the cost of as many runs. With `v_target = sample` the target is
chosen once, as in the papers: the one of the grid at which origins and destinations have the nearest mean sizes, over 24
matrices spread evenly over the data; where a matrix has no solution with it, the next larger target with a solution is taken.
The manifest has the targets, and an upper bound of the gap between the result and the optimum for its origins.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(ATG-Dual; problems P and D, Specific Breakpoints Algorithm).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdveil.method import Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams, TargetVolume
from crowdveil.progress import Progress
from crowdveil.solve.od.forest import Forest, ForestSolution
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import Attempt, Targets, gap_percent, one_target, summarize_gaps, summarize_targets


class AtgDualParams(Budgeted, FlowParams):
    """Parameters of ATG-Dual."""

    v_target: TargetVolume = "auto"
    """Target volume of each origin; auto takes the best of a grid for each matrix, sample one for all."""
    spend_rest: bool = False
    """Spend the rest of the budget on the splits that gain most for each trip; the published method leaves it."""


def run(data: Flows, params: AtgDualParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the best destinations of all of them."""

    def attempt(matrix: Matrix, origins: Ints) -> Attempt:
        forest = Forest.of(matrix, origins, params.k)
        return forest, forest.solve_for_budget(params.max_suppressed(matrix.total))

    def finish(forest: Forest, solved: ForestSolution) -> tuple[ForestSolution, tuple[float]]:
        budget = params.max_suppressed(forest.total)
        final = forest.spend_slack(solved, budget) if params.spend_rest else solved
        return final, (gap_percent(final.cost, solved.lower_bound(budget)),)

    targets = Targets(params.v_target, params.k, attempt)
    return targets.solve(data, finish, params.reporting, partial(summarize_diagnostics, params), progress)


def summarize_diagnostics(params: AtgDualParams, facts: Floats) -> dict[str, Any]:
    """Return the targets, and the gaps between the results and the optimum."""
    return {**summarize_targets(params.v_target, facts[:, 0]), **summarize_gaps(facts[:, 1])}


METHOD = Method(
    "atg-dual",
    takes=Flows,
    params=AtgDualParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    partitioning=one_target,
    needs_person_ids=True,
    aliases=("ATG-Dual",),
)
