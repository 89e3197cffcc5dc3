"""Audit a new release against earlier ones: the smallest group that can be derived from their published volumes.

Geometry does not matter here. Each source record is in at most one row of each release. An *atom* is the set of records in the
same row of each release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from crowdveil.ledger.pairs import PairOfReleases, Records, SmallSets, best_sets, cuts_of_people, pair_of
from crowdveil.model.arrays import Ints, Mask, require
from crowdveil.solve.od.derivable_sets import PairCuts

__all__ = ["Audit", "Derivation", "Published", "Records", "audit"]


class Published(NamedTuple):
    """The rows of a release.

    Attributes
    ----------
    name
        The name of the release.
    row
        The published row of each record; -1 if the release does not cover it, or suppresses it without a published total.
        A published suppressed total is a separate row.
    k
        The smallest group size of the release; None for that of the audit.
    """

    name: str
    row: Ints
    k: int | None = None


class Derivation(NamedTuple):
    """A set that can be derived: some rows of a release minus rows of another that lie inside them.

    Attributes
    ----------
    release, added
        The release and the rows whose volumes are added.
    other, subtracted
        The other release and the rows whose volumes are subtracted. In tier 3 rows of all earlier releases together have the
        numbers of `Audit.base`.
    size, needed
        The number of people (or trips) in the set, and the required number.
    """

    release: str
    added: Ints
    other: str
    subtracted: Ints
    size: int
    needed: int


class Audit(NamedTuple):
    """The result of an audit.

    Attributes
    ----------
    tier
        0: one release is a union of rows of the other; 1: every overlap has at least k; 2: exact for two releases; 3: three or
        more releases, safe but possibly too strict.
    passed
        Whether no set below k can be derived.
    smallest
        The size of the smallest derivable set below k; None if there is none.
    leaks
        One derivation for each row from which a set below k can be derived: the smallest found from that row.
    leaking_rows
        The number of such rows for each release, by name.
    confined
        Number of overlaps whose volume is certainly 1 to k - 1, by the published volumes.
    strict
        Whether the audit may have refused a safe release: in tier 3, or with a lower bound of people.
    base
        In tier 3 the row of each record in the common refinement of the earlier releases, which derivations name; otherwise
        None.
    """

    tier: int
    passed: bool
    smallest: int | None
    leaks: tuple[Derivation, ...]
    leaking_rows: Mapping[str, int]
    confined: int
    strict: bool
    base: Ints | None = None


def audit(records: Records, new: Published, earlier: Sequence[Published], k: int) -> Audit:
    """Return whether a set of fewer than k people can be derived from a new release and earlier ones.

    It assumes that each release is k-anonymous, and that the earlier ones passed the audit together. If releases have
    different k, a record needs the smallest k of those that publish it in a row, since groups of that size are public
    already. A set needs the largest k of its records.
    """
    _check(records, new, earlier)
    touched = _touched(new, earlier)
    if not touched.all():
        names = [release._replace(row=release.row[touched]) for release in (new, *earlier)]
        person = None if records.person is None else records.person[touched]
        found = audit(Records(records.volume[touched], person), names[0], names[1:], k)
        if found.base is None:
            return found
        base = np.full(len(touched), -1, np.int64)
        base[touched] = found.base
        return found._replace(base=base)
    relevant = _relevant(earlier)
    nothing = dict.fromkeys([new.name, *(e.name for e in relevant)], 0)
    if any(_is_union(new.row, e.row) for e in relevant) or all(_is_union(e.row, new.row) for e in relevant):
        return Audit(0, True, None, (), nothing, 0, False)
    needed = _needed([new, *relevant], k)
    if len(relevant) == 1:
        return _audit_pair(records, new, relevant[0], needed)
    name, base = _refinement(relevant)
    found = _audit_pair(records, new, Published(name, base), needed)
    return found if found.tier == 1 else found._replace(tier=3, strict=not found.passed, base=base)


def _check(records: Records, new: Published, earlier: Sequence[Published]) -> None:
    for release in (new, *earlier):
        require(len(release.row) == len(records.volume), f"{release.name}: expected a row, or -1, for each record.")
    require(records.person is None or len(records.person) == len(records.volume), "Expected a person for each record.")
    names = [release.name for release in (new, *earlier)]
    require(len(set(names)) == len(names), "releases must have different names.")


def _needed(releases: Sequence[Published], k: int) -> Ints:
    """Return for each record the smallest k of the releases that publish it; 0 if none does."""
    most = np.iinfo(np.int64).max
    needed = np.full(len(releases[0].row), most)
    for release in releases:
        own = k if release.k is None else release.k
        needed = np.where(release.row >= 0, np.minimum(needed, own), needed)
    return np.where(needed == most, 0, needed)


def _is_union(coarse: Ints, fine: Ints) -> bool:
    """Return whether each row of a release is a union of rows of another, and so reveals nothing more."""
    if np.any((coarse >= 0) & (fine < 0)):
        return False
    rows, inverse = np.unique(fine[fine >= 0], return_inverse=True)
    outer = coarse[fine >= 0]
    one = np.empty(len(rows), np.int64)
    one[inverse] = outer
    return bool(np.array_equal(one[inverse], outer))


def _touched(new: Published, earlier: Sequence[Published]) -> Mask:
    """Return the records that rows of any release connect with a row of the new one; all others were audited before.

    Two records are connected if they are in one row of a release.
    """
    records = np.arange(len(new.row))
    ends, nodes = [], len(records)
    for release in (new, *earlier):
        inside = np.flatnonzero(release.row >= 0)
        ends.append(np.stack([records[inside], nodes + release.row[inside]]))
        nodes += int(release.row.max(initial=-1)) + 1
    tail, head = np.concatenate(ends, axis=1)
    graph = coo_array((np.ones(len(tail), np.bool_), (tail, head)), (nodes, nodes))
    component = connected_components(graph, directed=False)[1][: len(records)]
    return np.isin(component, component[new.row >= 0])


def _relevant(releases: Sequence[Published]) -> list[Published]:
    """Return the earlier releases that may reveal something: those with rows that are not unions of rows of another."""
    near = [release for release in releases if np.any(release.row >= 0)]
    kept: list[Published] = []
    for i, e in enumerate(near):
        others = [*kept, *near[i + 1 :]]
        if not any(_is_union(e.row, other.row) for other in others):
            kept.append(e)
    return kept


def _refinement(releases: Sequence[Published]) -> tuple[str, Ints]:
    """Return the common refinement of releases: a row for each combination of their rows."""
    row, covered = np.zeros(len(releases[0].row), np.int64), np.zeros(len(releases[0].row), np.bool_)
    for release in releases:
        _, row = np.unique(row * (int(release.row.max(initial=-1)) + 2) + release.row + 1, return_inverse=True)
        covered |= release.row >= 0
    return " + ".join(release.name for release in releases), np.where(covered, row, -1)


def _audit_pair(records: Records, new: Published, base: Published, needed: Ints) -> Audit:
    """Audit two releases by minimum cuts; `needed` is the size of sets with each record."""
    pair = pair_of(records, new.row, base.row, needed)
    names = new.name, base.name
    if np.all(pair.size >= pair.needed):
        return Audit(1, True, None, (), dict.fromkeys(names, 0), 0, False)
    if records.person is None:
        cuts = PairCuts(pair.overlaps, pair.size, pair.needed)
        found = best_sets(pair, cuts, None)
    else:
        cuts, found = cuts_of_people(pair, records.person)
    if not len(found.size):
        return Audit(2, True, None, (), dict.fromkeys(names, 0), 0, False)
    if records.person is not None:
        cuts = PairCuts(pair.overlaps, pair.volume, pair.needed)
    # The largest possible volume of an overlap is that of its smallest set.
    confined = int(np.count_nonzero(cuts.lowest(cuts.leaking(), pair.volume) >= 1))
    leaking = dict(zip(names, found.leaking_rows, strict=True))
    # A small lower bound of people does not prove that a set has too few.
    strict = bool(np.any(found.size >= found.needed))
    return Audit(2, False, int(found.size.min()), _derivations(pair, found, names), leaking, confined, strict)


def _derivations(pair: PairOfReleases, found: SmallSets, names: tuple[str, str]) -> tuple[Derivation, ...]:
    """Return the derivations of sets, smallest first."""
    listed = []
    for i in np.argsort(found.size, kind="stable").tolist():
        one, other = (1, 0) if found.sets.second[i] else (0, 1)
        added, subtracted = found.sets.rows_of(i)
        rows = np.sort(pair.rows[one][added]), np.sort(pair.rows[other][subtracted])
        listed.append(Derivation(names[one], rows[0], names[other], rows[1], int(found.size[i]), int(found.needed[i])))
    return tuple(listed)
