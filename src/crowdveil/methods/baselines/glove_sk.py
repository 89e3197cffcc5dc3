"""Cluster flows by complete linkage with scikit-learn, and cut where the volume below k is within the budget.

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
A baseline that needs no code of `glove`, and is much coarser, because clusters that have k already are merged all the same.
Flows are points in four dimensions, the centroids of origin and destination in meters of an equal-area plane; complete linkage
with the sum of differences, along a graph of the nearest flows (100 as in the paper, and those that a flow is one of the
nearest for). Components of the graph are joined where they are nearest. Merges are done in the order of scikit-learn until the
volume below k is within the budget, which is the lowest cut that keeps it.

A row is as in `glove`: all tiles with centroids in the rectangles around a cluster's origins and destinations, with the volume
and group size of the cluster alone. Needs scikit-learn (`pip install 'crowdveil[analysis]'`), and takes much longer than
`glove`.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices (the
baseline "Glove-sk", and appendix B); Pedregosa et al., Scikit-learn: machine learning in Python.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from pydantic import Field
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from crowdveil.engine.progress import Progress
from crowdveil.errors import import_extra
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


class GloveSkParams(Budgeted, FlowParams):
    """Parameters of complete linkage."""

    neighbors: int = Field(100, ge=1)
    """Nearest flows that each flow may be merged with at first."""


def run(data: Flows, params: GloveSkParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Cluster the flows of each time step."""
    return release_clusters(data, params.k, partial(cluster, data, params), params.reporting, progress)


def cluster(data: Flows, params: GloveSkParams, step: int) -> Ints:
    """Return the cluster of each flow of a time step."""
    flows = step_flows(data, step)
    budget = params.max_suppressed(int(flows.volume.sum()))
    return lowest_cut(dendrogram(flows.place, params.neighbors), flows, params.k, budget)


def lowest_cut(merges: Ints, flows: StepFlows, k: int, budget: int) -> Ints:
    """Return the cluster of each flow after the fewest merges that leave at most `budget` trips in clusters below k."""
    n = len(flows.volume)
    members, volume = {i: np.array([i]) for i in range(n)}, dict(enumerate(flows.volume.tolist()))
    small = dict(enumerate((flows.crowd < k).tolist()))
    lost = sum(volume[i] for i in range(n) if small[i])
    for new, pair in enumerate(merges.tolist(), n):
        if lost <= budget:
            break
        members[new] = np.concatenate([members.pop(i) for i in pair])
        volume[new] = sum(volume[i] for i in pair)
        small[new] = all(small[i] for i in pair) and flows.crowd_of(members[new]) < k
        lost += volume[new] * small[new] - sum(volume[i] * small[i] for i in pair)
    return number_clusters((members[i] for i in members if not small[i]), n)


def dendrogram(position: Floats, neighbors: int) -> Ints:
    """Return the two clusters of each merge, in order; flows are first, and merge i makes cluster i + the number of flows."""
    if len(position) < 2:
        return np.zeros((0, 2), np.int64)
    cluster = import_extra("sklearn.cluster", "scikit-learn", "analysis", "glove-sk")
    near = nearest_flows(position, np.arange(len(position)), neighbors)
    made = cluster.AgglomerativeClustering(
        n_clusters=1, metric="manhattan", linkage="complete", connectivity=connected(position, near),
        compute_full_tree=True,
    ).fit(position)  # fmt: skip
    merges: Ints = made.children_.astype(np.int64)
    return merges


def connected(position: Floats, near: list[Ints]) -> csr_matrix:
    """Return the graph as a sparse matrix, with components joined to the nearest flow of another component."""
    n, first = len(position), np.repeat(np.arange(len(near)), [len(others) for others in near])
    second = np.concatenate(near)
    while True:
        both = np.concatenate([first, second]), np.concatenate([second, first])
        graph = csr_matrix((np.ones(len(both[0])), both), shape=(n, n))
        parts, part = connected_components(graph, directed=False)
        if parts == 1:
            return graph
        for here in range(parts):
            own, others = np.flatnonzero(part == here), np.flatnonzero(part != here)
            far, found = cKDTree(position[others]).query(position[own], p=1)
            at = int(np.argmin(far))
            first, second = np.append(first, own[at]), np.append(second, others[found[at]])


METHOD = Method(
    "glove-sk",
    takes=Flows,
    params=GloveSkParams,
    run=run,
    guarantees=overlapping_flow_guarantees,
    status="argued",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_positions,
    row_semantics="overlapping",
    aliases=("Glove-sk",),
)
