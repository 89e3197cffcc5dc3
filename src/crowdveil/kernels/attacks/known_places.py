"""Background knowledge of places: the fewest people who have all of a few places of a target, by sets of bits, best first.

Of a place it may be known that the target was there, how often at least, or with which value (a frequency, a share) up to a
tolerance. Whatever is known, each choice is a set of people, knowing more makes it smaller, and the least one is looked for.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import bits_set, kernel, lowest_bit
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.ordering import sort_by

NONE = 2**62


@kernel
def smallest_crowds(
    knowledge: int, most: int, levels: int, tolerance: float, target_offsets: Ints, target_place: Ints, target_value: Floats,
    wanted: Ints, place_offsets: Ints, unit: Ints, value: Floats, label: Ints, labels: int, plain: bool,
) -> tuple[Ints, Mask]:  # fmt: skip
    """Return the smallest crowd that up to `knowledge` places of each target lead to, and whether the search was complete.

    Parameters
    ----------
    most
        Choices that are looked at for a target; then the crowd is the smallest one found.
    levels
        How often at most a target may be known to be at one place, which is known that often then; 0 where values are known.
    target_offsets, target_place, target_value
        The places of each target, each once, and its value there: how often it is there, or a share.
    wanted
        The label that a crowd must have to count, -1 where any will do.
    place_offsets, unit, value
        The units (people or trajectories) at each place, rising, and their values there.
    label, plain
        Whose each unit is: a crowd is counted in labels, from 0 to `labels` - 1. Plain where no two units share one.
    """
    targets, units = len(wanted), len(label)
    crowd, exact = np.zeros(targets, np.int64), np.ones(targets, np.bool_)
    local, near = np.full(units, -1, np.int64), np.empty(units, np.int64)
    seen = np.zeros(labels + 1, np.int64)
    for i in range(targets):
        low, high = target_offsets[i], target_offsets[i + 1]
        count, items = 0, 0
        for j in range(low, high):
            items += 1 if levels == 0 else min(int(target_value[j]), levels)
            for q in range(place_offsets[target_place[j]], place_offsets[target_place[j] + 1]):
                if local[unit[q]] < 0:
                    local[unit[q]] = count
                    near[count] = unit[q]
                    count += 1
        bits, cost = np.zeros((items, (count + 63) // 64), np.int64), np.ones(items, np.int64)
        items = 0
        for j in range(low, high):
            kinds = 1 if levels == 0 else min(int(target_value[j]), levels)
            for level in range(1, kinds + 1):
                cost[items] = level
                for q in range(place_offsets[target_place[j]], place_offsets[target_place[j] + 1]):
                    v = value[q]
                    if levels == 0:
                        fits = v - v * tolerance <= target_value[j] <= v + v * tolerance
                    else:
                        fits = v >= level
                    if fits:
                        at = local[unit[q]]
                        bits[items, at >> 6] |= np.int64(1) << (at & 63)
                items += 1
        crowd[i], exact[i] = _search(knowledge, most, bits, cost, near[:count], label, wanted[i], plain, seen)
        for c in range(count):
            local[near[c]] = -1
    return crowd, exact


@kernel
def _search(
    knowledge: int, most: int, bits: Ints, cost: Ints, near: Ints, label: Ints, wanted: int, plain: bool,
    seen: Ints,
) -> tuple[int, bool]:  # fmt: skip
    """Return the fewest labels in what items have in common, over all items that cost `knowledge` together.

    Items are taken in falling order of how many units they exclude. Where each unit has a label of its own, nothing is lost
    twice: what all that are still to come exclude together is at most the sum, and a branch that cannot beat the best is left.
    """
    items, words = bits.shape
    true, sets = np.zeros(words, np.int64), np.zeros((knowledge + 1, words), np.int64)
    for c in range(len(near)):
        sets[0, c >> 6] |= np.int64(1) << (c & 63)
        if wanted < 0 or label[near[c]] == wanted:
            true[c >> 6] |= np.int64(1) << (c & 63)
    every = sets[0].copy()
    for j in range(items):
        every &= bits[j]
    least = max(1, _units(every) if plain else _labels(every, near, label, seen, NONE))
    order, change = np.zeros((knowledge, items), np.int64), np.zeros((knowledge, items), np.int64)
    length, place, left = np.zeros(knowledge, np.int64), np.zeros(knowledge, np.int64), np.zeros(knowledge, np.int64)
    size = np.zeros(knowledge + 1, np.int64)
    size[0] = len(near)
    both = np.zeros(words, np.int64)
    best, tried, depth = NONE, 0, -1
    opening = items > 0  # a node is to be looked at whose set is ready one deeper than the last
    first, budget = 0, knowledge
    while (opening or depth >= 0) and best > least and tried <= most:
        if opening:
            above, depth = depth, depth + 1
            left[depth], place[depth], length[depth] = budget, 0, 0
            among = items if above < 0 else length[above]
            for m in range(first, among):
                item = m if above < 0 else order[above, m]
                if cost[item] <= budget and tried <= most:
                    found = False
                    for w in range(words):
                        both[w] = sets[depth, w] & bits[item, w]
                        found = found or (both[w] & true[w]) != 0
                    tried += 1
                    if found:
                        here = _units(both)
                        best = min(best, here if plain else _labels(both, near, label, seen, best))
                        order[depth, length[depth]] = item
                        change[depth, length[depth]] = here - size[depth]
                        length[depth] += 1
            if budget > 1:
                sort_by(change[depth], order[depth], length[depth])
            opening = False
        j, budget = place[depth], left[depth]
        place[depth] += 1
        hopeless = budget < 2 or j + 1 >= length[depth]
        if not hopeless and plain:
            left_over = size[depth]
            for m in range(j, min(j + budget, length[depth])):
                left_over += change[depth, m]
            hopeless = left_over >= best
        if hopeless:
            depth -= 1  # those after it exclude less
        else:
            item = order[depth, j]
            budget -= cost[item]
            if budget > 0:
                for w in range(words):
                    sets[depth + 1, w] = sets[depth, w] & bits[item, w]
                size[depth + 1] = size[depth] + change[depth, j]
                first, opening = j + 1, True
    return (0 if best == NONE else best), tried <= most


@kernel
def _units(bits: Ints) -> int:
    """Count the units of a set."""
    count = 0
    for w in range(len(bits)):
        count += bits_set(bits[w])
    return count


@kernel
def _labels(bits: Ints, near: Ints, label: Ints, seen: Ints, enough: int) -> int:
    """Count the labels of a set of units, up to `enough`; the last entry of `seen` counts the calls."""
    count, w = 0, 0
    seen[-1] += 1
    while w < len(bits) and count < enough:
        word = bits[w]
        while word != 0 and count < enough:
            whose = label[near[w * 64 + lowest_bit(word)]]
            if seen[whose] != seen[-1]:
                seen[whose] = seen[-1]
                count += 1
            word &= word - 1
        w += 1
    return count
