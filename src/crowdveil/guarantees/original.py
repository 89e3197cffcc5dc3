"""A written release held against the flows that it was made from.

Steps are found by their time and tiles by their id, the way that somebody who holds both the files and the original
would do it by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge, faults_in, flags
from crowdveil.guarantees.painting import Block, blocks, by_step
from crowdveil.guarantees.runs import Runs, distinct
from crowdveil.io.parallel import run_ordered
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Ints, Mask, row_slices, take_slices
from crowdveil.model.flows import Flows

NEEDS_ORIGINAL = "the files alone cannot tell"
_FAULTS = {
    "other_steps": "time steps are not in the original",
    "repeated_step": "a time step is listed twice",
    "unlisted_step": "rows have a time step that is not listed",
    "other_tiles": "tiles are not among the zones of the original",
    "unlisted_area": "rows name an area that is not in the list of areas",
}


def step_volumes(original: Flows) -> Ints:
    """Volume of each time step of the original."""
    volumes = np.zeros(original.steps, np.int64)
    filled = np.diff(original.offsets) > 0
    if filled.any():
        volumes[filled] = np.add.reduceat(original.volume, original.offsets[:-1][filled])
    return volumes


def original_steps(times: Ints, original: Flows) -> Ints:
    """The step of the original that begins at each time, -1 where none does."""
    known = original.t if original.step_s is not None else np.full(min(original.steps, 1), NO_TIME)
    if len(known) == 0:
        return np.full(len(times), -1, np.int64)
    place = np.minimum(np.searchsorted(known, times), len(known) - 1)
    return np.where(known[place] == times, place, -1)


def original_zones(written: WrittenRelease, original: Flows) -> Ints:
    """The zone of the original that each tile is, -1 where there is none of that id."""
    return np.array([original.zones.index_of(str(name)) for name in written.tile_names], np.int64)


def volumes_by_step(written: WrittenRelease, original: Flows) -> tuple[Ints, int]:
    """Volume that rows publish of each time step of the original; and how many steps of rows it does not have."""
    times, number = written.row_steps()
    step = original_steps(times, original)
    published = np.zeros(original.steps + 1, np.int64)  # the last is for those that it does not have
    np.add.at(published, step[number], written.column("volume"))
    return published[:-1], int((step < 0).sum())


class _OfTheOriginal(Guarantee):
    """A guarantee that only the original flows can prove."""

    kind: ClassVar[Kind] = "structure"

    def check(self, written: WrittenRelease) -> Finding:
        """Say that this needs the original."""
        return self.judged(False, {}, open_=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say what differs from the original."""
        if not with_original:
            return f"{NEEDS_ORIGINAL} what the original flows add up to."
        faults = faults_in(counts, _FAULTS)
        return f"{faults}." if faults else self._compared(counts)

    def _compared(self, counts: Mapping[str, int]) -> str:
        raise NotImplementedError


class TrueVolumes(_OfTheOriginal):
    """Nothing is made up: what rows say is what the original flows add up to."""

    name: ClassVar[str] = "true-volumes"
    tallies: ClassVar[Mapping[str, Merge]] = {
        **dict.fromkeys(("rows", "volumes", "crowds", "totals", "crossed", "unsure"), "sum"), **flags(_FAULTS),
    }  # fmt: skip

    def statement(self) -> str:
        """The guarantee in one sentence."""
        return (
            "Volume and crowd of every published flow are those of the original flows from its origin to its "
            "destination in its time step, and a suppressed total that is given is exactly the rest."
        )

    def check_with(self, written: WrittenRelease, original: Flows) -> Finding:
        """Add up the original flows of each row, and compare."""
        rows = _Rows.of(written, original)
        if rows.strange:
            return self.judged(True, dict.fromkeys(rows.strange, 1), with_original=True)
        sums = _Sums(written, original, rows)
        if sums.crossed:
            return self.judged(True, {"crossed": sums.crossed}, with_original=True)
        volumes = int((sums.volume != written.column("volume")).sum())
        sure = sums.sure_of_crowd
        crowds = int((sums.crowd != written.column(original.counts))[sure].sum())
        totals = _wrong_totals(written, original, rows, sums.volume)
        counts = {
            "rows": len(sure),
            "volumes": volumes,
            "crowds": crowds,
            "totals": totals,
            "unsure": int((~sure).sum()),
        }
        return self.judged(volumes + crowds + totals > 0, counts, open_=counts["unsure"] > 0, with_original=True)

    def _compared(self, counts: Mapping[str, int]) -> str:
        if counts["crossed"]:
            steps = counted(counts["crossed"], "time step")
            return f"{steps} with a pair of tiles in two rows: flows cannot be added up."
        said = (
            f"{counted(counts['rows'], 'row')} looked at, {counts['volumes']:,} volumes and {counts['crowds']:,} crowds differ; "
            f"{counts['totals']:,} time steps with a total that differs"
        )
        if counts["unsure"]:
            said += f"; who is behind flows is not known, so crowds of {counted(counts['unsure'], 'row')} were left out"
        return f"{said}."


