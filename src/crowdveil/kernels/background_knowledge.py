"""Background knowledge: the fewest people who have a few places of a target, by one depth-first search for all kinds of it.

The units (people or trajectories) at place p are unit[place_offsets[p]:place_offsets[p + 1]], rising, with a value for each: how
often it is there, or a share. They are there at position[first[q]:first[q + 1]], rising, as places in the order of their records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask

NONE = 2**62
AT_LEAST, WITHIN, PROPORTION, IN_ORDER = 0, 1, 2, 3
"""Each place at least as often as it is named; each with its value up to a tolerance; values in the same proportions, up to a
tolerance; or one after the other.
"""


class Candidates(NamedTuple):
    """The units by place, whose each unit is, and one more than the greatest of these labels: a crowd is counted in labels."""

    place_offsets: Ints
    unit: Ints
    value: Floats
    first: Ints
    position: Ints
    label: Ints
    labels: int


@kernel
def smallest_crowds(
    kind: int, tolerance: float, fewest: int, knowledge: int, most: int, offsets: Ints, place: Ints, value: Floats, wanted: Ints,
    candidates: Candidates,
) -> tuple[Ints, Mask]:  # fmt: skip
    """Return the smallest crowd that up to `knowledge` places of each target lead to, and whether the search was complete.

    Parameters
    ----------
    fewest
        Fewest places that are known, if the target has as many; it matters for proportions alone, in which knowing more may make
        a crowd larger.
    most
        Choices that are looked at for a target; then the crowd is the smallest one found.
    offsets, place, value
        The places of each target: equal ones one after the other, or with IN_ORDER in order of time.
    wanted
        The label that a crowd must have to count, -1 where any will do.
    """
    crowd, exact = np.zeros(len(wanted), np.int64), np.ones(len(wanted), np.bool_)
    who = np.zeros((knowledge + 1, len(candidates.label)), np.int64)
    after, seen = np.zeros_like(who), np.zeros(candidates.labels + 1, np.int64)
    last = np.full(len(candidates.place_offsets), -1, np.int64)
    for i in range(len(wanted)):
        places, values = place[offsets[i] : offsets[i + 1]], value[offsets[i] : offsets[i + 1]]
        rarest = np.argsort(_units_at(places, candidates), kind="mergesort")
        if kind != IN_ORDER:
            places, values = places[rarest], values[rarest]
            rarest = np.arange(len(places))
        before = np.empty(len(places), np.int64)
        for r in range(len(places)):
            before[r], last[places[r]] = last[places[r]], r
        last[places] = -1
        best, tried = _search(
            kind, tolerance, min(fewest, len(places)), knowledge, most, places, values, before, rarest, wanted[i], candidates,
            who, after, seen,
        )  # fmt: skip
        crowd[i], exact[i] = 0 if best == NONE else best, tried <= most
    return crowd, exact


@kernel
def _units_at(places: Ints, candidates: Candidates) -> Ints:
    """Count the units at each place."""
    return candidates.place_offsets[places + 1] - candidates.place_offsets[places]


@kernel
def _search(
    kind: int, tolerance: float, fewest: int, knowledge: int, most: int, places: Ints, values: Floats, before: Ints,
    rarest: Ints, wanted: int, candidates: Candidates, who: Ints, after: Ints, seen: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Return the smallest crowd of a target, and how many choices were looked at; rare places come first.

    Among equal places the first one that is left is chosen (`before`: the last equal place before each): whoever matches a
    later one matches that one, too.
    """
    n = len(places)
    length, start, cursor = (
        np.zeros(knowledge + 1, np.int64),
        np.zeros(knowledge + 1, np.int64),
        np.zeros(knowledge + 1, np.int64),
    )
    chosen = np.zeros(knowledge, np.int64)
    best, least, tried, depth = NONE, 1, 0, 0
    length[0] = -1
    if kind != PROPORTION:  # those who have all places are in every crowd
        kept = _crowd_with_all(kind, tolerance, places, values, candidates, who[1], after[1])
        least = max(1, _labels_of(who[1], kept, wanted, candidates, seen))
    while depth >= 0 and best > least and tried <= most:
        if cursor[depth] == n:
            depth -= 1
            continue
        r = rarest[cursor[depth]]
        cursor[depth] += 1
        if r < start[depth] or before[r] >= start[depth]:
            continue
        chosen[depth], times = r, 1
        for d in range(depth):
            times += places[chosen[d]] == places[r]
        kept = _keep(
            kind, tolerance, places[r], values[r], times, length[depth], who[depth], after[depth], candidates,
            who[depth + 1], after[depth + 1],
        )  # fmt: skip
        tried += 1
        depth += 1
        length[depth], start[depth], cursor[depth] = kept, r + 1, 0
        if kind == PROPORTION:
            goes_on, crowd = kept > 0, 0
            if depth >= fewest:
                alike = _alike_in(
                    tolerance,
                    places[chosen[:depth]],
                    values[chosen[:depth]],
                    who[depth],
                    kept,
                    candidates,
                    after[depth],
                )
                crowd = _labels_of(after[depth], alike, wanted, candidates, seen)
        else:
            crowd = _labels_of(who[depth], kept, wanted, candidates, seen)
            goes_on = crowd > 0
        if crowd > 0:
            best = min(best, crowd)
        if depth == knowledge or not goes_on:
            depth -= 1
    return best, tried


