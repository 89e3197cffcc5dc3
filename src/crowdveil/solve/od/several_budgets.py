"""Search for the partitions of a map that keep several budgets of suppressed trips, at once.

A pass over the boxes tries several multipliers, for all budgets. Each budget then lies between two that are near each other, and
few boxes differ between them: only these are searched for it. What is found does not depend on which multipliers were tried: it
is the piece of the curve of costs that suppresses most within the budget, as if the budget were searched alone.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdveil.errors import InputError
from crowdveil.kernels.od.structures import CHOICE_BITS, COLUMNS, MOST_PARTITIONS, PARTS, BoxArrays
from crowdveil.solve.od.budget_search import (
    FIRST_GUESS,
    BoxSolution,
    search_budget,
    search_budget_near,
)
from crowdveil.solve.od.solved_budget import SolvedBudget

if TYPE_CHECKING:
    from crowdveil.solve.od.boxes import BoxSpace

CLOSE = 0.04
"""How far from the guess for a budget, as a share of it, a multiplier may be for none to be tried at the guess itself."""
BEYOND, STEP = 0.012, 6
"""How far beyond the guess one is tried, as a share of it, where the nearest lies before it: more where a usual step of the
curve, of so many trips, is a large part of the budget.
"""
FIRST = (0.2, 0.6, 1.8, 5.4)
"""The first multipliers, where none are known, as parts of the first guess."""
NOT_TRIED = (-1, 0)
"""In the place of the keys and the multiplier of an end that is not known."""
OUTSIDE = 0.1
"""How far above the largest known multiplier one is tried; the known ones are rather too small."""
OUTWARD, FAR_OUTWARD = 1.03, 4.0
"""How far beyond the guess the first and the second multiplier are tried where none is known on that side of the budget."""
NEAREST = (0.94, 1.01, 1.07, 1.16)
"""The first multipliers of a budget that is searched alone, as parts of a known one; the budget of a time step lies between the
first and the last of them in nearly all data, mostly in the middle.
"""
WIDELY = (0.4, 0.8, 1.6, 3.2)
"""The same where none is known, as parts of the first guess: those of the usual budget lie between them."""
MAX_KEY = 2**62
"""Keys of partitions stay below it: they are numbers of 64 bits."""
MAX_MULTIPLIER = 2**32 - 1
"""The largest multiplier in parts that keys are made of: a product of two numbers of 32 bits takes less time than of 64."""
MAX_BYTES = 2**28
"""Memory of the keys of budgets that are searched together."""


def search_budgets(
    boxes: BoxSpace, budgets: Iterable[int], near: Sequence[float] = (), *, many: bool = True
) -> Iterator[tuple[int, BoxSolution | SolvedBudget | InputError]]:
    """Find the best partition within each of several budgets, or the reason that there is none, in any order.

    Where several are solved together, the rest of each budget is spent as well.

    The search begins at the multipliers `near`, those of similar boxes with about the same budgets. Where boxes are not one of
    `many` that are solved, a budget alone is searched in another way, which takes longer and is compiled in half the time.
    """
    different = sorted(set(budgets))
    # Boxes that may not be published, and budgets of nothing, have their own ways: to an infinite multiplier.
    together = [b for b in different if b > 0] if boxes.all_allowed else []
    # Room for the multipliers to begin with, and for two more of each budget.
    at_once = min((MAX_BYTES // (8 * len(boxes)) - 2 * COLUMNS) // 3, MOST_PARTITIONS)
    alone = set(different)
    if min(len(together), at_once) > 1:
        for begin in range(0, len(together), at_once):
            for budget, found in _search_together(boxes, together[begin : begin + at_once], near):
                alone.remove(budget)
                yield budget, found
    middle = near[len(near) // 2] if near else None
    for budget in sorted(alone):
        try:
            if many and budget in together and (p := _first_tried(boxes, middle)) is not None:
                yield budget, search_budget_near(boxes, budget, p)
            else:
                yield budget, search_budget(boxes, budget, None if middle is None else Fraction(middle))
        except InputError as error:
            yield budget, error


def _first_tried(boxes: BoxSpace, near: float | None) -> list[int] | None:
    """Return the first multipliers for one budget, in parts of a whole one; None where keys would be too large."""
    middle, parts = (_guess(boxes), WIDELY) if near is None else (near, NEAREST)
    p = [_in_parts(middle * part) for part in parts]
    return p if p[-1] <= largest_multiplier(boxes.most_cost, boxes.total) else None


def _guess(boxes: BoxSpace) -> float:
    """Return a multiplier to begin with, where none is known."""
    return float(FIRST_GUESS) * int(boxes.cost[-1]) / max(int(boxes.volume[-1]), 1)


def largest_multiplier(most_cost: int, total: int) -> int:
    """Return the largest multiplier, in parts of a whole one, whose keys are not too large; from the largest cost of a matrix."""
    return min(((MAX_KEY >> (total.bit_length() + CHOICE_BITS)) - PARTS * most_cost) // max(total, 1), MAX_MULTIPLIER)


def _search_together(
    boxes: BoxSpace, budgets: Sequence[int], near: Sequence[float]
) -> Iterator[tuple[int, BoxSolution | SolvedBudget]]:
    """Find the partitions of budgets from multipliers that are tried for all of them, and spend what they leave."""
    from crowdveil.kernels.od.solve_matrix import solve_budgets

    tried = _Tried(boxes, near, 2 * len(budgets))
    if not tried.tries:
        return  # all keys would be too large
    tried.narrow(budgets, near if len(near) == len(budgets) else ())
    ends = np.array([tried.ends(budget) for budget in budgets], np.int64)
    columns = BoxArrays(boxes.origin, boxes.destination, boxes.volume, boxes.crowd, boxes.crowd)
    wanted, keys = np.array(budgets, np.int64), tried.keys.ravel()
    given = columns, boxes.splits, boxes.cost, boxes.lost_cost
    table, choices, published = solve_budgets(*given, wanted, keys, ends, tried.bits)
    begin = 0
    for budget, (_, p, q, cost, suppressed, spent, saved, end), choice in zip(
        budgets, table.tolist(), choices, strict=True
    ):
        multiplier = Fraction(p, q) if q else None
        if multiplier is not None and multiplier < boxes.lost_cost:
            yield budget, BoxSolution.at(boxes, Fraction(boxes.lost_cost))
        else:
            best = BoxSolution(multiplier, cost, suppressed, choice, boxes.lost_cost)
            yield budget, SolvedBudget(best, spent, saved, published[:, begin:end])
        begin = end


class _Try(NamedTuple):
    """A multiplier that was tried, in parts of a whole one, what the map suppresses, and where the key of the first box is."""

    p: int
    suppressed: int
    place: int


class _Tried:
    """Multipliers that were tried, rising, with the keys of all boxes."""

    def __init__(self, boxes: BoxSpace, near: Sequence[float], more: int) -> None:
        """Try the multipliers to begin with: from the least of known ones to the largest, or around a guess.

        There is room for so many more.
        """
        first = [_guess(boxes) * part for part in FIRST]
        if near:
            least = max(min(near), 1 / PARTS)
            ratio = max(near) / least * (1 + OUTSIDE)
            first = [least * ratio ** (at / (COLUMNS - 1)) for at in range(COLUMNS)]
        self.boxes, self.bits = boxes, boxes.total.bit_length()
        self.tries: list[_Try] = []
        passes = _passes(len(first)) + _passes(more)
        self.keys = np.empty((passes, len(boxes) * COLUMNS), np.int64)
        self._passes = 0
        self.add(map(_in_parts, first))

    def add(self, wanted: Iterable[int]) -> None:
        """Try multipliers, other than those that were tried and those whose keys would be too large."""
        from crowdveil.kernels.od.several_multipliers import evaluate_keys

        boxes, most = self.boxes, largest_multiplier(self.boxes.most_cost, self.boxes.total)
        new = sorted({p for p in wanted if p <= most}.difference(known.p for known in self.tries))
        for begin in range(0, len(new), COLUMNS):
            tried = new[begin : begin + COLUMNS]
            p, keys = np.array([*tried, *tried[-1:] * (COLUMNS - len(tried))], np.int64), self.keys[self._passes]
            evaluate_keys(boxes.cost, boxes.splits, p, self.bits, keys)
            suppressed = (keys[-COLUMNS:] >> CHOICE_BITS & (1 << self.bits) - 1).tolist()
            first = self._passes * keys.size
            self.tries += map(_Try, tried, suppressed, range(first, first + COLUMNS))
            self._passes += 1
        self.tries.sort()

    def _around(self, budget: int) -> tuple[_Try | None, _Try | None]:
        """Return the nearest multipliers of which the left one exceeds the budget and the right one keeps it."""
        place = bisect_left(self.tries, -budget, key=lambda known: -known.suppressed)
        return self.tries[place - 1] if place else None, self.tries[place] if place < len(self.tries) else None

    def ends(self, budget: int) -> tuple[int, ...]:
        """Return where the keys of the multipliers are that a budget lies between, each followed by the multiplier."""
        left, right = (NOT_TRIED if known is None else (known.place, known.p) for known in self._around(budget))
        return *left, *right

    def narrow(self, budgets: Sequence[int], near: Sequence[float]) -> None:
        """Try two multipliers for each budget: one that about suppresses it, then one on the other side of it.

        `near` has the multipliers of the same budgets, or of a like share of the trips, for similar boxes; or none. Each pass
        begins with what the ones before it have shown.
        """
        curve = _Curve(budgets, near)
        found = (self._next(curve, budget, again) for again in (False, True) for budget in budgets)
        while chosen := [*islice((p for p in found if p is not None), COLUMNS)]:
            self.add(chosen)

    def _next(self, curve: _Curve, budget: int, again: bool) -> int | None:
        """Return the multiplier to try for a budget, in parts, for the first time or again; None where known ones are near.

        Costs are whole numbers, and so are most multipliers at which the volume changes: of those between which it does not, the
        one nearest to the budget's is tried.
        """
        left, right = self._around(budget)
        if left is None:  # all keep the budget; a multiplier of 0 suppresses most
            return 0 if again or right is None else math.floor(right.p * right.suppressed / budget / OUTWARD)
        if right is None:
            return math.ceil(left.p * left.suppressed / budget * (FAR_OUTWARD if again else OUTWARD))
        low, high, beyond = left.p, right.p, BEYOND + STEP / budget
        if high <= low * (1 + beyond):
            return None
        guess = curve.guess(left, right, budget)
        to_low, to_high = guess / max(low, 1), high / guess
        if min(to_low, to_high) > 1 + CLOSE:
            p = PARTS * round(guess / PARTS)
        elif to_low < to_high:
            p = PARTS * math.floor(max(guess * (1 + beyond), low + PARTS) / PARTS)
        else:
            p = PARTS * math.ceil(min(guess * (1 - beyond), high) / PARTS) - 1
        return p if low < p < high else math.floor(math.sqrt(max(low, 1) * high))


class _Curve:
    """The volume that is suppressed at a multiplier, on logarithmic scales: known for similar boxes, or a plain guess."""

    def __init__(self, budgets: Sequence[int], multipliers: Sequence[float]) -> None:
        """Make the curve of rising budgets and their multipliers, which fall, if there are any."""
        self.x = [math.log(max(PARTS * multiplier, 1.0)) for multiplier in reversed(multipliers)]
        self.y = [math.log(budget) for budget in reversed(budgets)] if self.x else []

    def _at(self, x: float) -> float:
        """Return the volume at a multiplier; beyond all that are known it falls as steeply as the multiplier rises."""
        place = bisect_left(self.x, x)
        if 0 < place < len(self.x):
            return _between(x, self.x[place - 1], self.y[place - 1], self.x[place], self.y[place])
        end = min(place, len(self.x) - 1)
        return self.y[end] + self.x[end] - x if self.x else -x

    def guess(self, left: _Try, right: _Try, budget: int) -> float:
        """Return the multiplier of a budget, in parts, that lies between two.

        The curve of these boxes differs from this one by what it differs by at both, and by a mean of it between them.
        """
        low, high, wanted = math.log(max(left.p, 0.5)), math.log(right.p), math.log(budget)
        x, y = low, math.log(left.suppressed)
        first, last = y - self._at(low), math.log(max(right.suppressed, 0.5)) - self._at(high)
        for next_x in (*self.x[bisect_right(self.x, low) : bisect_left(self.x, high)], high):
            next_y = self._at(next_x) + _between(next_x, low, first, high, last)
            if next_y <= wanted:
                return math.exp(_between(wanted, y, x, next_y, next_x))
            x, y = next_x, next_y
        return math.exp(high)


def _between(x: float, low: float, at_low: float, high: float, at_high: float) -> float:
    """Return the value of a straight line at x."""
    return at_low if high == low else at_low + (at_high - at_low) * (x - low) / (high - low)


def _passes(multipliers: int) -> int:
    """Return in how many passes multipliers are tried."""
    return -(-multipliers // COLUMNS)


def _in_parts(multiplier: float) -> int:
    return max(round(multiplier * PARTS), 1)
