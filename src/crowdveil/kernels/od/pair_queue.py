"""A queue of pairs of clusters, the cheapest first: one entry for each cluster, with its best partner."""

from __future__ import annotations

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def earlier(a: int, b: int, c: int, d: int) -> bool:
    """Return whether the pair of a and b comes before the pair of c and d where both cost the same."""
    if min(a, b) != min(c, d):
        return min(a, b) < min(c, d)
    return max(a, b) < max(c, d)


@kernel
def _before(costs: Floats, owners: Ints, partner: Ints, i: int, cost: float, owner: int) -> bool:
    """Return whether entry i of the queue comes before the pair of another owner."""
    if costs[i] != cost:
        return bool(costs[i] < cost)
    return earlier(owners[i], partner[owners[i]], owner, partner[owner])


@kernel
def push(costs: Floats, owners: Ints, partner: Ints, size: int, cost: float, owner: int) -> int:
    """Put the best pair of a cluster into the queue, and return its new size."""
    i = size
    while i > 0 and not _before(costs, owners, partner, (i - 1) // 2, cost, owner):
        costs[i], owners[i] = costs[(i - 1) // 2], owners[(i - 1) // 2]
        i = (i - 1) // 2
    costs[i], owners[i] = cost, owner
    return size + 1


@kernel
def pop(costs: Floats, owners: Ints, partner: Ints, size: int) -> int:
    """Take the first entry out of the queue, and return its new size."""
    size -= 1
    cost, owner, i = costs[size], owners[size], 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(costs, owners, partner, child + 1, costs[child], owners[child]):
            child += 1
        if not _before(costs, owners, partner, child, cost, owner):
            break
        costs[i], owners[i] = costs[child], owners[child]
        i = child
    costs[i], owners[i] = cost, owner
    return size
