"""Compare original flows with a release, in groups of time steps: the input of every measure of flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from crowdveil.kernels.od.release_rows import sum_levels
from crowdveil.measures.base import ratio
from crowdveil.model.arrays import Floats, Ints, frozen
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.assignment import check_same_zones, check_windows, rows_met, rows_of_steps, steps_of_release

T = TypeVar("T")
_Values = TypeVar("_Values", Floats, Ints)


class Baseline:
    """Figures of the original alone, by time step, computed once for all releases that are compared with it."""

    def __init__(self, flows: Flows) -> None:
        self.flows = flows

    @cached_property
    def step(self) -> Ints:
        """Return the time step of each flow."""
        return self.flows.step

    @cached_property
    def volume(self) -> Floats:
        """Return the trips of each time step."""
        return np.asarray(np.bincount(self.step, self.flows.volume, self.flows.steps), np.float64)

    @cached_property
    def share(self) -> Floats:
        """Return the share of each flow in the trips of its time step."""
        return self.flows.volume / self.volume[self.step]


@dataclass(frozen=True, eq=False)
class OdComparison:
    """Original flows, their release, and the row of each original flow.

    The reconstruction spreads the volume of a row evenly over its cells, the pairs of a tile of its origin and a tile of
    its destination; of each time step that the row spans, where rows have intervals of time. Cells of no row are 0; where rows
    overlap their shares are added. It is never stored: measures need it only where the original has a flow, and its sum over
    all other cells.

    Attributes
    ----------
    original, release
        The compared tables.
    row
        The row of each original flow, -1 where it was suppressed; None where rows overlap, and a flow may lie in several.
    pooled
        Whether all time steps are one group; otherwise each is one.
    listed
        The time steps of the original as it was given, where steps without trips were added since rows span them; else None.
    """

    original: Flows
    release: FlowRelease
    row: Ints | None
    pooled: bool = False
    listed: Ints | None = None
    _baseline: Baseline | None = None
    _made: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def between(cls, original: Flows, release: FlowRelease, baseline: Baseline | None = None) -> OdComparison:
        """Assign each original flow to its row; to none if a flow lies in several. `baseline` is that of the same original."""
        listed = None
        if release.intervals is not None:
            check_windows(original, release)
            steps_given = original.t
            original = original.with_steps(release.intervals.start)
            listed, baseline = np.searchsorted(original.t, steps_given), None
        row, twice = rows_met(original, release)
        return cls(original, release, None if twice else row, listed=listed, _baseline=baseline)

    def all_steps(self) -> OdComparison:
        """Return the comparison with all time steps in one group; both share what `once` made."""
        return replace(self, pooled=True)

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return 1 if self.pooled else self.original.steps

    def in_listed_steps(self, values: _Values) -> _Values:
        """Return values of groups without those of time steps that were added."""
        return values if self.pooled or self.listed is None else values[self.listed]

    @cached_property
    def step_rows(self) -> tuple[Ints, Ints | slice]:
        """Return a time step of the original and a row for each time step that each row spans, in order of steps."""
        if self.release.intervals is None:
            return steps_of_release(self.original, self.release)[self.release.step], slice(None)
        slot, row = self.release.intervals.spread()
        return np.searchsorted(self.original.t, self.release.intervals.start)[slot], row

    @cached_property
    def step_volume(self) -> Ints | Floats:
        """Return the trips of each row in each time step that it spans."""
        release = self.release
        return release.volume if release.intervals is None else release.volume / release.steps_spanned

    @cached_property
    def baseline(self) -> Baseline:
        """Return what measures need of the original alone."""
        return self._baseline or Baseline(self.original)

    @cached_property
    def flow_group(self) -> Ints:
        """Return the group of each flow."""
        return np.zeros(len(self.original), np.int64) if self.pooled else self.baseline.step

    @cached_property
    def row_groups(self) -> tuple[Ints, Ints | slice]:
        """Return a group and a row for each group that each row is in."""
        return (np.zeros(len(self.release), np.int64), slice(None)) if self.pooled else self.step_rows

    def of_flows(self, values: Ints | Floats) -> Floats:
        """Return the sum of a value of each flow over each group."""
        return np.asarray(np.bincount(self.flow_group, values, self.groups), np.float64)

    def of_differences(self, of_flow: Ints | Floats, of_row: Floats) -> Floats:
        """Return the sum over each group of |x − y|, x of each flow and y of its row, or 0."""
        if self.row is None:
            raise ValueError("a flow may lie in at most one row")
        return self.of_flows(np.abs(of_flow - np.append(of_row, 0.0)[self.row]))

    def of_rows(self, values: Ints | Floats) -> Floats:
        """Return the sum of a value of each row over each group; a row that spans several gives each an equal share."""
        group, row = self.row_groups
        if not self.pooled and self.release.intervals is not None:
            values = values / self.release.steps_spanned
        return np.asarray(np.bincount(group, values[row], self.groups), np.float64)

    def of_steps(self, values: Floats) -> Floats:
        """Return the sum of values of each time step over each group."""
        return values.sum(axis=0, keepdims=True) if self.pooled else values

    def rows_of(self, step: int) -> slice | Ints:
        """Return the rows that a time step of the original is in."""
        steps, rows = self.step_rows
        here = slice(*np.searchsorted(steps, (step, step + 1)))
        return here if isinstance(rows, slice) else rows[here]

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return a costly value that does not depend on the groups; make it on the first call."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    @cached_property
    def volume(self) -> Floats:
        """Return the original trips of each group."""
        return self.of_flows(self.original.volume) if self.pooled else self.baseline.volume

    @cached_property
    def volume_share(self) -> Floats:
        """Return the share of each original flow in the trips of its group."""
        if not self.pooled:
            return self.baseline.share
        return self.original.volume / self.volume[self.flow_group]

    @cached_property
    def published(self) -> Floats:
        """Return the trips in rows, published or reported, of each group."""
        return self.of_rows(self.release.volume)

    @cached_property
    def origin_size(self) -> Ints:
        """Return the tiles in the origin of each row."""
        sizes: Ints = self.release.areas.size[self.release.origin]
        return sizes

    @cached_property
    def destination_size(self) -> Ints:
        """Return the tiles in the destination of each row."""
        sizes: Ints = self.release.areas.size[self.release.destination]
        return sizes

    @cached_property
    def cells(self) -> Ints:
        """Return the cells of each row, in all time steps that it spans."""
        return self.origin_size * self.destination_size * self.release.steps_spanned

    @cached_property
    def level(self) -> Floats:
        """Return the reconstructed volume in each cell of each row."""
        return self.release.volume / self.cells

    @cached_property
    def rebuilt(self) -> Floats:
        """Return the reconstructed volume in the cell of each original flow."""
        return self._summed[0] if self.row is None else np.append(self.level, 0.0)[self.row]

    @cached_property
    def level_share(self) -> Floats | None:
        """Return the share of each cell of each row in the trips in rows; None where rows overlap or span several time steps."""
        if self.row is None or self.release.intervals is not None:
            return None
        return ratio(self.level, self.published[self.row_groups[0]])

    @cached_property
    def rebuilt_share(self) -> Floats:
        """Return the share of the reconstructed cell of each original flow in the trips in rows; not of groups without any."""
        if self.level_share is None:
            return ratio(self.rebuilt, self.published[self.flow_group])
        return np.append(self.level_share, 0.0)[self.row]

    @cached_property
    def outside(self) -> Floats:
        """Return the reconstructed volume of each group in cells without an original trip."""
        if self.row is None or self.release.intervals is not None:
            return np.maximum(self.published - self.of_flows(self.rebuilt), 0.0)
        empty = self.cells - np.bincount(self.row + 1, minlength=len(self.release) + 1)[1:]
        return self.of_rows(empty * self.level)

    @cached_property
    def squares(self) -> Floats:
        """Return the sum of the squares of the reconstruction over all cells of each group."""
        return self.of_steps(self._summed[1])

    @property
    def _summed(self) -> tuple[Floats, Floats]:
        return self.once("summed", lambda: summed(self.original, self.release, self.level))


def summed(original: Flows, release: FlowRelease, level: Floats) -> tuple[Floats, Floats]:
    """Return the reconstruction in the cell of each original flow, and the sum of its squares over all cells of each time step.

    `level` is the share of each row in each of its cells. Where no two rows share a cell the result is `level` itself.
    """
    check_same_zones(original, release)
    areas, rows = release.areas, rows_of_steps(original, release)
    return sum_levels(
        original.offsets, original.origin, original.destination, rows.first, rows.last, release.origin[rows.row],
        release.destination[rows.row], frozen(level[rows.row], np.float64), areas.offsets, areas.tiles,
        len(original.zones),
    )  # fmt: skip
