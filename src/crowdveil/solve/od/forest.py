"""OD matrix with given origins: each origin is the root of a tree of destinations that hold a crowd."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from crowdveil.kernels.od.structures import ForestCosts
from crowdveil.model.arrays import Ints, Mask, frozen
from crowdveil.solve.od.boxes import MAX_COST, as_ratio, check_exact
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import NO_BOXES, StepSolution

MAX_STATES = 30_000_000
"""More states than this do not fit into memory, and the exact search is given up."""
GUESS = 8
"""The first multiplier that is tried is what a trip costs if nothing is split, divided by this."""

_NO_PART = np.zeros(0, np.int32)
_BY_BOX = ("part", "node", "volume", "crowd", "cost", "lost")


@dataclass(frozen=True)
class ForestSolution:
    """A partition of a forest.

    Attributes
    ----------
    multiplier
        The multiplier of a suppressed trip that it is best at, in addition to what such a trip costs; None is infinite.
    cost, suppressed
        What it costs, and the volume that it suppresses.
    published
        Which boxes are published.
    """

    multiplier: Fraction | None
    cost: int
    suppressed: int
    published: Mask

    def lower_bound(self, budget: int) -> Fraction:
        """Return a cost that no partition within the budget goes below."""
        p, q = (0, 1) if self.multiplier is None else self.multiplier.as_integer_ratio()
        return Fraction(self.cost * q - p * (budget - self.suppressed), q)


@dataclass(frozen=True, eq=False)
class Forest:
    """The boxes of given origins that hold a crowd, those below a box before it.

    Attributes
    ----------
    matrix
        What it was made of.
    origins
        The node of each origin in the tree of origins.
    part, node
        Origin and destination node of each box.
    volume, crowd
        Its trips, and the people (or trips) that k is compared with.
    cost
        What it costs to publish it whole.
    lost
        Volume that is suppressed when it is split; -1 where it cannot be.
    above
        The box that it is a part of; -1 at the top.
    gone
        Volume of origins that have no box.
    lost_cost
        What each suppressed trip costs.
    """

    matrix: Matrix
    origins: Ints
    part: Ints
    node: Ints
    volume: Ints
    crowd: Ints
    cost: Ints
    lost: Ints
    above: Ints
    gone: int
    lost_cost: int = 0

    @classmethod
    def of(cls, matrix: Matrix, origins: Ints, k: int, lost_cost: Fraction = Fraction(0)) -> Forest:
        """Build the boxes of origins, nodes that hold every tile once, in rising order.

        `lost_cost` is what a suppressed trip costs in any case, in tiles; all costs are scaled to whole numbers. Where these
        would be too large it is rounded to whole tiles.
        """
        system = matrix.system
        lost_cost = _exact_lost_cost(lost_cost, system.widest, matrix.total)
        of_leaf = _NO_PART
        if len(matrix.person):
            of_leaf = np.repeat(np.arange(len(origins), dtype=np.int32), system.origins.tree.size[origins])
        pairs = matrix.pairs_by(of_leaf, len(origins))
        table, gone = system.build_forest(matrix.rows, pairs, origins, lost_cost.denominator, k)
        table.flags.writeable = False
        part, node, volume, crowd, cost, lost, above = table
        return cls(matrix, origins, part, node, volume, crowd, cost, lost, above, int(gone), lost_cost.numerator)

    @property
    def total(self) -> int:
        """Return the number of all trips."""
        return self.matrix.total

    @property
    def costs(self) -> ForestCosts:
        """Return what kernels solve the forest by."""
        return ForestCosts(self.cost, self.lost, self.above, self.lost_cost, self.gone)

    def solve_at(self, multiplier: Fraction | None) -> ForestSolution:
        """Find the best partition at a multiplier."""
        from crowdveil.kernels.od.forest import solve_forest

        a, s, published = solve_forest(self.costs, *as_ratio(multiplier))
        return ForestSolution(multiplier, int(a), int(s), published)

    def solve_for_budget(self, budget: int) -> ForestSolution | int:
        """Find the best partition at the multiplier that keeps a budget; or the least volume that must be suppressed."""
        from crowdveil.kernels.od.forest import search_forest

        first = int(self.cost[-1]) // (GUESS * max(int(self.volume[-1]), 1)) if len(self.cost) else 0
        found, p, q, a, s, published = search_forest(self.costs, budget, max(first, 1), 1)
        if not found:
            return int(s)
        return ForestSolution(Fraction(int(p), int(q)) if q else None, int(a), int(s), published)

    def spend_slack(self, found: ForestSolution, budget: int) -> ForestSolution:
        """Split more boxes, those first that save most for a suppressed trip, as long as the budget lasts."""
        from crowdveil.kernels.od.forest import find_offers, take_offers

        saved, spent, whole = find_offers(self.costs, *as_ratio(found.multiplier))
        published, rest = found.published, budget - found.suppressed
        while True:
            worth = np.where(published & (saved > 0) & (spent <= rest), saved / np.maximum(spent, 1), 0.0)
            order = np.argsort(-worth, kind="stable")[: np.count_nonzero(worth)]
            if len(order) == 0:
                break
            taken, published = take_offers(order, spent, self.above, whole, rest)
            rest -= taken
        suppressed = budget - rest
        cost = int(self.cost[published].sum()) + self.lost_cost * suppressed
        return ForestSolution(found.multiplier, cost, suppressed, published)

    def solve_exactly(self, budget: int, near: ForestSolution) -> ForestSolution | None:
        """Find the cheapest partition within a budget, from the one that `solve_for_budget` found.

        Returns None if more states would be needed than fit into memory.
        """
        from crowdveil.kernels.od.forest import solve_forest_exactly

        p, q = as_ratio(near.multiplier)
        spare = budget - near.suppressed
        done, a, s, published = solve_forest_exactly(self.costs, budget, p, q, spare, MAX_STATES)
        return ForestSolution(near.multiplier, int(a), int(s), published) if done else None

    def trees(self) -> list[Forest]:
        """Return a forest for each origin that has a box."""
        ends = np.flatnonzero(np.append(np.diff(self.part) != 0, True)) + 1 if len(self.part) else np.zeros(0, np.int64)
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        found = []
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
            above = self.above[low:high]
            columns = {name: getattr(self, name)[low:high] for name in _BY_BOX}
            up = frozen(np.where(above >= 0, above - low, -1), np.int64)
            found.append(replace(self, **columns, above=up, gone=0))
        return found

    def outcome(self, published: Mask, *facts: float, left: bool) -> StepSolution:
        """Return what a partition publishes and, if wanted, leaves out."""
        kept = published.nonzero()[0]
        origin = self.origins.take(self.part.take(kept))
        boxes = (origin, self.node.take(kept), self.volume.take(kept), self.crowd.take(kept))
        return StepSolution(*boxes, *(self._left(published) if left else NO_BOXES), np.array(facts))

    def _left(self, published: Mask) -> tuple[Ints, Ints]:
        """Return the parts of split boxes that hold no crowd, and single tiles that do and are not published."""
        from crowdveil.kernels.od.forest import boxes_inside

        tree = self.matrix.system.destinations.tree
        split = np.flatnonzero(~published & ~boxes_inside(self.above, published))
        part, of_part = tree.parts(self.node[split])
        place = np.full(len(self.part), -1, np.int64)
        place[split] = np.arange(len(split))
        inside = np.flatnonzero((self.above >= 0) & (place[self.above] >= 0))
        span = len(tree) + 1
        covered = np.searchsorted(of_part * span + part, place[self.above[inside]] * span + self.node[inside])
        bare = ~np.isin(np.arange(len(part)), covered)
        # A tile whose weights round to no trip may have people, and gains nothing by a row of its own.
        single = split[np.bincount(of_part, minlength=len(split)) == 0]
        origin = np.concatenate([self.part[split[of_part[bare]]], self.part[single]])
        return self.origins[origin], np.concatenate([part[bare], self.node[single]])


def _exact_lost_cost(lost_cost: Fraction, widest: int, total: int) -> Fraction:
    """Return the cost of a suppressed trip, in whole tiles where a fraction would make costs too large to be added."""
    if (widest * lost_cost.denominator + lost_cost.numerator) * total >= MAX_COST:
        lost_cost = Fraction(round(lost_cost))
    check_exact((widest * lost_cost.denominator + lost_cost.numerator) * total)
    return lost_cost
