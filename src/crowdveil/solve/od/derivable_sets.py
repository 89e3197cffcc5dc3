"""Sets that can be derived from the volumes of two partitions of the same records, exactly, by minimum cuts.

An *overlap* is a row of the first partition and a row of the second one that have records in common, or a row and what the other
partition does not publish (row -1). A set of overlaps can be derived if it is the union of some rows of one partition minus rows
of the other one that lie inside that union.

Notes
-----
Why these are all sets: let coefficients a of the first rows and -y of the second rows give v = a_p - y_q ≥ 0 on every overlap
(p, q), with 0 for row -1. With X_j = {p: a_p ≥ j} and Y_j = {q: y_q ≥ j} v is the sum over j of the indicators of X_j minus those
of Y_j, and none of these is negative, because y_q ≥ j forces a_p ≥ j where p and q overlap. For j ≤ 0 the complements are the
sets, with the roles exchanged; row -1 is in no set. So the smallest derivable set is one of these differences. Each is a cut in
the graph of rows with the overlap's weight as capacity from p to q and an unlimited capacity from q to p.

By the duality of linear programs the minimum cut that separates the rows of an overlap is also the largest volume that the
overlap can have, given the volumes of all rows: a pair of releases is safe if every overlap could have k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels.cuts import Edges, all_roots, bounded_cuts, cut_sides, merge_ends, smallest_values
from crowdveil.model.arrays import Ints, Mask, take_slices


class Overlaps(NamedTuple):
    """The overlaps of two partitions.

    Attributes
    ----------
    first, second
        The row of each overlap in both partitions; -1 where it is not published. No pair occurs twice, none is (-1, -1).
    rows
        The number of rows of each partition.
    """

    first: Ints
    second: Ints
    rows: tuple[int, int]

    def components(self) -> Ints:
        """Return the connected component of each overlap; row -1 connects nothing.

        Components are independent: the part of a derivable set in one of them can be derived too.
        """
        n, m = self.rows
        both = np.flatnonzero((self.first >= 0) & (self.second >= 0))
        parent = np.arange(n + m)
        tail, head = self.first, n + self.second
        merge_ends(tail, head, both, parent)
        return all_roots(parent)[np.where(self.first >= 0, tail, head)]


class DerivableSets(NamedTuple):
    """Sets that were derived, as rows to add and to subtract.

    Attributes
    ----------
    second
        Whether rows of the second partition are added and those of the first subtracted.
    added_offsets, added, subtracted_offsets, subtracted
        The rows of set i are added[added_offsets[i]:added_offsets[i + 1]], and likewise those subtracted.
    """

    second: Mask
    added_offsets: Ints
    added: Ints
    subtracted_offsets: Ints
    subtracted: Ints

    def rows_of(self, i: int) -> tuple[Ints, Ints]:
        """Return the rows that are added and subtracted for set i."""
        a, s = self.added_offsets, self.subtracted_offsets
        return self.added[a[i] : a[i + 1]], self.subtracted[s[i] : s[i + 1]]

    def members(self, overlaps: Overlaps) -> tuple[Ints, Ints]:
        """Return the overlaps in the sets, as pairs of set and overlap, sorted by set."""
        sets = np.arange(len(self.second))
        of_added, of_subtracted = (np.repeat(sets, np.diff(o)) for o in (self.added_offsets, self.subtracted_offsets))
        found: list[tuple[Ints, Ints]] = []
        for second in (False, True):
            row, other = (overlaps.second, overlaps.first) if second else (overlaps.first, overlaps.second)
            by_row = np.argsort(row, kind="stable")
            ends = np.searchsorted(row[by_row], np.arange(overlaps.rows[second] + 1))
            mine = self.second[of_added] == second
            entries, offsets = take_slices(ends, self.added[mine])
            # Rows -1 are sorted before all others.
            overlap = by_row[entries]
            of_set = np.repeat(of_added[mine], np.diff(offsets))
            width = overlaps.rows[1 - second] + 1
            taken = of_subtracted * width + self.subtracted
            left = ~np.isin(of_set * width + other[overlap], taken[self.second[of_subtracted] == second]) | (
                other[overlap] < 0
            )
            found.append((of_set[left], overlap[left]))
        of_set, overlap = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(of_set, kind="stable")
        return of_set[order], overlap[order]


class PairCuts:
    """Minimum cuts of the overlaps of two partitions."""

    def __init__(self, overlaps: Overlaps, weight: Ints, needed: Ints, large: Mask | None = None) -> None:
        """Compute the smallest derivable set of each overlap, as far as it is below k, the most that any overlap needs.

        `weight` are the records (or people) of each overlap, `needed` the size that every set with it must have. `large` marks
        overlaps whose sets all have at least k people, where the weight is a lower bound of them.
        """
        n, m = overlaps.rows
        k = int(needed.max(initial=1))
        self.overlaps, self.weight, self.needed, self.k = overlaps, weight, needed, k
        self._large = (weight >= k) if large is None else large | (weight >= k)
        # One node for all that is not published, in each component.
        open_, where = overlaps.components(), (overlaps.first < 0) | (overlaps.second < 0)
        _, rank = np.unique(open_[where], return_inverse=True)
        outside = np.full(len(open_), -1, np.int64)
        outside[where] = n + m + rank
        self._tail = np.where(overlaps.first >= 0, overlaps.first, outside)
        self._head = np.where(overlaps.second >= 0, n + overlaps.second, outside)
        self._nodes = n + m + int(rank.max(initial=-1)) + 1
        self._parent = self._contracted()
        self._live = self._between_nodes(self._parent)
        self.smallest = np.full(len(weight), k, np.int64)
        """The smallest derivable set with each overlap in it; k where it is k or more."""
        self.smallest[self._live] = bounded_cuts(self._edges(self._live, weight), self._parent, k)

    def leaking(self) -> Ints:
        """Return the overlaps in a set that can be derived and is smaller than they need."""
        return np.flatnonzero(self.smallest < self.needed)

    def contracted(self) -> tuple[Ints, Ints, Ints]:
        """Return the overlaps between rows that a set below k may separate, with the contracted nodes of their two rows."""
        node = all_roots(self._parent)
        left = np.flatnonzero(node[self._tail] != node[self._head])
        return left, node[self._tail[left]], node[self._head[left]]

    def sets(self, chosen: Ints) -> DerivableSets:
        """Return the smallest derivable set with each chosen overlap in it."""
        n, m = self.overlaps.rows
        place = np.searchsorted(self._live, chosen)
        node = all_roots(self._parent)
        outside = np.zeros(self._nodes, np.int64)
        outside[node[n + m :]] = 1
        offsets, nodes, side = cut_sides(
            self._edges(self._live, self.weight), self._parent, place, self.k, outside
        )  # fmt: skip
        order = np.argsort(node[: n + m], kind="stable")
        first, last = (np.searchsorted(node[order], nodes, s) for s in ("left", "right"))
        of_set = np.repeat(np.arange(len(chosen)), np.diff(offsets))
        counts = last - first
        rows = order[np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)]
        of_row = np.repeat(of_set, counts)
        second = side == 1
        added = (rows >= n) == second[of_row]
        numbers = np.where(rows >= n, rows - n, rows)
        bounds = np.arange(len(chosen) + 1)
        return DerivableSets(
            second,
            np.searchsorted(of_row[added], bounds),
            numbers[added],
            np.searchsorted(of_row[~added], bounds),
            numbers[~added],
        )

    def lowest(self, chosen: Ints, volume: Ints) -> Ints:
        """Return the lower bound of the volume of chosen overlaps, from the volumes of rows alone."""
        parent = self._contracted()
        live = self._between_nodes(parent)
        return smallest_values(self._edges(live, volume), parent, np.searchsorted(live, chosen))

    def _contracted(self) -> Ints:
        """Return the union-find forest of rows with large overlaps contracted: no cut below k separates their rows."""
        parent = np.arange(self._nodes)
        merge_ends(self._tail, self._head, np.flatnonzero(self._large), parent)
        return parent

    def _between_nodes(self, parent: Ints) -> Ints:
        roots = all_roots(parent)
        return np.flatnonzero(roots[self._tail] != roots[self._head])

    def _edges(self, live: Ints, capacity: Ints) -> Edges:
        return Edges(self._tail[live], self._head[live], capacity[live])
