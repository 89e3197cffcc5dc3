"""Generalize origins once, then destinations for each origin, both at one price of a suppressed trip.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed. A time step with fewer than k
people in all is suppressed whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
ATG with its heuristic taken out: origins are chosen by the same price as destinations, in place of a target volume. Each origin
has one partition of destinations, so that a release is easier to read than that of `joint`, which is finer. Nothing is
left out of the exact search for the price, and what is left of the budget is not spent.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices,
problem J.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee, SuppressionBudget
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepRange, StepSolution, solve_steps
from crowdveil.solve.od.targets import gap_percent, tell_gaps


class AtgCoupledParams(Budgeted, FlowParams):
    """Parameters of coupled tree generalization."""


def run(data: Flows, params: AtgCoupledParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best partition of each time step in which origins are split before destinations."""

    def solve(system: RegionSpace, step: int) -> StepSolution:
        boxes = BoxSpace.of(data, step, system, params.k, origins_first=True)
        if len(boxes) == 0:
            return ALL_SUPPRESSED
        budget = params.most_suppressed(boxes.total)
        found = boxes.within(budget)
        gap = gap_percent(found.cost, found.least(budget))
        return boxes.outcome(found.choice, gap, left=params.aggregate_small)

    steps = StepRange(
        params.k,
        lambda: RegionSpace.trees(data),
        lambda system: partial(solve, system),
        params.reporting,
        partial(tell, params),
    )
    return solve_steps(data, steps, progress)


def tell(params: AtgCoupledParams, facts: Floats) -> dict[str, Any]:
    """How far the results are from the best."""
    return tell_gaps(facts[:, 0])


def guarantees(data: Flows, params: AtgCoupledParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    budget = SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k)
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows(), budget)


METHOD = Method(
    "atg-coupled",
    takes=Flows,
    params=AtgCoupledParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    summarize_diagnostics=tell,
    partitioning=INDEPENDENT,
    needs_person_ids=True,
)
