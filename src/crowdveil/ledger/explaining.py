"""Explain what an audit found: which releases share records, which rows are subtracted, and what is left."""

from __future__ import annotations

from crowdveil.errors import InputError, counted
from crowdveil.ledger.entries import entry_label, find_entry
from crowdveil.ledger.examination import MOST_LEAKS, sentence
from crowdveil.ledger.store import Ledger, Line

TIERS = {
    0: "no earlier release shares a record, or each row is a union of rows of the other release: nothing new can be derived",
    1: "every overlap of rows has at least k",
    2: "exact for two releases: the smallest set that can be derived has at least k",
    3: "three or more releases: safe, and possibly stricter than needed",
}


def explain(ledger: Ledger, number: int | None = None) -> list[str]:
    """Return what the audit of an entry found; without a number, of the last refused release."""
    if number is not None:
        entry = find_entry(ledger, number)
        stated = (
            ["records that earlier entries do not have are stated to be of other trips"] if entry.independent else []
        )
        return [f"{entry_label(entry)}, {entry.state}", *_audit_lines(entry.audit), *stated]
    refused = [line for line in ledger.lines() if line["event"] == "refused"]
    if not refused:
        raise InputError(ledger.folder, "no release was refused. Name an entry to see its audit.")
    return _refusal(refused[-1])


def _audit_lines(audit: Line) -> list[str]:
    numbers = ", ".join(map(str, audit["entries"]))
    against = f"audited against {'entry' if len(audit['entries']) == 1 else 'entries'} {numbers}"
    against = against if numbers else "shares no record with earlier entries"
    verdict = TIERS[audit["tier"]]
    if not audit["passed"]:
        changed = "rows of the same areas and time changed by fewer than k"
        verdict = changed if audit["smallest"] is None else "sets of fewer than k can be derived"
    lines = [against, f"tier {audit['tier']}: {verdict}", f"k = {audit['k']:,} {audit['k_unit']}"]
    if audit["smallest"] is not None:
        lines.append(f"smallest set found: {audit['smallest']:,} {audit['k_unit']}")
    if audit["confined"]:
        lines.append(f"overlaps that are certain to hold 1 to {audit['k'] - 1:,}: {audit['confined']:,}")
    return lines


def _refusal(line: Line) -> list[str]:
    audit = line["audit"]
    listed = [f"  {sentence(leak, audit['k_unit'])}" for leak in line["leaks"]]
    most = f"; the first {MOST_LEAKS:,} are kept" if len(listed) >= MOST_LEAKS else ""
    said = f"{counted(len(listed), 'derivation')}, the smallest sets first{most}:"
    return [f"{line['name']}: refused on {line['time']}", *_audit_lines(audit), said, *listed]
