"""Generalize origins towards a target volume, then destinations at a fixed cost of a suppressed trip.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
GeneralizationLimit: a published flow whose destination has several tiles never covers more than the cost in tiles of
origin and destination together. The suppressed volume is not bounded.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
A suppressed trip costs as much as one that is generalized to `price` of the map, so no trip is generalized further. A
destination of one tile cannot be split, whatever its origin. Origins are chosen as in `atg-dual`; with `v_target = auto` the
target volume of the smallest total cost is taken from a grid, for each matrix. Aggregated small flows are not limited.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(ATG-Soft, problem H', appendix E).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import floor
from typing import Any

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.guarantees import GeneralizationLimit, Guarantee
from crowdveil.kernels.od.structures import PUBLISH, SUPPRESS
from crowdveil.methods.base import Facts, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import SizedAreas, TargetVolume
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace
from crowdveil.solve.od.region_space import check_tree
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import Targets, one_target, summarize_targets


class AtgSoftParams(SizedAreas):
    """Parameters of ATG-Soft."""

    price: float = Field(0.1, gt=0, le=1)
    """Cost of a suppressed trip: that of generalizing it to this share of the map."""
    v_target: TargetVolume = Field("auto", title="Target volume")
    """Target volume of each origin; auto takes the best of a list for each matrix, sample one for all."""

    def tiles(self, zones: int) -> Fraction:
        """Return the cost of a suppressed trip in tiles."""
        return Fraction(self.price).limit_denominator(10_000) * zones


def run(data: Flows, params: AtgSoftParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the best destinations at the given cost."""
    price = params.tiles(len(data.zones))

    def build(matrix: Matrix, origins: Ints) -> BoxSpace:
        return BoxSpace.of_origins(matrix, origins, params.k)

    def attempt(boxes: BoxSpace) -> BoxSolution:
        return boxes.best_at(price)

    def cost(boxes: BoxSpace, solved: BoxSolution) -> float:
        return float(solved.cost + price * solved.suppressed)

    def finish(boxes: BoxSpace, solved: BoxSolution) -> tuple[Ints, tuple[float, ...]]:
        # A box of weights below a whole trip costs nothing at any size, and its row may be rounded up to a trip.
        system, choice = boxes.system, solved.choice
        to = system.destinations.tree.size[boxes.destination]
        over = (to > 1) & (system.origins.tree.size[boxes.origin] + to > floor(price))
        return np.where(over & (choice == PUBLISH), SUPPRESS, choice), (float(price),)

    targets = Targets(params.v_target, params.k, build, attempt, cost, params.extent)
    return targets.solve(data, finish, params.reporting, partial(summarize_diagnostics, params), progress)


def summarize_diagnostics(params: AtgSoftParams, facts: Floats) -> dict[str, Any]:
    """Return the targets."""
    return summarize_targets(params.v_target, facts[:, 0])


def guarantees(params: AtgSoftParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity, disjoint flows and the limit of generalization."""
    limit = GeneralizationLimit(tiles=float(params.tiles(facts.tiles)))
    return (*flow_guarantees(params, facts), limit)


METHOD = Method(
    "atg-soft",
    takes=Flows,
    params=AtgSoftParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    figure_names=("v-target", "multiplier"),
    partitioning=one_target,
    needs_person_ids=True,
    check_data=check_tree,
    aliases=("ATG-Soft",),
)
