"""Overlaps of the rows of two releases, and the small sets that can be derived from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.model.arrays import Ints, Mask, group_sums, take_slices
from crowdveil.solve.od.derivable_sets import DerivableSets, Overlaps, PairCuts

MAX_CHOICES = 12
"""Number of choices of representatives that are tried to count people."""
MAX_NODES = 10
"""Largest component, in contracted rows, in which all sets are tried if no choice decides."""


class Records(NamedTuple):
    """The source records of all releases.

    Attributes
    ----------
    volume
        Number of trips of each record: 1 for a trip, the volume for a flow.
    person
        The number of the person of each trip, from 0; None if people are unknown.
    """

    volume: Ints
    person: Ints | None


class PairOfReleases(NamedTuple):
    """Two releases: their overlaps, the overlap of each covered record, and the number of people (or trips) of each.

    Attributes
    ----------
    rows
        The rows of both releases, by their numbers in `overlaps`.
    records, overlap
        The covered records, and their overlaps.
    size
        The number of people of each overlap, or of trips if people are unknown.
    needed
        The required size of every set with the overlap.
    """

    overlaps: Overlaps
    rows: tuple[Ints, Ints]
    records: Ints
    overlap: Ints
    volume: Ints
    size: Ints
    needed: Ints


def pair_of(records: Records, new: Ints, base: Ints, needed: Ints | int) -> PairOfReleases:
    """Return the overlaps of two releases, from the rows of records in both, and the required size of each record."""
    covered = np.flatnonzero((new >= 0) | (base >= 0))
    (rows, first), (others, second) = (_numbered(row[covered]) for row in (new, base))
    key, overlap = np.unique((first + 1) * (len(others) + 1) + second + 1, return_inverse=True)
    pairs = Overlaps(key // (len(others) + 1) - 1, key % (len(others) + 1) - 1, (len(rows), len(others)))
    volume = group_sums(overlap, records.volume[covered], len(key))
    size = volume
    if records.person is not None:
        of, _ = _distinct_pairs(overlap, records.person[covered])
        size = np.bincount(of, minlength=len(key))
    of_overlap = np.zeros(len(key), np.int64)
    np.maximum.at(of_overlap, overlap, np.broadcast_to(needed, len(new))[covered])
    return PairOfReleases(pairs, (rows, others), covered, overlap, volume, size, of_overlap)


def _numbered(row: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows, and the number of each record's row among them, -1 if it has none."""
    rows, number = np.unique(row, return_inverse=True)
    return (rows[1:], number - 1) if len(rows) and rows[0] < 0 else (rows, number)


