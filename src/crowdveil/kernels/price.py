"""The search for the price of a suppressed trip at which the budget is kept: no floating point anywhere."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Evaluate = Callable[[int, int], tuple[int, int]]
"""(p, q) → cost A and suppressed volume S of the best partition at the price p/q; q = 0 is an infinite price."""


def find_price(evaluate: Evaluate, budget: int) -> tuple[Fraction | None, int, int] | None:
    """The price whose best partition suppresses at most `budget`, with its cost and suppressed volume.

    The best cost as a function of the price is concave and made of straight pieces with slope S. Two pieces are known, left
    of the budget and right of it; the price at which their lines meet is tried, and the new piece replaces one of them,
    until no piece lies below. `evaluate` takes the least S of equal ones, so that the piece right of the last
    breakpoint, which keeps the budget, is the answer. A price of None is infinite. None: no partition keeps the budget.
    """
    left = evaluate(0, 1)
    if left[1] <= budget:
        return Fraction(0), *left
    right = evaluate(1, 0)
    if right[1] > budget:
        return None
    price: Fraction | None = None
    while right[1] < budget:
        meet = Fraction(right[0] - left[0], left[1] - right[1])
        p, q = meet.numerator, meet.denominator
        new = evaluate(p, q)
        if q * new[0] + p * new[1] >= q * right[0] + p * right[1]:
            # The lines meet on the curve: the piece with the least S there is the right one.
            return meet, *new
        if new[1] <= budget:
            right, price = new, meet
        else:
            left = new
    return price, *right
