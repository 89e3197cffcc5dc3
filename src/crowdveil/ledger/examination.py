"""Examine a candidate: audit it against the entries of the ledger that share records with it, and describe the findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from crowdveil.errors import InputError, Option, Text
from crowdveil.io.manifest import LedgerEntry
from crowdveil.io.written_release import WrittenRelease
from crowdveil.ledger.audit import Audit, Derivation, Published, Records, audit
from crowdveil.ledger.candidates import Candidate
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.entries import (
    Entry,
    Kind,
    Times,
    entries,
    entry_label,
    find_entry,
    stored_records,
    stored_release,
)
from crowdveil.ledger.reissues import Change, boxes_of_table, small_changes
from crowdveil.ledger.store import Ledger
from crowdveil.model.arrays import Ints, Mask


class Covered(NamedTuple):
    """A release: its name, its records with their published rows, and its smallest group size."""

    name: str
    records: SourceRecords
    k: int


def align(releases: Sequence[Covered]) -> tuple[Records, list[Published]]:
    """Return all records of the releases, and the rows of each release.

    If inputs have different numbers of trips for one record (a corrected flow, a repeated trip), the common trips are one
    record, and the others are a record of the releases that have them.
    """
    sources = np.unique(np.concatenate([release.records.source for release in releases]))
    rows = np.full((len(releases), len(sources)), -1, np.int64)
    volumes = np.zeros((len(releases), len(sources)), np.int64)
    person = np.zeros(len(sources), np.uint64)
    people_known = all(release.records.person is not None for release in releases)
    for number, (_, records, _) in enumerate(releases):
        place = np.searchsorted(sources, records.source)
        rows[number, place], volumes[number, place] = records.cell, records.volume
        if records.person is not None:
            person[place] = records.person
    rows, volume, of_record = _shared_volumes(rows, volumes)
    number_of = np.unique(person[of_record], return_inverse=True)[1].astype(np.int64) if people_known else None
    return Records(volume, number_of), [
        Published(release.name, rows[i], release.k) for i, release in enumerate(releases)
    ]


def _shared_volumes(rows: Ints, volumes: Ints) -> tuple[Ints, Ints, Ints]:
    """Split records with different volumes in the releases; return rows, volumes and original records of the parts."""
    most = volumes.max(axis=0)
    differs: Mask = ((volumes != most) & (volumes > 0)).any(axis=0)
    same, other = np.flatnonzero(~differs), np.flatnonzero(differs)
    parts = [(rows[:, same], most[same], same)]
    if len(other):
        levels = np.sort(volumes[:, other], axis=0)
        below = np.zeros(len(other), np.int64)
        for level in levels:
            more = level > below
            inside = volumes[:, other] >= level
            part = np.where(inside, rows[:, other], -1)[:, more]
            parts.append((part, (level - below)[more], other[more]))
            below = np.maximum(below, level)
    return (
        np.concatenate([part[0] for part in parts], axis=1),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


MOST_LEAKS, MOST_ROWS = 100, 12
"""Largest number of derivations in a line of the ledger, and of rows of each."""
MOST_NUMBERS = 300_000_000
"""Largest number of records times releases in an examination, about 5 GiB of memory."""
LEAST_SHARED = 3
"""An input must share a third of its records in the period of an entry, or of the entry's records if they are fewer."""


