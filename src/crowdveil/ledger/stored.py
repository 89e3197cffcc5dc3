"""Read what the ledger keeps of a release: its records with their rows, and a copy of its tables."""

from __future__ import annotations

import pyarrow.parquet as pq

from crowdveil.io.written_release import WrittenRelease, read_release
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.entries import Entry
from crowdveil.ledger.store import Ledger

RECORDS = "records.parquet"


def stored_records(ledger: Ledger, entry: Entry) -> SourceRecords:
    """Read the records of an entry; raise if the file was changed."""
    ledger.check_files(entry.entry, {RECORDS: entry.stored[RECORDS]})
    table = pq.read_table(ledger.entry_folder(entry.entry) / RECORDS)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return SourceRecords(columns["source"], columns.get("person"), columns["volume"], columns["row"])


def stored_release(ledger: Ledger, entry: Entry) -> WrittenRelease | None:
    """Return the copy of a release of flows that the ledger keeps; None for a heat map."""
    return read_release(ledger.entry_folder(entry.entry), entry.roles) if "steps" in entry.roles else None
