"""Audit a new release against earlier ones: the smallest group that can be derived from their published volumes.

Geometry does not matter here. Each source record is in at most one row of each release; an *atom* is the set of records with the
same row in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crowdveil.model.arrays import Ints


class Records(NamedTuple):
    """The source records that at least one release covers.

    Attributes
    ----------
    volume
        Trips of each record: 1 for a trip, the volume of a flow from one tile to another in a time step.
    person
        The number of the person behind each trip, from 0; None where only trips are known.
    """

    volume: Ints
    person: Ints | None


class Published(NamedTuple):
    """The rows of a release.

    Attributes
    ----------
    name
        Of the release.
    row
        For each record the published row that contains it; -1 where the release does not cover it, or suppresses it without a
        published total. A published suppressed total is a row of its own.
    """

    name: str
    row: Ints


class Derivation(NamedTuple):
    """A set that can be derived: some rows of a release minus rows of another that lie inside them.

    Attributes
    ----------
    release, added
        The release and the rows whose volumes are added.
    other, subtracted
        The other release and the rows whose volumes are subtracted. In tier 3 rows of all earlier releases together are numbered
        as in `Audit.base`.
    size
        The people (or trips) in the set; with people a lower bound.
    """

    release: str
    added: Ints
    other: str
    subtracted: Ints
    size: int


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
        The size of the smallest derivable set below k; None where there is none.
    leaks
        One derivation for each row from which a set below k can be derived: the smallest found from that row.
    leaking_rows
        The number of such rows for each release, by name.
    confined
        Overlaps whose volume is certain to be within 1 to k - 1, from the published volumes.
    strict
        Whether the audit may refuse what is safe (tier 3).
    """

    tier: int
    passed: bool
    smallest: int | None
    leaks: tuple[Derivation, ...]
    leaking_rows: Mapping[str, int]
    confined: int
    strict: bool


def audit(records: Records, new: Published, earlier: Sequence[Published], k: int) -> Audit:
    """Return whether a set of fewer than k people can be derived from a new release and earlier ones."""
    raise NotImplementedError
