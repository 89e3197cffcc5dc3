"""Compare a written release with the original flows.

Time steps are found by their time and tiles by their id, without the code of the methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import ComparedWithOriginal, Finding, Merge, faults_in, flags
from crowdveil.guarantees.intervals import people_of, rows_in_steps
from crowdveil.guarantees.overlaps import Pairs, rows_of_pairs
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Ints, Mask, group_sums, row_slices, slice_sums
from crowdveil.model.flows import WEIGHT_UNITS, Flows

NEEDS_ORIGINAL = "the files alone do not show"
_FAULTS = {
    "other_steps": "time steps are not in the original",
    "repeated_step": "a time step is listed twice",
    "unlisted_step": "rows have a time step that is not listed",
    "other_tiles": "tiles are not among the zones of the original",
    "unlisted_area": "rows name an area that is not in the list of areas",
}


def original_steps(times: Ints, original: Flows) -> Ints:
    """Return the original time step that begins at each time, -1 if none does."""
    known = original.t if original.step_s is not None else np.full(min(original.steps, 1), NO_TIME)
    if len(known) == 0:
        return np.full(len(times), -1, np.int64)
    at = np.minimum(np.searchsorted(known, times), len(known) - 1)
    return np.where(known[at] == times, at, -1)


def original_zones(written: WrittenRelease, original: Flows) -> Ints:
    """Return the original zone with the id of each tile, -1 if there is none."""
    return np.array([original.zones.index_of(str(name)) for name in written.tile_names], np.int64)


@dataclass(frozen=True)
class LocatedRows:
    """Rows of a release with their time steps and zones in the original; `faults` names those that it lacks.

    If rows have intervals, `step` is the window of each row, and `listed` has the windows.
    """

    step: Ints
    origin: Ints
    destination: Ints
    zones: Ints
    listed: Ints
    faults: list[str]

    @classmethod
    def of(cls, written: WrittenRelease, original: Flows) -> LocatedRows:
        """Find the time steps and zones of a release in the original."""
        step, listed, faults = (_in_windows if written.has_intervals else _in_steps)(written, original)
        origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
        zones = original_zones(written, original)
        faults["other_tiles"] = bool((zones < 0).any())
        faults["unlisted_area"] = bool((origin < 0).any() or (destination < 0).any())
        return cls(step, origin, destination, zones, listed, [fault for fault, is_so in faults.items() if is_so])


def _in_steps(written: WrittenRelease, original: Flows) -> tuple[Ints, Ints, dict[str, bool]]:
    """Return the time step of each row and of each listed one, and the faults of both."""
    times, number = written.row_steps()
    listed_times, number_listed = written.listed_steps()
    steps, listed = original_steps(times, original), original_steps(listed_times, original)[number_listed]
    faults = {
        "other_steps": bool((steps < 0).any() or (listed < 0).any()),
        "repeated_step": len(np.unique(listed)) < len(listed),
        "unlisted_step": not np.isin(steps, listed).all(),
    }
    return steps[number], listed, faults


def _in_windows(written: WrittenRelease, original: Flows) -> tuple[Ints, Ints, dict[str, bool]]:
    """Return the window of each row, the windows, and the faults of both."""
    window, (low, high) = written.row_windows(), written.listed_windows()
    filled = np.searchsorted(original.t, high) > np.searchsorted(original.t, low)
    spanned = np.isin(np.arange(len(window)), rows_in_steps(written, original).row)
    faults = {
        "other_steps": not (filled.all() and spanned.all()),
        "repeated_step": len(np.unique(low)) < len(low),
        "unlisted_step": bool((window < 0).any()),
    }
    return window, np.arange(len(low)), faults


class RowSums:
    """Volume and people of the original flows of each row; a row with an interval may span several time steps.

    Attributes
    ----------
    volume, people
        The sums of each row; weights of flows are rounded first.
    lower, upper
        The volume of each row; sums of weights are rounded down and up.
    sure_of_people
        Rows with countable people: those of several flows only if person ids are known.
    crossed
        Number of time steps with a pair in two rows; if there are any, the sums are invalid.
    """

    def __init__(self, written: WrittenRelease, original: Flows, rows: LocatedRows) -> None:
        n = len(rows.step)
        of_flow, self.crossed, spanned = _rows_of_flows(written, original, rows)
        # The last place is for flows in no row.
        self.volume, self.people = (group_sums(of_flow, v, n + 1)[:-1] for v in (original.volume, original.people))
        if original.k_unit == "people" and original.person_ids is not None and original.person_offsets is not None:
            ids = int(original.person_ids.max(initial=0)) + 1
            different = np.unique(of_flow[row_slices(original.person_offsets)] * ids + original.person_ids)
            self.people = np.bincount(different // ids, minlength=n + 1)[:n]
        cells = written.area_sizes[rows.origin] * written.area_sizes[rows.destination] * spanned
        self.sure_of_people: Mask = (cells == 1) | (original.k_unit == "trips" or original.person_ids is not None)
        self.lower = self.upper = self.volume
        if original.weight is not None:
            parts = np.divmod(original.weight, WEIGHT_UNITS)
            whole, rest = (group_sums(of_flow, part, n + 1)[:-1] for part in parts)
            self.lower, self.upper = whole + rest // WEIGHT_UNITS, whole - -rest // WEIGHT_UNITS


def _rows_of_flows(written: WrittenRelease, original: Flows, rows: LocatedRows) -> tuple[Ints, int, Ints]:
    """Return the row of each original flow, the number of time steps with a pair in two rows, and the time steps of each row.

    A flow outside of all rows has the number of rows.
    """
    n = len(rows.step)
    step, row = rows_in_steps(written, original) if written.has_intervals else (rows.step, np.arange(n))
    order = np.argsort(step, kind="stable")
    step, row = step[order], row[order]
    tile = np.full(len(original.zones), -1, np.int64)
    tile[rows.zones] = np.arange(len(rows.zones))
    found, crossed = rows_of_pairs(
        written.tiles_by_area, written.tile_count, original.steps,
        Pairs(step, rows.origin[row], rows.destination[row]),
        Pairs(row_slices(original.offsets), tile[original.origin], tile[original.destination]),
    )  # fmt: skip
    return np.append(row, n)[found], int(crossed.sum()), np.bincount(row, minlength=n)


def step_volumes(original: Flows) -> Ints:
    """Return the volume of each time step of the original."""
    return slice_sums(original.offsets, original.volume)


def volumes_by_step(written: WrittenRelease, original: Flows) -> tuple[Ints, int]:
    """Return the published volume of each original time step, and the number of published steps that it lacks."""
    times, number = written.row_steps()
    step = original_steps(times, original)
    # The last place is for steps that the original lacks.
    published = group_sums(step[number], written.column("volume"), original.steps + 1)
    return published[:-1], int((step < 0).sum())


def volumes_in_rows(written: WrittenRelease, original: Flows) -> Ints | None:
    """Return the volume of the original flows in any row, by time step; None if flows may be in several rows."""
    volumes = volumes_of_rows(written, original)
    if volumes is None:
        return None
    return group_sums(LocatedRows.of(written, original).step, volumes, original.steps)


def volumes_of_rows(written: WrittenRelease, original: Flows) -> Ints | None:
    """Return the volume of the original flows in each row; None if flows may be in several rows."""
    rows = LocatedRows.of(written, original)
    if rows.faults:
        return None
    sums = RowSums(written, original, rows)
    return None if sums.crossed else sums.volume


_UNSEEN = f"{NEEDS_ORIGINAL} the sums of the original flows."


class TrueVolumes(ComparedWithOriginal):
    """Volume and group size of each row are the sums of the original flows in it."""

    name: ClassVar[str] = "true-volumes"
    tallies: ClassVar[Mapping[str, Merge]] = {
        **dict.fromkeys(("rows", "volumes", "people", "totals", "crossed", "unsure"), "sum"), **flags(_FAULTS),
    }  # fmt: skip
    unseen: ClassVar[str] = _UNSEEN

    repeats_within: int | None = Field(None, ge=1)
    """Rows may repeat the value of an earlier release if fewer than this number of people (or trips) differ; None: none does."""
    people_of: int | None = Field(None, ge=1)
    """Numbers of people are rounded down to multiples of this, or are all equal to it; None: they are exact."""
    from_data: ClassVar[tuple[str, ...]] = ("repeats_within",)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        parts = [
            "Every published flow has the volume and the group size of the original flows from its origin to its destination "
            "in its time step or interval"
        ]
        if self.people_of is not None:
            k = f"{self.people_of:,}"
            parts.append(f"numbers of people are rounded down to a multiple of {k}, or are all given as {k}")
        parts.append("a suppressed total, where given, is exactly the rest")
        parts.append("where trips have weights, a volume is their sum, rounded up or down to a whole trip")
        if self.repeats_within is not None:
            parts.append(
                f"a flow in which fewer than {self.repeats_within} changed may repeat the value of an earlier release"
            )
        return f"{'; '.join(parts)}."

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Add up the original flows of each row, and compare."""
        rows = LocatedRows.of(written, original)
        if rows.faults:
            return self.make_finding(True, dict.fromkeys(rows.faults, 1), with_original=True)
        sums = RowSums(written, original, rows)
        if sums.crossed:
            return self.make_finding(True, {"crossed": sums.crossed}, with_original=True)
        volume = written.column("volume")
        sure, group = sums.sure_of_people, written.column(original.k_unit)
        wanted = sums.people
        if self.people_of is not None and original.k_unit == "people":
            least = bool(np.all(group == self.people_of))
            wanted = np.minimum(wanted, self.people_of) if least else wanted - wanted % self.people_of
        wrong_volume, wrong_people = (volume < sums.lower) | (volume > sums.upper), (wanted != group) & sure
        own = volume
        if self.repeats_within is not None:
            repeated = np.abs(group - wanted) < self.repeats_within
            own = np.where(repeated & wrong_volume, sums.volume, volume)
            wrong_volume, wrong_people = wrong_volume & ~repeated, wrong_people & ~repeated
        volumes, people = int(wrong_volume.sum()), int(wrong_people.sum())
        totals = _count_wrong_totals(written, original, rows, volume, own)
        counts = {
            "rows": len(sure),
            "volumes": volumes,
            "people": people,
            "totals": totals,
            "unsure": int((~sure).sum()),
        }
        return self.make_finding(volumes + people + totals > 0, counts, open_=counts["unsure"] > 0, with_original=True)

    def _differences(self, counts: Mapping[str, int]) -> str:
        if faults := faults_in(counts, _FAULTS):
            return f"{faults}."
        if counts["crossed"]:
            steps = counted(counts["crossed"], "time step")
            return f"{steps} with a pair of tiles in two rows: flows cannot be added up."
        unsure = counted(counts["unsure"], "row")
        unchecked = f"; person ids are unknown, so group sizes of {unsure} were not checked" if counts["unsure"] else ""
        return (
            f"{counted(counts['rows'], 'row')} checked, {counts['volumes']:,} volumes and {counts['people']:,} group sizes "
            f"differ; {counts['totals']:,} time steps with a total that differs{unchecked}."
        )