class BoundedVolumes(_OfTheOriginal):
    """Nothing is made up, where rows may overlap: each holds some of the original flows that lie in it."""

    name: ClassVar[str] = "bounded-volumes"
    tallies: ClassVar[Mapping[str, Merge]] = {
        **dict.fromkeys(("rows", "volumes", "crowds", "over", "totals"), "sum"), **flags(_FAULTS),
    }  # fmt: skip

    def statement(self) -> str:
        """The guarantee in one sentence."""
        return (
            "No published flow has more trips or a larger crowd than the original flows from its origin to its destination "
            "in its time step, and those of a time step have no more trips than it has; a suppressed total that is given is "
            "exactly the rest."
        )

    def check_with(self, written: WrittenRelease, original: Flows) -> Finding:
        """Add up the original flows that lie in each row, and compare."""
        rows = _Rows.of(written, original)
        if rows.strange:
            return self.judged(True, dict.fromkeys(rows.strange, 1), with_original=True)
        volume, crowd = written.column("volume"), written.column(original.counts)
        volumes, crowds = 0, 0
        for row, flows in _flows_inside(written, original, rows):
            volumes += int(volume[row] > original.volume[flows].sum())
            crowds += int(crowd[row] > _most_people(original, flows))
        published = volumes_by_step(written, original)[0]
        over = int((published > step_volumes(original)).sum())
        totals = _wrong_totals(written, original, rows, volume)
        counts = {"rows": len(volume), "volumes": volumes, "crowds": crowds, "over": over, "totals": totals}
        return self.judged(volumes + crowds + over + totals > 0, counts, with_original=True)

    def _compared(self, counts: Mapping[str, int]) -> str:
        return (
            f"{counted(counts['rows'], 'row')} looked at, {counts['volumes']:,} volumes and {counts['crowds']:,} crowds are too "
            f"large; {counts['over']:,} time steps with too many trips, {counts['totals']:,} with a total that differs."
        )


def _flows_inside(written: WrittenRelease, original: Flows, rows: _Rows) -> Iterator[tuple[int, Ints]]:
    """Each row, and the original flows that lie in it."""
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


def _most_people(original: Flows, flows: Ints) -> int:
    """The crowd of some flows; where people are not known, as many as they can be."""
    if original.counts == "trips" or original.member is None or original.member_offsets is None:
        return int(original.people[flows].sum())
    taken, _ = take_slices(original.member_offsets, flows)
    return len(distinct(original.member[taken]))


@dataclass(frozen=True)
class _Rows:
    """Rows of a release with their time steps in the original; `strange` names the faults of what it does not know."""

    step: Ints
    origin: Ints
    destination: Ints
    zones: Ints
    listed: Ints
    strange: list[str]

    @classmethod
    def of(cls, written: WrittenRelease, original: Flows) -> _Rows:
        times, number = written.row_steps()
        listed_times, place = written.listed_steps()
        step, listed = original_steps(times, original)[number], original_steps(listed_times, original)[place]
        origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
        zones = original_zones(written, original)
        faults = {
            "other_steps": (step < 0).any() or (listed < 0).any(),
            "repeated_step": len(np.unique(listed)) < len(listed),
            "unlisted_step": not np.isin(original_steps(times, original), listed).all(),
            "other_tiles": (zones < 0).any(),
            "unlisted_area": (origin < 0).any() or (destination < 0).any(),
        }
        return cls(step, origin, destination, zones, listed, [fault for fault, is_so in faults.items() if is_so])


