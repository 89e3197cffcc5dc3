"""Generalise origins and destinations together, as little as a crowd of k and a budget of withheld trips allow.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
In each time step at most the given share (or number) of trips is withheld; where no split helps, one flow from everywhere
to everywhere remains. A time step with fewer than k people in all is withheld whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
A box is a pair of nodes, one of the tree of origins and one of the tree of destinations. A partition starts from the box
of all tiles and splits any box into the children of its origin or of its destination, again and again; every
partition that fixes origins first, as ATG does, is one of these. For a price of a suppressed trip the best partition is
found exactly, by dynamic programming over the boxes that reach k. The price is then searched in exact fractions, and the
piece of the solution that keeps the budget is taken; what is left of the budget is spent on the splits that gain most for
each trip. People who are behind several flows of a box count once.

With `splits = dyadic` areas are rectangles in place of nodes: tiles are ranked by x and by y (a grid is taken as it is), each
axis is halved again and again, and a box can be split in four ways. That is finer than any tree, and takes longer.

References
----------
Matet et al., Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices
(the generalisation error, the price and the search for it); the joint recurrence is our own.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.method import Budget, Method, Params, trips_within
from crowdveil.model.arrays import Ints
from crowdveil.model.boxes import Boxes, Objective, generalise
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress


class JointParams(Params):
    """Parameters of joint generalisation."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    suppress: Budget = Field(0.1, ge=0)
    """Most that may be withheld of a time step: a share such as 10%, or a number of trips above 1."""
    splits: Literal["tree", "dyadic"] = "tree"
    """Areas are nodes of a tree, or rectangles that are halved in either direction, which is finer."""
    objective: Objective = "generalisation"
    """What to lose least: tiles of origin and destination, or their area, each weighted by trips."""


def run(data: Flows, params: JointParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best partition of each time step into boxes."""

    def solve(boxes: Boxes) -> Ints | None:
        budget, allowed = trips_within(params.suppress, boxes.total), boxes.every_way()
        found = boxes.within(budget, allowed)
        if found is None:  # cannot be: the whole map is a box, and suppresses nothing
            return None
        _, _, suppressed, choice = found
        boxes.spend(choice, allowed, budget - suppressed)
        return choice

    return generalise(data, params.k, params.objective, solve, progress, dyadic=params.splits == "dyadic")


def promises(data: Flows, params: JointParams) -> tuple[Guarantee, ...]:
    """What the release promises."""
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())


METHOD = Method(
    "joint",
    takes=Flows,
    params=JointParams,
    run=run,
    promises=promises,
    status="proved",
    doc=__doc__ or "",
    needs_members=True,
)
