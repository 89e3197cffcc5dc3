"""The first page of a report: one printed sheet for the person who decides on the release.

Everything comes from the files of the release and its manifest.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from crowdveil.errors import ParameterError, counted
from crowdveil.guarantees import guarantee_from_manifest
from crowdveil.guarantees.base import Outcome, tally
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import MANY_DROPPED
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import sorted_distinct
from crowdveil.registry import find_method
from crowdveil.report.attack_table import AttackRow, percent
from crowdveil.report.cost_summary import over_budget
from crowdveil.report.loss_summary import losses

ADVERSARY = (
    "Anyone who has this release and earlier ones, the source code and all defaults, and knows where and when some people "
    "traveled. They have neither the original data nor the random seed."
)
_RISKS_SHOWN = 5
_CLASSES = {
    "hour-of-day": " of one hour of the day",
    "hour-of-week": " of one hour of the week",
    "day-type": " of working days, of Saturdays, and of Sundays",
}
"""Which time steps have the same areas, by `stable_by`."""


def content(written: WrittenRelease, manifest: Manifest, attacks: list[AttackRow]) -> dict[str, Any]:
    """Return the values of the template, by name."""
    guarantees, decision = manifest.guarantees, manifest.decision
    return {
        "title": title_of(written, manifest),
        "violated": [entry.name for entry in guarantees if entry.outcome == Outcome.VIOLATED.value],
        "tally": tally([(entry.outcome, entry.with_original) for entry in guarantees]),
        "warnings": warnings(manifest),
        "data_rows": data_rows(written, manifest),
        "what_was_done": what_was_done(written, manifest),
        "adversary": ADVERSARY,
        "losses": losses(written, manifest),
        "risks": risks(manifest, attacks),
        "not_covered": not_covered(manifest),
        "decision": [
            ("Purpose", decision.purpose or ""),
            ("Recipients", decision.recipient or ""),
            ("Released by (name, signature)", ""),
            ("Date", ""),
        ],
        "manifest_hash": hashlib.sha256(manifest.text.encode()).hexdigest(),
    }


def warnings(manifest: Manifest) -> list[str]:
    """Return the warnings of the first page: unchecked privacy, an exceeded budget, no guarantee."""
    lines = [
        f"Not checked: {entry.name}, a privacy guarantee; {entry.checked}"
        for entry in manifest.guarantees
        if entry.outcome == Outcome.NOT_CHECKED.value and entry.kind == "privacy"
    ]
    lines += [line[0].upper() + line[1:] for line in over_budget(manifest)]
    if manifest.method.status == "heuristic":
        lines.append("No privacy guarantee: the method is a heuristic")
    return lines


def title_of(written: WrittenRelease, manifest: Manifest) -> str:
    """Return the title that the publisher gave to the data set, or its content and period."""
    if title := manifest.decision.title:
        return title
    if written.is_flows:
        what = f"Trips between {counted(written.tile_count, 'zone')}"
    else:
        what = counted(len(sorted_distinct(written.column("published_id"))), "trajectory", "trajectories")
    period = _period(written, manifest)
    return f"{what}, {period}" if period else what


def repeated_releases(manifest: Manifest) -> str:
    """Return the risk of other releases of the same data; of those outside the ledger, if this release has one."""
    outside, audit = "", "This release was not compared with any other one."
    if ledger := manifest.ledger:
        outside, audit = " outside its ledger", f"It is entry {ledger.entry} of the ledger; see below what was audited."
    return (
        f"Other releases of the same data{outside}: two releases with other zones, time steps or k, or a corrected version, can "
        f"be subtracted from each other. {audit}"
    )


def _period(written: WrittenRelease, manifest: Manifest) -> str:
    """Return the first and the last published day; empty if there are no times."""
    tz = "UTC"
    if written.is_flows:
        t, tz = written.listed_steps()[0], manifest.time_zone
    else:
        t = written.column("timestamp")
    if not len(t) or t.min() == NO_TIME:
        return ""
    first, last = (text[:10] for text in iso_times(np.array([t.min(), t.max()]), tz).to_pylist())
    return first if first == last else f"{first} to {last}"


def data_rows(written: WrittenRelease, manifest: Manifest) -> list[tuple[str, str]]:
    """Return the facts about the data, as rows of name and value."""
    rows = [
        ("Period", _period(written, manifest) or "the data has no times"),
        ("Date of the run", manifest.created[:10]),
    ]
    if (k := manifest.k) is not None:
        rows.append(("Group size k", f"{k:,} {manifest.k_unit}"))
    lost = manifest.input.dropped_percent
    if lost is not None and lost > 100 * MANY_DROPPED:
        rows.append(("Warning", f"{lost} % of the rows of the input were dropped"))
    return [*rows, ("People", _people(manifest)), _amount(written, manifest)]


def _people(manifest: Manifest) -> str:
    people = manifest.input.data.people_about
    if people is not None:
        return f"{people:,} or more (rounded down)"
    unit = manifest.k_unit
    return "number not published" if unit == "people" else f"not known: k counts {unit}"


def _amount(written: WrittenRelease, manifest: Manifest) -> tuple[str, str]:
    """Return the size of the data in two published figures, which reveal nothing new."""
    cost, flows = manifest.cost, written.is_flows
    published = cost["published_volume"] if flows else cost["published_trajectories"]
    share = cost.get("suppressed_volume_percent" if flows else "suppressed_trajectories_percent")
    what = "Trips" if flows else "Trajectories"
    if share is None:
        return what, f"{published:,} published, with random noise"
    return what, f"{published:,} published; {percent(share)} of those in the data are suppressed"


def what_was_done(written: WrittenRelease, manifest: Manifest) -> str:
    """Describe the processing of the data in plain words: by guarantee, and with the summary of the method."""
    name = manifest.method.name
    try:
        summary = find_method(name).summary.rstrip(".")
    except ParameterError:
        summary = "a method of another package"
    return f"{_plain_words(written, manifest)} Method {name}: {summary[0].lower()}{summary[1:]}."


def _plain_words(written: WrittenRelease, manifest: Manifest) -> str:
    stated = [guarantee_from_manifest(entry.name, entry.parameters).what_was_done() for entry in manifest.guarantees]
    done = " ".join(filter(None, stated))
    if written.is_flows:
        longer = ", or in several time steps together where few people traveled" if written.has_intervals else ""
        return f"Trips were counted from origin to destination in each time step{longer}. {_areas(written, manifest)}{done}"
    return done or (
        "Trajectories were changed and got new ids. The method guarantees no group size: single people may be found."
    )


def _areas(written: WrittenRelease, manifest: Manifest) -> str:
    """Describe how zones were merged into areas, and which time steps have the same areas; empty if every area is a zone."""
    if not any(len(tiles) > 1 for tiles in written.area_tiles):
        return ""
    method, parameters = manifest.method.name, manifest.method.parameters
    if method == "fixed":
        return "Zones were merged into given areas, which were not made from these data. "
    merged = "Neighboring zones were merged into areas where too few people traveled. "
    if parameters.get("time_partition") != "stable":
        return merged
    return f"{merged}Areas are the same in all time steps{_CLASSES.get(str(parameters.get('stable_by')), '')}. "


def risks(manifest: Manifest, attacks: list[AttackRow]) -> list[str]:
    """Return the measured risks, a sentence each."""
    measured = [row.sentence for row in attacks if row.after != "–"]
    if measured:
        return measured[:_RISKS_SHOWN]
    if manifest.risk is None:
        return ["No attack was run on this release."]
    return ["No attack applies to this release."]


def not_covered(manifest: Manifest) -> list[str]:
    """Return the risks that no guarantee covers, a sentence each."""
    lines = [
        "Differencing with other data: a list of all travelers but one, or a count by another publisher, can be subtracted.",
        "Outside knowledge: what all people of a group share (such as one destination) is learned about each of them, and an "
        "adversary who knows all of a group but one learns about the last.",
    ]
    if manifest.k_unit != "people":
        lines.insert(0, f"People: k counts {manifest.k_unit}, and all of a group may be of one person.")
    if manifest.method.status == "heuristic":
        lines.insert(0, "Anonymity: the method is a heuristic, and no group size is guaranteed.")
    return [repeated_releases(manifest), *lines]
