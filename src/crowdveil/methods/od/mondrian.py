"""Cut flows at medians of where they begin and end, again and again, as long as both sides keep a crowd.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget(0): nothing is suppressed, except a time step with fewer than k people in all, which is suppressed whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips. It is known where zones are.

Notes
-----
A rival that others are measured against. A flow is a point in four dimensions, the centroids of its origin and of its
destination in meters of an equal-area plane. The dimension with the largest range in meters is cut (ranges are not normalized,
as in the paper; of equal ones the first of origin x, origin y, destination x, destination y), at the median over trips: the
least x that half of the trips do not exceed. Flows with x ≤ median go to one side; if that leaves a side with fewer than k,
x < median is tried; if that does too, the cluster stays whole, without trying another dimension.

The areas of a row are all tiles with centroids in the rectangle around the origins of a cluster, and around its destinations.
Cuts part centroids, so these boxes of tile pairs do not overlap and hold no flow of another cluster. The paper counts all
tiles whose outlines meet the rectangle; such areas would overlap, and are not published. That a rectangle is tight tells that
somebody begins or ends at each of its edges.

References
----------
LeFevre, DeWitt, Ramakrishnan, Mondrian multidimensional k-anonymity; Matet et al., Adaptative generalization over a value
hierarchy for the k-anonymization of Origin-Destination matrices (the rival "Mondrian", and appendix B).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee, SuppressionBudget
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Ints, frozen
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.clusters import clustered_release, members


class MondrianParams(FlowParams):
    """Parameters of median cuts."""


def run(data: Flows, params: MondrianParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Cut the flows of each time step."""
    return clustered_release(data, params.k, partial(cut, data, params.k), params.reporting, progress)


def cut(data: Flows, k: int, step: int) -> Ints:
    """The cluster of each flow of a time step."""
    from crowdveil.kernels.od.mondrian import median_cuts

    rows = slice(data.offsets[step], data.offsets[step + 1])
    origin, destination = frozen(data.origin[rows], np.int64), frozen(data.destination[rows], np.int64)
    flows = (origin, destination, data.volume[rows], data.people[rows], *members(data, step))
    arguments: Any = (*data.zones.xy, *data.zones.in_order, *flows, k)
    label, _ = median_cuts(*arguments)
    return label


def guarantees(data: Flows, params: MondrianParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    return (
        FlowKAnonymity(k=params.k, counts=data.counts),
        DisjointFlows(),
        SuppressionBudget(suppress=0, k=params.k),
    )


METHOD = Method(
    "mondrian",
    takes=Flows,
    params=MondrianParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    aliases=("Mondrian",),
)
