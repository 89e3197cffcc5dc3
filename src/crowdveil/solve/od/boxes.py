"""The best partition of a map into boxes, pairs of regions that hold a crowd."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from crowdveil.errors import InputError
from crowdveil.kernels.od.structures import (
    ANY_CHOICE,
    BY_DESTINATION,
    BY_ORIGIN,
    SUPPRESS,
    WHOLE,
    Splits,
)
from crowdveil.model.arrays import Floats, Ints, Mask, Small, frozen, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.solve.od.box_building import BuiltBoxes, box_deviations, build_bounded_boxes, lost_cost_of
from crowdveil.solve.od.budget_search import BoxSolution, search_budget
from crowdveil.solve.od.region_space import Objective, Regions, RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import NO_BOXES, StepSolution

MAX_COST = 2**60
"""Costs of a matrix stay below it: sums and differences of a few of them fit into 64 bits."""
MAX_STATES = 100_000
"""States of costs and volumes up to which partitions between those of two multipliers are searched."""
SMALL_GAP_PERCENT = 0.1
"""A certified gap up to which nothing is searched: large matrices are below it, and have little to gain."""


@lru_cache(maxsize=4)
def _any_choices(size: int) -> Small:
    choices = np.full(size, ANY_CHOICE, np.int8)
    choices.flags.writeable = False
    return choices


def _any_choice(boxes: int) -> Small:
    """Return that so many boxes may do anything: a part of an array that all matrices of about the same size share."""
    return _any_choices(1 << boxes.bit_length())[:boxes]


class SpentSlack(NamedTuple):
    """Boxes that are published after the rest of a budget was spent, rising.

    How many trips were spent and how much cost was saved until the last round, which splits boxes that suppress nothing alone.
    """

    published: Ints
    spent: int
    saved: int


class Improved(NamedTuple):
    """A partition within a budget: what becomes of each box.

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
        What it costs to publish it whole.
    splits
        How each box can be split.
    allowed
        What each box may do.
    total
        Volume of the whole matrix.
    lost_cost
        What a suppressed trip costs: nothing but a share of the budget, unless cells are to be reconstructed.
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
    def of_built(cls, system: RegionSpace, built: BuiltBoxes, total: int, lost_cost: int = 0) -> BoxSpace:
        """Take boxes of a matrix of so many trips, and find which of them may be published."""
        (o, d, volume, crowd, _), splits, cost = built
        allowed = _any_choice(len(o))
        if not (system.origins.all_small_enough and system.destinations.all_small_enough):
            small_enough = system.origins.small_enough[o] & system.destinations.small_enough[d]
            allowed = frozen(np.where(small_enough, allowed, allowed - WHOLE), np.int8)
        for array in (*built.boxes, *splits, cost):
            array.flags.writeable = False
        return cls(system, o, d, volume, crowd, cost, splits, allowed, total, lost_cost)

    def __len__(self) -> int:
        return len(self.volume)

    @property
    def all_allowed(self) -> bool:
        """Return whether every box may stay whole, and be split in any way."""
        known = self.allowed.base is _any_choice(len(self)).base
        return known or bool(self.allowed.min(initial=ANY_CHOICE) == ANY_CHOICE)

    @property
    def most_cost(self) -> int:
        """Return a cost that no partition exceeds."""
        return most_cost(self.system, self.lost_cost, self.total)

    def solve_at(self, multiplier: Fraction | None) -> tuple[int, int, Ints]:
        """Return cost, suppressed volume and choices of the best partition at a multiplier; None is infinite."""
        best, choice = self._evaluated(multiplier)
        return int(best[-2]), int(best[-1]), choice

    def _evaluated(self, multiplier: Fraction | None) -> tuple[Ints, Ints]:
        """Return cost and suppressed volume of the best partition of each box at a multiplier, in turn; and the choices."""
        from crowdveil.kernels.od.partition import evaluate

        n = len(self)
        best, choice = np.empty(2 * n, np.int64), np.empty(n, np.int64)
        given = self.cost, self.volume, self.splits, self.allowed
        evaluate(np.arange(n), *given, *as_ratio(multiplier), best, choice)
        return best, choice

    def solve_for_budget(self, budget: int, near: Fraction | None = None) -> BoxSolution:
        """Find the best partition within a budget that a multiplier can reach; the search for it begins at `near`."""
        return search_budget(self, budget, near)

    def spend_slack(self, best: BoxSolution, rest: int) -> SpentSlack:
        """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last.

        The choices of `best` are changed.
        """
        from crowdveil.kernels.od.partition import published_boxes, spend_slack

        whole = published_boxes(best.choice, self.splits)[0] if best.published is None else best.published
        given = self.cost, self.splits, self.allowed, self.lost_cost
        published, spent, saved = spend_slack(best.choice, whole, *given, rest, *self._worth)
        # A sort by merging, since nearly all of it is in order.
        return SpentSlack(np.sort(published, kind="stable"), spent, saved)

    @cached_property
    def _worth(self) -> tuple[Floats, Mask]:
        """What splits save, and which were looked at so far: those of others are not filled in."""
        splits = len(self.splits.lost)
        return np.empty(splits), np.zeros(splits, np.bool_)

    def solve_exactly(self, best: BoxSolution, choice: Ints, budget: int) -> tuple[Ints, bool]:
        """Return the cheapest partition within a budget, from the best that a multiplier found, and whether it is known to be.

        A multiplier reaches corners of the curve of costs only. Partitions between two of them are searched where boxes can
        differ from the best ones without exceeding the gap; `choice` is returned where that takes more than `MAX_STATES`.
        """
        from crowdveil.kernels.od.exact_boxes import FOUND, TOO_MANY, Slack, reach, solve_exactly

        p, q = as_ratio(best.multiplier)
        of_box, _ = self._evaluated(best.multiplier)
        # What is cheaper is within it.
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
            MAX_STATES,
        )
        # The slack leaves room for partitions that suppress less and cost more.
        cheaper = ended == FOUND and self.cost_of(found) < self.cost_of(choice)
        return (found if cheaper else choice), ended != TOO_MANY

    def cost_of(self, choice: Ints) -> int:
        """Return what a partition costs, with what suppressed trips cost."""
        from crowdveil.kernels.od.partition import published_boxes

        kept, _ = published_boxes(choice, self.splits)
        return int(self.cost[kept].sum()) + self.lost_cost * (self.total - int(self.volume[kept].sum()))

    def solve(self, budget: int, near: Fraction | None = None) -> Improved:
        """Find the cheapest partition within a budget, or one near it."""
        return self.improve(self.solve_for_budget(budget, near), budget)

    def improve(self, best: BoxSolution, budget: int) -> Improved:
        """Spend what the best partition of a multiplier left of the budget, and search between multipliers."""
        slack = self.spend_slack(best, budget - best.suppressed)
        gap = gap_after(best, budget, slack.spent, slack.saved)
        if is_small(gap):
            return Improved(best.choice, (gap, gap), slack.published)
        return self.search_between(best, budget, gap)

    def search_between(self, best: BoxSolution, budget: int, gap: float) -> Improved:
        """Search between multipliers, after the rest of the budget was spent and left so large a gap."""
        choice, exact = self.solve_exactly(best, best.choice, budget)
        after = 0.0 if exact else gap_percent(self.cost_of(choice), best.lower_bound(budget))
        return Improved(choice, (after, gap))

    def outcome(self, choice: Ints, *facts: float, left: bool, published: Ints | None = None) -> StepSolution:
        """Return what a partition publishes and, if wanted, leaves out; `published` has the boxes where they are known."""
        from crowdveil.kernels.od.partition import published_boxes

        kept, not_published = published, NO_BOXES
        if kept is None or left:
            kept, split = published_boxes(choice, self.splits)
            not_published = self.left(split, choice)[:2] if left else NO_BOXES
        columns = self.origin.take(kept), self.destination.take(kept), self.volume.take(kept), self.crowd.take(kept)
        return StepSolution(*columns, *not_published, np.array(facts))

    def left(self, split: Ints, choice: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the parts of split boxes that are no boxes themselves, and boxes that may not be published.

        Of each its origin, its destination, and the box that it is a part of. Parts of splits by time are not among them.
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


def gap_after(best: BoxSolution, budget: int, spent: int, saved: int) -> float:
    """Return the certified gap of the best partition of a multiplier, after more trips were spent and cost was saved."""
    cost = best.cost - saved + best.lost_cost * (best.suppressed + spent)
    return gap_percent(cost, best.lower_bound(budget))


def is_small(gap: float) -> bool:
    """Return whether nothing is searched between multipliers."""
    return gap <= SMALL_GAP_PERCENT


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
            f"the trips of a time step times the tiles (or hectares) of the map must be below {MAX_COST:.1e} to be added "
            "exactly; use larger zones, shorter time steps or another objective."
        )
