"""Publish the flows that are made by at least k people, and suppress the rest.

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
The plainest method there is: no generalization, so what is published is exact, and on sparse data most of the volume is
suppressed. It is the lower bound that other methods are measured against. Zones keep their ids.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the rival called "suppression").
"""

from __future__ import annotations

import numpy as np

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, Areas, FlowRelease
from crowdveil.params import FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.small_flows import Left
from crowdveil.solve.od.step_solver import finished


class SuppressionParams(FlowParams):
    """Parameters of suppression."""


def run(data: Flows, params: SuppressionParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Keep the rows with a crowd of at least k."""
    keep = data.people >= params.k
    kept, small = data.where(keep), data.where(~keep)
    release = FlowRelease(
        areas=Areas.of_tiles(data.zones, np.arange(len(data.zones), dtype=np.int32)),
        t=kept.t,
        offsets=kept.offsets,
        origin=kept.origin,
        destination=kept.destination,
        volume=kept.volume,
        people=kept.people,
        state=np.full(len(kept), PUBLISHED, np.uint8),
        suppressed=np.full(data.steps, NOT_GIVEN),
        counts=data.counts,
        step_s=data.step_s,
        tz=data.tz,
    )
    progress(data.steps, data.steps)
    left = Left(small.offsets, small.origin.astype(np.int64), small.destination.astype(np.int64))
    return finished(data, release, left, params.k, params.reporting)


def guarantees(data: Flows, params: SuppressionParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())


METHOD = Method(
    "suppression",
    takes=Flows,
    params=SuppressionParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    partitioning=INDEPENDENT,
)
