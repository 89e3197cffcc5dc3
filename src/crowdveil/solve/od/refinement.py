"""Refinement: boxes of a partition are cut again at any tile boundary, within what is left of the budget."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from crowdveil.errors import InputError
from crowdveil.kernels.od.cut_structures import ENDS, LEFTS, BoxContents, CutFlows, CutRules, Pieces, TilePlaces
from crowdveil.model.arrays import Ints, frozen, row_slices
from crowdveil.model.flows import Flows
from crowdveil.solve.od.boxes import DEVIATION_SCALE, BoxSpace, gap_percent
from crowdveil.solve.od.clusters import members
from crowdveil.solve.od.dyadic_regions import tile_positions
from crowdveil.solve.od.region_space import Objective, RegionExtent, tile_cost
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import StepSolution

FIRST_SHARE = Fraction(4, 5)
"""Share of the budget that the partition may use before it is refined, where cuts may suppress trips. Chosen on hours of taxi
trips, with `MULTIPLIER_SHARE`: shares from 0.75 to 0.95 differ by 0.5 % with dyadic splits and by 2 % with the tree."""
MULTIPLIER_SHARE = 0.8
"""What a suppressed trip must save at least while cuts are compared, in parts of what it saves in the best partition."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """How the boxes of all time steps are refined.

    Attributes
    ----------
    data
        Flows of all time steps.
    tiles
        Position and cost of each tile.
    k, extent
        Smallest crowd, and smallest areas.
    objective
        What is minimized.
    trim
        Whether empty strips are cut off; only then may cuts suppress trips.
    """

    data: Flows
    tiles: TilePlaces
    k: int
    extent: RegionExtent
    objective: Objective
    trim: bool

    @classmethod
    def of(cls, data: Flows, k: int, extent: RegionExtent, objective: Objective, *, trim: bool) -> Refinement:
        """Take the positions of tiles from the data; raise if they are not known."""
        x, y, _ = tile_positions(data.zones, "cuts at any place")
        n, pois = len(data.zones), data.pois
        counts = np.zeros(n, np.int64) if pois is None else pois.per_tile(n)
        categories = (np.zeros(n + 1), np.zeros(0)) if pois is None else pois.categories_per_tile(n)
        columns = (x, y, tile_cost(data, objective), data.visited, counts, *categories)
        return cls(data, TilePlaces(*(frozen(c, np.int64) for c in columns)), k, extent, objective, trim)

    def solve(self, step: int, boxes: BoxSpace, budget: int, *, left: bool) -> StepSolution:
        """Find the best partition of a time step, cut its boxes again, and return what is published and, if wanted, left out.

        Where cuts may suppress trips, a partition within a part of the budget is cut too, and the cheaper result is taken. The
        facts are the gaps of the result, and of the best partition before it was cut, to the lowest cost that a partition
        without such cuts can have within the budget. The first is negative where the result is cheaper than that.
        """
        # The search begins at no other step's multiplier: cuts depend on the multiplier that it finds.
        whole = boxes.solve_for_budget(budget)
        bound = whole.lower_bound(budget)
        choice, _ = boxes.improve(whole, budget)
        before = boxes.cost_of(choice)
        saved = 0.0 if whole.multiplier is None else max(float(whole.multiplier - boxes.lost_cost), 0.0)
        after, found = self._cut(step, boxes, choice, budget, saved, left=left)
        if self.trim:
            with suppress(InputError):  # areas with a largest size may need all of the budget
                choice, _ = boxes.solve(int(FIRST_SHARE * budget), whole.multiplier)
                cost, other = self._cut(step, boxes, choice, budget, saved, left=left)
                after, found = (cost, other) if cost < after else (after, found)
        return found._replace(facts=np.array([gap_percent(after, bound), gap_percent(before, bound)]))

    def _cut(
        self, step: int, boxes: BoxSpace, choice: Ints, budget: int, saved: float, *, left: bool
    ) -> tuple[int, StepSolution]:
        """Cut the boxes of a partition; return the cost of the result, and what is published and left out."""
        from crowdveil.kernels.od.refine_boxes import refine_boxes

        first = boxes.outcome(choice, left=left)
        contents, flows = self._contents(step, boxes, first)
        scale = DEVIATION_SCALE if self.objective == "reconstruction" else 0
        rules = CutRules(
            self.k,
            self.extent.tiles,
            self.extent.inhabited,
            self.extent.pois,
            self.extent.categories,
            self.trim,
            scale,
            boxes.lost_cost,
            MULTIPLIER_SHARE * saved,
        )
        rest = budget - (boxes.total - int(first.volume.sum()))
        pieces = refine_boxes(contents, flows, self.tiles, rules, rest, left)
        published = np.flatnonzero(pieces.published)
        lost = boxes.total - int(pieces.volume[published].sum())
        cost = int(pieces.cost[published].sum()) + boxes.lost_cost * lost
        return cost, _solution(boxes, first, pieces, published)

    def _contents(self, step: int, boxes: BoxSpace, first: StepSolution) -> tuple[BoxContents, CutFlows]:
        """Return the tiles and flows of the boxes of a partition, and all flows of the step."""
        from crowdveil.kernels.od.refine_boxes import flows_of_boxes

        data, system = self.data, boxes.system
        matrix = Matrix.of(data, step, system)
        sides = (
            *system.origins.regions.tiles_of(first.origin),
            *system.destinations.regions.tiles_of(first.destination),
        )
        tiles = tuple(frozen(a, np.int64) for a in sides)
        held = (frozen(a, np.int64) for a in flows_of_boxes(matrix.rows, *tiles))
        rows = slice(data.offsets[step], data.offsets[step + 1])
        offsets, member = members(data, step)
        number = np.unique(member, return_inverse=True)[1]
        columns = (data.origin[rows], data.destination[rows], data.volume[rows], data.people[rows], offsets, number)
        return BoxContents(*tiles, *held), CutFlows(*(frozen(c, np.int64) for c in columns))


def _solution(boxes: BoxSpace, first: StepSolution, pieces: Pieces, published: Ints) -> StepSolution:
    """Return the pieces of boxes with areas of their own, and what is left out: parts of the map, and pieces that are cut off."""
    ends = pieces.ends.reshape(-1, ENDS)[published]
    cut_off = pieces.left[: ENDS * pieces.counts[LEFTS]].reshape(-1, ENDS)
    sides = boxes.system.origins.regions, boxes.system.destinations.regions
    areas = [_areas(pieces.pool, ends, side) for side in (0, 1)]
    areas += [sides[side].tiles_of(left) for side, left in enumerate((first.left_origin, first.left_destination))]
    areas += [_areas(pieces.pool, cut_off, side) for side in (0, 1)]
    n, more, off = len(ends), len(first.left_origin), len(cut_off)
    at, rows = np.cumsum([0, n, n, more, more, off]), np.arange(n)
    left = [np.concatenate([at[2 + side] + np.arange(more), at[4 + side] + np.arange(off)]) for side in (0, 1)]
    volume, crowd = pieces.volume[published], pieces.crowd[published]
    return StepSolution(rows, at[1] + rows, volume, crowd, left[0], left[1], np.zeros(0), *_joined(areas))


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
