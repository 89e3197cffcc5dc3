"""A table of overlaps with given sums of rows: what an adversary can fill in from two partitions alone."""

from __future__ import annotations

import numpy as np

from crowdveil.model.arrays import Ints
from crowdveil.solve.od.derivable_sets import Overlaps

MAX_TOTAL = 2**30
"""Trips of all rows up to which a table is searched."""


def feasible_table(overlaps: Overlaps, first: Ints, second: Ints) -> Ints | None:
    """Return a volume for each overlap so that the rows of both partitions have their volumes; None if there is none.

    Overlaps with row -1 take any volume. The table is a maximum flow from the first rows to the second ones. What is not
    published is one more node, which may take and give as much as all rows have.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    total = int(first.sum() + second.sum())
    if total > MAX_TOTAL:
        return None
    n, m = overlaps.rows
    outside, source, sink = n + m, n + m + 1, n + m + 2
    tail = np.where(overlaps.first >= 0, overlaps.first, outside)
    head = np.where(overlaps.second >= 0, n + overlaps.second, outside)
    rows = np.concatenate([tail, np.full(n, source), np.arange(n, n + m), [source, outside]])
    columns = np.concatenate([head, np.arange(n), np.full(m, sink), [outside, sink]])
    unlimited = np.full(len(tail), max(total, 1))
    capacity = np.concatenate([unlimited, first, second, [second.sum(), first.sum()]]).astype(np.int32)
    graph = csr_array((capacity, (rows.astype(np.int32), columns.astype(np.int32))), shape=(n + m + 3, n + m + 3))
    found = maximum_flow(graph, source, sink)
    if found.flow_value < total:
        return None
    flow = found.flow.tocsr()
    values: Ints = np.asarray(flow[tail, head], np.int64).ravel()
    return values
