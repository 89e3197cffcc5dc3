"""Generalize origins and destinations together, as little as a crowd of k and a budget of suppressed trips allow.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step. SuppressionBudget: in each time step at most
the given share (or number) of trips is suppressed; where no split helps, one flow from everywhere to everywhere
remains. A time step with fewer than k people in all is suppressed whole. LeastTiles, LeastInhabitedTiles, MostArea,
where asked for: published areas have at least so many tiles, or tiles that anyone visits, and at most so many square
kilometers. With a largest area the budget may be impossible to keep: the run then stops and says what the least is.

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

The objective `reconstruction` loses least of the cells: it is the sum over the cells of a box of the distance between their
volume and the mean of the box, which is what somebody gets wrong who spreads the volume evenly; a suppressed trip counts as one.
It counts in thousandths of a trip, and suppresses less than it may where that is better.

How far the result is at most from the best partition within the budget is certified for each matrix and told.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the generalization error, the price and the search for it); the joint recurrence is our own.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError
from crowdveil.guarantees import (
    DisjointFlows,
    FlowKAnonymity,
    Guarantee,
    LeastInhabitedTiles,
    LeastTiles,
    MostArea,
    SuppressionBudget,
)
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Floats, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace
from crowdveil.solve.od.region_space import Objective, RegionExtent, RegionSpace
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepRange, StepSolution, solve_steps
from crowdveil.solve.od.targets import gap_percent, tell_gaps


class JointParams(Budgeted, FlowParams):
    """Parameters of joint generalization."""

    splits: Literal["tree", "dyadic"] = "tree"
    """Areas are nodes of a tree, or rectangles that are halved in either direction, which is finer."""
    objective: Objective = "generalization"
    """What to lose least: tiles of origin and destination, or their area, each weighted by trips; or the single cells."""
    min_tiles: int = Field(1, ge=1)
    """Least tiles of a published area."""
    min_inhabited_tiles: int = Field(0, ge=0)
    """Least tiles of a published area that anyone visits."""
    max_area_km2: float | None = Field(None, gt=0)
    """Largest area of a published origin or destination."""

    @property
    def reporting(self) -> Reporting:
        """What becomes of small volumes."""
        return Reporting(self.aggregate_small, self.include_empty, self.min_tiles, self.min_inhabited_tiles)

    @property
    def extent(self) -> RegionExtent:
        """How large published areas must be, and may be."""
        return RegionExtent(self.min_tiles, self.min_inhabited_tiles, self.max_area_km2)


def run(data: Flows, params: JointParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best partition of each time step into boxes."""

    def system() -> RegionSpace:
        make = RegionSpace.rectangles if params.splits == "dyadic" else RegionSpace.trees
        return make(data, params.objective, params.extent)

    def found(system: RegionSpace, step: int, near: Fraction | None) -> tuple[BoxSpace, int, BoxSolution] | None:
        boxes = BoxSpace.of(data, step, system, params.k, params.objective)
        budget = params.most_suppressed(boxes.total)
        return (boxes, budget, boxes.within(budget, near)) if len(boxes) else None

    def price_of_largest(system: RegionSpace) -> Fraction | None:
        """Time steps have similar prices: that of the largest is where the search begins in all others."""
        try:
            largest = found(system, int(np.argmax(slice_sums(data.offsets, data.volume))), None)
        except InputError:
            return None  # it will be told when its turn comes
        return None if largest is None else largest[2].price

    def solve(system: RegionSpace, near: Fraction | None, step: int) -> StepSolution:
        solved = found(system, step, near)
        if solved is None:
            return ALL_SUPPRESSED
        boxes, budget, best = solved
        boxes.spend(best.choice, budget - best.suppressed)
        gap = gap_percent(boxes.cost_of(best.choice), best.least(budget))
        return boxes.outcome(best.choice, gap, left=params.aggregate_small)

    steps = StepRange(
        params.k,
        system,
        lambda system: partial(solve, system, price_of_largest(system) if data.steps > 1 else None),
        params.reporting,
        partial(tell, params),
    )
    return solve_steps(data, steps, progress)


def tell(params: JointParams, facts: Floats) -> dict[str, Any]:
    """How far the results are from the best."""
    return tell_gaps(facts[:, 0])


def guarantees(data: Flows, params: JointParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    made: list[Guarantee] = [FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows()]
    made.append(SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k))
    if params.min_tiles > 1:
        made.append(LeastTiles(tiles=params.min_tiles))
    if params.min_inhabited_tiles > 0:
        made.append(LeastInhabitedTiles(tiles=params.min_inhabited_tiles))
    if params.max_area_km2 is not None:
        made.append(MostArea(km2=params.max_area_km2))
    return tuple(made)


METHOD = Method(
    "joint",
    takes=Flows,
    params=JointParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    summarize_diagnostics=tell,
    partitioning=INDEPENDENT,
    needs_person_ids=True,
)
