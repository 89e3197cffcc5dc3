"""Search for the partition of a map that keeps a budget of suppressed trips."""

from __future__ import annotations

from collections.abc import Sequence
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
        What becomes of each box of the partition, and of those that it is split from.
    lost_cost
        What a suppressed trip costs.
    published
        The boxes that are published, rising, where the search has listed them.
    """

    multiplier: Fraction | None
    cost: int
    suppressed: int
    choice: Ints
    lost_cost: int = 0
    published: Ints | None = None

    @classmethod
    def at(cls, boxes: BoxSpace, multiplier: Fraction) -> BoxSolution:
        """Return the best partition at a multiplier."""
        return cls(multiplier, *boxes.solve_at(multiplier), boxes.lost_cost)

    def lower_bound(self, budget: int) -> Fraction:
        """Return a cost that no partition within the budget goes below, with what suppressed trips cost."""
        cost = self.cost + self.lost_cost * self.suppressed
        if self.multiplier is None:
            return Fraction(cost)
        # In whole numbers, since each operation on fractions reduces them.
        p, q = self.multiplier.as_integer_ratio()
        over = max(p - q * self.lost_cost, 0)
        return Fraction(q * cost - over * (budget - self.suppressed), q)


def _solution(
    boxes: BoxSpace,
    budget: int,
    found: tuple[bool, int, int, int, int],
    choice: Ints,
    published: Ints | None = None,
) -> BoxSolution:
    """Return the partition that a search has found for a budget; raise if none keeps it.

    It is that of a higher multiplier where a suppressed trip is worth more than the budget asks for, so that less is suppressed
    than may be. `found` has whether there is one, its multiplier p/q, cost and suppressed volume.
    """
    kept, p, q, cost, suppressed = found
    if not kept:
        raise InputError(
            f"wanted at most {budget:,} trips to be suppressed, but no partition of the map suppresses fewer than "
            f"{suppressed:,} trips; allow more with {Option('suppress')}, "
            f"or larger areas with {Option('max_area_km2')}."
        )
    multiplier, lost_cost = (Fraction(p, q) if q else None), boxes.lost_cost
    if multiplier is not None and multiplier < lost_cost:
        return BoxSolution.at(boxes, Fraction(lost_cost))
    return BoxSolution(multiplier, cost, suppressed, choice, lost_cost, published)


def search_budget(boxes: BoxSpace, budget: int, near: Fraction | None = None) -> BoxSolution:
    """Find the best partition within a budget that a multiplier can reach; the search for it begins at `near`."""
    from crowdveil.kernels.od.partition import search

    n = len(boxes)
    arrays = SearchArrays(np.empty(2 * n, np.int64), np.full(n, PUBLISH, np.int64), *np.empty((2, n), np.int64))
    given = boxes.cost, boxes.volume, boxes.splits, boxes.allowed
    found = search(np.arange(n), *given, budget, _begin(boxes, near), arrays)
    return _solution(boxes, budget, found, arrays.choice)


def search_budget_near(boxes: BoxSpace, budget: int, p: Sequence[int]) -> BoxSolution:
    """Find the same from several multipliers p / PARTS on; all boxes may do anything, and the budget is not 0."""
    from crowdveil.kernels.od.near_search import search_near

    first, bits = np.array(p, np.int64), boxes.total.bit_length()
    kept, at_p, q, cost, lost, choice, published = search_near(boxes.cost, boxes.splits, budget, first, bits)
    return _solution(boxes, budget, (kept, at_p, q, cost, lost), choice, published)


def _begin(boxes: BoxSpace, near: Fraction | None) -> Ints:
    """Return the notes of a search that tries a multiplier near the given one first."""
    from crowdveil.kernels.od.multiplier_search import begin_search

    whole = Fraction(int(boxes.cost[-1]), max(int(boxes.volume[-1]), 1))
    first = max(near or whole * FIRST_GUESS, Fraction(1, GUESS_PARTS)).limit_denominator(GUESS_PARTS)
    # As plain Python: a compiled function of its own would take longer to load than it runs.
    notes: Ints = begin_search.py_func(*first.as_integer_ratio())  # type: ignore[attr-defined]
    return notes
