"""Pairs taken in a given order, each member once."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints, Mask


@kernel
def take_pairs(first: Indices, second: Indices, order: Ints, firsts: int, seconds: int) -> Mask:
    """Return the pairs that are taken when each is taken unless one of its members was taken before."""
    taken = np.zeros(len(order), np.bool_)
    used_first, used_second = np.zeros(firsts, np.bool_), np.zeros(seconds, np.bool_)
    for i in range(len(order)):
        a, b = first[order[i]], second[order[i]]
        if not used_first[a] and not used_second[b]:
            used_first[a] = True
            used_second[b] = True
            taken[order[i]] = True
    return taken
