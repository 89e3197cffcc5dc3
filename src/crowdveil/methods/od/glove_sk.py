"""Cluster flows by complete linkage with scikit-learn, and cut where what is below k fits the budget.

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
A rival that others are measured against: what can be had without writing `glove`, and much coarser, because clusters that have
a crowd already are merged all the same. Flows are points in four dimensions, the centroids of origin and destination in meters of
an equal-area plane; complete linkage with the sum of differences, along a graph of the nearest flows (100 as in the paper, and
those that a flow is one of the nearest for). Parts of the graph that hang together nowhere are joined where they are nearest.
Merges are done in the order of scikit-learn until what is below k fits the budget, which is the lowest cut that keeps it.

A row is told as with `glove`: all tiles with centroids in the rectangles around a cluster's origins and destinations, with the
volume and crowd of the cluster alone. Needs scikit-learn (`pip install 'crowdveil[analysis]'`), and takes much longer than
`glove`.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices (the
rival "Glove-sk", and appendix B); Pedregosa et al., Scikit-learn: machine learning in Python.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from crowdveil.errors import MissingExtraError
from crowdveil.guarantees import FlowKAnonymity, Guarantee, SuppressionBudget
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Floats, Ints, frozen, row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.clusters import StepFlows, clustered_release, nearest


class GloveSkParams(Budgeted, FlowParams):
    """Parameters of complete linkage."""

    neighbors: int = Field(100, ge=1)
    """Nearest flows that each flow may be merged with at first."""


def run(data: Flows, params: GloveSkParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Cluster the flows of each time step."""
    return clustered_release(data, params.k, partial(cluster, data, params), params.reporting, progress)


def cluster(data: Flows, params: GloveSkParams, step: int) -> Ints:
    """The cluster of each flow of a time step."""
    from crowdveil.kernels.od.dendrogram import lowest_cut

    place, *flows = StepFlows.of(data, step)
    budget = params.most_suppressed(int(flows[0].sum()))
    arguments: Any = (dendrogram(place, params.neighbors), *flows, params.k, budget)
    label, _ = lowest_cut(*arguments)
    return label


def dendrogram(place: Floats, neighbors: int) -> Ints:
    """The two clusters of each merge, in order; flows come first, and merge i makes cluster i + the number of flows."""
    if len(place) < 2:
        return frozen(np.zeros((0, 2)), np.int64)
    try:
        from sklearn.cluster import AgglomerativeClustering
    except ImportError:
        raise MissingExtraError("scikit-learn", "analysis", "glove-sk") from None
    offsets, near, _ = nearest(place, np.ones(len(place), np.bool_), neighbors)
    graph = connected(place, offsets, near)
    made = AgglomerativeClustering(
        n_clusters=1, metric="manhattan", linkage="complete", connectivity=graph, compute_full_tree=True
    ).fit(place)
    return frozen(made.children_, np.int64)


def connected(place: Floats, offsets: Ints, near: Ints) -> Any:
    """The graph as a sparse matrix, with parts that hang together nowhere joined to the nearest flow of another part."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    n, first, second = len(place), row_slices(offsets), near
    while True:
        both = np.concatenate([first, second]), np.concatenate([second, first])
        graph = csr_matrix((np.ones(len(both[0])), both), shape=(n, n))
        parts, part = connected_components(graph, directed=False)
        if parts == 1:
            return graph
        for here in range(parts):
            mine, others = np.flatnonzero(part == here), np.flatnonzero(part != here)
            far, found = cKDTree(place[others]).query(place[mine], p=1)
            at = int(np.argmin(far))
            first, second = np.append(first, mine[at]), np.append(second, others[found[at]])


def guarantees(data: Flows, params: GloveSkParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    budget = SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k)
    return (FlowKAnonymity(k=params.k, counts=data.counts), budget)


METHOD = Method(
    "glove-sk",
    takes=Flows,
    params=GloveSkParams,
    run=run,
    guarantees=guarantees,
    status="argued",
    doc=__doc__ or "",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    row_semantics="overlapping",
    aliases=("Glove-sk",),
)
