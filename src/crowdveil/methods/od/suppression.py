"""Publish the flows that are made by at least k people, and suppress the rest.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.

Assumptions
-----------
The column of users names people. Without it k counts trips, and a flow of one person with k trips between two tiles would be
published.

Notes
-----
The simplest method: no generalization, so published flows are exact, and on sparse data most of the volume is suppressed.
It is the lower bound that other methods are compared with. Zones keep their ids.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the baseline called "suppression").
"""

from __future__ import annotations

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.methods.base import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import FlowParams
from crowdveil.solve.od.small_flows import Left
from crowdveil.solve.od.step_solver import finish_release, published_rows


class SuppressionParams(FlowParams):
    """Parameters of suppression."""


def run(data: Flows, params: SuppressionParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Keep the rows of at least k people."""
    keep = data.people >= params.k
    kept, small = data.where(keep), data.where(~keep)
    areas = Areas.of_tiles(data.zones, np.arange(len(data.zones), dtype=np.int32))
    release = published_rows(data, areas, kept.offsets, kept.origin, kept.destination, kept.volume, kept.people)
    progress(data.steps, data.steps)
    left = Left(small.offsets, small.origin.astype(np.int64), small.destination.astype(np.int64))
    return finish_release(data, release, left, params.k, params.reporting)


METHOD = Method(
    "suppression",
    takes=Flows,
    params=SuppressionParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    partitioning=INDEPENDENT,
)
