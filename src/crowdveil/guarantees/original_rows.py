"""Add up the original flows that lie inside the rows of a written release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from crowdveil.guarantees.intervals import rows_in_steps
from crowdveil.guarantees.painting import Block, CrossedSteps, blocks, by_step
from crowdveil.guarantees.runs import Runs, add_by_group, distinct
from crowdveil.io.parallel import run_ordered
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Ints, Mask, row_slices, take_slices
from crowdveil.model.flows import WEIGHT_UNITS, Flows


def original_steps(times: Ints, original: Flows) -> Ints:
    """Return the step of the original that begins at each time, -1 where none does."""
    known = original.t if original.step_s is not None else np.full(min(original.steps, 1), NO_TIME)
    if len(known) == 0:
        return np.full(len(times), -1, np.int64)
    at = np.minimum(np.searchsorted(known, times), len(known) - 1)
    return np.where(known[at] == times, at, -1)


def original_zones(written: WrittenRelease, original: Flows) -> Ints:
    """Return the zone of the original with the id of each tile, -1 where there is none."""
    return np.array([original.zones.index_of(str(name)) for name in written.tile_names], np.int64)


@dataclass(frozen=True)
class LocatedRows:
    """Rows of a release with their time steps and zones in the original; `faults` names what the original lacks.

    Where rows have intervals, `step` is the window of each row, and `listed` the windows.
    """

    step: Ints
    origin: Ints
    destination: Ints
    zones: Ints
    listed: Ints
    faults: list[str]

    @classmethod
    def of(cls, written: WrittenRelease, original: Flows) -> LocatedRows:
        """Locate the rows of a release in the original's time steps and zones."""
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
    held = np.searchsorted(original.t, high) > np.searchsorted(original.t, low)
    spanned = np.isin(np.arange(len(window)), rows_in_steps(written, original).row)
    faults = {
        "other_steps": not (held.all() and spanned.all()),
        "repeated_step": len(np.unique(low)) < len(low),
        "unlisted_step": bool((window < 0).any()),
    }
    return window, np.arange(len(low)), faults


def located_sums(written: WrittenRelease, original: Flows) -> tuple[LocatedRows, _Sums | None]:
    """Locate rows, and add up the original flows inside each; None where the original lacks some of what they name.

    Rows of time steps are painted here, so that other checkers of the same files wait for what that shows.
    """
    crossed = CrossedSteps() if written.has_intervals else CrossedSteps.of(written)
    with crossed.lock:
        rows = LocatedRows.of(written, original)
        sums = None if rows.faults else _Sums(written, original, rows)
        crossed.count = crossed.count if sums is None else sums.crossed
    return rows, sums


