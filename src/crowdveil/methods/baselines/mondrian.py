"""Cut flows at medians of their origins and destinations, again and again, as long as both sides keep k.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget(0): nothing is suppressed, except a time step with fewer than k people in all, which is suppressed whole.

Assumptions
-----------
The column of users names people. Without it k counts trips. The positions of zones are known.

Notes
-----
A baseline. A flow is a point in four dimensions, the centroids of its origin and of its destination in meters of an equal-area
plane. The dimension with the largest range in meters is cut (ranges are not normalized, as in the paper; of equal ones the first
of origin x, origin y, destination x, destination y), at the median over trips: the smallest x that half of the trips do not
exceed. Flows with x ≤ median go to one side; if that leaves a side with fewer than k, x < median is tried; if that does too, the
cluster stays whole, without trying another dimension.

The areas of a row are all tiles with centroids in the rectangle around the origins of a cluster, and around its destinations.
Cuts separate centroids, so these boxes of tile pairs do not overlap and have no flow of another cluster. The paper counts
all tiles whose outlines intersect the rectangle; such areas would overlap, and are not published. A tight rectangle reveals
that a trip begins or ends at each of its edges.

References
----------
LeFevre, DeWitt, Ramakrishnan, Mondrian multidimensional k-anonymity; Matet et al., Adaptative generalization over a value
hierarchy for the k-anonymization of Origin-Destination matrices (the baseline "Mondrian", and appendix B).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, SuppressionBudget
from crowdveil.methods.base import INDEPENDENT, Facts, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import FlowParams
from crowdveil.solve.od.clusters import StepFlows, number_clusters, release_clusters, step_flows
from crowdveil.solve.od.region_space import check_positions


class MondrianParams(FlowParams):
    """Parameters of median cuts."""


def run(data: Flows, params: MondrianParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Cut the flows of each time step."""
    return release_clusters(data, params.k, partial(cut, data, params.k), params.reporting, progress)


def cut(data: Flows, k: int, step: int) -> Ints:
    """Return the cluster of each flow of a time step."""
    flows = step_flows(data, step)
    todo, final = [np.arange(len(flows.volume))], []
    while todo:
        rows = todo.pop()
        parts = halves(flows, rows, k)
        if parts:
            todo += parts
        else:
            final.append(rows)
    return number_clusters(final, len(flows.volume))


def halves(flows: StepFlows, rows: Ints, k: int) -> list[Ints]:
    """Cut a cluster at the median of its widest dimension; return nothing where a side would have fewer than k people."""
    place, volume = flows.place[rows], flows.volume[rows]
    x = place[:, np.argmax(np.ptp(place, axis=0))]
    order = np.argsort(x, kind="stable")
    median = x[order[np.searchsorted(2 * np.cumsum(volume[order]), volume.sum())]]
    for left in (x <= median, x < median):
        if min(flows.crowd_of(rows[left]), flows.crowd_of(rows[~left])) >= k:
            return [rows[left], rows[~left]]
    return []


def guarantees(params: MondrianParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity of disjoint flows without suppression."""
    return (*flow_guarantees(params, facts), SuppressionBudget(suppress=0, k=params.k, weighted=facts.weighted))


METHOD = Method(
    "mondrian",
    takes=Flows,
    params=MondrianParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_positions,
    aliases=("Mondrian",),
)