@dataclass(frozen=True, eq=False)
class Examination:
    """The result of the audit of a candidate. Confidential: sizes of sets below k are values of the data.

    Attributes
    ----------
    against
        The entries that share records with it.
    k
        The smallest k of all of them. Sets with records that only a release with a larger k publishes need that k.
    unit
        The unit of k.
    result
        The audit; None if no entry shares a record.
    leaks
        Descriptions of derivations, the smallest sets first.
    changes
        Descriptions of rows that differ from earlier rows of the same areas and time in fewer than k people.
    exact_people
        Whether it has numbers of people above k, although earlier releases share records with it.
    epsilon
        Privacy loss of a release with noise, which is not audited but added to that of the entries in `against`.
    """

    against: list[Entry]
    k: int
    unit: str
    result: Audit | None
    leaks: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    exact_people: bool = False
    epsilon: float | None = None

    @property
    def epsilon_of_all(self) -> float:
        """Return the sum of epsilon over the release and the entries."""
        return round((self.epsilon or 0.0) + sum(entry.epsilon or 0.0 for entry in self.against), 6)

    @property
    def passed(self) -> bool:
        """Whether no set below k can be derived, and no row differs from an earlier one in fewer than k people."""
        return self.result is None or (self.result.passed and not self.changes and not self.exact_people)

    @property
    def found(self) -> list[dict[str, Any]]:
        """Return all leaks and changes, the smallest first."""
        return sorted([*self.leaks, *self.changes], key=lambda one: int(one["size"]))

    def summary(self) -> dict[str, Any]:
        """Return plain values for the ledger."""
        found = {"entries": [entry.entry for entry in self.against], "k": self.k, "k_unit": self.unit}
        if self.result is None:
            return found | {"tier": 0, "passed": True, "smallest": None, "confined": 0, "strict": False}
        names = ("tier", "smallest", "confined", "strict")
        found |= {"passed": self.passed, "changes": len(self.changes), "exact_people": self.exact_people}
        return found | {name: _plain(getattr(self.result, name)) for name in names}

    def statement(self, entry: int, *, independent: bool = False) -> LedgerEntry:
        """Return the entry of the manifest, without sizes of sets."""
        tier = 0 if self.result is None else self.result.tier
        found: dict[str, Any] = {"independent": True} if independent else {}
        found |= {} if self.epsilon is None else {"epsilon_of_all_releases": self.epsilon_of_all}
        audited = len(self.against)
        return LedgerEntry(entry=entry, entries_audited=audited, tier=tier, k=self.k, k_unit=self.unit, **found)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def examine(ledger: Ledger, candidate: Candidate, written: WrittenRelease | None) -> Examination:
    """Audit a candidate against all active entries that share records with it, directly or through others.

    A derived release needs no audit, since `SumsOfParent` checks that its rows are unions of rows of its parent. Subtraction
    from a release with noise gives nothing exact; its epsilon is added to that of all active entries with noise, also of other
    periods, since people may be the same.
    """
    if candidate.epsilon is not None:
        noisy = [entry for entry in entries(ledger) if entry.active and entry.epsilon is not None]
        return Examination(noisy, candidate.k, candidate.k_unit, None, epsilon=candidate.epsilon)
    if candidate.parent is not None:
        parent = find_entry(ledger, candidate.parent)
        nothing = Audit(0, True, None, (), {}, 0, False)
        return Examination([parent], min(candidate.k, parent.k), candidate.k_unit, nothing)
    unit = "people" if candidate.records.person is not None else candidate.k_unit
    against, k, records, published = aligned(ledger, candidate)
    if not against:
        return Examination(against, k, unit, None)
    found = audit(records, published[0], published[1:], k)
    describe = _Describer(ledger, candidate, against, written, _overlaps(found, published[1:]))
    smallest = distinct(sorted(found.leaks, key=lambda leak: (leak.size, len(leak.added) + len(leak.subtracted))))
    leaks = [describe(leak) for leak in smallest[:MOST_LEAKS]]
    changes: list[dict[str, Any]] = []
    if written is not None:
        boxes, volume = boxes_of_table(written, candidate.step_s, candidate.tz), written.column("volume").tolist()
        changed = small_changes(ledger, against, records, published, boxes, volume, candidate)
        seen = sorted((one for one in changed if one.visible), key=lambda one: one.people)
        changes = [describe.change(change) for change in seen[:MOST_LEAKS]]
    return Examination(against, k, unit, found, leaks, changes, _has_people(ledger, against, candidate, written))


def _has_people(ledger: Ledger, against: list[Entry], candidate: Candidate, written: WrittenRelease | None) -> bool:
    """Return whether a release has numbers of people other than k, and is not a copy of one in the ledger."""
    if written is None or candidate.k_unit != "people" or np.all(written.column("people") == candidate.k):
        return False
    copies = (stored_release(ledger, entry) for entry in against)
    return not any(copy is not None and copy.data.equals(written.data) for copy in copies)


def distinct(leaks: Iterable[Derivation]) -> list[Derivation]:
    """Return each derivation once; several overlaps may be in one set."""
    found: dict[tuple[str, bytes, bytes], Derivation] = {}
    for leak in leaks:
        found.setdefault((leak.release, leak.added.tobytes(), leak.subtracted.tobytes()), leak)
    return list(found.values())


class Aligned(NamedTuple):
    """A candidate and the entries connected with it; the first of `published` is the candidate."""

    against: list[Entry]
    k: int
    records: Records
    published: list[Published]


def aligned(ledger: Ledger, candidate: Candidate) -> Aligned:
    """Return the records of a candidate and of all entries connected with it."""
    against = connected(ledger, candidate.kind, candidate.records, candidate.times, independent=candidate.independent)
    covered = [Covered(candidate.name, candidate.records, candidate.k)]
    numbers = 0
    for entry in against:
        covered.append(Covered(entry_label(entry), stored_records(ledger, entry), entry.k))
        numbers += len(covered[-1].records.source)
        if numbers * (len(against) + 1) > MOST_NUMBERS:
            raise InputError(
                Option("ledger"),
                f"Expected fewer earlier releases that share records with this one, directly or through others, got "
                f"{len(against):,}. Derive this one from an earlier release (crowdveil derive).",
            )
    return Aligned(against, min(release.k for release in covered), *align(covered))


