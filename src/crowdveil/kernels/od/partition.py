"""Best partition of a map into boxes over any kind of regions, at a multiplier and within a budget.

One evaluation of a multiplier is one pass over the boxes. The best cost as a function of the multiplier is concave and made of
straight pieces with slope S, the suppressed volume. With two pieces known, left of the budget and right of it, the search tries
the multiplier at which their lines meet. The new piece replaces one of them, until no piece lies below. Nothing is compared in
floating point: multipliers are fractions p/q, q = 0 an infinite one. Far from the answer multipliers are guessed; what they give
is exact, and a guess must lie between those known so far.

Costs of large maps times volumes of large matrices do not fit into 64 bits: q·A + p·S is compared in 128.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints, Small
from crowdveil.kernels.od.structures import ANY_CHOICE, PUBLISH, SUPPRESS, WHOLE, SearchArrays, Splits

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

    Of equal partitions the caller must give that with the least S. So the search finds the piece right of the last breakpoint,
    which keeps the budget. NONE: not even an infinite multiplier keeps the budget.
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
    p, q = int(min(_guess(notes, budget), LARGEST_GUESS) * GUESS_PARTS), GUESS_PARTS
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


LOW = 2**32 - 1


@kernel
def sign_at(p: int, q: int, a: int, s: int) -> int:
    """Return the sign of q·a + p·s, that of a difference of costs `a` and of suppressed volumes `s` at the multiplier p/q.

    All four are numbers of 64 bits with a sign; they are multiplied by hand, in digits of 32 bits. The result is exact for any
    of them except four times −2⁶³.
    """
    top, middle, low = 0, 0, 0
    for x, y in ((p, s), (q, a)):
        x_high, x_low, y_high, y_low = x >> 32, x & LOW, y >> 32, y & LOW
        first, second = x_high * y_low, x_low * y_high
        last = np.uint64(x_low) * np.uint64(y_low)
        top += x_high * y_high + (first >> 32) + (second >> 32)
        middle += (first & LOW) + (second & LOW) + int(np.int64(last >> np.uint64(32)))
        low += int(np.int64(last & np.uint64(LOW)))
    middle += low >> 32
    top += middle >> 32
    if top != 0:
        return 1 if top > 0 else -1
    return 1 if (middle | low) & LOW else 0


@kernel
def is_below(p: int, q: int, other_p: int, other_q: int) -> bool:
    """Return whether the multiplier p/q is below the other; a denominator of 0 is an infinite one."""
    return sign_at(other_q, other_p, -q, p) < 0


@kernel
def evaluate(
    active: Ints,
    cost: Ints,
    volume: Ints,
    splits: Splits,
    allowed: Small,
    p: int,
    q: int,
    best: Ints,
    choice: Ints,
) -> None:
    """Find the best partition of each box at the multiplier p/q of a suppressed trip: cost A and suppressed volume S that
    minimize q·A + p·S.

    Of equal partitions the one with the least S is taken, which is the piece right of a breakpoint. q = 0 stands for an infinite
    multiplier: S counts first, then A. `allowed` says whether each box may stay whole and which kinds of splits it may take.
    `choice` is filled with the split that it takes, or PUBLISH; or SUPPRESS, if it must not stay whole and cannot be split. Only
    boxes in `active` are evaluated, children before parents. `best` is filled with A and S of each box, side by side.
    """
    offsets, kind, lost, link_offsets, link = splits
    for i in active:
        may = allowed[i]
        if may & WHOLE:
            a, s, how = cost[i], 0, PUBLISH
        else:
            a, s, how = 0, volume[i], SUPPRESS
        for split in range(offsets[i], offsets[i + 1]):
            if may != ANY_CHOICE and not may & kind[split]:
                continue
            split_a, split_s = 0, lost[split]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                at = 2 * link[e]
                split_a += best[at]
                split_s += best[at + 1]
            if how == SUPPRESS:
                better = True
            elif q == 0:
                better = split_s < s or (split_s == s and split_a < a)
            else:
                sign = sign_at(p, q, split_a - a, split_s - s)
                better = sign < 0 or (sign == 0 and split_s < s)
            if better:
                a, s, how = split_a, split_s, split
        best[2 * i], best[2 * i + 1], choice[i] = a, s, how


@kernel
def _still_open(
    active: Ints,
    splits: Splits,
    allowed: Small,
    left: Ints,
    right: Ints,
    has_right: bool,
    reached: Small,
) -> Ints:
    """Return the boxes that may still change between two multipliers, of those that did before.

    `left` and `right` have the S of each box at both ends. A box with the same S at both keeps its partition in between: its
    best cost is a concave function of the multiplier, with slope S. So does one with S = 0 at the lower end, whatever the
    higher one is. What is inside such boxes only matters if others hold it too. `reached` is a buffer, and must be zero.
    """
    offsets, kind, link_offsets, link = splits.offsets, splits.kind, splits.link_offsets, splits.link
    reached[active[-1]] = 1
    found = 0
    for at in range(len(active) - 1, -1, -1):
        i = active[at]
        if not reached[i]:
            continue
        if left[i] == (right[i] if has_right else 0):
            reached[i] = 0
            continue
        found += 1
        for split in range(offsets[i], offsets[i + 1]):
            if allowed[i] & kind[split]:
                for e in range(link_offsets[split], link_offsets[split + 1]):
                    reached[link[e]] = 1
    still = np.empty(found, np.int64)
    found = 0
    for i in active:
        if reached[i]:
            still[found] = i
            found += 1
            reached[i] = 0
    return still


@kernel
def search(
    cost: Ints,
    volume: Ints,
    splits: Splits,
    allowed: Small,
    budget: int,
    notes: Ints,
    arrays: SearchArrays,
) -> tuple[bool, int, int, int, int]:
    """Find the multiplier whose best partition suppresses at most `budget` trips, from the one in `notes` on.

    Returns found or not, p, q, cost and suppressed volume; `arrays.choice` has the partition. Boxes that are settled between
    the multipliers known so far are not evaluated again: their costs and choices stay as they were found last.
    """
    best, choice, left, right = arrays
    top = len(cost) - 1
    active = np.arange(len(cost))
    reached = np.zeros(len(cost), np.int8)
    while True:
        p, q = notes[TRIED + P], notes[TRIED + Q]
        evaluate(active, cost, volume, splits, allowed, p, q, best, choice)
        a, s = best[2 * top], best[2 * top + 1]
        verdict = judge(notes, a, s, budget)
        if verdict != GO_ON:
            return verdict == FOUND, p, q, a, s
        side = right if s <= budget else left
        for i in active:
            side[i] = best[2 * i + 1]
        if notes[LEFT + KNOWN]:
            has_right = notes[RIGHT + KNOWN] > 0
            active = _still_open(active, splits, allowed, left, right, has_right, reached)


@kernel
def published_boxes(choice: Ints, splits: Splits) -> tuple[Ints, Ints]:
    """Return the boxes that stay whole and those that are split, of the last box (the whole map); both rise."""
    link_offsets, link = splits.link_offsets, splits.link
    n = len(choice)
    reached = np.zeros(n, np.bool_)
    kept, split = np.empty(n, np.int64), np.empty(n, np.int64)
    reached[n - 1] = True
    found, parted = n, n
    for i in range(n - 1, -1, -1):  # boxes come after those that they are split into
        if not reached[i]:
            continue
        how = choice[i]
        if how == PUBLISH:
            found -= 1
            kept[found] = i
        elif how != SUPPRESS:
            parted -= 1
            split[parted] = i
            for e in range(link_offsets[how], link_offsets[how + 1]):
                reached[link[e]] = True
    return kept[found:].copy(), split[parted:].copy()


@kernel
def _worth(i: int, split: int, cost: Ints, splits: Splits, allowed: Small, lost_cost: int) -> float:
    """Return the cost that a split of a box into whole boxes saves for a suppressed trip; 0 if that is not allowed."""
    if not allowed[i] & splits.kind[split]:
        return 0.0
    after, trips = 0, splits.lost[split]
    for e in range(splits.link_offsets[split], splits.link_offsets[split + 1]):
        part = splits.link[e]
        if not allowed[part] & WHOLE:
            return 0.0
        after += cost[part]
    worth: float = (cost[i] - after - lost_cost * trips) / max(trips, 1)
    return worth


@kernel
def spend_slack(
    choice: Ints,
    published: Ints,
    cost: Ints,
    splits: Splits,
    allowed: Small,
    lost_cost: int,
    rest: int,
) -> tuple[Ints, int, int]:
    """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last.

    For each box the split into whole boxes counts that saves most cost for a suppressed trip. The resulting boxes are split
    again, until nothing more is suppressed; `choice` is changed. Returns the boxes that are then published, those of `published`
    first; and how many trips were spent and how much cost was saved before the last round.
    """
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    n, count, before = len(choice), len(published), 0
    boxes, best, gain = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.float64)
    boxes[:count] = published
    spent_before, saved_before = 0, 0
    while True:
        least = rest
        for entry in range(count):
            # A best split that can still be paid for is still the best: there are fewer to choose from.
            if entry >= before or (gain[entry] > 0 and lost[best[entry]] > rest):
                i, gain[entry] = boxes[entry], 0.0
                for split in range(offsets[i], offsets[i + 1]):
                    if lost[split] > rest:
                        continue
                    worth = _worth(i, split, cost, splits, allowed, lost_cost)
                    if worth > gain[entry]:
                        gain[entry], best[entry] = worth, split
            if gain[entry] > 0:
                least = min(least, lost[best[entry]])
        queue = np.flatnonzero(gain[:count] > 0)
        queue = queue[np.argsort(boxes[queue], kind="mergesort")]
        queue = queue[np.argsort(-gain[queue], kind="mergesort")]
        before = count
        spent, saved = 0, 0
        for chosen in queue:
            if spent + least > rest:
                break  # nothing can be paid for any more
            i, split = boxes[chosen], best[chosen]
            if lost[split] <= rest - spent:
                choice[i] = split
                gain[chosen] = 0.0
                spent += lost[split]
                saved += cost[i]
                for e in range(link_offsets[split], link_offsets[split + 1]):
                    boxes[count] = link[e]
                    count += 1
                    choice[link[e]] = PUBLISH
                    saved -= cost[link[e]]
        if spent == 0:
            break
        rest -= spent
        spent_before += spent
        saved_before += saved
    size = 0
    for entry in range(count):
        boxes[size] = boxes[entry]
        size += choice[boxes[entry]] == PUBLISH
    return boxes[:size].copy(), spent_before, saved_before
