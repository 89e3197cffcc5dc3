"""Entries of a ledger: a release, its records, its audit and its state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from crowdveil.errors import InputError, Text
from crowdveil.io.written_release import WrittenRelease, read_release
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.store import Ledger, Line
from crowdveil.model.arrays import Ints

State = Literal["prepared", "published", "withdrawn", "retired"]
"""prepared: the run has not confirmed the publication; withdrawn: nothing was published; retired: left out of audits."""
Kind = Literal["trips", "flows", "locations"]
"""The kind of source records: trips, or flows between two tiles with a volume. A heat map (locations) has none."""

RECORDS = "records.parquet"
"""The file of the records of an entry."""
WIDEST_ZONE = 14 * 3600
"""Largest difference between local time and UTC, in seconds."""


class Period(NamedTuple):
    """The period of records, from the first time to the end of the last one.

    `instants`: times are seconds since 1970 UTC. Otherwise they are local times without a time zone, so that no choice of
    a zone can separate two periods.
    """

    start: int
    end: int
    instants: bool

    def common(self, other: Period) -> int:
        """Return the largest possible overlap of two periods, in seconds."""
        return max(0, min(self.end, other.end) + self.margin(other.instants) - max(self.start, other.start))

    def margin(self, instants: bool) -> int:
        """Return the largest possible shift between the times of the period and others, in seconds."""
        return 0 if self.instants == instants else WIDEST_ZONE


class Times(NamedTuple):
    """The start of each record of an input, the length of a record in seconds, and `instants` as in `Period`."""

    start: Ints
    length: int
    instants: bool

    @property
    def period(self) -> Period:
        """Return the period of the records."""
        return Period(int(self.start.min()), int(self.start.max()) + self.length, self.instants)

    def within(self, period: Period) -> int:
        """Return the number of records that may overlap a period."""
        margin = period.margin(self.instants)
        begun, over = self.start < period.end + margin, self.start + self.length <= period.start - margin
        return int(np.count_nonzero(begun & ~over))


@dataclass(frozen=True)
class Entry:
    """A release in the ledger.

    Attributes
    ----------
    entry, name, time
        Its number, the name of its folder, and the time of its addition.
    kind, columns
        The kind of its source records, and the input columns that identify them, by role.
    inputs
        SHA-256 of each input file; empty for data in memory.
    period
        The period of its records; None if it is unknown.
    k, k_unit, method, parameters, reading
        As in its manifest.
    files
        SHA-256 of each file of the release, by name.
    stored, roles
        SHA-256 of each file in the ledger, by name; and the name of each copy of a file of the release, by role.
    audit
        The result of the audit (`Examination.summary`).
    parent
        The entry from which it was derived; None if it was made from the data.
    epsilon
        Privacy loss of a release with noise; None if volumes are exact.
    step_s, tz
        Length of its time steps in seconds, None if it has none; and their time zone.
    independent
        Whether the publisher stated that its new records are other trips than those of earlier entries.
    state
        Whether the release was published.
    """

    entry: int
    name: str
    kind: Kind
    columns: dict[str, str]
    inputs: list[str]
    period: Period | None
    k: int
    k_unit: str
    method: str
    parameters: dict[str, Any]
    reading: dict[str, Any]
    files: dict[str, str]
    stored: dict[str, str]
    roles: dict[str, str]
    audit: dict[str, Any]
    parent: int | None = None
    epsilon: float | None = None
    step_s: int | None = None
    tz: str = "UTC"
    independent: bool = False
    time: str = ""
    state: State = "prepared"

    @property
    def active(self) -> bool:
        """Whether later releases are audited against it."""
        return self.state in ("prepared", "published")

    def as_line(self) -> dict[str, Any]:
        """Return the content of its line."""
        return {name: value for name, value in asdict(self).items() if name not in ("time", "state")}


def entry_label(entry: Entry) -> str:
    """Return the name of an entry in messages."""
    return f"entry {entry.entry} ({entry.name})"


def entries(ledger: Ledger) -> list[Entry]:
    """Return all entries in order, each with its last state."""
    found: dict[int, Entry] = {}
    for line in ledger.lines():
        if line["event"] == "entry":
            found[line["entry"]] = _entry(line)
        elif line["event"] in ("published", "withdrawn", "retired"):
            found[line["entry"]] = replace(found[line["entry"]], state=line["event"])
    return list(found.values())


def _entry(line: Line) -> Entry:
    content = {name: line[name] for name in Entry.__dataclass_fields__ if name in line}
    period = content["period"]
    return Entry(**content | {"period": None if period is None else Period(*period)})


def active_entries(ledger: Ledger) -> Iterator[Entry]:
    """Yield the entries that later releases are audited against."""
    return (entry for entry in entries(ledger) if entry.active)


def find_entry(ledger: Ledger, number: int) -> Entry:
    """Return an entry by its number; raise if there is none."""
    for entry in entries(ledger):
        if entry.entry == number:
            return entry
    raise InputError(
        ledger.folder,
        Text(
            "there is no entry {number}. List the entries with crowdveil ledger list {folder}.",
            number=number,
            folder=ledger.folder,
        ),
    )


def stored_records(ledger: Ledger, entry: Entry) -> SourceRecords:
    """Read the records of an entry; raise if the file was changed."""
    ledger.check_files(entry.entry, {RECORDS: entry.stored[RECORDS]})
    table = pq.read_table(ledger.entry_folder(entry.entry) / RECORDS)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return SourceRecords(columns["source"], columns.get("person"), columns["volume"], columns["row"])


def stored_release(ledger: Ledger, entry: Entry) -> WrittenRelease | None:
    """Return the ledger's copy of a release of flows; None for a heat map."""
    return read_release(ledger.entry_folder(entry.entry), entry.roles) if "steps" in entry.roles else None
