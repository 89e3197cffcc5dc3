"""Generalise origins towards a target volume, then destinations for each origin under one budget of withheld trips.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
In each time step at most the given share (or number) of trips is withheld, or the run stops and says which step cannot be
done. A time step with fewer than k people in all is withheld whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
The method of the paper, on trees of any shape. Origins are the best pruning for the penalty (v_target − outgoing
volume)². Destinations of all origins are then partitioned at one price, which is searched in exact fractions; the piece
right of the last breakpoint is taken, which keeps the budget. Origins that do not reach k are withheld whole, and a target
volume may make them hold more than the budget. With `v_target = auto` a grid of target volumes is tried on each matrix, and
the one with the least generalisation error is kept: that is the best that the method can do, and takes as many times as long.

References
----------
Matet et al., Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices
(ATG-Dual; problems P and D, Specific Breakpoints Algorithm).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError
from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.method import Budget, Method, Params, trips_within
from crowdveil.model.arrays import Ints
from crowdveil.model.boxes import TreeBoxes, generalise_origins_first, target_volumes
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress


class AtgDualParams(Params):
    """Parameters of ATG-Dual."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    suppress: Budget = Field(0.1, ge=0)
    """Most that may be withheld of a time step: a share such as 10%, or a number of trips above 1."""
    v_target: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    """Volume that should leave each origin; auto takes the best of a grid for each matrix."""


def run(data: Flows, params: AtgDualParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the best destinations of all of them."""

    def solve(boxes: TreeBoxes) -> Ints | None:
        budget = trips_within(params.suppress, boxes.total)
        targets = target_volumes(params.k, boxes.total) if params.v_target == "auto" else [params.v_target]
        solved = [boxes.within(budget, boxes.given_origins(boxes.origins_near(target))) for target in targets]
        done = [found for found in solved if found is not None]
        if not done:
            raise InputError(
                f"v_target: origins below k hold more than the budget of {budget:,} trips; choose a larger v_target, a "
                f"larger share with --suppress, or auto. The least that works here is {_least(boxes, targets[0]):,} trips."
            )
        return min(done, key=lambda found: found[1] / (boxes.total - found[2]))[3]

    return generalise_origins_first(data, params.k, solve, progress)


def _least(boxes: TreeBoxes, target: float) -> int:
    """The least volume that a partition with these origins withholds."""
    return boxes.evaluate(None, boxes.given_origins(boxes.origins_near(target)))[1]


def promises(data: Flows, params: AtgDualParams) -> tuple[Guarantee, ...]:
    """What the release promises."""
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())


METHOD = Method(
    "atg-dual",
    takes=Flows,
    params=AtgDualParams,
    run=run,
    promises=promises,
    status="proved",
    doc=__doc__ or "",
    needs_members=True,
    aliases=("ATG-Dual",),
)
