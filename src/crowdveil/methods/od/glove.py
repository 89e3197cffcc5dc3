"""Merge flows greedily, the two with the smallest common box first, until the volume below k is within the budget.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed. A time step with fewer than k
people in all is suppressed whole. DisjointFlows is not guaranteed.

Assumptions
-----------
The column of users names people. Without it k counts trips. The positions of zones are known. The adversary has no other source
to subtract rows from: rows overlap, and a row has only some of the flows between its areas, which alone hides the others.

Notes
-----
A baseline. Each flow is a cluster at first, described by the rectangles around its origins and its destinations (centroids, in
meters of an equal-area plane). Of all neighbors the two with the smallest cost are merged, again and again. The cost is the
extent of the common box, the sum of its four sides, as in appendix B of the paper; with `cost = growth` it is the growth of the
boxes of the two, averaged over their trips, as in the paper on Glove. That favors merging large clusters, so that it is good
with `join = small` only.

The papers leave open whether a cluster below k may join one that has k: with `join = small` it may not (finer areas), except the
last one if the budget is not kept otherwise; with `join = any` it may. Merging stops as soon as the volume below k is within the
budget.

Neighbors of a flow are the nearest by the sum of differences, 100 as in the paper, and all flows that it is a neighbor of;
neighbors of a cluster are those of its flows. With more neighbors than flows this is exact greedy merging. A cluster without
neighbors left searches all clusters.

The areas of a row are all tiles with centroids in the rectangles of its cluster; its volume and group size are those of the
cluster alone. A pair of tiles may lie in several rows. Small flows, where they are aggregated, are those of one tile.

References
----------
Gramaglia, Fiore, Hiding mobile traffic fingerprints with Glove; Matet et al., Adaptative generalization over a value hierarchy
for the k-anonymization of Origin-Destination matrices (the baseline "Glove", and appendix B).
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.method import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import overlapping_flow_guarantees
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.clusters import nearest_flows, release_clusters, step_flows
from crowdveil.solve.od.requirements import check_positions


class GloveParams(Budgeted, FlowParams):
    """Parameters of greedy merging."""

    join: Literal["small", "any"] = "small"
    """Merge two clusters if both are below k, or if one of them is."""
    cost: Literal["extent", "growth"] = "extent"
    """Cost of a merge: the extent of the common box, or the growth of a trip's box."""
    neighbors: int = Field(100, ge=1)
    """Nearest flows that each flow may be merged with at first."""


def run(data: Flows, params: GloveParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Merge the flows of each time step."""
    return release_clusters(data, params.k, partial(merge, data, params), params.reporting, progress)


def merge(data: Flows, params: GloveParams, step: int) -> Ints:
    """Return the cluster of each flow of a time step."""
    from crowdveil.kernels.od.glove import merge_flows

    flows, any_may = step_flows(data, step), params.join == "any"
    near = nearest_flows(flows.place, (flows.crowd < params.k) | any_may, params.neighbors)
    budget = params.max_suppressed(int(flows.volume.sum()))
    label, _ = merge_flows(flows, near, params.neighbors, params.k, budget, any_may, params.cost == "growth")
    return label


METHOD = Method(
    "glove",
    takes=Flows,
    params=GloveParams,
    run=run,
    guarantees=overlapping_flow_guarantees,
    status="argued",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_positions,
    row_semantics="overlapping",
    aliases=("GLOVE", "Glove"),
)
