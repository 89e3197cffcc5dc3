"""Best partitions of a map into boxes at several multipliers in one pass.

A partition is one number there, its key: (PARTS · A + p · S) · 2ᵇ + S, of its cost A and its suppressed volume S below 2ᵇ at the
multiplier p / PARTS. The least key is the best partition, and of equal ones the one that suppresses least, as in
`partition.evaluate`. Keys of parts add up, so that an option is a sum and a choice a minimum, for all multipliers side by side.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import PARTS, Splits

BLOCK = 4096
"""Boxes between two looks at whether the computation is to end."""
FEW = 32
"""Suppressed trips of a split below which their keys are read from a table: a product takes longer."""


@kernel
def evaluate_keys(cost: Ints, splits: Splits, p: Ints, bits: int, keys: Ints) -> None:
    """Fill `keys`: the key of the best partition of each box, a row each, at the multipliers p / PARTS, a column each."""
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    columns = len(p)
    option, of_lost = np.empty(columns, np.int64), np.empty((FEW, columns), np.int64)
    for trips in range(FEW):
        for j in range(columns):
            of_lost[trips, j] = trips * ((p[j] << bits) + 1)
    of_cost = PARTS << bits
    for i in range(len(cost)):
        if i % BLOCK == 0:
            end_if_stopped()
        for j in range(columns):
            keys[i, j] = cost[i] * of_cost
        for split in range(offsets[i], offsets[i + 1]):
            first, last, away = link_offsets[split], link_offsets[split + 1], lost[split]
            # Most splits have one part or two and suppress little.
            if last - first == 1 and away < FEW:
                part = link[first]
                for j in range(columns):
                    keys[i, j] = min(keys[i, j], of_lost[away, j] + keys[part, j])
            elif last - first == 2 and away < FEW:
                part, other = link[first], link[first + 1]
                for j in range(columns):
                    keys[i, j] = min(keys[i, j], of_lost[away, j] + keys[part, j] + keys[other, j])
            else:
                for j in range(columns):
                    option[j] = away * of_lost[1, j]
                for e in range(first, last):
                    part = link[e]
                    for j in range(columns):
                        option[j] += keys[part, j]
                for j in range(columns):
                    keys[i, j] = min(keys[i, j], option[j])