def connected(
    ledger: Ledger, kind: Kind, records: SourceRecords, times: Times | None, *, independent: bool
) -> list[Entry]:
    """Return the active entries of any period that share records with an input, directly or through other entries.

    Raise if an entry of the same period shares too few: its records may be the same in another form. With `independent`
    the publisher states that they are other trips.
    """
    active = {entry.entry: entry for entry in entries(ledger) if entry.active}
    # A derived release reveals nothing more than its parent.
    comparable = {
        number: entry
        for number, entry in active.items()
        if entry.kind == kind and entry.epsilon is None and entry.parent not in active
    }
    near, apart = set[int](), list[Entry]()
    for number, entry in comparable.items():
        sources = stored_records(ledger, entry).source
        shared = len(np.intersect1d(sources, records.source, assume_unique=True))
        if shared:
            near.add(number)
        expected = len(records.source) if times is None or entry.period is None else times.within(entry.period)
        if LEAST_SHARED * shared < min(expected, len(sources)):
            apart.append(entry)
    direct = set(near)
    while more := {n for n in comparable if n not in near and _linked(comparable[n], near, comparable)}:
        near |= more
    apart = [entry for entry in apart if entry.entry in direct or entry.entry not in near]
    if apart and not independent:
        raise InputError(
            Option("ledger"),
            Text(
                "Expected the records of {apart}, which is of the same period, got an input without most of them. Give the "
                "data in the form of that release, or state with {independent} that they are other trips.",
                apart=entry_label(apart[0]),
            ),
        )
    return [comparable[number] for number in sorted(near)]


def _linked(entry: Entry, near: set[int], comparable: Mapping[int, Entry]) -> bool:
    """Return whether an entry was audited against any of the others, or any of them against it."""
    return not near.isdisjoint(entry.audit["entries"]) or any(
        entry.entry in comparable[n].audit["entries"] for n in near
    )


class _Describer:
    """Describe the rows of derivations, from the files of the candidate and of the ledger."""

    def __init__(
        self,
        ledger: Ledger,
        candidate: Candidate,
        against: list[Entry],
        written: WrittenRelease | None,
        overlaps: dict[int, list[dict[str, Any]]],
    ) -> None:
        self.ledger, self.candidate, self.overlaps = ledger, candidate, overlaps
        self.entries = {entry_label(entry): entry for entry in against}
        self.tables: dict[str, WrittenRelease | None] = {candidate.name: written}

    def __call__(self, leak: Derivation) -> dict[str, Any]:
        return {
            "size": int(leak.size),
            "needed": int(leak.needed),
            "release": leak.release,
            "added": self._rows(leak.release, leak.added),
            "added_rows": len(leak.added),
            "other": leak.other,
            "subtracted": self._rows(leak.other, leak.subtracted),
            "subtracted_rows": len(leak.subtracted),
        }

    def change(self, change: Change) -> dict[str, Any]:
        """Describe a changed row."""
        return {
            "size": change.people,
            "needed": change.needed,
            "row": self._named(change.row),
            "others": [self._named(other) for other in change.others[:MOST_ROWS]],
            "other_rows": len(change.others),
        }

    def _named(self, row: tuple[str, int]) -> dict[str, Any]:
        return {"release": row[0]} | self._rows(row[0], np.array([row[1]]))[0]

    def _rows(self, name: str, rows: Ints) -> list[dict[str, Any]]:
        if name not in self.entries and name != self.candidate.name:
            return [{"overlap_of": self.overlaps.get(int(row), [])} for row in rows[:MOST_ROWS]]
        if name not in self.tables:
            self.tables[name] = stored_release(self.ledger, self.entries[name])
        return [_row_of(self.tables[name], int(row)) for row in rows[:MOST_ROWS]]


def _overlaps(found: Audit, earlier: list[Published]) -> dict[int, list[dict[str, Any]]]:
    """Return the rows of earlier releases whose overlap is a row of their common refinement (tier 3)."""
    if found.base is None:
        return {}
    rows, first = np.unique(found.base, return_index=True)
    named = [[{"release": e.name, "row": int(e.row[i]) + 1} for e in earlier if e.row[i] >= 0] for i in first]
    return dict(zip(rows.tolist(), named, strict=True))


def _row_of(written: WrittenRelease | None, row: int) -> dict[str, Any]:
    """Return a row as plain values: its number from 1, time step, areas and volume."""
    if written is None:
        return {"row": row + 1}
    if row >= len(written.data):
        step = written.steps.slice(row - len(written.data), 1).to_pylist()[0]
        return {"row": None, "t": _when(step), "suppressed_total": step["suppressed"]}
    found = written.data.slice(row, 1).to_pylist()[0]
    shown = ("origin_area", "destination_area", "volume")
    return {"row": row + 1, "t": _when(found), **{name: found[name] for name in shown}}


def _when(row: Mapping[str, Any]) -> str:
    """Return the time step of a row, or its interval, in words."""
    return f"{row['t']} to {row['until']}" if "until" in row else str(row["t"])
