"""Lowest cut through a dendrogram at which the clusters below k fit a budget."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.merged import merge_people, number_clusters
from crowdveil.kernels.od.structures import StepFlows


@kernel
def lowest_cut(merges: Ints, flows: StepFlows, k: int, budget: int) -> tuple[Ints, int]:
    """Do merges in order until clusters below k hold at most `budget` trips: the cluster of each flow, and their number.

    `merges` has the two clusters of each merge; flows come first, and merge i makes cluster i + the number of flows. Flows of
    clusters below k are in none, -1. What is below k falls with every merge, so that this is the lowest such cut.
    """
    _, flow_volume, flow_crowd, member_offsets, member = flows
    n = len(flow_volume)
    most = n + len(merges)
    volume, crowd, parent = np.zeros(most, np.int64), np.zeros(most, np.int64), np.arange(most)
    at, length = np.zeros(most, np.int64), np.zeros(most, np.int64)
    people, end, too_small = np.empty(2 * len(member) + 1, np.int64), len(member), 0
    people[: len(member)] = member
    for i in range(n):
        volume[i], crowd[i] = flow_volume[i], flow_crowd[i]
        too_small += volume[i] * (crowd[i] < k)
        if len(member) > 0:
            at[i], length[i] = member_offsets[i], member_offsets[i + 1] - member_offsets[i]
    done = 0
    while too_small > budget and done < len(merges):
        a, b, new = merges[done, 0], merges[done, 1], n + done
        done += 1
        parent[a], parent[b] = new, new
        volume[new], crowd[new] = volume[a] + volume[b], crowd[a] + crowd[b]
        if len(member) > 0 and max(crowd[a], crowd[b]) < k:
            people = grow(people, end + length[a] + length[b])
            at[new] = end
            crowd[new] = merge_people(people, at, length, a, b, end)
            length[new] = crowd[new]
            end += crowd[new]
        too_small -= volume[a] * (crowd[a] < k) + volume[b] * (crowd[b] < k) - volume[new] * (crowd[new] < k)
    return number_clusters(parent, crowd, n, k)
