"""Show a ledger in words: its entries, and what an audit found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from crowdveil.errors import InputError, counted
from crowdveil.ledger.entries import Entry, entries, entry_label, find_entry
from crowdveil.ledger.examination import MOST_LEAKS, sentence
from crowdveil.ledger.store import Ledger, Line


def entry_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """Return a row for each entry, as plain values."""
    return [_row(entry) for entry in entries(ledger)]


def _row(entry: Entry) -> dict[str, Any]:
    first, last = (None, None) if entry.period is None else (_day(t) for t in entry.period)
    return {
        "entry": entry.entry,
        "release": entry.name,
        "added": entry.time,
        "state": entry.state,
        "from": first,
        "until": last,
        "method": entry.method,
        "k": entry.k,
        "epsilon": entry.epsilon,
        "k_unit": entry.k_unit,
        "tier": entry.audit["tier"],
        "passed": entry.audit["passed"],
        "audited_against": ", ".join(map(str, entry.audit["entries"])),
        "derived_from": entry.parent,
    }


def _day(t: int) -> str:
    return datetime.fromtimestamp(t, UTC).isoformat(timespec="minutes").removesuffix("+00:00")


def entry_lines(ledger: Ledger) -> list[str]:
    """Return the entries as lines of text."""
    rows = entry_rows(ledger)
    if not rows:
        return ["no entries"]
    lines = []
    for row in rows:
        period = "no times" if row["from"] is None else f"{row['from']} to {row['until']} UTC"
        audited = (
            f"audited against {row['audited_against']}"
            if row["audited_against"]
            else "shares no record with earlier ones"
        )
        verdict = f"tier {row['tier']}" if row["passed"] else "SETS BELOW k CAN BE DERIVED"
        parent = f", derived from entry {row['derived_from']}" if row["derived_from"] else ""
        noisy = row["epsilon"] is not None
        size = f"epsilon = {row['epsilon']:g}" if noisy else f"k = {row['k']:,} {row['k_unit']}"
        made = f"{row['method']}, {size}, {period}, {row['state']}{parent}"
        lines.append(f"{row['entry']:>4}  {row['release']}: {made}" + ("" if noisy else f"; {audited}, {verdict}"))
    counted_ = [
        row["epsilon"] for row in rows if row["epsilon"] is not None and row["state"] in ("prepared", "published")
    ]
    if counted_:
        lines.append(f"epsilon adds up to {sum(counted_):g} over the releases with noise that are not retired")
    return lines


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
        return [f"{entry_label(entry)}, {entry.state}", *_audit_lines(entry.audit)]
    refused = [line for line in ledger.lines() if line["event"] == "refused"]
    if not refused:
        raise InputError(ledger.folder, "no release was refused; name an entry to see its audit.")
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
