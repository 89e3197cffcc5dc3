"""BoxSpace of a matrix: pairs of regions that hold a crowd, and the best partition of the map into them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Ints, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.solve.od.dyadic_regions import DyadicRegions
from crowdveil.solve.od.region_space import Objective, Regions, RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import NO_BOXES, StepSolution

Small = npt.NDArray[np.int8]

WHOLE, BY_DESTINATION, BY_ORIGIN = 1, 2, 4
"""What a box may do; sums of these are allowed ways."""
FIRST_GUESS, GUESS_PARTS = Fraction(1, 25), 16
"""The first price that is tried, as a share of what a trip costs if nothing is split, and its largest denominator."""
DEVIATION_SCALE = 1000
"""Deviations are fractions; they count in thousandths of a trip, so that costs stay whole numbers."""


@dataclass(frozen=True)
class BoxSolution:
    """A partition that keeps a budget.

    Attributes
    ----------
    price
        The price of a suppressed trip that it is best at; None is an infinite one.
    cost, suppressed
        What the published boxes cost, and the volume that it suppresses.
    choice
        What becomes of each box.
    lost_cost
        What a suppressed trip costs.
    """

    price: Fraction | None
    cost: int
    suppressed: int
    choice: Ints
    lost_cost: int = 0

    def least(self, budget: int) -> Fraction:
        """A bound that no partition within the budget goes below, with what suppressed trips cost."""
        over = Fraction(0) if self.price is None else max(self.price - self.lost_cost, Fraction(0))
        return self.cost + self.lost_cost * self.suppressed - over * (budget - self.suppressed)


@dataclass(frozen=True, eq=False)
class BoxSpace:
    """All boxes of a matrix with a crowd of at least k, those that a box can be split into before it.

    Attributes
    ----------
    system
        The regions that they are made of.
    origin, destination
        The regions of each box.
    volume, crowd
        Its trips, and the people (or trips) that k is compared with.
    cost
        What it costs to publish it whole.
    ways
        How each box can be split: offsets of its ways; of each way its kind, the volume that it gives up and the offsets of
        the boxes that it leaves; and these.
    allowed
        What each box may do.
    total
        Volume of the whole matrix.
    lost_cost
        What a suppressed trip costs: nothing but room in the budget, unless cells are to be kept.
    """

    system: RegionSpace
    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    cost: Ints
    ways: tuple[Ints, Ints, Ints, Ints, Ints]
    allowed: Small
    total: int
    lost_cost: int = 0

    @classmethod
    def of(
        cls,
        data: Flows,
        step: int,
        system: RegionSpace,
        k: int,
        objective: Objective = "generalization",
        *,
        origins_first: bool = False,
    ) -> BoxSpace:
        """The boxes of a time step; with `origins_first`, an origin is only split while its destinations are not."""
        matrix = Matrix.of(data, step, system)
        o, d, volume, crowd, cells, *ways = (frozen(a, np.int64) for a in _build(matrix, k, origins_first))
        if objective == "reconstruction":
            cost = _deviations(matrix, o, d, volume, cells)
        else:
            cost = frozen((system.origins.cost[o] + system.destinations.cost[d]) * volume, np.int64)
        total = matrix.total
        lost_cost = DEVIATION_SCALE if objective == "reconstruction" else 0
        check_exact(int(cost.max(initial=0)) + lost_cost * total, total)
        allowed = np.full(len(o), WHOLE + BY_DESTINATION + BY_ORIGIN, np.int8)
        allowed[~(system.origins.narrow[o] & system.destinations.narrow[d])] -= WHOLE
        return cls(system, o, d, volume, crowd, cost, tuple(ways), frozen(allowed, np.int8), total, lost_cost)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.volume)

    def evaluate(self, price: Fraction | None) -> tuple[int, int, Ints]:
        """Cost, suppressed volume and choices of the best partition at a price; None is an infinite one."""
        from crowdveil.kernels.od.partition import evaluate

        p, q = (1, 0) if price is None else price.as_integer_ratio()
        n = len(self)
        best, choice = np.empty(2 * n, np.int64), np.empty(n, np.int64)
        evaluate(np.arange(n), self.cost, self.volume, *self.ways, self.allowed, p, q, best, choice)
        return int(best[-2]), int(best[-1]), choice

    def within(self, budget: int, near: Fraction | None = None) -> BoxSolution:
        """The best partition within a budget that a price can reach; `near` is where the search for the price begins."""
        from crowdveil.kernels.od.partition import search

        whole = Fraction(int(self.cost[-1]), max(int(self.volume[-1]), 1))
        first = max(near or whole * FIRST_GUESS, Fraction(1, GUESS_PARTS)).limit_denominator(GUESS_PARTS)
        done, p, q, cost, suppressed, choice = search(
            self.cost, self.volume, *self.ways, self.allowed, budget, *first.as_integer_ratio()
        )
        if not done:
            raise InputError(
                f"wanted at most {budget:,} trips to be suppressed, but no partition of the map suppresses fewer than "
                f"{suppressed:,} trips; allow more with {Option('suppress')}, or larger areas."
            )
        if q and p < self.lost_cost * q:
            # A suppressed trip is worth more than the budget asks for: less is suppressed than may be.
            p, q = self.lost_cost, 1
            cost, suppressed, choice = self.evaluate(Fraction(p))
        return BoxSolution(Fraction(p, q) if q else None, int(cost), int(suppressed), choice, self.lost_cost)

    def spend(self, choice: Ints, rest: int) -> None:
        """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last."""
        from crowdveil.kernels.od.partition import apply_splits, best_splits, published_boxes

        while len(self):
            whole = np.sort(published_boxes(choice, *self.ways[3:])[0])
            gain, way = best_splits(whole, self.cost, *self.ways, self.allowed, self.lost_cost, rest)
            order = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain)]
            spent = apply_splits(whole[order], way[order], *self.ways[2:], choice, rest)
            if spent == 0:
                return
            rest -= spent

    def cost_of(self, choice: Ints) -> int:
        """What a partition costs, with what suppressed trips cost."""
        from crowdveil.kernels.od.partition import published_boxes

        kept = published_boxes(choice, *self.ways[3:])[0]
        return int(self.cost[kept].sum()) + self.lost_cost * (self.total - int(self.volume[kept].sum()))

    def outcome(self, choice: Ints, *facts: float, left: bool) -> StepSolution:
        """What a partition publishes and, if wanted, leaves out."""
        from crowdveil.kernels.od.partition import published_boxes

        kept, split = published_boxes(choice, *self.ways[3:])
        kept = np.sort(kept)
        published = (self.origin[kept], self.destination[kept], self.volume[kept], self.crowd[kept])
        return StepSolution(*published, *(self._left(np.sort(split), choice) if left else NO_BOXES), np.array(facts))

    def _left(self, split: Ints, choice: Ints) -> tuple[Ints, Ints]:
        """The parts of split boxes that are no boxes themselves, and boxes that may not be published."""
        way = choice[split]
        rows, offsets = take_slices(self.ways[3], way)
        box, of_link = self.ways[4][rows], row_slices(offsets)
        sides = []
        for kind, side, mine, other in (
            (BY_DESTINATION, self.system.destinations, self.destination, self.origin),
            (BY_ORIGIN, self.system.origins, self.origin, self.destination),
        ):
            here = self.ways[1][way] == kind
            linked = here[of_link]
            part, of_part = self._parts(side.regions, mine, split[here], way[here], kind)
            place = np.cumsum(here) - 1
            covered = _holding(side.regions, part, of_part, mine[box[linked]], place[of_link[linked]])
            bare = ~np.isin(np.arange(len(part)), covered)
            sides.append((part[bare], other[split[here]][of_part[bare]]))
        (to, to_origin), (start, start_destination) = sides
        gone = self._gone(split, choice)
        origins = np.concatenate([to_origin, start, self.origin[gone]])
        destinations = np.concatenate([to, start_destination, self.destination[gone]])
        return origins, destinations

    def _parts(self, regions: Regions, mine: Ints, split: Ints, way: Ints, kind: int) -> tuple[Ints, Ints]:
        """The regions that a side of each box is split into, and the place of the box in the list."""
        if isinstance(regions, Hierarchy):
            return regions.parts(mine[split])
        # Ways to halve the destination come first.
        number = way - self.ways[0][split]
        if kind == BY_ORIGIN:
            number -= np.diff(regions.way_offsets)[self.destination[split]]
        return regions.halves(mine[split], number)

    def _gone(self, split: Ints, choice: Ints) -> Ints:
        """BoxSpace that are suppressed whole since they may not be published: those that split boxes leave, or the whole map."""
        from crowdveil.kernels.od.partition import SUPPRESS

        rows, _ = take_slices(self.ways[3], choice[split])
        reached = np.append(self.ways[4][rows], len(self) - 1)
        gone: Ints = np.unique(reached[choice[reached] == SUPPRESS])
        return gone


def _holding(regions: Regions, part: Ints, of_part: Ints, wanted: Ints, of_wanted: Ints) -> Ints:
    """Where among the parts of each box the one lies that holds a wanted region; a box has them in rising order."""
    if isinstance(regions, Hierarchy):
        # In post-order the child that holds a node is the first that is not before it.
        span = len(regions) + 1
        found: Ints = np.searchsorted(of_part * span + part, of_wanted * span + wanted)
        return found
    first_half = 2 * of_wanted  # of two halves, which hold no tile in common
    return first_half + ~regions.holds(part[first_half], regions.tiles[regions.tile_offsets[wanted]])


def check_exact(cost: int, total: int) -> None:
    """Raise unless sums of q·A + p·S, with p at most the cost and q at most the total, fit into 64 bits."""
    if 2 * cost * total >= 2**63:
        raise InputError("the volumes of a time step are too large to be compared exactly; use shorter time steps.")


def _build(matrix: Matrix, k: int, origins_first: bool) -> tuple[Ints, ...]:
    from crowdveil.kernels.od.dyadic import build_dyadic_boxes
    from crowdveil.kernels.od.tree_boxes import build_boxes

    origins, destinations = matrix.system.origins, matrix.system.destinations
    if not (origins.fits[-1] and destinations.fits[-1]):
        raise InputError("not even the whole map has as many tiles as published areas should have; ask for fewer.")
    arguments: Any
    if isinstance(origins.regions, DyadicRegions):
        regions = (
            getattr(origins.regions, name) for name in ("tile_offsets", "tiles", "way_offsets", "first", "second")
        )
        rows = (frozen(column, np.int64) for column in matrix.rows)
        fits = frozen(origins.fits, np.int64)
        arguments = (*rows, *matrix.pairs_by_person(), *regions, fits, fits, k)
        return build_dyadic_boxes(*arguments)
    leaves = origins.tree.tiles
    pairs = matrix.pairs_by(np.arange(leaves, dtype=np.int32), leaves)
    arguments = (*matrix.rows, *pairs, *origins.as_origins, *destinations.as_destinations, origins_first, k)
    return build_boxes(*arguments)


def _deviations(matrix: Matrix, o: Ints, d: Ints, volume: Ints, cells: Ints) -> Ints:
    """What each box loses when its volume is spread evenly over its cells."""
    from crowdveil.kernels.od.deviation import deviations

    regions = (side.regions for side in (matrix.system.origins, matrix.system.destinations))
    (froms, from_tiles), (tos, to_tiles) = (r.tiles_of(np.arange(len(r.size))) for r in regions)
    columns = (o, d, volume, cells, froms, from_tiles, tos, to_tiles, *matrix.rows[:3])
    arguments: Any = (*(frozen(column, np.int64) for column in columns), DEVIATION_SCALE)
    return frozen(deviations(*arguments), np.int64)