def _distinct_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs of two columns of numbers from 0."""
    width = int(second.max(initial=0)) + 1
    key = np.unique(first * width + second)
    return key // width, key % width


def _representatives(pair: PairOfReleases, person: Ints, safe: Mask, preference: Ints) -> Ints:
    """Return the number of people represented in each overlap: a lower bound of people that adds up.

    Each person has one representative record in each component of overlaps. A smallest derivable set lies in one component,
    because its part in a component can be derived too. Distinct representatives in such a set belong to distinct people of
    the set, so their number is at most the number of its people, and it is the sum over the set's overlaps. If it reaches k for
    every set, every set has at least k people, whichever records were chosen. Safe overlaps (every set with one of them has at
    least k people) are left out. A person is represented in the overlap with the highest preference, and among these in the one
    with the fewest people.
    """
    overlap, who = _distinct_pairs(pair.overlap, person[pair.records])
    counted = ~safe[overlap]
    overlap, who = overlap[counted], who[counted]
    component = pair.overlaps.components()[overlap]
    order = np.lexsort((overlap, pair.size[overlap], -preference[overlap], who, component))
    component, who = component[order], who[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(component) != 0) | (np.diff(who) != 0)
    return np.bincount(overlap[order[first]], minlength=len(pair.size))


class SmallSets(NamedTuple):
    """The sets of leaking rows, their sizes, their overlaps (pairs of set and overlap), and the number of leaking rows.

    `needed` is the required size of each set: the largest one of its overlaps.
    """

    sets: DerivableSets
    size: Ints
    needed: Ints
    members: tuple[Ints, Ints]
    leaking_rows: tuple[int, int]


def cuts_of_people(pair: PairOfReleases, person: Ints) -> tuple[PairCuts, SmallSets]:
    """Search sets with too few people; try other representatives if a set turns out to have enough.

    An overlap that one choice of representatives proves safe is safe. The next choice prefers the overlaps of sets with
    enough people, those that were found most often first.
    """
    k, needed = int(pair.needed.max(initial=1)), pair.needed
    safe, preference = pair.size >= k, np.zeros(len(pair.size), np.int64)
    for _ in range(MAX_CHOICES):
        cuts = PairCuts(pair.overlaps, _representatives(pair, person, safe, preference), needed, safe)
        safe = safe | (cuts.smallest >= k)
        found = best_sets(pair, cuts, person)
        doubtful = np.flatnonzero(found.size >= found.needed)
        if not len(doubtful):
            return cuts, found
        of_set, overlap = found.members
        np.add.at(preference, overlap[np.isin(of_set, doubtful)], 1)
        large, enough = _by_trial(pair, person, cuts, overlap[np.isin(of_set, doubtful)], k)
        safe, needed = safe | large, np.where(enough, 0, needed)
    cuts = PairCuts(pair.overlaps, _representatives(pair, person, safe, preference), needed, safe)
    return cuts, best_sets(pair, cuts, person)


def _by_trial(pair: PairOfReleases, person: Ints, cuts: PairCuts, doubtful: Ints, k: int) -> tuple[Mask, Mask]:
    """Return the overlaps that are in no set of fewer than k people, and those in no set with fewer than required.

    All sets of their component are tried if it is small.
    """
    safe, enough = np.zeros(len(pair.size), np.bool_), np.zeros(len(pair.size), np.bool_)
    component, (overlap, tail, head) = pair.overlaps.components(), cuts.contracted()
    of_overlap, who = _distinct_pairs(pair.overlap, person[pair.records])
    order = np.argsort(component[overlap], kind="stable")
    sorted_components = component[overlap][order]
    for one in np.unique(component[doubtful]).tolist():
        edges = order[slice(*np.searchsorted(sorted_components, [one, one + 1]))]
        nodes, ends = np.unique(np.concatenate([tail[edges], head[edges]]), return_inverse=True)
        if len(nodes) > MAX_NODES:
            continue
        inside = ((np.arange(2 ** len(nodes))[:, None] >> np.arange(len(nodes))) & 1).astype(np.bool_)
        of_tail, of_head = inside[:, ends[: len(edges)]], inside[:, ends[len(edges) :]]
        valid = ~np.any(of_head & ~of_tail, axis=1)
        crossing = (of_tail & ~of_head)[valid]
        low, high = (np.searchsorted(of_overlap, overlap[edges], side) for side in ("left", "right"))
        entries = np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)])
        people, number = np.unique(who[entries], return_inverse=True)
        present = np.zeros((len(edges), len(people)), np.int64)
        present[np.repeat(np.arange(len(edges)), high - low), number] = 1
        size = np.count_nonzero(crossing.astype(np.int64) @ present, axis=1)
        for proven, least in ((safe, np.full(len(edges), k)), (enough, pair.needed[overlap[edges]])):
            small = np.any(crossing & (size[:, None] < least), axis=0)
            proven[overlap[edges[~small]]] = True
    return safe, enough


def best_sets(pair: PairOfReleases, cuts: PairCuts, person: Ints | None) -> SmallSets:
    """Return the distinct smallest sets of the leaking rows."""
    chosen, leaking_rows = _best_of_rows(pair.overlaps, cuts)
    sets = cuts.sets(chosen)
    members = sets.members(pair.overlaps)
    size = cuts.smallest[chosen] if person is None else _people(pair, person, members, len(chosen))
    needed = np.zeros(len(chosen), np.int64)
    np.maximum.at(needed, members[0], pair.needed[members[1]])
    return SmallSets(sets, size, needed, members, leaking_rows)


def _people(pair: PairOfReleases, person: Ints, members: tuple[Ints, Ints], sets: int) -> Ints:
    """Count the people of each set."""
    of_overlap, who = _distinct_pairs(pair.overlap, person[pair.records])
    ends = np.searchsorted(of_overlap, np.arange(len(pair.size) + 1))
    entries, offsets = take_slices(ends, members[1])
    of_set, _ = _distinct_pairs(np.repeat(members[0], np.diff(offsets)), who[entries])
    return np.bincount(of_set, minlength=sets)


def _best_of_rows(overlaps: Overlaps, cuts: PairCuts) -> tuple[Ints, tuple[int, int]]:
    """Return the distinct overlaps with the smallest set of each leaking row, and the number of leaking rows of both releases."""
    leaking = cuts.leaking()
    chosen, counts = [], []
    for row in (overlaps.first[leaking], overlaps.second[leaking]):
        order = np.lexsort((leaking, cuts.smallest[leaking], row))
        order = order[row[order] >= 0]
        first = np.diff(row[order], prepend=-1) != 0
        chosen.append(leaking[order[first]])
        counts.append(int(first.sum()))
    return np.unique(np.concatenate(chosen)), (counts[0], counts[1])
