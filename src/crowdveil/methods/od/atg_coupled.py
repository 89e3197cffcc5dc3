"""Generalise origins once, then destinations for each origin, both at one price of a withheld trip.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
In each time step at most the given share (or number) of trips is withheld. A time step with fewer than k people in all is
withheld whole.

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
Matet et al., Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices,
problem J.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.method import Budget, Method, Params, trips_within
from crowdveil.model.arrays import Ints
from crowdveil.model.boxes import TreeBoxes, generalise_origins_first
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress


class AtgCoupledParams(Params):
    """Parameters of coupled tree generalisation."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    suppress: Budget = Field(0.1, ge=0)
    """Most that may be withheld of a time step: a share such as 10%, or a number of trips above 1."""


def run(data: Flows, params: AtgCoupledParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best partition of each time step in which origins are split before destinations."""

    def solve(boxes: TreeBoxes) -> Ints | None:
        found = boxes.within(trips_within(params.suppress, boxes.total), boxes.origins_first())
        return None if found is None else found[3]

    return generalise_origins_first(data, params.k, solve, progress)


def promises(data: Flows, params: AtgCoupledParams) -> tuple[Guarantee, ...]:
    """What the release promises."""
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())


METHOD = Method(
    "atg-coupled",
    takes=Flows,
    params=AtgCoupledParams,
    run=run,
    promises=promises,
    status="proved",
    doc=__doc__ or "",
    needs_members=True,
)
