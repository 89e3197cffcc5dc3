"""Search for the partition of a map that keeps a budget of suppressed trips: for one budget, or for several at once.

Budgets that are searched together share what was tried: a multiplier divides them into those that it keeps and those that it
does not, and either part goes on between fewer multipliers, with the boxes that are still open there. The result for a budget
does not depend on which multipliers were tried: it is the piece of the curve of costs that suppresses most within the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.kernels.od.structures import PUBLISH, SearchArrays
from crowdveil.model.arrays import Ints

if TYPE_CHECKING:
    from crowdveil.solve.od.boxes import BoxSpace

FIRST_GUESS, GUESS_PARTS = Fraction(1, 25), 16
"""The first multiplier that is tried, as a share of what a trip costs if nothing is split, and its largest denominator."""


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
                f"{self.suppressed:,} trips; allow more with {Option('suppress')}, or larger areas."
            )
        lost_cost = boxes.lost_cost
        if self.q and self.p < lost_cost * self.q:
            # A suppressed trip is worth more than the budget asks for: less is suppressed than may be.
            return BoxSolution(Fraction(lost_cost), *boxes.solve_at(Fraction(lost_cost)), lost_cost)
        multiplier = Fraction(self.p, self.q) if self.q else None
        return BoxSolution(multiplier, self.cost, self.suppressed, self.choice, lost_cost)


def search_budget(boxes: BoxSpace, budget: int, near: Fraction | None = None) -> BoxSolution:
    """Find the best partition within a budget that a multiplier can reach; the search for it begins at `near`."""
    ((_, piece),) = _pieces(boxes, [budget], *_begin(boxes, near))
    return piece.solution(boxes, budget)


def search_budgets(
    boxes: BoxSpace, budgets: Sequence[int], near: Fraction | None = None
) -> Iterator[tuple[int, BoxSolution | InputError]]:
    """Find the best partition within each of several budgets, or the reason that there is none, in any order."""
    for budget, piece in _pieces(boxes, sorted(set(budgets)), *_begin(boxes, near)):
        try:
            yield budget, piece.solution(boxes, budget)
        except InputError as error:
            yield budget, error


def _begin(boxes: BoxSpace, near: Fraction | None) -> tuple[Ints, Ints, SearchArrays]:
    """Return all boxes, the notes of a search that tries a multiplier near the given one first, and what it fills."""
    from crowdveil.kernels.od.multiplier_search import begin_search

    n = len(boxes)
    whole = Fraction(int(boxes.cost[-1]), max(int(boxes.volume[-1]), 1))
    first = max(near or whole * FIRST_GUESS, Fraction(1, GUESS_PARTS)).limit_denominator(GUESS_PARTS)
    arrays = SearchArrays(np.empty(2 * n, np.int64), np.full(n, PUBLISH, np.int64), *np.empty((2, n), np.int64))
    # As plain Python: a compiled function of its own would take longer to load than it runs.
    notes: Ints = begin_search.py_func(*first.as_integer_ratio())  # type: ignore[attr-defined]
    return np.arange(n), notes, arrays


def _pieces(
    boxes: BoxSpace, budgets: Sequence[int], active: Ints, notes: Ints, arrays: SearchArrays
) -> Iterator[tuple[int, _Piece]]:
    """Return the piece of each budget, which rise, between the multipliers in the notes."""
    from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, TRIED, P, Q, judge
    from crowdveil.kernels.od.partition import evaluate, search

    given = boxes.cost, boxes.volume, boxes.splits, boxes.allowed
    if len(budgets) == 1:
        yield budgets[0], _Piece(*search(active, *given, budgets[0], notes, arrays), arrays.choice.copy())
        return
    p, q = int(notes[TRIED + P]), int(notes[TRIED + Q])
    evaluate(active, *given, p, q, arrays.best, arrays.choice)
    cost, suppressed = (int(number) for number in arrays.best[-2:])
    over: list[tuple[int, Ints]] = []
    within: list[tuple[int, Ints]] = []
    for budget in budgets:
        own = notes.copy()
        verdict = judge(own, cost, suppressed, budget)
        if verdict == GO_ON:
            (within if suppressed <= budget else over).append((budget, own))
        else:
            yield budget, _Piece(verdict == FOUND, p, q, cost, suppressed, arrays.choice.copy())
    if over and within:
        # What boxes have at this multiplier holds for either part; the first part changes the open ones.
        kept = [column[active] for column in _columns(arrays)]
        yield from _part(boxes, over, active, arrays, arrays.left)
        for column, of_open in zip(_columns(arrays), kept, strict=True):
            column[active] = of_open
    elif over:
        yield from _part(boxes, over, active, arrays, arrays.left)
    if within:
        yield from _part(boxes, within, active, arrays, arrays.right)


def _columns(arrays: SearchArrays) -> tuple[Ints, ...]:
    """Return the columns of the arrays that have one number for each box."""
    return arrays.best[::2], arrays.best[1::2], arrays.choice, arrays.left, arrays.right


def _part(
    boxes: BoxSpace, budgets: Sequence[tuple[int, Ints]], active: Ints, arrays: SearchArrays, side: Ints
) -> Iterator[tuple[int, _Piece]]:
    """Go on with budgets on one side of the multiplier tried last, each with its notes: the one in the middle comes next."""
    from crowdveil.kernels.od.multiplier_search import KNOWN, LEFT, RIGHT
    from crowdveil.kernels.od.partition import still_open

    side[active] = arrays.best[1::2][active]
    notes = budgets[len(budgets) // 2][1]
    if notes[LEFT + KNOWN]:
        ends = arrays.left, arrays.right, notes[RIGHT + KNOWN] > 0
        active = still_open(active, boxes.splits, boxes.allowed, *ends, np.zeros(len(boxes), np.int8))
    yield from _pieces(boxes, [budget for budget, _ in budgets], active, notes, arrays)
