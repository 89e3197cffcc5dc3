"""Merge flows greedily, the two that fit into the smallest common box first, until what is below k fits the budget.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed. A time step with fewer than k
people in all is suppressed whole. DisjointFlows is not guaranteed.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips. It is known where zones are. Whoever reads
the release has nothing to subtract one row from: rows overlap, and that a row holds only some of the flows between its areas
is all that hides the others.

Notes
-----
A rival that others are measured against. Each flow is a cluster at first, told by the rectangles around its origins and its
destinations (centroids, in meters of an equal-area plane). Of all neighbors the two with the least cost are merged, again
and again. The cost is the extent of the common box, the sum of its four sides, as in appendix B of the paper; with
`cost = growth` it is how much the boxes of the two grow, averaged over their trips, as in the paper on Glove. That rewards
joining what is large already, so that it is good with `join = small` only.

Whether a cluster below k may join one that has k is open in the papers: with `join = small` it may not (finer areas), except
the last one if the budget is not kept otherwise; with `join = any` it may. Merging stops as soon as what is below k fits the
budget.

Neighbors of a flow are the nearest by the sum of differences, 100 as in the paper, and all flows that it is one of those for;
neighbors of a cluster are those of its flows. With more neighbors than flows this is exact greedy merging. A cluster that
runs out of neighbors looks among all clusters.

The areas of a row are all tiles with centroids in the rectangles of its cluster, its volume and crowd are those of the cluster
alone. A pair of tiles may lie in several rows. Small volumes, where they are reported, are those of one tile.

References
----------
Gramaglia, Fiore, Hiding mobile traffic fingerprints with Glove; Matet et al., Adaptative generalization over a value hierarchy
for the k-anonymization of Origin-Destination matrices (the rival "Glove", and appendix B).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.guarantees import FlowKAnonymity, Guarantee, SuppressionBudget
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.clusters import StepFlows, clustered_release, nearest


class GloveParams(Budgeted, FlowParams):
    """Parameters of greedy merging."""

    join: Literal["small", "any"] = "small"
    """Merge two clusters if both are below k, or if one of them is."""
    cost: Literal["extent", "growth"] = "extent"
    """What is least of the pair that is merged: the extent of the common box, or how much a trip's box grows."""
    neighbors: int = Field(100, ge=1)
    """Nearest flows that each flow may be merged with at first."""


def run(data: Flows, params: GloveParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Merge the flows of each time step."""
    return clustered_release(data, params.k, partial(merge, data, params), params.reporting, progress)


def merge(data: Flows, params: GloveParams, step: int) -> Ints:
    """The cluster of each flow of a time step."""
    from crowdveil.kernels.od.glove import merge_flows

    flows, any_may = StepFlows.of(data, step), params.join == "any"
    near = nearest(flows.place, (flows.crowd < params.k) | any_may, params.neighbors)
    budget = params.most_suppressed(int(flows.volume.sum()))
    arguments: Any = (*flows, *near, params.neighbors, params.k, budget, any_may, params.cost == "growth")
    label, _ = merge_flows(*arguments)
    return label


def guarantees(data: Flows, params: GloveParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    budget = SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k)
    return (FlowKAnonymity(k=params.k, counts=data.counts), budget)


METHOD = Method(
    "glove",
    takes=Flows,
    params=GloveParams,
    run=run,
    guarantees=guarantees,
    status="argued",
    doc=__doc__ or "",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    row_semantics="overlapping",
    aliases=("GLOVE", "Glove"),
)
