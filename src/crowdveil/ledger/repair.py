"""Repair a release that fails its audit: merge rows at the border of small sets until no such set can be derived.

Two rows of a time step with the same origin area are merged to one, whose destination area is the union of theirs; or the same
with origins and destinations exchanged. So rows stay boxes without overlap, and k holds. A row without such a neighbor is
suppressed; if that exceeds the budget, the release is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdveil.errors import GuaranteeViolatedError, Option, counted
from crowdveil.ledger.audit import Audit, Derivation, Published, audit
from crowdveil.ledger.candidates import Candidate
from crowdveil.ledger.examination import aligned
from crowdveil.ledger.merging import MergedRows
from crowdveil.ledger.store import Ledger
from crowdveil.model.arrays import Ints, Mask, group_sums
from crowdveil.model.release import FlowRelease

MAX_ROUNDS = 200
"""Audits until the repair gives up."""


def repair(ledger: Ledger, candidate: Candidate, release: FlowRelease) -> tuple[FlowRelease, list[str]]:
    """Return a release that passes the audit, and what the repair cost, a line each; the same release where it passes."""
    against, k, records, published = aligned(ledger, candidate)
    if not against:
        return release, []
    first, rows, rounds = published[0].row, MergedRows(release), 0
    new = published[0]
    found = audit(records, new, published[1:], k)
    while not found.passed:
        if rounds == MAX_ROUNDS:
            raise GuaranteeViolatedError(
                candidate.name,
                f"{counted(MAX_ROUNDS, 'round')} of repair were not enough; derive it from an earlier release.",
            )
        rounds += 1
        _merge_borders(rows, found, new, published[1:])
        new = Published(candidate.name, rows.row_of(first))
        found = audit(records, new, published[1:], k)
    if rounds == 0:
        return release, []
    repaired = rows.release(_group_sizes(candidate, rows, release))
    added = 100 * (generalization(repaired) / max(generalization(release), 1e-9) - 1)
    lines = _lines(release, repaired, rows, rounds, added)
    # What the solver stated of its rows holds no longer.
    facts = {"repair": {"rows_merged": rows.merges, "generalization_added_percent": round(added, 1)}}
    return replace(repaired, facts=facts), lines


def _merge_borders(rows: MergedRows, found: Audit, new: Published, earlier: list[Published]) -> None:
    """Merge one row of each derivation with a row outside of it."""
    others = {release.name: release.row for release in earlier}
    touched: set[int] = set()
    atoms: dict[str, tuple[Ints, Ints]] = {}
    for leak in found.leaks:
        other = leak.other if leak.release == new.name else leak.release
        if other not in atoms:
            of_other = others.get(other, found.base if found.base is not None else new.row)
            pairs = np.unique(np.column_stack([new.row, of_other]), axis=0)
            atoms[other] = pairs[:, 0], pairs[:, 1]
        inside, border = _border(leak, new.name, *atoms[other])
        if touched.isdisjoint(border):
            touched.update(rows.merge_one(border, set(inside)))


def _border(leak: Derivation, name: str, new: Ints, other: Ints) -> tuple[list[int], list[int]]:
    """Return the rows of the new release inside a derivation, and those of them that it depends on."""
    if leak.release != name:
        return leak.subtracted.tolist(), leak.subtracted.tolist()
    left: Mask = np.isin(new, leak.added) & ~np.isin(other, leak.subtracted)
    return leak.added.tolist(), np.unique(new[left]).tolist()


def _group_sizes(candidate: Candidate, rows: MergedRows, release: FlowRelease) -> Ints:
    """Return the group size of each merged row: its people are counted again, trips are added up."""
    row = rows.row_of(candidate.records.cell)
    total = len(release)
    if candidate.records.person is None or release.k_unit != "people":
        inside = rows.final >= 0
        return group_sums(rows.final[inside], release.people[inside], total)
    kept = (row >= 0) & (row < total)
    person = np.unique(candidate.records.person[kept], return_inverse=True)[1].astype(np.int64)
    pairs = np.unique(row[kept] * (int(person.max(initial=0)) + 1) + person)
    return np.bincount(pairs // (int(person.max(initial=0)) + 1), minlength=total).astype(np.int64)


def generalization(release: FlowRelease) -> float:
    """Return the mean tiles of a published trip: tiles of its origin area times those of its destination area."""
    size = release.areas.size
    tiles = size[release.origin] * size[release.destination]
    volume = max(int(release.volume.sum()), 1)
    return float(np.sum(release.volume * tiles)) / volume


def check_worth(name: str, trips: int, most: int, before: FlowRelease, after: FlowRelease) -> None:
    """Raise where a repair suppressed more than `most` of all trips, and the release before it did not; state what is left."""
    left, was = int(after.volume.sum()), int(before.volume.sum())
    if not trips - was <= most < trips - left:
        return
    areas = f"areas of {generalization(after):.1f} instead of {generalization(before):.1f} tiles"
    raise GuaranteeViolatedError(
        name,
        f"it was not published, since {Option('repair')} would leave {100 * left / trips:.0f} % of the trips "
        f"({100 * was / trips:.0f} % before) in {areas}, and at most {100 * most / trips:.0f} % may be suppressed; derive it "
        "from the earlier release instead (crowdveil derive).",
    )


def _lines(before: FlowRelease, after: FlowRelease, rows: MergedRows, rounds: int, added: float) -> list[str]:
    lines = [
        f"repaired in {counted(rounds, 'round')}: {counted(rows.merges, 'row')} merged into others, {len(after):,} of "
        f"{len(before):,} rows are left",
        f"mean generalization {generalization(before):.3f} to {generalization(after):.3f} tiles ({added:+.1f} %)",
    ]
    if rows.suppressed:
        lines.append(f"{counted(rows.suppressed, 'row')} had no neighbor to merge with and were suppressed")
    return [f"repair: {line}" for line in lines]
