"""Search for the partition of a map that keeps a budget of suppressed trips: for one budget, or for several at once.

Budgets that are searched together share what was tried: a multiplier divides them into those that it keeps and those that it
does not, and either part goes on between fewer multipliers, with the boxes that are still open there. The result for a budget
does not depend on which multipliers were tried: it is the piece of the curve of costs that suppresses most within the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.kernels.od.structures import ANY_CHOICE, PUBLISH, SearchArrays
from crowdveil.model.arrays import Ints

if TYPE_CHECKING:
    from crowdveil.kernels.od.narrowing import AtMultiplier, OpenBoxes
    from crowdveil.solve.od.boxes import BoxSpace

FIRST_GUESS, GUESS_PARTS = Fraction(1, 25), 16
"""The first multiplier that is tried, as a share of what a trip costs if nothing is split, and its largest denominator."""

NEAR = 50
"""Part of a budget within which the ends of an interval must suppress the same, for the lines there to meet near the result."""


@dataclass(frozen=True)
class BoxSolution:
    """A partition that keeps a budget.

    Attributes
    ----------
    multiplier
        The multiplier of a suppressed trip that it is best at; None is infinite.
    cost, suppressed
        What the published boxes cost, and the volume that it suppresses.
    choice
        What becomes of each box.
    lost_cost
        What a suppressed trip costs.
    """

    multiplier: Fraction | None
    cost: int
    suppressed: int
    choice: Ints
    lost_cost: int = 0

    def lower_bound(self, budget: int) -> Fraction:
        """Return a cost that no partition within the budget goes below, with what suppressed trips cost."""
        over = Fraction(0) if self.multiplier is None else max(self.multiplier - self.lost_cost, Fraction(0))
        return self.cost + self.lost_cost * self.suppressed - over * (budget - self.suppressed)


@dataclass(frozen=True, eq=False)
class _Piece:
    """The best partition at a multiplier p/q: cost, suppressed volume, what becomes of each box; does it keep a budget?"""

    kept: bool
    p: int
    q: int
    cost: int
    suppressed: int
    choice: Ints

    def solution(self, boxes: BoxSpace, budget: int) -> BoxSolution:
        """Return the partition for a budget; raise if none keeps it."""
        if not self.kept:
            raise InputError(
                f"wanted at most {budget:,} trips to be suppressed, but no partition of the map suppresses fewer than "
                f"{self.suppressed:,} trips; allow more with {Option('suppress')}, "
                f"or larger areas with {Option('max_area_km2')}."
            )
        lost_cost = boxes.lost_cost
        if self.q and self.p < lost_cost * self.q:
            # A suppressed trip is worth more than the budget asks for: less is suppressed than may be.
            return BoxSolution(Fraction(lost_cost), *boxes.solve_at(Fraction(lost_cost)), lost_cost)
        multiplier = Fraction(self.p, self.q) if self.q else None
        return BoxSolution(multiplier, self.cost, self.suppressed, self.choice, lost_cost)


def search_budget(boxes: BoxSpace, budget: int, near: Fraction | None = None) -> BoxSolution:
    """Find the best partition within a budget that a multiplier can reach; the search for it begins at `near`."""
    from crowdveil.kernels.od.partition import search

    n = len(boxes)
    arrays = SearchArrays(np.empty(2 * n, np.int64), np.full(n, PUBLISH, np.int64), *np.empty((2, n), np.int64))
    given = boxes.cost, boxes.volume, boxes.splits, boxes.allowed
    found = search(np.arange(n), *given, budget, _begin(boxes, near), arrays)
    return _Piece(*found, arrays.choice).solution(boxes, budget)


def _begin(boxes: BoxSpace, near: Fraction | None) -> Ints:
    """Return the notes of a search that tries a multiplier near the given one first."""
    from crowdveil.kernels.od.multiplier_search import begin_search

    whole = Fraction(int(boxes.cost[-1]), max(int(boxes.volume[-1]), 1))
    first = max(near or whole * FIRST_GUESS, Fraction(1, GUESS_PARTS)).limit_denominator(GUESS_PARTS)
    # As plain Python: a compiled function of its own would take longer to load than it runs.
    notes: Ints = begin_search.py_func(*first.as_integer_ratio())  # type: ignore[attr-defined]
    return notes


def search_budgets(
    boxes: BoxSpace, budgets: Sequence[int], near: Fraction | None = None
) -> Iterator[tuple[int, BoxSolution | InputError]]:
    """Find the best partition within each of several budgets, or the reason that there is none, in any order."""
    different = sorted(set(budgets))
    if len(different) > 1 and np.all(boxes.allowed == ANY_CHOICE):
        found = _pieces(boxes, _Between(_all_open(boxes), None, None), different, _begin(boxes, near))
        for budget, piece in found:
            yield budget, piece.solution(boxes, budget)
        return
    for budget in different:  # alone, where some boxes may not be published
        try:
            yield budget, search_budget(boxes, budget, near)
        except InputError as error:
            yield budget, error


def _all_open(boxes: BoxSpace) -> OpenBoxes:
    """Return all boxes as open ones."""
    from crowdveil.kernels.od.narrowing import OpenBoxes

    offsets, _, lost, link_offsets, link = boxes.splits
    splits, none = np.arange(len(lost)), np.zeros(len(lost), np.int64)
    return OpenBoxes(np.arange(len(boxes)), boxes.cost, offsets, splits, none, lost, link_offsets, link)


@dataclass(frozen=True, eq=False)
class _Between:
    """The boxes that are open between two multipliers, the partitions there (None: not known), and those of settled boxes."""

    open: OpenBoxes
    left: AtMultiplier | None
    right: AtMultiplier | None
    settled: tuple[tuple[Ints, Ints], ...] = ()

    def guess(self, notes: Ints, budget: int) -> None:
        """Note a multiplier that about suppresses the budget, where the ends are far apart: on a line between the logarithms."""
        from crowdveil.kernels.od.multiplier_search import TRIED, P, Q

        left, right = self.left, self.right
        if left is None or right is None or right.q == 0 or left.p == 0:
            return
        least, most = int(right.s[-1]), int(left.s[-1])
        if min(least, budget) == 0 or most - least <= budget // NEAR:
            return
        low, high = left.p / left.q, right.p / right.q
        share = math.log(most / budget) / math.log(most / least)
        p, q = Fraction(low * (high / low) ** share).limit_denominator(GUESS_PARTS).as_integer_ratio()
        if Fraction(left.p, left.q) < Fraction(p, q) < Fraction(right.p, right.q):
            notes[TRIED + P], notes[TRIED + Q] = p, q

    def narrowed(self, here: AtMultiplier) -> _Between:
        """Return what is still open; `here` is the end that is new."""
        from crowdveil.kernels.od.narrowing import narrow

        if self.left is None or self.right is None:
            return self
        found, kept = narrow(self.open, self.left, self.right)
        left, right = (end._replace(a=end.a[kept], s=end.s[kept]) for end in (self.left, self.right))
        return _Between(found, left, right, (*self.settled, (self.open.box, here.choice)))

    def choice(self) -> Ints:
        """Return what becomes of each settled box, in an array for all of them."""
        choice = np.full(len(self.open.box), PUBLISH, np.int64) if not self.settled else self.settled[0][1].copy()
        for box, chosen in self.settled[1:]:
            choice[box] = chosen
        return choice


def _pieces(boxes: BoxSpace, between: _Between, budgets: Sequence[int], notes: Ints) -> Iterator[tuple[int, _Piece]]:
    """Return the piece of each budget, which rise: try the multiplier in the notes, and go on to the left and the right of it."""
    from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, TRIED, P, Q, judge
    from crowdveil.kernels.od.narrowing import evaluate_open, search_open

    if len(budgets) == 1 and between.left is not None and between.right is not None:
        choice = between.choice()
        found = search_open(between.open, between.left, between.right, budgets[0], notes, choice)
        yield budgets[0], _Piece(*found, choice)
        return
    here = evaluate_open(between.open, int(notes[TRIED + P]), int(notes[TRIED + Q]))
    cost, suppressed = int(here.a[-1]), int(here.s[-1])
    over: dict[int, Ints] = {}
    within: dict[int, Ints] = {}
    for budget in budgets:
        own = notes.copy()
        verdict = judge(own, cost, suppressed, budget)
        if verdict == GO_ON:
            (within if suppressed <= budget else over)[budget] = own
        else:
            choice = between.choice()
            choice[between.open.box] = here.choice
            yield budget, _Piece(verdict == FOUND, here.p, here.q, cost, suppressed, choice)
    to_left, to_right = replace(between, right=here), replace(between, left=here)
    for part, side, outer in ((over, to_right, 0), (within, to_left, -1)):
        if not part:
            continue
        following = side.narrowed(here)
        # The outermost budget comes first while one end is not known, so that few boxes are open for all others.
        known = following.left is not None and following.right is not None
        chosen = list(part)[len(part) // 2 if known else outer]
        following.guess(part[chosen], chosen)
        yield from _pieces(boxes, following, list(part), part[chosen])
