"""Publish the flows that are made by at least k people, and withhold the rest.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips, and one person who makes k trips
between two tiles would be published.

Notes
-----
The plainest method there is: no generalisation, so what is published is exact, and on sparse data most of the volume is
withheld. It is the lower bound that other methods are measured against. Zones keep their ids.

References
----------
Matet et al., Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices
(the rival called "suppression").
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.method import Method, Params
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, Areas, FlowRelease
from crowdveil.progress import Progress


class SuppressionParams(Params):
    """Parameters of suppression."""

    k: int = Field(10, ge=2)
    """Smallest crowd: flows of fewer people are withheld."""


def run(data: Flows, params: SuppressionParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Keep the rows with a crowd of at least k."""
    keep = data.people >= params.k
    kept = data.where(keep)
    tiles = np.unique(np.concatenate([kept.origin, kept.destination]))
    progress(data.steps, data.steps)
    return FlowRelease(
        areas=Areas.of_tiles(data.zones, tiles),
        t=kept.t,
        offsets=kept.offsets,
        origin=np.searchsorted(tiles, kept.origin).astype(np.int32),
        destination=np.searchsorted(tiles, kept.destination).astype(np.int32),
        volume=kept.volume,
        people=kept.people,
        state=np.full(len(kept), PUBLISHED, np.uint8),
        withheld=data.withheld_totals(~keep, params.k, NOT_GIVEN),
        counts=data.counts,
        step_s=data.step_s,
        tz=data.tz,
    )


def promises(data: Flows, params: SuppressionParams) -> tuple[Guarantee, ...]:
    """What the release promises."""
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())


METHOD = Method(
    "suppression", takes=Flows, params=SuppressionParams, run=run, promises=promises, status="proved", doc=__doc__ or ""
)
