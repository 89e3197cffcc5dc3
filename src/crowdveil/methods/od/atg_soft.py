"""Generalise origins towards a target volume, then destinations at a fixed price of a withheld trip.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
GeneralisationLimit: a published flow whose destination has several tiles never covers more than the price in tiles of
origin and destination together. How much is withheld is not bounded.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
A withheld trip costs as much as one that is generalised to `price` of the map, so that nothing is generalised further. A
destination of one tile cannot be split, whatever its origin. Origins are chosen as in `atg-dual`; with `v_target = auto` the
target volume of the least total cost is taken from a grid, for each matrix.

References
----------
Matet et al., Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices
(ATG-Soft, problem H', appendix E).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, GeneralisationLimit, Guarantee
from crowdveil.method import Method, Params
from crowdveil.model.arrays import Ints
from crowdveil.model.boxes import TreeBoxes, generalise_origins_first, target_volumes
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress


class AtgSoftParams(Params):
    """Parameters of ATG-Soft."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    price: float = Field(0.1, gt=0, le=1)
    """What a withheld trip costs: being generalised to this share of the map."""
    v_target: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    """Volume that should leave each origin; auto takes the best of a grid for each matrix."""

    def tiles(self, zones: int) -> Fraction:
        """The price in tiles."""
        return Fraction(self.price).limit_denominator(10_000) * zones


def run(data: Flows, params: AtgSoftParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, then find the best destinations at the price."""
    price = params.tiles(len(data.zones))

    def solve(boxes: TreeBoxes) -> Ints | None:
        targets = target_volumes(params.k, boxes.total) if params.v_target == "auto" else [params.v_target]
        solved = [boxes.evaluate(price, boxes.given_origins(boxes.origins_near(target))) for target in targets]
        return min(solved, key=lambda found: found[0] + price * found[1])[2]

    return generalise_origins_first(data, params.k, solve, progress)


def promises(data: Flows, params: AtgSoftParams) -> tuple[Guarantee, ...]:
    """What the release promises."""
    limit = GeneralisationLimit(tiles=float(params.tiles(len(data.zones))))
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows(), limit)


METHOD = Method(
    "atg-soft",
    takes=Flows,
    params=AtgSoftParams,
    run=run,
    promises=promises,
    status="proved",
    doc=__doc__ or "",
    needs_members=True,
    aliases=("ATG-Soft",),
)
