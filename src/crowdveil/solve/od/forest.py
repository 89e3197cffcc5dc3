"""A matrix with its origins given: each origin is the root of a tree of destinations that hold a crowd."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from crowdveil.model.arrays import Ints, Mask, frozen
from crowdveil.solve.od.boxes import check_exact
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import NO_BOXES, StepSolution

MOST_STATES = 30_000_000
"""More states than this do not fit into memory, and the exact search is given up."""
GUESS = 8
"""The first price that is tried is what a trip costs if nothing is split, divided by this."""

_NO_PART = np.zeros(0, np.int32)
_BY_BOX = ("part", "node", "volume", "crowd", "cost", "lost")


@dataclass(frozen=True)
class Solved:
    """A partition of a forest.

    Attributes
    ----------
    price
        The price of a suppressed trip that it is best at, besides what such a trip costs anyway; None is an infinite one.
    cost, suppressed
        What it costs, and the volume that it suppresses.
    published
        Which boxes are published.
    """

    price: Fraction | None
    cost: int
    suppressed: int
    published: Mask

    def least(self, budget: int) -> Fraction:
        """A bound that no partition within the budget goes below."""
        return Fraction(self.cost - (self.price or 0) * (budget - self.suppressed))


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
        Volume of each origin that has no box.
    lost_cost
        What each suppressed trip costs besides.
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
    gone: Ints
    lost_cost: int = 0

    @classmethod
    def of(cls, matrix: Matrix, origins: Ints, k: int, lost_cost: Fraction = Fraction(0)) -> Forest:
        """The boxes of origins, nodes that hold every tile once, in rising order.

        `lost_cost` is what a suppressed trip costs in any case, in tiles; all costs are scaled to whole numbers.
        """
        from crowdveil.kernels.od.forest_boxes import build_forest

        system, tree = matrix.system, matrix.system.origins.tree
        _, _, first_leaf, leaf_tile, _ = system.origins.as_origins
        tile_leaf, anchor, table, exponent, _, depth, is_leaf = system.destinations.as_destinations
        of_leaf = (
            np.repeat(np.arange(len(origins), dtype=np.int32), tree.size[origins]) if len(matrix.person) else _NO_PART
        )
        arguments: Any = (
            *matrix.rows, *matrix.pairs_by(of_leaf, len(origins)), origins, first_leaf, leaf_tile, system.origins.cost,
            tile_leaf, anchor, table, exponent, depth, is_leaf, system.destinations.cost, lost_cost.denominator, k,
        )  # fmt: skip
        part, node, volume, crowd, cost, lost, above, gone = (frozen(a, np.int64) for a in build_forest(*arguments))
        forest = cls(matrix, origins, part, node, volume, crowd, cost, lost, above, gone, lost_cost.numerator)
        widest = int(system.origins.cost[-1] + system.destinations.cost[-1])
        check_exact(widest * lost_cost.denominator * matrix.total + lost_cost.numerator * matrix.total, matrix.total)
        return forest

    @property
    def total(self) -> int:
        """All trips."""
        return self.matrix.total

    @cached_property
    def all_gone(self) -> int:
        """Volume that has no box."""
        return int(self.gone.sum())

    def at(self, price: Fraction | None) -> Solved:
        """The best partition at a price."""
        from crowdveil.kernels.od.forest import solve_forest

        p, q = (1, 0) if price is None else price.as_integer_ratio()
        a, s, published = solve_forest(self.cost, self.lost, self.above, self.lost_cost, self.all_gone, p, q)
        return Solved(price, int(a), int(s), published)

    def within(self, budget: int) -> Solved | int:
        """The best partition at the price that keeps a budget; or the least volume that must be suppressed."""
        from crowdveil.kernels.od.forest import search_forest

        first = int(self.cost[-1]) // (GUESS * int(self.volume[-1])) if len(self.cost) else 0
        found, p, q, a, s, published = search_forest(
            self.cost, self.lost, self.above, self.lost_cost, self.all_gone, budget, max(first, 1), 1
        )
        if not found:
            return int(s)
        return Solved(Fraction(int(p), int(q)) if q else None, int(a), int(s), published)

    def spend(self, found: Solved, budget: int) -> Solved:
        """A partition with more boxes split, those first that save most for a suppressed trip, as long as the budget lasts."""
        from crowdveil.kernels.od.forest import offers, take_offers

        p, q = (1, 0) if found.price is None else found.price.as_integer_ratio()
        saved, spent, whole = offers(self.cost, self.lost, self.above, self.lost_cost, p, q)
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
        return Solved(found.price, cost, suppressed, published)

    def exact(self, budget: int, near: Solved) -> Solved | None:
        """The cheapest partition within a budget, from the one that `within` found; None if too much is to be looked at."""
        from crowdveil.kernels.od.forest import exact_forest

        p, q = (1, 0) if near.price is None else near.price.as_integer_ratio()
        done, a, s, published = exact_forest(
            self.cost, self.lost, self.above, self.lost_cost, self.all_gone, budget, p, q,
            p * (budget - near.suppressed), MOST_STATES,
        )  # fmt: skip
        return Solved(near.price, int(a), int(s), published) if done else None

    def trees(self) -> list[Forest]:
        """Each origin with a box on its own."""
        ends = np.flatnonzero(np.append(np.diff(self.part) != 0, True)) + 1 if len(self.part) else np.zeros(0, np.int64)
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        none = frozen(np.zeros(1), np.int64)
        found = []
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
            above = self.above[low:high]
            columns = {name: getattr(self, name)[low:high] for name in _BY_BOX}
            up = frozen(np.where(above >= 0, above - low, -1), np.int64)
            found.append(replace(self, **columns, above=up, gone=none))
        return found

    def outcome(self, published: Mask, *facts: float, left: bool) -> StepSolution:
        """What a partition publishes and, if wanted, leaves out."""
        kept = np.flatnonzero(published)
        boxes = (self.origins[self.part[kept]], self.node[kept], self.volume[kept], self.crowd[kept])
        return StepSolution(*boxes, *(self._left(published) if left else NO_BOXES), np.array(facts))

    def _left(self, published: Mask) -> tuple[Ints, Ints]:
        """The parts of split boxes that hold no crowd."""
        from crowdveil.kernels.od.forest import split_boxes

        tree = self.matrix.system.destinations.tree
        split = np.flatnonzero(split_boxes(self.above, published))
        part, of_part = tree.parts(self.node[split])
        place = np.full(len(self.part), -1, np.int64)
        place[split] = np.arange(len(split))
        inside = np.flatnonzero((self.above >= 0) & (place[self.above] >= 0))
        span = len(tree) + 1
        covered = np.searchsorted(of_part * span + part, place[self.above[inside]] * span + self.node[inside])
        bare = ~np.isin(np.arange(len(part)), covered)
        return self.origins[self.part[split[of_part[bare]]]], part[bare]
