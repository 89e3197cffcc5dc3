"""Add up the original flows that lie inside the rows of a written release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.guarantees.intervals import rows_in_steps
from crowdveil.guarantees.overlaps import Pairs, rows_of_pairs
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Ints, Mask, group_sums, row_slices
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


class RowSums:
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
    """Return the row of each original flow (behind the last row for none), how many time steps have a pair in two rows, and how
    many time steps each row spans.
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
