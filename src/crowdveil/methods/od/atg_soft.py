"""Generalize origins towards a target volume, then destinations at a fixed price of a suppressed trip.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
GeneralizationLimit: a published flow whose destination has several tiles never covers more than the price in tiles of
origin and destination together. How much is suppressed is not bounded.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
A suppressed trip costs as much as one that is generalized to `price` of the map, so that nothing is generalized further. A
destination of one tile cannot be split, whatever its origin. Origins are chosen as in `atg-dual`; with `v_target = auto` the
target volume of the least total cost is taken from a grid, for each matrix. Reported flows, where asked for, are not limited.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(ATG-Soft, problem H', appendix E).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, GeneralizationLimit, Guarantee
from crowdveil.method import Method
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import FlowParams, TargetVolume
from crowdveil.progress import Progress
from crowdveil.solve.od.forest import Forest, Solved
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import StepRange, StepSolution, solve_steps
from crowdveil.solve.od.targets import Attempt, Targets, one_target, tell_targets


class AtgSoftParams(FlowParams):
    """Parameters of ATG-Soft."""

    price: float = Field(0.1, gt=0, le=1)
    """What a suppressed trip costs: being generalized to this share of the map."""
    v_target: TargetVolume = "auto"
    """Volume that should leave each origin; auto takes the best of a grid for each matrix, sample one for all."""

    def tiles(self, zones: int) -> Fraction:
        """The price in tiles."""
        return Fraction(self.price).limit_denominator(10_000) * zones


def run(data: Flows, params: AtgSoftParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the best destinations at the price."""
    price = params.tiles(len(data.zones))

    def attempt(matrix: Matrix, origins: Ints) -> Attempt:
        forest = Forest.of(matrix, origins, params.k)
        return forest, forest.at(price)

    def cost(forest: Forest, solved: Solved) -> float:
        return float(solved.cost + price * solved.suppressed)

    targets = Targets(params.v_target, params.k, attempt, cost)

    def solver(system: RegionSpace) -> Callable[[int], StepSolution]:
        choices = targets.choices(data, system)

        def solve(step: int) -> StepSolution:
            matrix = Matrix.of(data, step, system)
            target, forest, solved = targets.best(matrix, choices(matrix))
            return forest.outcome(solved.published, target, left=params.aggregate_small)

        return solve

    steps = StepRange(params.k, lambda: RegionSpace.trees(data), solver, params.reporting, partial(tell, params))
    return solve_steps(data, steps, progress)


def tell(params: AtgSoftParams, facts: Floats) -> dict[str, Any]:
    """The targets that were used."""
    return tell_targets(params.v_target, facts[:, 0])


def guarantees(data: Flows, params: AtgSoftParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    limit = GeneralizationLimit(tiles=float(params.tiles(len(data.zones))))
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows(), limit)


METHOD = Method(
    "atg-soft",
    takes=Flows,
    params=AtgSoftParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    summarize_diagnostics=tell,
    partitioning=one_target,
    needs_person_ids=True,
    aliases=("ATG-Soft",),
)
