"""Record releases in a ledger: an entry before publication, and a confirmation after it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.errors import InputError, Option, counted
from crowdveil.io.manifest import FileEntry
from crowdveil.io.written_release import file_hash
from crowdveil.ledger.candidates import Candidate
from crowdveil.ledger.entries import RECORDS, Entry, find_entry
from crowdveil.ledger.examination import Examination
from crowdveil.ledger.store import Ledger

COPIED = ("data", "steps", "areas")
"""Files of a release that the ledger keeps, by role."""


@dataclass(frozen=True)
class MadeBy:
    """The method, parameters and input options of a release, as in its manifest."""

    method: str
    parameters: Mapping[str, Any]
    reading: Mapping[str, Any]


def add_entry(
    ledger: Ledger, candidate: Candidate, examination: Examination, made_by: MadeBy, folder: Path,
    files: Mapping[str, FileEntry],
) -> Entry:  # fmt: skip
    """Append the entry of a release with files in `folder`; `files` are those of its manifest, by role.

    The caller holds the lock. The entry counts from now on, even if the release is never published.
    """
    number = ledger.next_entry()
    roles = {role: files[role].name for role in COPIED if role in files}
    with ledger.new_entry_folder(number) as target:
        for name in roles.values():
            # A table from a cluster is a folder of part files.
            copy = shutil.copytree if (folder / name).is_dir() else shutil.copyfile
            copy(folder / name, target / name)
        pq.write_table(_records_table(candidate), target / RECORDS)
        copies = sorted(path for path in target.rglob("*") if path.is_file())
        stored = {path.relative_to(target).as_posix(): file_hash(path) for path in copies}
    entry = Entry(
        entry=number, name=candidate.name, kind=candidate.kind, columns=candidate.columns, inputs=candidate.inputs,
        period=candidate.period, k=candidate.k, k_unit=candidate.k_unit, method=made_by.method,
        parameters=dict(made_by.parameters), reading=dict(made_by.reading),
        files={file.name: file.sha256 for file in files.values()}, stored=stored, roles=roles,
        audit=examination.summary(), parent=candidate.parent, epsilon=candidate.epsilon, step_s=candidate.step_s, tz=candidate.tz,
        independent=candidate.independent,
    )  # fmt: skip
    ledger.append("entry", entry.as_line())
    return entry


def _records_table(candidate: Candidate) -> pa.Table:
    records = candidate.records
    person = {} if records.person is None else {"person": records.person}
    return pa.table({"source": records.source, **person, "volume": records.volume, "row": records.cell})


def add_refusal(ledger: Ledger, candidate: Candidate, examination: Examination) -> None:
    """Append the audit of a refused release, for `explain`. Later audits ignore it."""
    found = {"name": candidate.name, "audit": examination.summary(), "leaks": examination.found}
    ledger.append("refused", found)


def confirm(ledger: Ledger, entry: int, *, in_place: bool) -> None:
    """Append that the release of an entry was published, or that nothing was."""
    with ledger.locked():
        ledger.append("published" if in_place else "withdrawn", {"entry": entry})


def retire(ledger: Ledger, number: int, reason: str) -> Entry:
    """Leave an entry out of later audits, because nobody received the release."""
    if not reason.strip():
        raise InputError(
            Option("reason"), "Expected the reason why nobody received the release, got none. Give a sentence."
        )
    with ledger.locked():
        entry = find_entry(ledger, number)
        if not entry.active:
            raise InputError(ledger.folder, f"entry {number} is already {entry.state}, and later audits ignore it.")
        ledger.append("retired", {"entry": number, "reason": reason.strip()})
    return find_entry(ledger, number)


def verify_ledger(ledger: Ledger, last: str | None = None) -> list[str]:
    """Check the chain of lines and the hashes of all stored files; return a summary.

    `last` is the last hash of an earlier check and must be in the chain: nothing else shows that lines at the end were removed.
    """
    lines = ledger.lines()
    if last is not None and last not in [line["hash"] for line in lines]:
        raise InputError(ledger.folder, "no line has this hash, so lines were removed. Restore a backup.")
    made = [line for line in lines if line["event"] == "entry"]
    for line in made:
        ledger.check_files(line["entry"], line["stored"])
    listed = f"{counted(len(lines), 'line')}, {counted(len(made), 'entry', 'entries')}: none changed or removed"
    return [listed, f"last hash: {lines[-1]['hash'] if lines else '-'}"]
