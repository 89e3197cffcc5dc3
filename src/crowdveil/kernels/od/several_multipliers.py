"""Best partitions of a map into boxes at several multipliers in one pass.

A partition is one number there, its key: (PARTS · A + p · S) · 2ᵇ + S, of its cost A and its suppressed volume S below 2ᵇ at the
multiplier p / PARTS. The least key is the best partition, and of equal ones the one that suppresses least, as in
`partition.evaluate`. Keys of parts add up, so that an option is a sum and a choice a minimum, for all multipliers side by side.
The lowest bits of a key say what becomes of the box: 0, it stays whole; 1 and 2, its first and second split; LATER, another. So
the first of equal choices has the least key.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._lanes import add_lanes, fill_lanes, lanes_at, least_lanes, mask_lanes, multiply_lanes, put_lanes
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import CHOICE_BITS, COLUMNS, PARTS, Splits

BLOCK = 4096
"""Boxes between two looks at whether the computation is to end."""
LATER = (1 << CHOICE_BITS) - 1
"""What a key has for splits after the first ones."""


@kernel
def read_key(key: int, p: int, bits: int) -> tuple[int, int]:
    """Return cost and suppressed volume of a key at the multiplier p / PARTS."""
    s = (key >> CHOICE_BITS) & ((1 << bits) - 1)
    return ((key >> (bits + CHOICE_BITS)) - p * s) // PARTS, s


@kernel
def evaluate_keys(cost: Ints, splits: Splits, p: Ints, bits: int, keys: Ints) -> None:
    """Fill `keys`: the key of the best partition of each box, COLUMNS of them side by side, at the multipliers p / PARTS.

    Multipliers and suppressed volumes are below 2³². There is no branch for the second part of a split, which is there as often
    as not: it counts by a mask.
    """
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    multipliers, shift = lanes_at(p, 0), bits + CHOICE_BITS
    split, e = 0, 0
    # Indices are unsigned: others would each be tested for being counted from the end.
    for i in range(len(cost)):
        if i % BLOCK == 0:
            end_if_stopped()
        key, choice = fill_lanes(cost[np.uintp(i)] * (PARTS << shift)), 0
        last_split = offsets[np.uintp(i + 1)]
        while split < last_split:
            given_up = lost[np.uintp(split)]
            choice += choice < LATER
            option = multiply_lanes(multipliers, given_up, shift)
            option = add_lanes(option, fill_lanes((given_up << CHOICE_BITS) + choice))
            split += 1
            last_link = link_offsets[np.uintp(split)]
            while e < last_link:
                two = int(e + 1 < last_link)
                one, other = COLUMNS * link[np.uintp(e)], COLUMNS * link[np.uintp(e + two)]
                option = add_lanes(option, mask_lanes(lanes_at(keys, one), ~LATER))
                option = add_lanes(option, mask_lanes(lanes_at(keys, other), -two & ~LATER))
                e += 1 + two
            key = least_lanes(key, option)
        put_lanes(keys, COLUMNS * i, key)
