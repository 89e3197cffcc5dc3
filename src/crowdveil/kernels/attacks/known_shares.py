"""Background knowledge of frequencies: people who have a few places in the same proportions as a target."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.attacks.crowds import crowd_of, find, rarest_first, units_at

NONE = 2**62
AT_LEAST, WITHIN, PROPORTION, IN_ORDER = 0, 1, 2, 3


@kernel
def smallest_crowds_by_share(
    fewest: int, knowledge: int, most: int, tolerance: float, target_offsets: Ints, target_place: Ints, target_value: Floats,
    wanted: Ints, place_offsets: Ints, unit: Ints, value: Floats, label: Ints, labels: int,
) -> tuple[Ints, Mask]:  # fmt: skip
    """Return the smallest crowd that has `fewest` to `knowledge` places of each target with frequencies in the same
    proportions, and whether the search was complete. A target with fewer places is known by all of them. The rest is as in
    `smallest_crowds`.

    Knowing more places may make a crowd larger here: the proportions are those to the most frequent place that is known.
    """
    targets, units = len(wanted), len(label)
    crowd, exact = np.zeros(targets, np.int64), np.ones(targets, np.bool_)
    seen = np.zeros(labels + 1, np.int64)
    who = np.zeros((knowledge + 1, units), np.int64)
    held = np.zeros((knowledge + 1, knowledge, units))
    for i in range(targets):
        low, high = target_offsets[i], target_offsets[i + 1]
        there = np.arange(low, high)
        rarest_first(there, high - low, target_place, place_offsets)
        best, tried = NONE, 0
        for size in range(min(fewest, high - low), min(knowledge, high - low) + 1):
            best, tried = _search(
                size, most, tolerance, best, tried, there, target_place, target_value, wanted[i], place_offsets, unit,
                value, label, seen, who, held,
            )  # fmt: skip
        crowd[i], exact[i] = 0 if best == NONE else best, tried <= most
    return crowd, exact


@kernel
def _search(
    size: int, most: int, tolerance: float, best: int, tried: int, there: Ints, target_place: Ints, target_value: Floats,
    wanted: int, place_offsets: Ints, unit: Ints, value: Floats, label: Ints, seen: Ints, who: Ints,
    held: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Walk through all choices of `size` places; of each beginning the units that have all of it are kept."""
    n = len(there)
    cursor, length, own = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64), np.zeros(size)
    depth = 0 if size > 0 else -1
    while depth >= 0 and best > 1 and tried <= most:
        if cursor[depth] > n - (size - depth):
            depth -= 1
        else:
            j = there[cursor[depth]]
            cursor[depth] += 1
            own[depth] = target_value[j]
            low, high = place_offsets[target_place[j]], place_offsets[target_place[j] + 1]
            kept = 0
            if depth == 0:
                for q in range(low, high):
                    who[1, kept], held[1, 0, kept] = unit[q], value[q]
                    kept += 1
            else:
                for c in range(length[depth]):
                    q = find(unit, low, high, who[depth, c])
                    if q >= 0:
                        who[depth + 1, kept], held[depth + 1, depth, kept] = who[depth, c], value[q]
                        for d in range(depth):
                            held[depth + 1, d, kept] = held[depth, d, c]
                        kept += 1
                        low = q
            length[depth + 1] = kept
            if depth + 1 == size:
                tried += 1
                alike = 0
                for c in range(kept):
                    if _alike(own, held[size, :size, c], tolerance):
                        who[size, alike] = who[size, c]
                        alike += 1
                here = crowd_of(who[size], alike, wanted, label, seen)
                if here > 0:
                    best = min(best, here)
            elif kept > 0:
                depth += 1
                cursor[depth] = cursor[depth - 1]
    return best, tried


@kernel
def _alike(own: Floats, other: Floats, tolerance: float) -> bool:
    """Return whether two rows of frequencies have the same proportions to their greatest."""
    most, greatest = 0.0, 0.0
    for d in range(len(own)):
        most, greatest = max(most, own[d]), max(greatest, other[d])
    alike = True
    for d in range(len(own)):
        mine, theirs = own[d] / most, other[d] / greatest
        alike = alike and theirs - theirs * tolerance <= mine <= theirs + theirs * tolerance
    return alike


@kernel
def crowds_of(
    kind: int, tolerance: float, choice_offsets: Ints, choice_place: Ints, choice_value: Floats, wanted: Ints,
    place_offsets: Ints, unit: Ints, value: Floats, first: Ints, position: Ints, label: Ints, labels: int,
) -> Ints:  # fmt: skip
    """Count the labels that have all of each choice of known places; 0 if the wanted one has not.

    kind: AT_LEAST, each place as often as it is named; WITHIN, with its value up to the tolerance; PROPORTION; or IN_ORDER.
    """
    crowd = np.zeros(len(wanted), np.int64)
    seen, who = np.zeros(labels + 1, np.int64), np.zeros(len(label), np.int64)
    for i in range(len(wanted)):
        low, high = choice_offsets[i], choice_offsets[i + 1]
        own, other = choice_value[low:high], np.zeros(high - low)
        places = choice_place[low:high]
        rare, kept = places[0], 0
        for place in places:
            if units_at(place, place_offsets) < units_at(rare, place_offsets):
                rare = place
        for q in range(place_offsets[rare], place_offsets[rare + 1]):
            if _has(kind, tolerance, places, own, other, unit[q], place_offsets, unit, value, first, position):
                who[kept] = unit[q]
                kept += 1
        crowd[i] = crowd_of(who, kept, wanted[i], label, seen)
    return crowd


@kernel
def _has(
    kind: int, tolerance: float, places: Ints, own: Floats, other: Floats, whom: int, place_offsets: Ints, unit: Ints,
    value: Floats, first: Ints, position: Ints,
) -> bool:  # fmt: skip
    """Return whether a unit has all that is known."""
    fits, now = True, 0
    for d in range(len(places)):
        q = find(unit, place_offsets[places[d]], place_offsets[places[d] + 1], whom) if fits else -1
        fits = q >= 0
        if fits:
            other[d] = value[q]
            if kind == AT_LEAST:
                times = 0
                for e in range(len(places)):
                    times += places[e] == places[d]
                fits = first[q + 1] - first[q] >= times
            elif kind == WITHIN:
                fits = value[q] - value[q] * tolerance <= own[d] <= value[q] + value[q] * tolerance
            elif kind == IN_ORDER:
                at = first[q]
                while at < first[q + 1] and position[at] < now:
                    at += 1
                fits = at < first[q + 1]
                if fits:
                    now = position[at] + 1
    return fits and (kind != PROPORTION or _alike(own, other, tolerance))