class BoundedVolumes(ComparedWithOriginal):
    """Volume and group size of each row are at most the sums of the original flows in it, also if rows overlap."""

    name: ClassVar[str] = "bounded-volumes"
    sentence: ClassVar[str] = (
        "No published flow has more trips or a larger group than the original flows from its origin to its destination "
        "in its time step, and those of a time step have no more trips than it has; a suppressed total that is given is "
        "exactly the rest."
    )
    tallies: ClassVar[Mapping[str, Merge]] = {
        **dict.fromkeys(("rows", "volumes", "people", "over", "totals"), "sum"), **flags(_FAULTS),
    }  # fmt: skip
    unseen: ClassVar[str] = _UNSEEN

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Add up the original flows in each row, and compare."""
        if written.has_intervals:  # no method has overlapping rows that span several time steps
            return self.make_finding(False, {}, open_=True)
        rows = LocatedRows.of(written, original)
        if rows.faults:
            return self.make_finding(True, dict.fromkeys(rows.faults, 1), with_original=True)
        volume, group = written.column("volume"), written.column(original.k_unit)
        volumes, people = 0, 0
        for row, flows in _flows_inside(written, original, rows):
            volumes += int(volume[row] > _upper_bound_of_trips(original, flows))
            people += int(group[row] > _upper_bound_of_people(original, flows))
        published = volumes_by_step(written, original)[0]
        over = int((published > step_volumes(original)).sum())
        totals = _count_wrong_totals(written, original, rows, volume)
        counts = {"rows": len(volume), "volumes": volumes, "people": people, "over": over, "totals": totals}
        return self.make_finding(volumes + people + over + totals > 0, counts, with_original=True)

    def _differences(self, counts: Mapping[str, int]) -> str:
        if faults := faults_in(counts, _FAULTS):
            return f"{faults}."
        return (
            f"{counted(counts['rows'], 'row')} checked, {counts['volumes']:,} volumes and {counts['people']:,} group sizes are "
            f"too large; {counts['over']:,} time steps with too many trips, {counts['totals']:,} with a total that differs."
        )


def _flows_inside(written: WrittenRelease, original: Flows, rows: LocatedRows) -> Iterator[tuple[int, Ints]]:
    """Yield each row with the original flows in it."""
    starts, ends = np.zeros(len(original.zones), bool), np.zeros(len(original.zones), bool)
    order = np.lexsort((rows.origin, rows.step))
    here, last = np.zeros(0, np.int64), (-1, -1)
    for row in order.tolist():
        step, area = int(rows.step[row]), int(rows.origin[row])
        if (step, area) != last:
            last = (step, area)
            starts[:] = False
            starts[rows.zones[written.area_tiles[area]]] = True
            low, high = original.offsets[step], original.offsets[step + 1]
            here = low + np.flatnonzero(starts[original.origin[low:high]])
        ends[:] = False
        ends[rows.zones[written.area_tiles[rows.destination[row]]]] = True
        yield row, here[ends[original.destination[here]]]


def _upper_bound_of_trips(original: Flows, flows: Ints) -> int:
    """Return the volume of some flows, or their weights, rounded up."""
    if original.weight is None:
        return int(original.volume[flows].sum())
    return -(-int(sum(original.weight[flows].tolist())) // WEIGHT_UNITS)


def _upper_bound_of_people(original: Flows, flows: Ints) -> int:
    """Return the people of some flows, or an upper bound if person ids are unknown."""
    return int(original.people[flows].sum()) if original.person_ids is None else people_of(original, flows)


def _count_wrong_totals(
    written: WrittenRelease, original: Flows, rows: LocatedRows, volume: Ints, own: Ints | None = None
) -> int:
    """Count time steps with a published volume that is too large or not the sum of their rows, or with another suppressed rest.

    `own` has the volumes of the original if rows repeat those of an earlier release.
    """
    volumes = _window_volumes(written, original) if written.has_intervals else step_volumes(original)
    published = group_sums(rows.step, volume, len(volumes))
    of_rows = group_sums(rows.step, volume if own is None else own, len(volumes))
    listed = written.listed("published"), written.listed("suppressed")
    wrong: Mask = (of_rows > volumes)[rows.listed]
    for (values, given), true in zip(listed, (published, volumes - of_rows), strict=True):
        wrong |= given & (values != true[rows.listed])
    return int(wrong.sum())


def _window_volumes(written: WrittenRelease, original: Flows) -> Ints:
    """Return the volume of the original in each listed window."""
    low, high = written.listed_windows()
    first, last = np.searchsorted(original.t, low), np.searchsorted(original.t, high)
    if original.weight is not None:
        # The sum of a window is rounded once; Python's integers cannot overflow.
        of_step = [sum(original.weight[a:b].tolist()) for a, b in pairwise(original.offsets.tolist())]
        sums = [sum(of_step[a:b]) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        return np.array([(units + WEIGHT_UNITS // 2) // WEIGHT_UNITS for units in sums], np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(step_volumes(original))])
    volumes: Ints = before[last] - before[first]
    return volumes
