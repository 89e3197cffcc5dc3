"""Describe a ledger and its audits in words: entries, findings, refusals and explanations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from crowdveil.errors import GuaranteeViolatedError, InputError, Text, counted
from crowdveil.ledger.entries import Entry, entries, entry_label, find_entry
from crowdveil.ledger.examination import MOST_LEAKS, MOST_ROWS, Examination
from crowdveil.ledger.store import Ledger, Line

EXACT_PEOPLE = (
    "it has exact numbers of people, and earlier releases share records with it, so that differences may be of fewer than k. "
    "Make it again with the ledger, which replaces these numbers by k"
)
TIERS = {
    0: "no earlier release shares a record, or each row is a union of rows of the other release, so nothing new can be derived",
    1: "every overlap of rows has at least k",
    2: "exact for two releases: the smallest set that can be derived has at least k",
    3: "three or more releases: safe, and possibly stricter than needed",
}


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
        verdict = f"tier {row['tier']}" if row["passed"] else "AUDIT NOT PASSED"
        parent = f", derived from entry {row['derived_from']}" if row["derived_from"] else ""
        noisy = row["epsilon"] is not None
        size = f"epsilon = {row['epsilon']:g}" if noisy else f"k = {row['k']:,} {row['k_unit']}"
        made = f"{row['method']}, {size}, {period}, {row['state']}{parent}"
        lines.append(f"{row['entry']:>4}  {row['release']}: {made}" + ("" if noisy else f"; {audited}, {verdict}"))
    losses = [
        row["epsilon"] for row in rows if row["epsilon"] is not None and row["state"] in ("prepared", "published")
    ]
    if losses:
        lines.append(f"epsilon adds up to {sum(losses):g} over the releases with noise that are not retired")
    return lines


def found_lines(found: Examination) -> list[str]:
    """Describe the audit of a candidate to the owner of the data."""
    if found.epsilon is not None:
        earlier = f"{counted(len(found.against), 'earlier release')} with noise in the ledger"
        return [f"epsilon of the release is {found.epsilon:g}; with {earlier} it adds up to {found.epsilon_of_all:g}"]
    if not found.against:
        return ["no earlier release in the ledger shares a record with it"]
    shared = ", ".join(f"{entry.entry} ({entry.name})" for entry in found.against)
    return [
        f"audited against {counted(len(found.against), 'entry', 'entries')}: {shared}",
        *_verdict(found),
    ]


def _verdict(found: Examination) -> list[str]:
    """Return the verdict of an audit, with the sets that can be derived if it did not pass."""
    result = found.result
    if result is None or found.passed:
        tier = 0 if result is None else result.tier
        return [f"passed at tier {tier}: no set of fewer than {found.k:,} {found.unit} can be derived"]
    lines = []
    if not result.passed:
        rows = " and ".join(f"{n:,} of {name}" for name, n in result.leaking_rows.items() if n)
        most = max(int(leak["needed"]) for leak in found.leaks)
        lines.append(
            f"refused at tier {result.tier}: sets of fewer than {most:,} {found.unit} can be derived from rows ({rows})"
        )
    if result.strict:
        lines.append("this audit is safe, but may refuse harmless releases")
    if found.changes:
        rows = counted(len(found.changes), "row")
        lines.append(f"refused, since {rows} of the same areas and time changed by fewer than k {found.unit}")
    if found.exact_people:
        lines.append(EXACT_PEOPLE)
    return lines + [sentence(one, found.unit) for one in found.found]


def refuse(name: str, examination: Examination) -> None:
    """Raise unless the audit passed, with the releases, rows, subtraction and size of the smallest set."""
    result = examination.result
    if result is None or examination.passed:
        return
    if not examination.found:
        raise GuaranteeViolatedError(name, f"it was not published, since {EXACT_PEOPLE}.")
    worst = examination.found[0]
    if not examination.leaks:
        changed = counted(len(examination.changes), "row")
        raise GuaranteeViolatedError(
            name,
            Text(
                "it was not published, since {changed} of the same areas and time as in earlier releases changed by fewer "
                "than {needed:,} {unit}; the smallest: {example}. Keep their values with {keep_unchanged}, derive it "
                "from an earlier release, or see crowdveil ledger explain.",
                changed=changed,
                needed=worst["needed"],
                unit=examination.unit,
                example=sentence(worst, examination.unit, 3),
            ),
        )
    rows = sum(result.leaking_rows.values())
    keep = Text("If the data were corrected, keep values with {keep_unchanged}. ") if examination.changes else ""
    raise GuaranteeViolatedError(
        name,
        Text(
            "it was not published, since with earlier releases sets of fewer than {needed:,} {unit} can be derived from "
            "{rows}; the smallest: {example}. {keep}Derive it from the earlier release (crowdveil derive), or see "
            "crowdveil ledger explain.",
            needed=worst["needed"],
            unit=examination.unit,
            rows=counted(rows, "row"),
            example=sentence(worst, examination.unit, 3),
            keep=keep,
        ),
    )


def explain(ledger: Ledger, number: int | None) -> list[str]:
    """Explain the audit of an entry; without a number, that of the last refused release."""
    if number is not None:
        entry = find_entry(ledger, number)
        stated = (
            ["the publisher stated that records without a match in earlier entries are other trips"]
            if entry.independent
            else []
        )
        return [f"{entry_label(entry)}, {entry.state}", *_audit_lines(entry.audit), *stated]
    refused = [line for line in ledger.lines() if line["event"] == "refused"]
    if not refused:
        raise InputError(
            ledger.folder, "Expected a refused release, but none was refused. Name an entry to see its audit."
        )
    return _refusal(refused[-1])


def _audit_lines(audit: Line) -> list[str]:
    numbers = ", ".join(map(str, audit["entries"]))
    against = f"audited against {'entry' if len(audit['entries']) == 1 else 'entries'} {numbers}"
    against = against if numbers else "shares no record with earlier entries"
    verdict = TIERS[audit["tier"]]
    if not audit["passed"]:
        reasons = {
            "smallest": "sets of fewer than k can be derived",
            "changes": "rows of the same areas and time changed by fewer than k",
            "exact_people": EXACT_PEOPLE,
        }
        verdict = "; ".join(words for name, words in reasons.items() if audit.get(name)) or "not passed"
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
    heading = [f"{counted(len(listed), 'derivation')}, the smallest sets first{most}:"] if listed else []
    return [f"{line['name']}: refused on {line['time']}", *_audit_lines(audit), *heading, *listed]


def sentence(leak: Mapping[str, Any], unit: str, most: int = MOST_ROWS) -> str:
    """Describe a derivation: at most `most` added and subtracted rows, and the size of the remaining set."""
    left = counted(leak["size"], _SINGULAR.get(unit, unit), unit)
    if "others" in leak:
        others = " + ".join(f"{row['release']}: {_row_in_words(row)}" for row in leak["others"][:most])
        more = leak["other_rows"] - min(len(leak["others"]), most)
        rows = (
            f"{leak['row']['release']}: {_row_in_words(leak['row'])} and {others}{f' + {more:,} more' if more else ''}"
        )
        return f"{rows} have the same areas and time, but differ in {left}"
    added, subtracted = (_rows_in_words(leak, side, most) for side in ("added", "subtracted"))
    return f"{leak['release']}: {added} minus {leak['other']}: {subtracted} leaves {left}"


_SINGULAR = {"people": "person", "trips": "trip", "trajectories": "trajectory"}


def _rows_in_words(leak: Mapping[str, Any], side: str, most: int) -> str:
    rows, total = leak[side][:most], leak[f"{side}_rows"]
    named = " + ".join(_row_in_words(row) for row in rows)
    more = total - len(rows)
    return f"{named}{f' + {more:,} more' if more else ''}" if rows else "nothing"


def _row_in_words(row: Mapping[str, Any]) -> str:
    if "overlap_of" in row:
        return "overlap of " + " and ".join(f"{part['release']} row {part['row']:,}" for part in row["overlap_of"])
    if row.get("row") is None:
        return f"suppressed total of {row['t']} (volume {row['suppressed_total']:,})"
    if "volume" not in row:
        return f"row {row['row']:,}"
    at = "" if row["t"] == "None" else f"{row['t']}, "
    return f"row {row['row']:,} ({at}{row['origin_area']} to {row['destination_area']}, volume {row['volume']:,})"
