"""Compare rows of releases that cover the same areas and time, after their data were corrected or partly erased.

A difference reveals those who were removed or added. If rows of one release are inside a row of another, the two sides must have
the same value, or differ in at least k people. If people were only removed or only added, the audit by minimum cuts finds the
difference as a set; if both, only the comparison here finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crowdveil.errors import counted
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.ledger.audit import Published, Records
from crowdveil.ledger.candidates import Candidate
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.entries import Entry, entry_label, stored_records, stored_release
from crowdveil.ledger.store import Ledger
from crowdveil.model.arrays import Ints
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.model.time_axis import Clock

Box = tuple[int, int, frozenset[str], frozenset[str]]
"""Start and end of a row (0 if it has no time), and the tiles of its origin and destination."""


class Side(NamedTuple):
    """One side of a comparison: rows by record, with their boxes and volumes, and the release and row number of each."""

    published: Published
    boxes: Sequence[Box]
    volume: Sequence[int]
    names: Sequence[tuple[str, int]]


class Change(NamedTuple):
    """A row that differs from rows of another release inside its box, in fewer than k people.

    Attributes
    ----------
    row, others
        The row and the rows inside it, each as a release and a row number.
    people
        Number of people (or trips) on one side only.
    needed
        Smallest harmless number of them.
    visible
        Whether the two sides have different values.
    same_box
        Whether a row of the new release has a single other row, with the same areas and time.
    before
        The volume of the others.
    """

    row: tuple[str, int]
    others: tuple[tuple[str, int], ...]
    people: int
    needed: int
    visible: bool
    same_box: bool
    before: int


def boxes_of_table(written: WrittenRelease, step_s: int | None, tz: str) -> list[Box]:
    """Return the box of each row of a written release with the given length of time steps and time zone."""
    times, step = written.row_steps()
    start = np.where(times == NO_TIME, 0, times)[step]
    end = written.row_intervals()[1] if written.has_intervals else Clock(tz).later(start, step_s or 0)
    end = np.where(times[step] == NO_TIME, 0, end)
    tiles = [frozenset(map(str, feature["properties"]["tiles"])) for feature in written.features]
    origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    columns = zip(start.tolist(), end.tolist(), origin.tolist(), destination.tolist(), strict=True)
    return [(s, e, tiles[o], tiles[d]) for s, e, o, d in columns]


def boxes_of_release(release: FlowRelease) -> list[Box]:
    """Return the box of each row of a release before it is written."""
    areas = release.areas
    ids = areas.zones.ids
    tiles = [
        frozenset(str(ids[tile]) for tile in areas.tiles[low:high].tolist())
        for low, high in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)
    ]
    start = release.t[release.step] if release.intervals is None else release.intervals.t
    if release.step_s is None:
        start = end = np.zeros(len(release), np.int64)
    elif release.intervals is None:
        end = Clock(release.tz).later(start, release.step_s)
    else:
        end = release.intervals.until
    columns = zip(start.tolist(), end.tolist(), release.origin.tolist(), release.destination.tolist(), strict=True)
    return [(s, e, tiles[o], tiles[d]) for s, e, o, d in columns]


def _inside(inner: Box, outer: Box) -> bool:
    """Return whether a box is inside another; a box without a time covers all times."""
    timeless = outer[0] == outer[1] == 0
    return (timeless or (outer[0] <= inner[0] < inner[1] <= outer[1])) and inner[2] <= outer[2] and inner[3] <= outer[3]


def small_changes(
    ledger: Ledger,
    against: Sequence[Entry],
    records: Records,
    published: Sequence[Published],
    boxes: Sequence[Box],
    volume: Sequence[int],
    candidate: Candidate,
) -> list[Change]:
    """Return the rows that differ from rows inside their box in 1 to k - 1 people; `published[0]` is the candidate.

    Rows of the new release are compared with rows of each earlier one and of all together, and rows of earlier ones with
    those of the new one. Releases with different folding of time are not compared.
    """
    new = Side(published[0], boxes, volume, [(candidate.name, row) for row in range(len(boxes))])
    earlier = []
    for entry, rows in zip(against, published[1:], strict=True):
        table = stored_release(ledger, entry)
        if table is not None and entry.reading.get("fold") == candidate.fold:
            names = [(entry_label(entry), row) for row in range(len(table.data))]
            earlier.append(
                Side(rows, boxes_of_table(table, entry.step_s, entry.tz), table.column("volume").tolist(), names)
            )
    found = []
    for side in earlier:
        found += _changes(records, new, side, candidate.k)
        found += [change for change in _changes(records, side, new, candidate.k) if not change.same_box]
    if len(earlier) > 1:
        found += _changes(records, new, _together(earlier), candidate.k)
    return list({(change.row, change.others): change for change in found[::-1]}.values())[::-1]


def _together(sides: Sequence[Side]) -> Side:
    """Return the rows of several releases as those of one; if rows share records, those of the first release count."""
    row = sides[0].published.row.copy()
    boxes, volume, names = list(sides[0].boxes), list(sides[0].volume), list(sides[0].names)
    for side in sides[1:]:
        own = side.published.row
        crossed = np.unique(own[(row >= 0) & (own >= 0)])
        row = np.where((own >= 0) & ~np.isin(own, crossed) & (own < len(side.boxes)), own + len(boxes), row)
        boxes, volume, names = [*boxes, *side.boxes], [*volume, *side.volume], [*names, *side.names]
    ks = [side.published.k or 0 for side in sides]
    return Side(Published("earlier releases", row, max(ks)), boxes, volume, names)


def _changes(records: Records, outer: Side, inner: Side, k: int) -> list[Change]:
    """Compare each row with the rows inside its box, without those that would make the difference larger.

    If one side has all the records of the other, the audit by minimum cuts decides.
    """
    row, other = (np.where(s.published.row < len(s.boxes), s.published.row, -1) for s in (outer, inner))
    both = (row >= 0) & (other >= 0)
    width = len(inner.boxes) + 1
    pairs, shared = np.unique(row[both] * width + other[both], return_counts=True)
    total = np.bincount(other[other >= 0], minlength=width)
    complete = shared == total[pairs % width]
    pair = list(zip((pairs // width).tolist(), (pairs % width).tolist(), complete.tolist(), strict=True))
    changed = {
        p
        for p, q, same in pair
        if outer.boxes[p] == inner.boxes[q] or (not same and _inside(inner.boxes[q], outer.boxes[p]))
    }
    inside: dict[int, list[int]] = {p: [] for p in sorted(changed)}
    for p, q, _ in pair:
        if p in inside and _inside(inner.boxes[q], outer.boxes[p]):
            inside[p].append(q)
    records_of_other, records_of_row = _by_number(other, len(inner.boxes)), _by_number(row, len(outer.boxes))
    found = []
    for p, candidates in inside.items():
        own = records_of_row(p)
        chosen = [q for q in candidates if _gains(records, row, p, records_of_other(q))]
        gone = [r for q in chosen for r in records_of_other(q)[row[records_of_other(q)] != p].tolist()]
        more = own[~np.isin(other[own], chosen)].tolist()
        same_box = len(chosen) == 1 and inner.boxes[chosen[0]] == outer.boxes[p]
        if not chosen or not (gone or more) or not (same_box or (gone and more)):
            continue
        size = _size(records, np.array([*gone, *more], np.int64))
        # People on one side only need the k of that side.
        needed = max((outer.published.k or k) if more else 0, (inner.published.k or k) if gone else 0)
        if size < needed:
            before = sum(inner.volume[q] for q in chosen)
            names = tuple(inner.names[q] for q in chosen)
            visible = before != outer.volume[p]
            found.append(Change(outer.names[p], names, size, needed, visible, same_box, before))
    return found


def _by_number(row: Ints, rows: int) -> Callable[[int], Ints]:
    """Return a function from a row to its records."""
    order = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[order], np.arange(rows + 1))
    return lambda number: order[ends[number] : ends[number + 1]]


def _gains(records: Records, row: Ints, p: int, inside: Ints) -> bool:
    """Return whether fewer people remain if a row is subtracted."""
    shared = row[inside] == p
    return _size(records, inside[~shared]) <= _size(records, inside[shared])


def _size(records: Records, chosen: Ints) -> int:
    """Return the number of people (or trips) of some records."""
    if records.person is None:
        return int(records.volume[chosen].sum())
    return len(np.unique(records.person[chosen]))


Kept = dict[Box, tuple[Entry, int]]
"""Boxes with the value of an earlier release, and its entry and row."""


def keep_earlier_values(
    release: FlowRelease, against: Sequence[Entry], changes: Sequence[Change]
) -> tuple[FlowRelease, Kept, list[str]]:
    """Return a release whose changed rows repeat the newest earlier values, these rows, and a line about them."""
    number = {entry_label(entry): entry for entry in against}
    boxes, kept = boxes_of_release(release), Kept()
    volume = release.volume.copy()
    changed = [change for change in changes if change.same_box]
    for change in sorted(changed, key=lambda change: number[change.others[0][0]].entry):
        ((label, other),), row = change.others, change.row[1]
        volume[row] = change.before
        kept[boxes[row]] = number[label], other
    if not kept:
        return release, kept, []
    # The total is the rest of the new data, which does not match the repeated values.
    touched = np.unique(release.step[[change.row[1] for change in changed]])
    suppressed = np.where(np.isin(np.arange(len(release.t)), touched), NOT_GIVEN, release.suppressed)
    line = f"keep-unchanged: {counted(len(kept), 'row')} with fewer than k changed people kept the earlier value"
    return replace(release, volume=volume, suppressed=suppressed, figures=None), kept, [line]


def with_kept_rows(ledger: Ledger, candidate: Candidate, boxes: Sequence[Box], kept: Kept) -> Candidate:
    """Return a candidate whose repeated rows have the records of the earlier rows."""
    if not kept:
        return candidate
    number = {box: row for row, box in enumerate(boxes)}
    repeated = {number[box]: of for box, of in kept.items()}
    row = candidate.records.cell
    parts = [candidate.records._replace(cell=np.where(np.isin(row, list(repeated)), -1, row))]
    for entry in {of.entry: of for of, _ in repeated.values()}.values():
        records = stored_records(ledger, entry)
        # The last place is for records without a row.
        own = np.full(int(records.cell.max(initial=-1)) + 2, -1, np.int64)
        for mine, (of, other) in repeated.items():
            if of.entry == entry.entry:
                own[other] = mine
        kept_records = records._replace(cell=own[records.cell])
        parts.append(kept_records.only(kept_records.cell >= 0))
    return replace(candidate, records=_joined(parts))


def _joined(parts: list[SourceRecords]) -> SourceRecords:
    """Return the records of all parts; the last one counts if a record occurs twice."""
    source = np.concatenate([records.source for records in parts])[::-1]
    _, first = np.unique(source, return_index=True)

    def taken(columns: list[Any]) -> Any:
        return np.concatenate(columns)[::-1][first]

    person = None
    if all(records.person is not None for records in parts):
        person = taken([records.person for records in parts])
    return SourceRecords(source[first], person, taken([r.volume for r in parts]), taken([r.cell for r in parts]))
