"""Generalize origins once, then destinations for each origin, both with one multiplier of suppressed trips.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed. A time step with fewer than k
people in all is suppressed whole.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
ATG without its heuristic: origins are chosen with the same multiplier as destinations, instead of a target volume. Each origin
has one partition of destinations, so a release is easier to read than that of `joint`, which is finer. The search for the
multiplier is exact, and the rest of the budget is not spent.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices,
problem J.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.methods.base import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, SizedAreas
from crowdveil.solve.od.boxes import BoxSpace, gap_percent
from crowdveil.solve.od.region_space import RegionSpace, check_tree
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepRange, StepSolution, solve_steps
from crowdveil.solve.od.targets import as_figure, summarize_gaps


class AtgCoupledParams(Budgeted, SizedAreas):
    """Parameters of coupled tree generalization."""


def run(data: Flows, params: AtgCoupledParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best partition of each time step in which origins are split before destinations."""

    def solve(system: RegionSpace, step: int) -> StepSolution:
        boxes = BoxSpace.of(data, step, system, params.k, origins_first=True)
        if len(boxes) == 0:
            return ALL_SUPPRESSED
        budget = params.max_suppressed(boxes.total)
        found = boxes.solve_for_budget(budget)
        gap = gap_percent(found.cost, found.lower_bound(budget))
        return boxes.outcome(found.choice, gap, as_figure(found.multiplier), left=params.aggregate_small)

    steps = StepRange(
        params.k,
        lambda: RegionSpace.trees(data, extent=params.extent),
        lambda system: partial(solve, system),
        params.reporting,
        partial(summarize_diagnostics, params),
    )
    return solve_steps(data, steps, progress)


def summarize_diagnostics(params: AtgCoupledParams, facts: Floats) -> dict[str, Any]:
    """Return the gaps between the results and the optimum."""
    return summarize_gaps(facts[:, 0])


METHOD = Method(
    "atg-coupled",
    takes=Flows,
    params=AtgCoupledParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    figure_names=("gap", "multiplier"),
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_tree,
)