class _Sums:
    """Volume and crowd that the original flows of each row add up to.

    Attributes
    ----------
    volume, crowd
        Of each row.
    sure_of_crowd
        Rows whose crowd can be known: people of several flows can be counted only where it is known who they are.
    crossed
        Time steps in which a pair lies in two rows; with any, the sums mean nothing.
    """

    def __init__(self, written: WrittenRelease, original: Flows, rows: _Rows) -> None:
        areas = len(written.features)
        named = np.bincount(rows.origin, minlength=areas) + np.bincount(rows.destination, minlength=areas)
        runs = Runs.of(written.area_tiles, written.tile_count, named)
        self._original = original
        self._place = np.full(len(original.zones), len(runs.place), np.int64)  # that is in no area
        self._place[rows.zones] = runs.place
        self._people = 1 if original.member is None else int(original.member.max(initial=0)) + 1
        n = len(rows.step)
        self.volume, self.crowd = np.zeros(n, np.int64), np.zeros(n, np.int64)
        one_pair = (runs.size[rows.origin] == 1) & (runs.size[rows.destination] == 1)
        self.sure_of_crowd: Mask = one_pair | (original.counts == "trips" or original.member is not None)
        order, (step, origin, destination) = by_step(rows.step, rows.origin, rows.destination)
        painted = blocks(runs, step, origin, destination, flows=np.diff(original.offsets))
        self.crossed = sum(run_ordered(partial(self._add, block) for block in painted))
        if order is not None:
            for sums in (self.volume, self.crowd):
                sums[order] = sums.copy()

    def _add(self, block: Block) -> int:
        """Add up the flows of a few time steps; returns how many of these have a pair in two rows."""
        painted = block.painted()
        if painted.crossed.any():
            return int(painted.crossed.sum())
        data = self._original
        flows, number = _flows_of(data, block.steps)
        origin, destination = self._place.take(data.origin[flows]), self._place.take(data.destination[flows])
        row = painted.row_at(number, origin, destination)
        volume, people = data.volume[flows], data.people[flows]
        # Flows in no row have the number -1, and are added up behind the last.
        sums = np.zeros(block.rows.stop - block.rows.start + 1, np.int64)
        np.add.at(sums, row, volume)
        crowd = sums
        if not np.array_equal(volume, people):
            crowd = np.zeros(len(sums), np.int64)
            np.add.at(crowd, row, people)
        if data.counts == "people" and data.member is not None and data.member_offsets is not None:
            crowd = crowd.copy()  # volumes are not to be counted with it where each person made one trip
            self._count_people(data.member_offsets, data.member, flows, row, crowd)
        self.volume[block.rows], self.crowd[block.rows] = sums[:-1], crowd[:-1]
        return 0

    def _count_people(self, offsets: Ints, member: Ints, flows: Ints | slice, row: Ints, crowd: Ints) -> None:
        """Put the number of different people in place of the sum where a row has several flows."""
        several = (row >= 0) & (np.bincount(row + 1)[row + 1] > 1)
        which = np.arange(flows.start, flows.stop) if isinstance(flows, slice) else flows
        taken, bounds = take_slices(offsets, which[several])
        different = distinct(row[several][row_slices(bounds)] * self._people + member[taken])
        rows, people = np.unique(different // self._people, return_counts=True)
        crowd[rows] = people


def _flows_of(data: Flows, steps: Ints) -> tuple[Ints | slice, Ints]:
    """The flows of some time steps, and the place of each one's step among them."""
    lengths = np.diff(data.offsets)[steps]
    number: Ints = np.repeat(np.arange(len(steps)), lengths)
    first, last = int(steps[0]), int(steps[-1])
    if last - first == len(steps) - 1:
        return slice(int(data.offsets[first]), int(data.offsets[last + 1])), number
    return take_slices(data.offsets, steps)[0], number


def _wrong_totals(written: WrittenRelease, original: Flows, rows: _Rows, volume: Ints) -> int:
    """Time steps whose published volume is not that of their rows, or whose suppressed volume is not the rest."""
    published = np.zeros(original.steps, np.int64)
    np.add.at(published, rows.step, volume)
    told = written.listed("published"), written.listed("suppressed")
    wrong: Mask = np.zeros(len(rows.listed), bool)
    for (values, given), true in zip(told, (published, step_volumes(original) - published), strict=True):
        wrong |= given & (values != true[rows.listed])
    return int(wrong.sum())
