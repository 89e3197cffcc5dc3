"""Units (people or trajectories) at places, and the crowds that they are: what the searches of adversaries share.

The units at place p are unit[place_offsets[p]:place_offsets[p + 1]], rising.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.ordering import first_from, sort_by


@kernel
def crowd_of(who: Ints, length: int, wanted: int, label: Ints, seen: Ints) -> int:
    """Count the labels of the first units in `who`, 0 if the one that is wanted is not among them (-1: any will do).

    The last place of `seen` counts the calls, the others are when each label was seen last.
    """
    there, count = wanted < 0, 0
    seen[-1] += 1
    for c in range(length):
        whose = label[who[c]]
        there = there or whose == wanted
        if seen[whose] != seen[-1]:
            seen[whose] = seen[-1]
            count += 1
    return count if there else 0


@kernel
def find(values: Ints, low: int, high: int, wanted: int) -> int:
    """Return the position of a value in a rising slice, -1 if it is not there."""
    at = first_from(values, low, high, wanted)
    return at if at < high and values[at] == wanted else -1


@kernel
def units_at(place: int, place_offsets: Ints) -> int:
    """Count the units at a place."""
    return int(place_offsets[place + 1] - place_offsets[place])


@kernel
def rarest_first(order: Ints, n: int, places: Ints, place_offsets: Ints) -> None:
    """Put the first n of `order` into rising order of how many units are at places[order]."""
    units = np.empty(n, np.int64)
    for i in range(n):
        units[i] = units_at(places[order[i]], place_offsets)
    sort_by(units, order, n)
