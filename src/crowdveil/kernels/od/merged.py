"""Merged clusters: the cluster that a flow is in now, and its people."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints

NONE = -1
"""In place of a cluster: there is none."""


@kernel
def find(parent: Ints, item: int) -> int:
    """Return the cluster that an earlier one has become part of."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@kernel
def merge_people(members: Ints, at: Ints, length: Ints, a: int, b: int, end: int) -> int:
    """Write the different people of two sorted lists behind `end`, and return how many they are."""
    i, j, n = at[a], at[b], 0
    i_end, j_end = at[a] + length[a], at[b] + length[b]
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and members[i] < members[j]):
            members[end + n] = members[i]
            i += 1
        else:
            if i < i_end and members[i] == members[j]:
                i += 1
            members[end + n] = members[j]
            j += 1
        n += 1
    return n


@kernel
def number_clusters(parent: Ints, crowd: Ints, n: int, k: int) -> tuple[Ints, int]:
    """Return the cluster of each flow, numbered in order of flows, NONE where it is below k; and the number of clusters."""
    label, number, clusters = np.full(n, NONE, np.int64), np.full(len(parent), NONE, np.int64), 0
    for i in range(n):
        c = find(parent, i)
        if crowd[c] >= k:
            if number[c] == NONE:
                number[c] = clusters
                clusters += 1
            label[i] = number[c]
    return label, clusters
