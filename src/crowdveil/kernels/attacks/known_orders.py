"""Background knowledge of sequences: the fewest people who have a few places in the same order as a target."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints, Mask
from crowdveil.kernels.attacks.crowds import crowd_of, find, rarest_first
from crowdveil.kernels.ordering import first_from

NONE = 2**62


@kernel
def smallest_crowds_in_order(
    knowledge: int, most: int, target_offsets: Ints, target_place: Ints, wanted: Ints, place_offsets: Ints, unit: Ints,
    first: Ints, position: Ints, label: Ints, labels: int,
) -> tuple[Ints, Mask]:  # fmt: skip
    """Return the smallest crowd that up to `knowledge` places of each target lead to in their order; and whether the search was
    complete.

    Parameters
    ----------
    most
        Choices that are looked at for a target; then the crowd is the smallest one found.
    target_offsets, target_place
        The places of each target, in order of time.
    wanted
        The label that a crowd must have to count, -1 where any will do.
    place_offsets, unit
        The units at each place, rising.
    first, position
        When each of them was there, as places in the order of its records: position[first[q]:first[q + 1]], rising.
    label
        Whose each unit is: a crowd is counted in labels, from 0 to `labels` - 1.
    """
    targets, units = len(wanted), len(label)
    crowd, exact = np.zeros(targets, np.int64), np.ones(targets, np.bool_)
    longest = 0
    for i in range(targets):
        longest = max(longest, target_offsets[i + 1] - target_offsets[i])
    before, rarest, last = (
        np.zeros(longest, np.int64),
        np.zeros(longest, np.int64),
        np.full(len(place_offsets), -1, np.int64),
    )
    who, after = np.zeros((knowledge + 1, units), np.int64), np.zeros((knowledge + 1, units), np.int64)
    seen = np.zeros(labels + 1, np.int64)
    for i in range(targets):
        low, n = target_offsets[i], target_offsets[i + 1] - target_offsets[i]
        places = target_place[low : low + n]
        for r in range(n):
            before[r] = last[places[r]]
            last[places[r]] = r
        for r in range(n):
            last[places[r]] = -1
            rarest[r] = r
        rarest_first(rarest, n, places, place_offsets)
        crowd[i], exact[i] = _search(
            knowledge, most, places, before, rarest, wanted[i], place_offsets, unit, first, position, label, seen, who,
            after,
        )  # fmt: skip
    return crowd, exact


@kernel
def _search(
    knowledge: int, most: int, places: Ints, before: Ints, rarest: Ints, wanted: int, place_offsets: Ints, unit: Ints,
    first: Ints, position: Ints, label: Ints, seen: Ints, who: Ints,
    after: Ints,
) -> tuple[int, bool]:  # fmt: skip
    n = len(places)
    length, start = np.zeros(knowledge + 1, np.int64), np.zeros(knowledge + 1, np.int64)
    cursor = np.zeros(knowledge + 1, np.int64)
    # A person who has all places in this order is in every crowd.
    least, whole = 1, n > 0
    for r in range(n):
        if whole:
            length[1] = _followed(
                places[r], -1 if r == 0 else length[1], who[1], after[1], who[1], after[1], place_offsets, unit, first,
                position,
            )  # fmt: skip
            whole = length[1] > 0
    if whole:
        least = max(1, crowd_of(who[1], length[1], wanted, label, seen))
    best, tried, depth = NONE, 0, 0
    while depth >= 0 and best > least and tried <= most:
        if cursor[depth] >= n:
            depth -= 1
        else:
            r = rarest[cursor[depth]]
            cursor[depth] += 1
            # Of equal places only the first one after the last: who has a later one has that order too.
            if r >= start[depth] and before[r] < start[depth]:
                length[depth + 1] = _followed(
                    places[r], -1 if depth == 0 else length[depth], who[depth], after[depth], who[depth + 1], after[depth + 1],
                    place_offsets, unit, first, position,
                )  # fmt: skip
                tried += 1
                crowd = crowd_of(who[depth + 1], length[depth + 1], wanted, label, seen)
                if crowd > 0:
                    best = min(best, crowd)
                    if depth + 1 < knowledge:
                        depth += 1
                        start[depth], cursor[depth] = r + 1, 0
    return (0 if best == NONE else best), tried <= most


@kernel
def _followed(
    place: int, length: int, who: Ints, after: Ints, new_who: Ints, new_after: Ints, place_offsets: Ints, unit: Ints,
    first: Ints, position: Ints,
) -> int:  # fmt: skip
    """Keep the units that are at a place at or after where they are now, and put them behind it; length -1: all units."""
    low, high = place_offsets[place], place_offsets[place + 1]
    kept = 0
    if length < 0:
        for q in range(low, high):
            new_who[kept], new_after[kept] = unit[q], position[first[q]] + 1
            kept += 1
    else:
        for c in range(length):
            q = find(unit, low, high, who[c])
            if q >= 0:
                low = q
                a = first_from(position, first[q], first[q + 1], after[c])
                if a < first[q + 1]:
                    new_who[kept], new_after[kept] = who[c], position[a] + 1
                    kept += 1
    return kept