@kernel
def _keep(
    kind: int, tolerance: float, place: int, known: float, times: int, length: int, who: Ints, after: Ints,
    candidates: Candidates, new_who: Ints, new_after: Ints,
) -> int:  # fmt: skip
    """Keep the units that have one more known place, of a list or (length -1) of all; return how many there are.

    In order: the units that have it at or after their current place (`after`), which then moves behind it.
    """
    low, high = candidates.place_offsets[place], candidates.place_offsets[place + 1]
    kept = 0
    for c in range(high - low if length < 0 else length):
        if length < 0:
            q, now = low + c, 0
        else:
            q, now = low + np.searchsorted(candidates.unit[low:high], who[c]), after[c]
            if q == high or candidates.unit[q] != who[c]:
                continue
        own, fits = candidates.value[q], True
        if kind == AT_LEAST:
            fits = own >= times
        elif kind == WITHIN:
            fits = own - own * tolerance <= known <= own + own * tolerance
        elif kind == IN_ORDER:
            first, last = candidates.first[q], candidates.first[q + 1]
            at = first + np.searchsorted(candidates.position[first:last], now)
            fits = at < last
            now = candidates.position[at] + 1 if fits else now
        if fits:
            new_who[kept], new_after[kept] = candidates.unit[q], now
            kept += 1
    return kept


@kernel
def _crowd_with_all(
    kind: int, tolerance: float, places: Ints, values: Floats, candidates: Candidates, who: Ints, after: Ints
) -> int:
    """Write the units that have all of some places; return how many there are."""
    length = -1
    for r in range(len(places)):
        times = 1
        for d in range(r):
            times += places[d] == places[r]
        if length != 0:
            length = _keep(kind, tolerance, places[r], values[r], times, length, who, after, candidates, who, after)
    return max(length, 0)


@kernel
def _alike_in(
    tolerance: float, places: Ints, own: Floats, who: Ints, length: int, candidates: Candidates, alike: Ints
) -> int:
    """Write the units of a list, all of which have some places, whose values there have the same proportions to the greatest."""
    kept, other, most = 0, np.empty(len(places)), own.max()
    for c in range(length):
        for d in range(len(places)):
            low, high = candidates.place_offsets[places[d]], candidates.place_offsets[places[d] + 1]
            other[d] = candidates.value[low + np.searchsorted(candidates.unit[low:high], who[c])]
        greatest, fits = other.max(), True
        for d in range(len(places)):
            known, candidate = own[d] / most, other[d] / greatest
            fits = fits and candidate - candidate * tolerance <= known <= candidate + candidate * tolerance
        if fits:
            alike[kept] = who[c]
            kept += 1
    return kept


@kernel
def _labels_of(who: Ints, length: int, wanted: int, candidates: Candidates, seen: Ints) -> int:
    """Count the labels of the first units of a list, 0 if the one that is wanted is not among them (-1: any will do).

    The last place of `seen` counts the calls, the others are when each label was seen last.
    """
    found, count = wanted < 0, 0
    seen[-1] += 1
    for c in range(length):
        whose = candidates.label[who[c]]
        found = found or whose == wanted
        if seen[whose] != seen[-1]:
            seen[whose] = seen[-1]
            count += 1
    return count if found else 0


@kernel
def crowds_of(
    kind: int, tolerance: float, offsets: Ints, place: Ints, value: Floats, wanted: Ints, candidates: Candidates
) -> Ints:
    """Count the labels that have all of each choice of known places; 0 if the wanted one has not."""
    crowd = np.zeros(len(wanted), np.int64)
    who = np.zeros(len(candidates.label), np.int64)
    after, seen = np.zeros_like(who), np.zeros(candidates.labels + 1, np.int64)
    for i in range(len(wanted)):
        places, values = place[offsets[i] : offsets[i + 1]], value[offsets[i] : offsets[i + 1]]
        if kind != IN_ORDER:
            rarest = np.argsort(_units_at(places, candidates))
            places, values = places[rarest], values[rarest]
        kept = _crowd_with_all(kind, tolerance, places, values, candidates, who, after)
        if kind == PROPORTION:
            kept = _alike_in(tolerance, places, values, who, kept, candidates, after)
            crowd[i] = _labels_of(after, kept, wanted[i], candidates, seen)
        else:
            crowd[i] = _labels_of(who, kept, wanted[i], candidates, seen)
    return crowd
