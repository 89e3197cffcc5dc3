"""List the entries of a ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from crowdveil.ledger.entries import Entry, entries
from crowdveil.ledger.store import Ledger


def entry_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """Return a row for each entry, as plain values."""
    return [_row(entry) for entry in entries(ledger)]


def _row(entry: Entry) -> dict[str, Any]:
    first, last = (None, None) if entry.period is None else (_day(t) for t in entry.period[:2])
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
        period = "no times" if row["from"] is None else f"{row['from']} to {row['until']}"
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
