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
boxes of the two, averaged over their trips, as in the paper on Glove. That favors merging large clusters, so it is good
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
from heapq import heappop, heappush
from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.methods.base import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import overlapping_flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.solve.od.clusters import (
    StepFlows,
    nearest_flows,
    number_clusters,
    release_clusters,
    step_flows,
)
from crowdveil.solve.od.region_space import check_positions


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
    flows = step_flows(data, step)
    clusters = Clusters(flows, params)
    clusters.merge_until(params.max_suppressed(int(flows.volume.sum())))
    return number_clusters(clusters.with_a_crowd(), len(flows.volume))


class Clusters:
    """Clusters of flows, numbered as flows first and then in the order in which they are made.

    Every cluster that may be merged has its cheapest known pair in a queue. If the other cluster is gone when the pair comes up,
    the cluster looks again: a pair is known to both of its clusters, and so to the later one.
    """

    def __init__(self, flows: StepFlows, params: GloveParams) -> None:
        n = len(flows.volume)
        self.flows, self.params, self.count = flows, params, n
        self.low, self.high = (np.concatenate([flows.place, np.zeros((n, 4))]) for _ in range(2))
        self.volume = np.concatenate([flows.volume, np.zeros(n, np.int64)])
        self.small = np.append(flows.crowd < params.k, np.zeros(n, np.bool_))
        self.members = {i: np.array([i]) for i in range(n)}
        chosen = np.arange(n) if params.join == "any" else np.flatnonzero(self.small)
        self.near: dict[int, set[int]] = {i: set() for i in range(n)}
        for flow, others in zip(chosen.tolist(), nearest_flows(flows.place, chosen, params.neighbors), strict=True):
            for other in others.tolist():
                self.near[flow].add(other)
                self.near[other].add(flow)
        self.queue: list[tuple[float, int, int, int]] = []

    def merge_until(self, budget: int) -> None:
        """Merge the cheapest pair until clusters below k have at most `budget` trips."""
        lost = int(self.volume[self.small].sum())
        if lost > budget:
            for cluster in list(self.members):
                self._look(cluster)
        while lost > budget:
            if self.queue:
                _, a, b, owner = heappop(self.queue)
                if a not in self.members or b not in self.members:
                    if owner in self.members:
                        self._look(owner)
                    continue
            else:  # one cluster below k is left alone
                a = next(i for i in self.members if self.small[i])
                b = self._cheapest(a, np.array([i for i in self.members if i != a]))[1]
            lost -= sum(int(self.volume[i]) for i in (a, b) if self.small[i])
            new = self._merge(a, b)
            lost += int(self.volume[new]) * bool(self.small[new])
            self._look(new)

    def with_a_crowd(self) -> list[Ints]:
        """Return the flows of each cluster that reaches k."""
        return [members for i, members in self.members.items() if not self.small[i]]

    def _costs(self, own: int, others: Ints) -> Floats:
        """Return what merging costs: the extent of the common box, or how much a trip's box grows on average."""
        low, high = np.minimum(self.low[own], self.low[others]), np.maximum(self.high[own], self.high[others])
        common: Floats = (high - low).sum(axis=1)
        if self.params.cost == "extent":
            return common
        extent, extents = (self.high[i] - self.low[i] for i in (own, others))
        growth = self.volume[own] * (common - extent.sum()) + self.volume[others] * (common - extents.sum(axis=1))
        trips = np.maximum(self.volume[own] + self.volume[others], 1)  # weights may be rounded to nothing
        mean: Floats = growth / trips
        return mean

    def _cheapest(self, cluster: int, others: Ints) -> tuple[float, int]:
        """Return the least cost and the other cluster; of equal costs the pair with the earliest clusters."""
        costs = self._costs(cluster, others)
        equal = others[costs == costs.min()]
        return float(costs.min()), min(equal.tolist(), key=lambda other: (min(cluster, other), max(cluster, other)))

    def _merge(self, a: int, b: int) -> int:
        """Merge two clusters, and return the number of the new one."""
        new, self.count = self.count, self.count + 1
        self.low[new], self.high[new] = np.minimum(*self.low[[a, b]]), np.maximum(*self.high[[a, b]])
        self.volume[new] = self.volume[a] + self.volume[b]
        both_small = bool(self.small[a] and self.small[b])
        self.members[new] = np.concatenate([self.members.pop(a), self.members.pop(b)])
        self.small[new] = both_small and self.flows.crowd_of(self.members[new]) < self.params.k
        self.small[[a, b]] = False
        self.near[new] = (self.near.pop(a) | self.near.pop(b)) - {a, b}
        for other in self.near[new]:
            self.near[other] -= {a, b}
            self.near[other].add(new)
        return new

    def _look(self, cluster: int) -> None:
        """Put the cheapest pair of a cluster into the queue; one without neighbors left looks at all clusters."""
        join_any = self.params.join == "any"
        if not self.small[cluster] and not join_any:
            return
        others = np.fromiter(self.near[cluster], np.int64)
        others = others if join_any and self.small[cluster] else others[self.small[others]]
        if len(others) == 0 and self.small[cluster]:
            listed = np.array([i for i in self.members if i != cluster and (join_any or self.small[i])], np.int64)
            costs = self._costs(cluster, listed)
            others = listed[costs <= np.sort(costs)[: self.params.neighbors][-1]] if len(listed) else listed
            self.near[cluster].update(others.tolist())
            for other in others.tolist():
                self.near[other].add(cluster)
        if len(others):
            cost, other = self._cheapest(cluster, others)
            heappush(self.queue, (cost, min(cluster, other), max(cluster, other), cluster))


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
