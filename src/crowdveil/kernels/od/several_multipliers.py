"""Best partitions of a map into boxes at several multipliers in one pass.

A partition is one number there, its key: (PARTS · A + p · S) · 2ᵇ + S, of its cost A and its suppressed volume S below 2ᵇ at the
multiplier p / PARTS. The least key is the best partition, and of equal ones the one that suppresses least, as in
`partition.evaluate`. Keys of parts add up, so that an option is a sum and a choice a minimum, for all multipliers side by side.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import COLUMNS, PARTS, Splits

BLOCK = 4096
"""Boxes between two looks at whether the computation is to end."""


@kernel
def read_key(key: int, p: int, bits: int) -> tuple[int, int]:
    """Return cost and suppressed volume of a key at the multiplier p / PARTS."""
    s = key & ((1 << bits) - 1)
    return ((key >> bits) - p * s) // PARTS, s


@kernel
def evaluate_keys(cost: Ints, splits: Splits, p: Ints, bits: int, keys: Ints) -> None:
    """Fill `keys`: the key of the best partition of each box, COLUMNS of them side by side, at the multipliers p / PARTS.

    Columns are variables, not a loop: the processor holds them in registers, and chooses among options without a branch. Nor is
    there one for the second part of a split, which is there as often as not: it counts by a mask of all bits or none.
    """
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    of_lost_0, of_lost_1 = (p[0] << bits) + 1, (p[1] << bits) + 1
    of_lost_2, of_lost_3 = (p[2] << bits) + 1, (p[3] << bits) + 1
    of_cost = PARTS << bits
    split, e = 0, 0
    # Indices are unsigned: others would each be tested for being counted from the end.
    for i in range(len(cost)):
        if i % BLOCK == 0:
            end_if_stopped()
        key_0 = cost[np.uintp(i)] * of_cost
        key_1, key_2, key_3 = key_0, key_0, key_0
        last_split = offsets[np.uintp(i + 1)]
        while split < last_split:
            given_up = lost[np.uintp(split)]
            option_0, option_1 = given_up * of_lost_0, given_up * of_lost_1
            option_2, option_3 = given_up * of_lost_2, given_up * of_lost_3
            split += 1
            last_link = link_offsets[np.uintp(split)]
            while e < last_link:
                two = int(e + 1 < last_link)
                one, other = COLUMNS * link[np.uintp(e)], COLUMNS * link[np.uintp(e + two)]
                option_0 += keys[np.uintp(one)] + (keys[np.uintp(other)] & -two)
                option_1 += keys[np.uintp(one + 1)] + (keys[np.uintp(other + 1)] & -two)
                option_2 += keys[np.uintp(one + 2)] + (keys[np.uintp(other + 2)] & -two)
                option_3 += keys[np.uintp(one + 3)] + (keys[np.uintp(other + 3)] & -two)
                e += 1 + two
            key_0, key_1 = min(key_0, option_0), min(key_1, option_1)
            key_2, key_3 = min(key_2, option_2), min(key_3, option_3)
        at = COLUMNS * i
        keys[np.uintp(at)], keys[np.uintp(at + 1)] = key_0, key_1
        keys[np.uintp(at + 2)], keys[np.uintp(at + 3)] = key_2, key_3
