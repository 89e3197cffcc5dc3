"""Generalize origins towards a target volume, then find the optimal destinations for them within the budget.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step. SuppressionBudget, with `scope = matrix`: in each time
step at most the given share (or number) of trips is suppressed, or the run stops and names the step without a solution. A time
step with fewer than k people in all is suppressed whole.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
The constrained optimum that `atg-dual` approximates, by dynamic programming over lists of (cost, suppressed volume), one list a
box, without dominated states. The multiplier of `atg-dual` excludes states that cannot improve on its result, so lists stay
short. The manifest has the gap of `atg-dual`.

With `scope = origin` each origin is solved on its own and may suppress its share of its volume; origins that do not reach k are
suppressed whole. `delta` is the additional cost of a suppressed trip, as a share of being generalized to the whole map at either
end; where it is not given it is 0.01 on a quadtree, as published, and 0 on other trees.

References
----------
Matet et al., A lightweight approach for origin-destination matrix anonymization (the tree knapsack and G with delta); Matet et
al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices (problem H).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError
from crowdveil.guarantees import Guarantee
from crowdveil.methods.base import Facts, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, SizedAreas, TargetVolume
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace, gap_percent
from crowdveil.solve.od.region_space import RegionSpace, check_tree
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import Targets, one_target, round_gap, summarize_targets

QUADTREE_DELTA = 0.01
MAX_STATES = 30_000_000
"""More states than this do not fit into memory, and the search is given up."""


class AtgExactParams(Budgeted, SizedAreas):
    """Parameters of exact tree generalization."""

    scope: Literal["matrix", "origin"] = "matrix"
    """One suppression budget for each time step, or one for each origin."""
    v_target: TargetVolume = Field("auto", title="Target volume")
    """Target volume of each origin; auto takes the best of a list for each matrix, sample one for all."""
    delta: float | None = Field(None, ge=0, le=1)
    """Additional cost of a suppressed trip, as a share of the whole map; not given: 0.01 on a quadtree, else 0."""

    def lost_cost(self, system: RegionSpace) -> Fraction:
        """Return the cost of a suppressed trip, in tiles."""
        tree = system.origins.tree
        delta = self.delta if self.delta is not None else QUADTREE_DELTA if tree.kind == "quadtree" else 0.0
        return 2 * Fraction(delta).limit_denominator(10_000) * tree.tiles


def run(data: Flows, params: AtgExactParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the cheapest destinations within the budget."""

    def build(matrix: Matrix, origins: Ints) -> BoxSpace:
        return BoxSpace.of_origins(matrix, origins, params.k, params.lost_cost(matrix.system))

    def attempt(boxes: BoxSpace) -> BoxSolution:
        if params.scope == "origin":
            return by_origin(boxes, params, exact=False)
        return boxes.solve_for_budget(params.max_suppressed(boxes.total))

    def finish(boxes: BoxSpace, near: BoxSolution) -> tuple[Ints, tuple[float]]:
        cost = near.full_cost
        if params.scope == "origin":
            best = by_origin(boxes, params, exact=True).choice
        else:
            best = exactly(boxes, params.max_suppressed(boxes.total), near)
        return best, (gap_percent(cost, boxes.cost_of(best)),)

    targets = Targets(params.v_target, params.k, build, attempt, extent=params.extent)
    return targets.solve(data, finish, params.reporting, partial(summarize_diagnostics, params), progress)


def summarize_diagnostics(params: AtgExactParams, facts: Floats) -> dict[str, Any]:
    """Return the targets, and the gaps between atg-dual and the results."""
    gap = facts[:, 1]
    gaps = {"gap_of_atg_dual_percent_mean": gap.mean(), "gap_of_atg_dual_percent_largest": gap.max()}
    return {
        **summarize_targets(params.v_target, facts[:, 0]),
        **{name: round_gap(float(x)) for name, x in gaps.items()},
    }


def by_origin(boxes: BoxSpace, budget: Budgeted, *, exact: bool) -> BoxSolution:
    """Solve each origin on its own, within its share of its volume."""
    # The last box, if it is no origin, is split into the origins.
    choice = np.full(len(boxes), len(boxes.splits.kind) - 1)
    for first, tree in boxes.trees():
        most = budget.max_suppressed(tree.total)
        near = tree.solve_for_budget(most)  # an origin can always be published with the whole map as its destination
        found = exactly(tree, most, near) if exact else near.choice
        of_split = boxes.splits.offsets[first]
        choice[first : first + len(tree)] = np.where(found >= 0, found + of_split, found)
    return boxes.solution_of(choice)


def exactly(boxes: BoxSpace, budget: int, near: BoxSolution) -> Ints:
    """Return the cheapest partition within a budget."""
    boxes.spend_slack(near, budget - near.suppressed)  # so that less remains to be searched
    choice, exact = boxes.solve_exactly(near, near.choice, budget, MAX_STATES)
    if not exact:
        raise InputError(
            "the optimal partition takes too many states to be found here. Use atg-dual, which approximates it."
        )
    return choice


def guarantees(params: AtgExactParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return the guarantees: the budget is one of time steps only with `scope = matrix`."""
    anonymity, disjoint, budget, *sizes = flow_guarantees(params, facts)
    return (anonymity, disjoint, *sizes) if params.scope == "origin" else (anonymity, disjoint, budget, *sizes)


METHOD = Method(
    "atg-exact",
    takes=Flows,
    params=AtgExactParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    figure_names=("v-target", "gap"),
    partitioning=one_target,
    needs_person_ids=True,
    check_data=check_tree,
)
