"""Search for the partitions of a map that keep several budgets of suppressed trips, at once.

A pass over the boxes tries several multipliers, for all budgets. Each budget then lies between two that are near each other, and
few boxes differ between them: only these are searched for it. What is found does not depend on which multipliers were tried: it
is the piece of the curve of costs that suppresses most within the budget, as if the budget were searched alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from crowdveil.errors import InputError
from crowdveil.kernels.od.structures import COLUMNS, PARTS
from crowdveil.solve.od.budget_search import (
    FIRST_GUESS,
    BoxSolution,
    search_budget,
    search_budget_between,
    search_budget_near,
)

if TYPE_CHECKING:
    from crowdveil.kernels.od.near_search import Ends
    from crowdveil.solve.od.boxes import BoxSpace

NEAR = 25
"""Part of a budget within which the ends must suppress the same, for few boxes to differ between them."""
AROUND, STEP = 0.008, 12
"""How far below and above the guess for a budget multipliers are tried, as a share of it: more where the known ones are far
apart, and where a usual step of the curve, of so many trips, is a large part of the budget.
"""
FIRST_SPAN = 5
"""The first multipliers, where none are known, are from 2⁻⁵ to 2⁵ times the first guess."""
NOT_TRIED = (-1, 0)
"""In the place of the keys and the multiplier of an end that is not known."""
OUTSIDE = 0.1
"""How far above the largest known multiplier one is tried; the known ones are rather too small."""
AROUND_ALIKE, FAR = 0.012, 64
"""As `AROUND`, for multipliers that are guessed from a known curve; and how far beyond its ends it is taken to be straight."""
NEAREST = (0.94, 1.01, 1.07, 1.16)
"""The first multipliers of a budget that is searched alone, as parts of a known one; the budget of a time step lies between the
first and the last of them in nearly all data, mostly in the middle.
"""
WIDELY = (0.4, 0.8, 1.6, 3.2)
"""The same where none is known, as parts of the first guess: those of the usual budget lie between them."""
MAX_KEY = 2**62
"""Keys of partitions stay below it: they are numbers of 64 bits."""
MAX_BYTES = 2**28
"""Memory of the keys of budgets that are searched together."""


def search_budgets(
    boxes: BoxSpace, budgets: Iterable[int], near: Sequence[float] = (), *, many: bool = True
) -> Iterator[tuple[int, BoxSolution | InputError]]:
    """Find the best partition within each of several budgets, or the reason that there is none, in any order.

    The search begins at the multipliers `near`, those of similar boxes with about the same budgets. Where boxes are not one of
    `many` that are solved, a budget alone is searched in another way, which takes longer and is compiled in half the time.
    """
    different = sorted(set(budgets))
    # Boxes that may not be published, and budgets of nothing, have their own ways: to an infinite multiplier.
    together = [b for b in different if b > 0] if boxes.all_allowed else []
    # Room for the multipliers to begin with, and for two more of each budget.
    at_once = (MAX_BYTES // (8 * len(boxes)) - 2 * FIRST_SPAN) // 3
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
    return ((MAX_KEY >> total.bit_length()) - PARTS * most_cost) // max(total, 1)


def _search_together(
    boxes: BoxSpace, budgets: Sequence[int], near: Sequence[float]
) -> Iterator[tuple[int, BoxSolution]]:
    """Find the partitions of budgets from multipliers that are tried for all of them."""
    tried = _Tried(boxes, near, 2 * len(budgets))
    if not tried.p:
        return  # all keys would be too large
    if len(near) == len(budgets):
        tried.add(tried.guesses_alike(budgets, near))
    else:
        tried.add(p for budget in budgets for p in tried.guesses(budget))
    for budget in budgets:
        yield budget, search_budget_between(boxes, budget, tried.keys.ravel(), tried.ends(budget))


class _Tried:
    """Multipliers that were tried, in parts of a whole one, with what the map suppresses and the keys of all boxes."""

    def __init__(self, boxes: BoxSpace, near: Sequence[float], more: int) -> None:
        """Try the multipliers to begin with: from the least of known ones to the largest, or powers of two around a guess.

        There is room for so many more.
        """
        first = [_guess(boxes) * 2.0**power for power in range(-FIRST_SPAN, FIRST_SPAN + 1)]
        if near:
            least = max(min(near), 1 / PARTS)
            ratio = max(near) / least * (1 + OUTSIDE)
            first = [least * ratio ** (at / (COLUMNS - 1)) for at in range(COLUMNS)]
        self.boxes, self.bits = boxes, boxes.total.bit_length()
        self.p: list[int] = []
        self.suppressed: list[int] = []
        self._places: list[int] = []
        passes = _passes(len(first)) + _passes(more)
        self.keys = np.empty((passes, len(boxes) * COLUMNS), np.int64)
        self._passes = 0
        self.add(map(_in_parts, first))

    def add(self, wanted: Iterable[int]) -> None:
        """Try multipliers, other than those that were tried and those whose keys would be too large."""
        from crowdveil.kernels.od.several_multipliers import evaluate_keys

        boxes, most = self.boxes, largest_multiplier(self.boxes.most_cost, self.boxes.total)
        new = sorted({p for p in wanted if p <= most}.difference(self.p))
        for begin in range(0, len(new), COLUMNS):
            tried = new[begin : begin + COLUMNS]
            p, keys = np.array([*tried, *tried[-1:] * (COLUMNS - len(tried))], np.int64), self.keys[self._passes]
            evaluate_keys(boxes.cost, boxes.splits, p, self.bits, keys)
            self.p += tried
            self.suppressed += (keys[-COLUMNS:][: len(tried)] & ((1 << self.bits) - 1)).tolist()
            self._places += range(self._passes * keys.size, self._passes * keys.size + len(tried))
            self._passes += 1

    def _around(self, budget: int) -> tuple[int | None, int | None]:
        """Return the nearest multipliers of which the left one exceeds the budget and the right one keeps it."""
        over = [at for at, volume in enumerate(self.suppressed) if volume > budget]
        within = [at for at, volume in enumerate(self.suppressed) if volume <= budget]
        return max(over, key=self.p.__getitem__, default=None), min(within, key=self.p.__getitem__, default=None)

    def ends(self, budget: int) -> Ends:
        """Return the multipliers that a budget lies between."""
        from crowdveil.kernels.od.near_search import Ends

        left, right = (NOT_TRIED if at is None else (self._places[at], self.p[at]) for at in self._around(budget))
        return Ends(*left, *right, self.bits)

    def guesses(self, budget: int) -> list[int]:
        """Return multipliers that about suppress the budget; none where those around it are near each other."""
        left, right = self._around(budget)
        if left is None or right is None:
            only = right if left is None else left
            if only is None or self.p[only] == 0:
                return []
            # The volume falls about as steeply as the multiplier rises; beyond 0 there is nothing.
            guess = self.p[only] * self.suppressed[only] / budget
            return [math.ceil(1.1 * guess), math.ceil(4 * guess)] if right is None else [math.ceil(0.9 * guess), 0]
        most, least, low, high = self.suppressed[left], self.suppressed[right], self.p[left], self.p[right]
        if most - least <= budget // NEAR:
            return []
        share = math.log(most / budget) / math.log(most / max(least, 0.5))
        guess = low * (high / low) ** share if low else high * share
        around = min(AROUND + STEP / budget + AROUND * math.log(high / max(low, 1)), 0.5)
        both = math.floor(guess * (1 - around)), math.ceil(guess * (1 + around))
        return [p for p in both if low < p < high]

    def guesses_alike(self, budgets: Sequence[int], near: Sequence[float]) -> list[int]:
        """Return two multipliers around the one that each budget has if the volume falls as it does for similar boxes.

        `near` has the multipliers of the same budgets there, or a like share of them. On a logarithmic scale the two curves
        differ by what they differ by at the multipliers that were tried.
        """
        rising = sorted(zip(self.p, self.suppressed, strict=True))
        p, volume = np.log([(p / PARTS, max(volume, 0.5)) for p, volume in rising]).T
        falling = [max(multiplier, 1 / PARTS) for multiplier in near]
        known = np.log([falling[0] * FAR, *falling, falling[-1] / FAR])
        wanted = np.log([budgets[0] / FAR, *budgets, budgets[-1] * FAR])
        curve = wanted + np.interp(known, p, volume - np.interp(p, known[::-1], wanted[::-1]))
        found: list[int] = []
        for guess, budget in zip(np.exp(np.interp(wanted[1:-1], curve, known)).tolist(), budgets, strict=True):
            around = min(AROUND_ALIKE + STEP / budget, 0.5)
            found += math.floor(PARTS * guess * (1 - around)), math.ceil(PARTS * guess * (1 + around))
        return found


def _passes(multipliers: int) -> int:
    """Return in how many passes multipliers are tried."""
    return -(-multipliers // COLUMNS)


def _in_parts(multiplier: float) -> int:
    return max(round(multiplier * PARTS), 1)
