"""Re-issues: rows of the same areas and time in two releases, whose data were corrected or partly erased in between.

A row that changed reveals those who were removed or added. Two such rows must have the same value, or differ in at least k
people. If people were only removed, or only added, the difference is a set that the audit by minimum cuts finds; if both, it is
the size of no set, and only the comparison here finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crowdveil.errors import counted
from crowdveil.io.time_steps import DEFAULT_STEP, step_seconds
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.ledger.audit import Published, Records
from crowdveil.ledger.candidates import Candidate
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.entries import Entry
from crowdveil.ledger.store import Ledger
from crowdveil.ledger.stored import stored_records, stored_release
from crowdveil.model.arrays import Ints
from crowdveil.model.release import NOT_GIVEN, FlowRelease

Box = tuple[int, int, frozenset[str], frozenset[str]]
"""Start and end of a row (0 where there is none), and the tiles of its origin and its destination."""


class Change(NamedTuple):
    """A row that differs from the row of an earlier release with the same areas and time, in fewer than k people.

    Attributes
    ----------
    row, entry, other
        The row, the entry of the earlier release, and its row.
    before
        Volume and group size of the earlier row.
    people
        People (or trips) that are in one of the two rows alone.
    k
        The number of them from which on the difference is harmless.
    """

    row: int
    entry: Entry
    other: int
    before: tuple[int, int]
    people: int
    k: int


def boxes_of_table(written: WrittenRelease, step_s: int | None) -> list[Box]:
    """Return the box of each row of a written release with time steps of some seconds."""
    times, step = written.row_steps()
    start = np.where(times == NO_TIME, 0, times)[step]
    end = written.row_intervals()[1] if written.has_intervals else start + (step_s or 0)
    end = np.where(times[step] == NO_TIME, 0, end)
    tiles = [frozenset(map(str, feature["properties"]["tiles"])) for feature in written.features]
    origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    columns = zip(start.tolist(), end.tolist(), origin.tolist(), destination.tolist(), strict=True)
    return [(s, e, tiles[o], tiles[d]) for s, e, o, d in columns]


def boxes_of_release(release: FlowRelease) -> list[Box]:
    """Return the box of each row of a release that is not written yet."""
    areas = release.areas
    ids = areas.zones.ids
    tiles = [
        frozenset(str(ids[tile]) for tile in areas.tiles[low:high].tolist())
        for low, high in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)
    ]
    start = release.t[release.step] if release.intervals is None else release.intervals.t
    end = start + (release.step_s or 0) if release.intervals is None else release.intervals.until
    if release.step_s is None:
        start = end = np.zeros(len(release), np.int64)
    columns = zip(start.tolist(), end.tolist(), release.origin.tolist(), release.destination.tolist(), strict=True)
    return [(s, e, tiles[o], tiles[d]) for s, e, o, d in columns]


def step_of(entry: Entry) -> int | None:
    """Return the seconds of the time steps of an entry."""
    given = entry.parameters.get("step") or entry.reading.get("step")
    return step_seconds(DEFAULT_STEP if given is None else given)


def small_changes(
    ledger: Ledger,
    against: Sequence[Entry],
    records: Records,
    published: Sequence[Published],
    boxes: Sequence[Box],
    candidate: Candidate,
) -> list[Change]:
    """Return the rows that differ from an earlier row of the same box in 1 to k - 1 people; `published[0]` is the candidate.

    Times that are folded, and those that are not, are no times of the same box.
    """
    number = {box: row for row, box in enumerate(boxes)}
    found = []
    for entry, earlier in zip(against, published[1:], strict=True):
        table = stored_release(ledger, entry)
        if table is None or entry.reading.get("fold") != candidate.fold:
            continue
        same = [(number[box], row) for row, box in enumerate(boxes_of_table(table, step_of(entry))) if box in number]
        if same:
            changes = _changes(records, published[0], earlier, np.array(same, np.int64), (candidate.k, entry.k))
            volume, people = values_of(table)
            found += [
                Change(row, entry, other, (int(volume[other]), int(people[other])), size, needed)
                for row, other, size, needed in changes
            ]
    return found


def values_of(written: WrittenRelease) -> tuple[Ints, Ints]:
    """Return volume and group size of each row."""
    return written.column("volume"), written.column("people" if "people" in written.data.column_names else "trips")


def _changes(records: Records, new: Published, earlier: Published, same: Ints, k: tuple[int, int]) -> list[list[int]]:
    """Compare the records of pairs of rows with the same box; return both rows, those who differ, and how many should."""
    rows, others = same.T
    pair_of_row = _numbers(rows, int(max(new.row.max(initial=0), rows.max())))
    pair_of_other = _numbers(others, int(max(earlier.row.max(initial=0), others.max())))
    now, before = pair_of_row[new.row], pair_of_other[earlier.row]
    changed = np.flatnonzero(now != before)
    pair = np.concatenate([now[changed], before[changed]])
    record = np.concatenate([changed, changed])[pair >= 0]
    # Of people who were removed k is that of the earlier release, of those who were added that of the new one.
    removed = np.concatenate([np.zeros(len(changed), np.bool_), np.ones(len(changed), np.bool_)])[pair >= 0]
    pair = pair[pair >= 0]
    size = np.zeros(len(same), np.int64)
    if records.person is None:
        np.add.at(size, pair, records.volume[record])
    else:
        width = int(records.person.max(initial=0)) + 1
        size += np.bincount(np.unique(pair * width + records.person[record]) // width, minlength=len(same))
    needed = np.zeros(len(same), np.int64)
    np.maximum.at(needed, pair, np.where(removed, k[1], k[0]))
    found: list[list[int]] = np.column_stack([same, size, needed])[(size > 0) & (size < needed)].tolist()
    return found


def _numbers(rows: Ints, most: int) -> Ints:
    """Return the position of each row among some rows, -1 where it is not; the last, -1, stands for no row."""
    numbers = np.full(most + 2, -1, np.int64)
    numbers[rows] = np.arange(len(rows))
    return numbers


Kept = dict[Box, tuple[Entry, int]]
"""Boxes that keep the value of an earlier release, with its entry and row."""


def keep_earlier_values(release: FlowRelease, changes: Sequence[Change]) -> tuple[FlowRelease, Kept, list[str]]:
    """Return a release whose changed rows have the values of the newest earlier release, which rows these are, and a line."""
    newest = {change.row: change for change in sorted(changes, key=lambda change: change.entry.entry)}
    if not newest:
        return release, {}, []
    boxes, kept = boxes_of_release(release), Kept()
    volume, people = release.volume.copy(), release.people.copy()
    for row, change in newest.items():
        volume[row], people[row] = change.before
        kept[boxes[row]] = change.entry, change.other
    # A total would be the rest of the new data, from which the kept values differ.
    touched = np.unique(release.step[list(newest)])
    suppressed = np.where(np.isin(np.arange(len(release.t)), touched), NOT_GIVEN, release.suppressed)
    line = f"keep-unchanged: {counted(len(newest), 'row')} with fewer than k changed people kept the earlier value"
    return replace(release, volume=volume, people=people, suppressed=suppressed, figures=None), kept, [line]


def with_kept_rows(ledger: Ledger, candidate: Candidate, boxes: Sequence[Box], kept: Kept) -> Candidate:
    """Return a candidate whose kept rows hold the records of the earlier rows that they repeat."""
    if not kept:
        return candidate
    number = {box: row for row, box in enumerate(boxes)}
    repeated = {number[box]: of for box, of in kept.items()}
    row = candidate.records.cell
    parts = [candidate.records._replace(cell=np.where(np.isin(row, list(repeated)), -1, row))]
    for entry in {of.entry: of for of, _ in repeated.values()}.values():
        records = stored_records(ledger, entry)
        own = np.full(int(records.cell.max(initial=-1)) + 2, -1, np.int64)  # the last is for records without a row
        for mine, (of, other) in repeated.items():
            if of.entry == entry.entry:
                own[other] = mine
        kept_records = records._replace(cell=own[records.cell])
        parts.append(kept_records.only(kept_records.cell >= 0))
    return replace(candidate, records=_joined(parts))


def _joined(parts: list[SourceRecords]) -> SourceRecords:
    """Return the records of all parts; of records that occur twice the last one counts."""
    source = np.concatenate([records.source for records in parts])[::-1]
    _, first = np.unique(source, return_index=True)

    def taken(columns: list[Any]) -> Any:
        return np.concatenate(columns)[::-1][first]

    person = None
    if all(records.person is not None for records in parts):
        person = taken([records.person for records in parts])
    return SourceRecords(source[first], person, taken([r.volume for r in parts]), taken([r.cell for r in parts]))