class _Sums:
    """Volume and people of the original flows of each row; a row with an interval may span several time steps.

    Attributes
    ----------
    volume, people
        Of each row; volumes are sums of those of flows, which are rounded where they have weights.
    lower, upper
        The volume of each row, rounded down and up where flows have weights.
    sure_of_people
        Rows whose people can be counted: those of several flows only where person ids are known.
    crossed
        Time steps in which a pair lies in two rows; with any, the sums are invalid.
    """

    def __init__(self, written: WrittenRelease, original: Flows, rows: LocatedRows) -> None:
        areas, n = len(written.features), len(rows.step)
        named = np.bincount(rows.origin, minlength=areas) + np.bincount(rows.destination, minlength=areas)
        runs = Runs.of(written.area_tiles, written.tile_count, named)
        self._original = original
        self._position = np.full(len(original.zones), len(runs.position), np.int64)  # a position in no area
        self._position[rows.zones] = runs.position
        self._ids = 1 if original.person_ids is None else int(original.person_ids.max(initial=0)) + 1
        self.volume, self.people = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._weight = np.zeros((2, n), np.int64)
        cells, flows = runs.size[rows.origin] * runs.size[rows.destination], np.diff(original.offsets)
        if written.has_intervals:
            step, row = rows_in_steps(written, original)
            cells = cells * np.bincount(row, minlength=n)
            painted = blocks(runs, step, rows.origin[row], rows.destination[row], flows=flows)
            self.crossed = self._add_intervals(painted, row)
        else:
            order, (step, origin, destination) = by_step(rows.step, rows.origin, rows.destination)
            painted = blocks(runs, step, origin, destination, flows=flows)
            self.crossed = sum(run_ordered(partial(self._add, block) for block in painted))
            if order is not None:
                for sums in (self.volume, self.people, *self._weight):
                    sums[order] = sums.copy()
        self.sure_of_people: Mask = (cells == 1) | (original.k_unit == "trips" or original.person_ids is not None)
        self.lower = self.upper = self.volume
        if original.weight is not None:
            whole, rest = self._weight
            self.lower, self.upper = whole + rest // WEIGHT_UNITS, whole - -rest // WEIGHT_UNITS

    def _add_intervals(self, painted: Iterable[Block], row: Ints) -> int:
        """Add up the flows of rows that may span several time steps, which are `row` in the order of steps; return as `_add`."""
        data, n, crossed = self._original, len(self.volume), 0
        of_flow = np.full(len(data), n, np.int64)  # the last place is for flows in no row
        for block in painted:
            flows, found, crossing = self._found(block)
            crossed += crossing
            of_flow[flows] = np.append(row[block.rows], n)[found]
        self.volume, self.people = (add_by_group(of_flow, values, n + 1)[:-1] for values in (data.volume, data.people))
        if data.k_unit == "people" and data.person_ids is not None and data.person_offsets is not None:
            different = distinct(of_flow[row_slices(data.person_offsets)] * self._ids + data.person_ids)
            self.people = np.bincount(different // self._ids, minlength=n + 1)[:n]
        if data.weight is not None:
            parts = np.divmod(data.weight, WEIGHT_UNITS)
            self._weight = np.stack([add_by_group(of_flow, values, n + 1)[:-1] for values in parts])
        return crossed

    def _add(self, block: Block) -> int:
        """Add up the flows of a few time steps; return how many of these have a pair in two rows."""
        data, (flows, row, crossed) = self._original, self._found(block)
        if crossed:
            return crossed
        volume, people = data.volume[flows], data.people[flows]
        # Flows in no row have the number -1, and are added behind the last row.
        rows = block.rows.stop - block.rows.start + 1
        sums = group = add_by_group(row, volume, rows)
        if not np.array_equal(volume, people):
            group = add_by_group(row, people, rows)
        if data.k_unit == "people" and data.person_ids is not None and data.person_offsets is not None:
            group = group.copy()  # it may be the volumes themselves, where each person made one trip
            self._count_people(data.person_offsets, data.person_ids, flows, row, group)
        self.volume[block.rows], self.people[block.rows] = sums[:-1], group[:-1]
        if data.weight is not None:
            for added, amount in zip(self._weight, np.divmod(data.weight[flows], WEIGHT_UNITS), strict=True):
                added[block.rows] = add_by_group(row, amount, rows)[:-1]
        return 0

    def _found(self, block: Block) -> tuple[Ints | slice, Ints, int]:
        """Return the flows of a few time steps, the row of each, and how many of the steps have a pair in two rows."""
        painted, data = block.painted(), self._original
        flows, number = _flows_of(data, block.steps)
        origin, destination = self._position.take(data.origin[flows]), self._position.take(data.destination[flows])
        return flows, painted.row_at(number, origin, destination), int(painted.crossed.sum())

    def _count_people(self, offsets: Ints, person_ids: Ints, flows: Ints | slice, row: Ints, group: Ints) -> None:
        """Replace the sum by the number of distinct people where a row has several flows."""
        several = (row >= 0) & (np.bincount(row + 1)[row + 1] > 1)
        which = np.arange(flows.start, flows.stop) if isinstance(flows, slice) else flows
        taken, bounds = take_slices(offsets, which[several])
        different = distinct(row[several][row_slices(bounds)] * self._ids + person_ids[taken])
        rows, people = np.unique(different // self._ids, return_counts=True)
        group[rows] = people


def _flows_of(data: Flows, steps: Ints) -> tuple[Ints | slice, Ints]:
    """Return the flows of some time steps, and the index of each one's step among them."""
    lengths = np.diff(data.offsets)[steps]
    number: Ints = np.repeat(np.arange(len(steps)), lengths)
    first, last = int(steps[0]), int(steps[-1])
    if last - first == len(steps) - 1:
        return slice(int(data.offsets[first]), int(data.offsets[last + 1])), number
    return take_slices(data.offsets, steps)[0], number
