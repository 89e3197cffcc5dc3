"""Refinement: boxes of a partition are cut again at any tile boundary, within the rest of the budget."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from crowdveil.kernels.od.best_cut import ENDS, LEFTS, OF_BOX, BoxContents, CutFlows, CutRules, Pieces, TilePlaces
from crowdveil.kernels.od.refine_boxes import flows_of_boxes, refine_boxes
from crowdveil.model.arrays import Ints, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.solve.od.box_building import DEVIATION_SCALE
from crowdveil.solve.od.boxes import BoxSpace, BudgetError, gap_percent
from crowdveil.solve.od.dyadic_regions import tile_positions
from crowdveil.solve.od.region_space import Objective, RegionExtent, counted_tiles, tile_cost
from crowdveil.solve.od.step_solver import StepSolution
from crowdveil.solve.od.targets import as_figure

FIRST_SHARE = Fraction(4, 5)
"""Share of the budget that the partition may use before it is refined. Chosen on hours of taxi
trips, with `MULTIPLIER_SHARE`: shares from 0.75 to 0.95 differ by 0.5 % with dyadic splits and by 2 % with the tree."""
MULTIPLIER_SHARE = 0.8
"""Least cost that a suppressed trip must save while cuts are compared, as a share of its saving in the best partition."""


class CutRows(NamedTuple):
    """Flows of some time steps by their origins, whose boxes are cut: offsets of each origin tile, and the time of each flow."""

    offsets: Ints
    time: Ints
    flows: CutFlows

    @classmethod
    def of(cls, data: Flows, first: int, last: int, *, slots: Ints | None = None, by_step: bool = False) -> CutRows:
        """Take the flows of time steps, half-open; with `by_step`, k people are needed in each step on its own.

        Times are time steps, or `slots` of them.
        """
        low, high = data.offsets[first], data.offsets[last]
        order = low + np.argsort(data.origin[low:high], kind="stable")
        origin, step = data.origin[order], data.step[order]
        columns = data.destination[order], data.volume[order], data.people[order]
        group = step - first if by_step else np.zeros(len(order), np.int64)
        offsets, member = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if data.person_ids is not None and data.person_offsets is not None:
            rows, offsets = take_slices(data.person_offsets, order)
            # A person counts once in each group.
            pairs = np.column_stack([np.repeat(group, np.diff(offsets)), data.person_ids[rows]])
            member = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        of_origin = np.searchsorted(origin, np.arange(len(data.zones) + 1))
        flows = CutFlows(*(frozen(c, np.int64) for c in (origin, *columns, group, offsets, member)))
        time = step if slots is None else slots[step]
        return cls(frozen(of_origin, np.int64), frozen(time, np.int64), flows)


@dataclass(frozen=True, eq=False)
class Refinement:
    """How boxes are refined.

    Attributes
    ----------
    tiles
        Position and cost of each tile.
    k, least
        Smallest crowd, and fewest tiles of an area; 0 for any.
    objective
        The quantity to minimize.
    time_weight
        Cost of each time step after the first for a trip.
    by_step
        Whether a box is published in each time step on its own, where it has k people.
    """

    tiles: TilePlaces
    k: int
    least: int
    objective: Objective
    time_weight: int = 0
    by_step: bool = False

    @classmethod
    def of(cls, data: Flows, k: int, extent: RegionExtent, objective: Objective) -> Refinement:
        """Take the positions of tiles from the data; raise if they are not known."""
        x, y, _ = tile_positions(data.zones, "cuts at any place")
        columns = (x, y, tile_cost(data, objective), counted_tiles(data))
        least = extent.tiles if extent.asks_for_tiles(data) else 0
        return cls(TilePlaces(*(frozen(c, np.int64) for c in columns)), k, least, objective)

    def with_time_weight(self, weight: Fraction) -> Refinement:
        """Return the refinement for boxes of several time steps, each of which after the first costs a trip some tiles."""
        if self.objective == "reconstruction":
            return self
        cost = frozen(weight.denominator * self.tiles.cost, np.int64)
        return replace(self, tiles=self.tiles._replace(cost=cost), time_weight=weight.numerator)

    def solve_step(self, data: Flows, step: int, boxes: BoxSpace, budget: int, *, left: bool) -> StepSolution:
        """Find the best partition of a time step, cut its boxes again, and return published boxes and, if wanted, the rest."""
        rows = CutRows.of(data, step, step + 1)

        def chosen(choice: Ints) -> StepSolution:
            return boxes.outcome(choice, left=left).during(step, step + 1)

        return self.solve(boxes, budget, rows, chosen, left=left)

    def solve(
        self,
        boxes: BoxSpace,
        budget: int,
        rows: CutRows,
        chosen: Callable[[Ints], StepSolution],
        *,
        left: bool,
    ) -> StepSolution:
        """Find the best partition within a budget, and cut the boxes that it chooses again, with the slots of each.

        A partition within a part of the budget is cut as well, since cuts may suppress trips, and the cheaper result is taken.
        The facts are the gaps of the result, and of the best partition before it was cut, to the lowest cost that a partition
        without such cuts can have within the budget, and the multiplier of the first partition. The first gap is negative where
        the result is cheaper than that cost.
        """
        # The search begins at no other step's multiplier: cuts depend on the multiplier that it finds.
        first = boxes.solve_for_budget(budget)
        bound = first.lower_bound(budget)
        choice = boxes.improve(first, budget).choice
        before = boxes.cost_of(choice)
        saved = 0.0 if first.multiplier is None else max(float(first.multiplier - boxes.lost_cost), 0.0)
        after, found = self._cut(rows, boxes, chosen(choice), budget, saved, left=left)
        with suppress(BudgetError):  # areas with a largest size may need all of the budget
            choice = boxes.solve(int(FIRST_SHARE * budget), first.multiplier).choice
            cost, other = self._cut(rows, boxes, chosen(choice), budget, saved, left=left)
            after, found = (cost, other) if cost < after else (after, found)
        facts = gap_percent(after, bound), gap_percent(before, bound), as_figure(first.multiplier)
        return found._replace(facts=np.array(facts))

    def _cut(
        self, rows: CutRows, boxes: BoxSpace, first: StepSolution, budget: int, saved: float, *, left: bool
    ) -> tuple[int, StepSolution]:
        """Cut the boxes of a partition; return the cost of the result, and its published boxes and rest."""
        scale = DEVIATION_SCALE if self.objective == "reconstruction" else 0
        rules = CutRules(
            self.k,
            self.least,
            scale,
            boxes.lost_cost,
            MULTIPLIER_SHARE * saved,
        )
        rest = budget - (boxes.total - int(first.volume.sum()))
        pieces = refine_boxes(self._contents(rows, boxes, first), rows.flows, self.tiles, rules, rest, left)
        published = np.flatnonzero(pieces.published)
        lost = boxes.total - int(pieces.volume[published].sum())
        cost = int(pieces.cost[published].sum()) + boxes.lost_cost * lost
        return cost, _cut_areas(boxes, first, pieces, published)

    def _contents(self, rows: CutRows, boxes: BoxSpace, first: StepSolution) -> BoxContents:
        """Return the tiles and flows of the boxes of a partition."""
        system = boxes.system
        sides = (
            *system.origins.regions.tiles_of(first.origin),
            *system.destinations.regions.tiles_of(first.destination),
        )
        tiles = tuple(frozen(a, np.int64) for a in sides)
        times = (frozen(a, np.int64) for a in (first.first, first.last))
        flows_of = flows_of_boxes(rows.offsets, rows.flows.destination, rows.time, *times, *tiles)
        steps = np.ones(len(first.origin), np.int64) if self.by_step else first.last - first.first
        own = (*flows_of, self.time_weight * (steps - 1), steps)
        return BoxContents(*tiles, *(frozen(a, np.int64) for a in own))


def _cut_areas(boxes: BoxSpace, first: StepSolution, pieces: Pieces, published: Ints) -> StepSolution:
    """Return the pieces of boxes as areas, and the rest: other parts of the map, and pieces that are cut off."""
    ends = pieces.ends.reshape(-1, ENDS)[published]
    cut_off = pieces.left[: ENDS * pieces.counts[LEFTS]].reshape(-1, ENDS)
    sides = boxes.system.origins.regions, boxes.system.destinations.regions
    areas = [_areas(pieces.pool, ends, side) for side in (0, 1)]
    areas += [sides[side].tiles_of(left) for side, left in enumerate((first.left_origin, first.left_destination))]
    areas += [_areas(pieces.pool, cut_off, side) for side in (0, 1)]
    n, more, off = len(ends), len(first.left_origin), len(cut_off)
    at, rows = np.cumsum([0, n, n, more, more, off]), np.arange(n)
    left = [np.concatenate([at[2 + side] + np.arange(more), at[4 + side] + np.arange(off)]) for side in (0, 1)]
    box, off_box = ends[:, OF_BOX], cut_off[:, OF_BOX]
    left_first = np.concatenate([first.left_first, first.first[off_box]])
    left_last = np.concatenate([first.left_last, first.last[off_box]])
    return StepSolution(
        rows, at[1] + rows, pieces.volume[published], pieces.crowd[published], left[0], left[1], np.zeros(0), *_joined(areas),
        first.first[box], first.last[box], left_first, left_last,
    )  # fmt: skip


def _areas(pool: Ints, ends: Ints, side: int) -> tuple[Ints, Ints]:
    """Return offsets and tiles of the origins (side 0) or the destinations (side 1) of pieces."""
    low, high = ends[:, 2 * side], ends[:, 2 * side + 1]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(high - low)])
    return offsets, pool[np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], high - low)]


def _joined(areas: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Return lists of areas as one, as offsets and tiles, the tiles of each area rising."""
    sizes = np.concatenate([np.diff(offsets) for offsets, _ in areas])
    offsets, tiles = np.cumsum([0, *sizes]), np.concatenate([tiles for _, tiles in areas])
    return offsets, tiles[np.lexsort((tiles, row_slices(offsets)))]
