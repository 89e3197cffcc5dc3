"""The best partition of a map into boxes, pairs of regions that hold a crowd."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crowdveil.errors import InputError, Text
from crowdveil.kernels.od.exact_boxes import FOUND, TOO_MANY, Slack, reach, solve_exactly
from crowdveil.kernels.od.partition import begin_search, evaluate, published_boxes, search, spend_slack
from crowdveil.kernels.od.structures import (
    ANY_CHOICE,
    BY_DESTINATION,
    BY_ORIGIN,
    PUBLISH,
    SUPPRESS,
    WHOLE,
    SearchArrays,
    Splits,
)
from crowdveil.model.arrays import Ints, Small, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.solve.od.box_building import (
    BuiltBoxes,
    box_deviations,
    build_bounded_boxes,
    build_given_origins,
    lost_cost_of,
)
from crowdveil.solve.od.region_space import Objective, Regions, RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import NO_BOXES, StepSolution

MAX_COST = 2**60
"""Limit of the costs of a matrix: sums and differences of a few of them fit into 64 bits."""
MAX_STATES = 100_000
"""States of costs and volumes up to which partitions between those of two multipliers are searched."""
SMALL_GAP_PERCENT = 0.1
"""A certified gap up to which nothing is searched: large matrices are below it, and have little to gain."""
FIRST_GUESS, GUESS_PARTS = Fraction(1, 25), 16
"""The first multiplier that is tried, as a share of what a trip costs if nothing is split, and its largest denominator."""
_BY_BOX = ("origin", "destination", "volume", "crowd", "cost", "allowed")


class BudgetError(InputError):
    """No partition of the map keeps the budget."""


@dataclass(frozen=True)
class BoxSolution:
    """A partition that keeps a budget.

    Attributes
    ----------
    multiplier
        The multiplier of a suppressed trip that it is best at; None is infinite.
    cost, suppressed
        Cost of the published boxes, and the suppressed volume.
    choice
        The choice for each box of the partition, and for those that it is split from.
    lost_cost
        Cost of a suppressed trip.
    """

    multiplier: Fraction | None
    cost: int
    suppressed: int
    choice: Ints
    lost_cost: int = 0

    @property
    def full_cost(self) -> int:
        """Return the cost with what suppressed trips cost."""
        return self.cost + self.lost_cost * self.suppressed

    def lower_bound(self, budget: int) -> Fraction:
        """Return a cost that no partition within the budget goes below, with what suppressed trips cost."""
        cost = self.full_cost
        if self.multiplier is None:
            return Fraction(cost)
        # In whole numbers, since each operation on fractions reduces them.
        p, q = self.multiplier.as_integer_ratio()
        over = max(p - q * self.lost_cost, 0)
        return Fraction(q * cost - over * (budget - self.suppressed), q)


class SpentSlack(NamedTuple):
    """Boxes that are published after the rest of a budget was spent, rising.

    How many trips were spent and how much cost was saved until the last round, which splits boxes that suppress nothing alone.
    """

    published: Ints
    spent: int
    saved: int


class Improved(NamedTuple):
    """A partition within a budget: the choice for each box.

    The certified gaps to the cheapest in per cent, of the result and of the partition that the multiplier found; the boxes that
    are published, rising, where they are known.
    """

    choice: Ints
    gaps: tuple[float, float]
    published: Ints | None = None


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
        Cost of publishing it whole.
    splits
        How each box can be split.
    allowed
        Allowed choices for each box.
    total
        Volume of the whole matrix.
    lost_cost
        Cost of a suppressed trip: 0, unless cells will be reconstructed.
    given
        The origins, where they are given: what the last box must be split into, if there are several.
    """

    system: RegionSpace
    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    cost: Ints
    splits: Splits
    allowed: Small
    total: int
    lost_cost: int = 0
    given: Ints | None = None

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
        """Build the boxes of a time step; with `origins_first`, an origin is only split while its destinations are not."""
        matrix, built = build_bounded_boxes(Matrix.of(data, step, system), k, origins_first=origins_first)
        lost_cost = lost_cost_of(objective)
        check_exact(most_cost(matrix.system, lost_cost, matrix.total))
        if objective == "reconstruction":
            built = built._replace(cost=box_deviations(matrix, built.boxes))
        return cls.of_built(matrix.system, built, matrix.total, lost_cost)

    @classmethod
    def of_origins(cls, matrix: Matrix, origins: Ints, k: int, lost_cost: Fraction = Fraction(0)) -> BoxSpace:
        """Build the boxes of given origins, nodes that hold each tile once, in rising order.

        `lost_cost` is what a suppressed trip costs, in tiles; all costs are scaled to whole numbers. Where these would be too
        large it is rounded to whole tiles.
        """
        widest, total = matrix.system.widest, matrix.total
        if (widest * lost_cost.denominator + lost_cost.numerator) * total >= MAX_COST:
            lost_cost = Fraction(round(lost_cost))
        check_exact((widest * lost_cost.denominator + lost_cost.numerator) * total)
        built = build_given_origins(matrix, origins, k, lost_cost.denominator)
        space = cls.of_built(matrix.system, built, total, lost_cost.numerator)
        allowed = space.allowed.copy()
        if len(origins) > 1:
            allowed[-1] = BY_ORIGIN
        return replace(space, allowed=frozen(allowed, np.int8), given=origins)

    @classmethod
    def of_built(cls, system: RegionSpace, built: BuiltBoxes, total: int, lost_cost: int = 0) -> BoxSpace:
        """Take the boxes of a matrix with this number of trips, and find which of them may be published."""
        (o, d, volume, crowd, _), splits, cost = built
        allowed = np.full(len(o), ANY_CHOICE, np.int8)
        if not (system.origins.all_small_enough and system.destinations.all_small_enough):
            small_enough = system.origins.small_enough[o] & system.destinations.small_enough[d]
            allowed[~small_enough] -= WHOLE
        for array in (*built.boxes, *splits, cost, allowed):
            array.flags.writeable = False
        return cls(system, o, d, volume, crowd, cost, splits, allowed, total, lost_cost)

    def __len__(self) -> int:
        return len(self.volume)

    def solve_at(self, multiplier: Fraction | None) -> tuple[int, int, Ints]:
        """Return cost, suppressed volume and choices of the best partition at a multiplier; None is infinite."""
        best, choice = self._evaluated(multiplier)
        return int(best[-2]), int(best[-1]), choice

    def _evaluated(self, multiplier: Fraction | None) -> tuple[Ints, Ints]:
        """Return cost and suppressed volume of the best partition of each box at a multiplier, in turn; and the choices."""
        n = len(self)
        best, choice = np.empty(2 * n, np.int64), np.empty(n, np.int64)
        problem = self.cost, self.volume, self.splits, self.allowed
        evaluate(np.arange(n), *problem, *as_ratio(multiplier), best, choice)
        return best, choice

    def best_at(self, multiplier: Fraction) -> BoxSolution:
        """Return the best partition at a multiplier."""
        return BoxSolution(multiplier, *self.solve_at(multiplier), self.lost_cost)

    def solve_for_budget(self, budget: int, near: Fraction | None = None) -> BoxSolution:
        """Find the best partition within a budget that a multiplier can reach; the search for it begins at `near`.

        It is that of a higher multiplier where a suppressed trip is worth more than the budget asks for, so less is
        suppressed than may be. Raise BudgetError if no partition keeps the budget.
        """
        n, unsplit = len(self), Fraction(int(self.cost[-1]), max(int(self.volume[-1]), 1))
        first = max(near or unsplit * FIRST_GUESS, Fraction(1, GUESS_PARTS)).limit_denominator(GUESS_PARTS)
        arrays = SearchArrays(np.empty(2 * n, np.int64), np.full(n, PUBLISH, np.int64), *np.empty((2, n), np.int64))
        problem = self.cost, self.volume, self.splits, self.allowed
        kept, p, q, cost, suppressed = search(*problem, budget, begin_search(*first.as_integer_ratio()), arrays)
        if not kept:
            raise BudgetError(
                Text(
                    "Expected at most {budget:,} trips to be suppressed, but no partition of the map suppresses fewer than "
                    "{suppressed:,} trips. Allow more with {suppress}, or larger areas with {max_area_km2}.",
                    budget=budget,
                    suppressed=suppressed,
                )
            )
        multiplier = Fraction(p, q) if q else None
        if multiplier is not None and multiplier < self.lost_cost:
            return self.best_at(Fraction(self.lost_cost))
        return BoxSolution(multiplier, cost, suppressed, arrays.choice, self.lost_cost)

    def spend_slack(self, best: BoxSolution, rest: int) -> SpentSlack:
        """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last.

        The choices of `best` are changed.
        """
        published_whole, _ = published_boxes(best.choice, self.splits)
        problem = self.cost, self.splits, self.allowed, self.lost_cost
        published, spent, saved = spend_slack(best.choice, published_whole, *problem, rest)
        return SpentSlack(np.sort(published), spent, saved)

    def solve_exactly(
        self, best: BoxSolution, choice: Ints, budget: int, max_states: int = MAX_STATES
    ) -> tuple[Ints, bool]:
        """Return the cheapest partition within a budget, from the best that a multiplier found, and whether it is known to be.

        A multiplier reaches corners of the curve of costs only. Partitions between two of them are searched where boxes can
        differ from the best ones without exceeding the gap; `choice` is returned where that takes more than `max_states`.
        """
        p, q = as_ratio(best.multiplier)
        of_box, _ = self._evaluated(best.multiplier)
        # Every cheaper partition is within it.
        slack = Slack(q > 0, self.cost_of(choice) - self.lost_cost * budget - int(of_box[-2]), budget - int(of_box[-1]))
        if slack.bounded and q * slack.a + p * slack.s <= 0:
            return choice, True
        used = reach(of_box, self.cost, self.splits, self.allowed, p, q, slack)
        ended, found = solve_exactly(
            self.cost,
            self.volume,
            self.splits,
            self.allowed,
            of_box,
            used,
            budget,
            p,
            q,
            slack,
            self.lost_cost,
            max_states,
        )
        # The slack leaves room for partitions that suppress less and cost more.
        cheaper = ended == FOUND and self.cost_of(found) < self.cost_of(choice)
        return (found if cheaper else choice), ended != TOO_MANY

    def solution_of(self, choice: Ints) -> BoxSolution:
        """Return a partition with its cost and suppressed volume; its multiplier is not known."""
        kept, _ = published_boxes(choice, self.splits)
        suppressed = self.total - int(self.volume[kept].sum())
        return BoxSolution(None, int(self.cost[kept].sum()), suppressed, choice, self.lost_cost)

    def cost_of(self, choice: Ints) -> int:
        """Return what a partition costs, with what suppressed trips cost."""
        return self.solution_of(choice).full_cost

    def solve(self, budget: int, near: Fraction | None = None) -> Improved:
        """Find the cheapest partition within a budget, or one near it."""
        return self.improve(self.solve_for_budget(budget, near), budget)

    def improve(self, best: BoxSolution, budget: int) -> Improved:
        """Spend what the best partition of a multiplier left of the budget, and search between multipliers."""
        slack = self.spend_slack(best, budget - best.suppressed)
        cost = best.cost - slack.saved + best.lost_cost * (best.suppressed + slack.spent)
        gap = gap_percent(cost, best.lower_bound(budget))
        if gap <= SMALL_GAP_PERCENT:
            return Improved(best.choice, (gap, gap), slack.published)
        choice, exact = self.solve_exactly(best, best.choice, budget)
        after = 0.0 if exact else gap_percent(self.cost_of(choice), best.lower_bound(budget))
        return Improved(choice, (after, gap))

    def trees(self) -> list[tuple[int, BoxSpace]]:
        """Return the boxes of each given origin on their own, and the number of the first of them here."""
        tops = self.splits.link[self.splits.link_offsets[-2] :] if self.allowed[-1] == BY_ORIGIN else [len(self) - 1]
        ends = [0, *(int(top) + 1 for top in tops)]
        return [(low, self._part(low, high)) for low, high in pairwise(ends)]

    def _part(self, low: int, high: int) -> BoxSpace:
        """Return boxes that are split into none but one another."""
        splits, boxes = self.splits, slice(low, high)
        first, last = splits.offsets[low], splits.offsets[high]
        begin, end = splits.link_offsets[first], splits.link_offsets[last]
        own = Splits(
            frozen(splits.offsets[low : high + 1] - first, np.int64),
            splits.kind[first:last],
            splits.lost[first:last],
            frozen(splits.link_offsets[first : last + 1] - begin, np.int64),
            frozen(splits.link[begin:end] - low, np.int64),
        )
        columns = {name: getattr(self, name)[boxes] for name in _BY_BOX}
        return replace(
            self, **columns, splits=own, total=int(self.volume[high - 1]), given=self.origin[high - 1 : high]
        )

    def outcome(self, choice: Ints, *facts: float, left: bool, published: Ints | None = None) -> StepSolution:
        """Return the published and, if asked for, the suppressed boxes of a partition; `published` has the former if known."""
        kept, not_published = published, NO_BOXES
        if kept is None or left:
            kept, split = published_boxes(choice, self.splits)
            not_published = self.left(split, choice)[:2] if left else NO_BOXES
        columns = self.origin.take(kept), self.destination.take(kept), self.volume.take(kept), self.crowd.take(kept)
        return StepSolution(*columns, *not_published, np.array(facts))

    def left(self, split: Ints, choice: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the parts of split boxes that are not boxes themselves, and boxes that may not be published.

        Returns origins, destinations, and the box that each is a part of. Parts of splits by time are not among them.
        """
        chosen = choice[split]
        rows, offsets = take_slices(self.splits.link_offsets, chosen)
        box, of_link = self.splits.link[rows], row_slices(offsets)
        sides = []
        for kind, side, mine, other in (
            (BY_DESTINATION, self.system.destinations, self.destination, self.origin),
            (BY_ORIGIN, self.system.origins, self.origin, self.destination),
        ):
            here = self.splits.kind[chosen] == kind
            linked = here[of_link]
            part, of_part = self._parts(side.regions, mine, split[here], chosen[here], kind)
            place = np.cumsum(here) - 1
            covered = _position_of_holder(side.regions, part, of_part, mine[box[linked]], place[of_link[linked]])
            bare = ~np.isin(np.arange(len(part)), covered)
            box_of = split[here][of_part[bare]]
            sides.append((part[bare], other[box_of], box_of))
        (to, to_origin, to_box), (start, start_destination, start_box) = sides
        gone = self._gone(split, choice)
        origins = np.concatenate([to_origin, start, self.origin[gone]])
        destinations = np.concatenate([to, start_destination, self.destination[gone]])
        return origins, destinations, np.concatenate([to_box, start_box, gone])

    def _parts(self, regions: Regions, mine: Ints, split: Ints, chosen: Ints, kind: int) -> tuple[Ints, Ints]:
        """Return the regions that a side of each box is split into, and the position of the box in the list."""
        if self.given is not None and kind == BY_ORIGIN:
            parts = self.given[: len(self.given) * len(split)]
            return parts, 0 * parts
        if isinstance(regions, Hierarchy):
            return regions.parts(mine[split])
        # Splits of the destination come first.
        number = chosen - self.splits.offsets[split]
        if kind == BY_ORIGIN:
            number -= np.diff(regions.split_offsets)[self.destination[split]]
        return regions.halves(mine[split], number)

    def _gone(self, split: Ints, choice: Ints) -> Ints:
        """Return boxes that are suppressed whole since they may not be published: parts of split boxes, or the whole map."""
        rows, _ = take_slices(self.splits.link_offsets, choice[split])
        reached = np.append(self.splits.link[rows], len(self) - 1)
        gone: Ints = np.unique(reached[choice[reached] == SUPPRESS])
        return gone


def _position_of_holder(regions: Regions, part: Ints, of_part: Ints, wanted: Ints, of_wanted: Ints) -> Ints:
    """Return the position of the part of each box that holds a wanted region; a box has its parts in rising order."""
    if isinstance(regions, Hierarchy):
        # In post-order the child that holds a node is the first that is not before it.
        span = len(regions) + 1
        found: Ints = np.searchsorted(of_part * span + part, of_wanted * span + wanted)
        return found
    first_half = 2 * of_wanted  # of two halves, which hold no tile in common
    return first_half + ~regions.holds(part[first_half], regions.tiles[regions.tile_offsets[wanted]])


def gap_percent(cost: int, lower_bound: Fraction | int) -> float:
    """Return the gap between a cost and its lower bound, in per cent of the bound."""
    bound, parts = lower_bound.as_integer_ratio()
    # Whole numbers are divided exactly, then rounded.
    return 100 * ((int(cost) * parts - bound) / bound) if bound > 0 else 0.0


def as_ratio(multiplier: Fraction | None) -> tuple[int, int]:
    """Return a multiplier as p and q; 1 and 0 for an infinite one."""
    return (1, 0) if multiplier is None else multiplier.as_integer_ratio()


def most_cost(system: RegionSpace, lost_cost: int, total: int) -> int:
    """Return a cost that no partition of a matrix exceeds: all of its trips at the largest cost that one can have."""
    return (3 * lost_cost or system.widest) * total


def check_exact(cost: int) -> None:
    """Raise unless differences of sums of costs fit into 64 bits; their products with volumes are compared in 128."""
    if cost >= MAX_COST:
        raise InputError(
            f"the trips of a time step times the tiles (or the area) of the map must be below {MAX_COST:.1e} to be added "
            "exactly. Use larger zones, shorter time steps or another objective."
        )
