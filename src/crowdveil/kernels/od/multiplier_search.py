"""Search for the Lagrange multiplier of a suppressed trip that a budget asks for: which one to try next.

The best cost as a function of the multiplier is concave and made of straight pieces with slope S, the suppressed volume. With
two pieces known, left of the budget and right of it, the multiplier at which their lines meet is tried. The new piece replaces
one of them, until no piece lies below. Nothing is compared in floating point: multipliers are fractions p/q, q = 0 an infinite
one. Far from the answer multipliers are guessed; what they give is exact, and a guess must lie between those known so far.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.exact_compare import is_below, sign_at

MAX_GUESSES = 6
GUESS_PARTS = 16
LARGEST_GUESS = 2.0**62 / GUESS_PARTS
"""Guesses are floats; a numerator must fit into 64 bits."""
A, S, P, Q, KNOWN = 0, 1, 2, 3, 4
"""Cost and suppressed volume of a piece, the multiplier that it was found at, and whether there is one at all."""
LEFT, RIGHT, TRIED, BEFORE, TRIES = 0, 5, 10, 15, 20
"""Where a search notes the piece left of the budget, the one right of it, the current one, the one before, and the tries."""
GO_ON, FOUND, NONE = 0, 1, 2


@kernel
def begin_search(p: int, q: int) -> Ints:
    """Begin a search that tries p/q first. A multiplier of 0 is as far left as there is, an infinite one as right."""
    notes = np.zeros(TRIES + 1, np.int64)
    notes[LEFT + Q] = 1
    notes[RIGHT + P] = 1
    notes[TRIED + P], notes[TRIED + Q] = p, q
    return notes


@kernel
def judge(notes: Ints, a: int, s: int, budget: int) -> int:
    """Judge the best partition at the current multiplier by its cost A and suppressed volume S: FOUND, NONE, or GO_ON.

    Of equal partitions the one with the least S is to be given, so that the piece right of the last breakpoint, which keeps the
    budget, is the one that is found. NONE: not even an infinite multiplier keeps the budget.
    """
    p, q = notes[TRIED + P], notes[TRIED + Q]
    notes[TRIED + A], notes[TRIED + S] = a, s
    right_a, right_s = notes[RIGHT + A], notes[RIGHT + S]
    if notes[LEFT + KNOWN] and notes[RIGHT + KNOWN]:
        met = sign_at(p, q, right_a - notes[LEFT + A], right_s - notes[LEFT + S]) == 0
        if met and sign_at(p, q, a - right_a, s - right_s) >= 0:
            return FOUND  # the lines meet on the curve
    if s <= budget and (p == 0 or s == budget):
        return FOUND
    if s > budget and q == 0:
        return NONE
    side = RIGHT if s <= budget else LEFT
    notes[side + A], notes[side + S], notes[side + P], notes[side + Q], notes[side + KNOWN] = a, s, p, q, 1
    _choose_next(notes, budget)
    return GO_ON


@kernel
def _choose_next(notes: Ints, budget: int) -> None:
    """Choose the next multiplier: a guess while the pieces are far apart, then where their lines meet."""
    has_left, has_right = notes[LEFT + KNOWN] > 0, notes[RIGHT + KNOWN] > 0
    left_p, left_q, right_p, right_q = notes[LEFT + P], notes[LEFT + Q], notes[RIGHT + P], notes[RIGHT + Q]
    notes[TRIES] += 1
    near = has_left and has_right and notes[LEFT + S] - notes[RIGHT + S] <= budget // 50
    p, q = int(min(_guess(notes, budget), LARGEST_GUESS) * GUESS_PARTS), int(np.int64(GUESS_PARTS))
    for i in range(KNOWN):
        notes[BEFORE + i] = notes[TRIED + i]
    notes[BEFORE + KNOWN] = 1
    inside = is_below(left_p, left_q, p, q) and (right_q == 0 or is_below(p, q, right_p, right_q))
    if near or notes[TRIES] > MAX_GUESSES or not inside:
        if not has_left:
            p, q = 0, 1
        elif not has_right:
            p, q = 1, 0
        else:
            p, q = notes[RIGHT + A] - notes[LEFT + A], notes[LEFT + S] - notes[RIGHT + S]
    common = math.gcd(p, q)
    notes[TRIED + P], notes[TRIED + Q] = p // common, q // common


@kernel
def _guess(notes: Ints, budget: int) -> float:
    """Guess a multiplier that about suppresses the budget, 0 where none can be guessed.

    With both on a logarithmic scale, S over the multiplier is nearly a straight line: through the last two multipliers that were
    tried or, while there is only one, one that falls as steeply as the multiplier rises.
    """
    p, q, s = notes[TRIED + P], notes[TRIED + Q], notes[TRIED + S]
    if budget == 0 or s == 0 or q == 0 or p == 0:
        return 0.0
    here, steepness = p / q, -1.0
    if notes[BEFORE + KNOWN] and notes[BEFORE + P] > 0 and notes[BEFORE + Q] > 0 and notes[BEFORE + S] > 0:
        before = notes[BEFORE + P] / notes[BEFORE + Q]
        if before != here and notes[BEFORE + S] != s:
            steepness = min(math.log(s / notes[BEFORE + S]) / math.log(here / before), -0.1)
    ratio = min(max((budget / s) ** (1 / steepness), 1 / 16), 16.0)
    # A little beyond, so that the budget soon lies between two multipliers.
    guess: float = here * ratio * (1.02 if ratio > 1 else 0.98)
    return guess
