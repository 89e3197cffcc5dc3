"""The best partition of a map into boxes, whatever regions they are made of: one evaluation is one pass over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]

WHOLE = 1
"""What a box may do besides being split; the kinds of ways are 2 (by destination) and 4 (by origin)."""
STAYS, GOES = -1, -2
"""What becomes of a box that is not split: it is published whole, or withheld since it may not be."""


MOST_GUESSES = 6
GUESS_PARTS = 16


@kernel
def evaluate(
    active: Ints,
    cost: Ints,
    volume: Ints,
    way_off: Ints,
    way_kind: Ints,
    way_lost: Ints,
    link_off: Ints,
    link: Ints,
    allowed: Small,
    p: int,
    q: int,
    best_a: Ints,
    best_s: Ints,
    choice: Ints,
) -> None:
    """The best partition of each box at the price p/q of a suppressed trip: cost A and suppressed volume S, q·A + p·S least.

    Of equal ones the least S is taken, which is the piece right of a breakpoint. q = 0 stands for an infinite price: S
    counts first, then A. `allowed` says whether each box may stay whole and which kinds of ways it may go, and `choice` is
    filled with the way that it goes, or STAYS; or GOES, if it may not stay whole and cannot be split. Only boxes in `active`
    are looked at, children before parents.
    """
    for i in active:
        if allowed[i] & WHOLE:
            a, s, how = cost[i], 0, STAYS
        else:
            a, s, how = 0, volume[i], GOES
        for way in range(way_off[i], way_off[i + 1]):
            if not allowed[i] & way_kind[way]:
                continue
            split_a, split_s = 0, way_lost[way]
            for e in range(link_off[way], link_off[way + 1]):
                split_a += best_a[link[e]]
                split_s += best_s[link[e]]
            if how == GOES:
                better = True
            elif q == 0:
                better = split_s < s or (split_s == s and split_a < a)
            else:
                here, there = q * a + p * s, q * split_a + p * split_s
                better = there < here or (there == here and split_s < s)
            if better:
                a, s, how = split_a, split_s, way
        best_a[i], best_s[i], choice[i] = a, s, how


@kernel
def _still_open(
    active: Ints, way_off: Ints, way_kind: Ints, link_off: Ints, link: Ints, allowed: Small, choice: Ints, top: int
) -> Ints:
    """The boxes that may still change at higher prices: those that stay whole now will, and hide what is inside them."""
    reached = np.zeros(top + 1, np.bool_)
    reached[top] = True
    found = 0
    for at in range(len(active) - 1, -1, -1):
        i = active[at]
        if not reached[i]:
            continue
        if choice[i] == STAYS:
            reached[i] = False
            continue
        found += 1
        for way in range(way_off[i], way_off[i + 1]):
            if allowed[i] & way_kind[way]:
                for e in range(link_off[way], link_off[way + 1]):
                    reached[link[e]] = True
    still = np.empty(found, np.int64)
    found = 0
    for i in active:
        if reached[i]:
            still[found] = i
            found += 1
    return still


@kernel
def _divisor(a: int, b: int) -> int:
    """The greatest common divisor."""
    while b:
        a, b = b, a % b
    return a


@kernel
def _guess(p: int, q: int, s: int, budget: int) -> tuple[int, int]:
    """A price nearer to the one that suppresses `budget` than p/q, which suppresses s: S falls about as the price rises."""
    if budget == 0:
        return 0, 1
    return int(p / q * (s / budget) * GUESS_PARTS), GUESS_PARTS


@kernel
def search(
    cost: Ints,
    volume: Ints,
    way_off: Ints,
    way_kind: Ints,
    way_lost: Ints,
    link_off: Ints,
    link: Ints,
    allowed: Small,
    budget: int,
) -> tuple[bool, int, int, int, int, Ints]:
    """The price whose best partition suppresses at most `budget`: found or not, p, q, cost, suppressed volume, choices.

    The best cost as a function of the price is concave and made of straight pieces with slope S. Two pieces are known, left
    of the budget and right of it; the price at which their lines meet is tried, and the new piece replaces one of them, until
    no piece lies below. The least S of equal ones is taken, so that the piece right of the last breakpoint, which keeps the
    budget, is the answer. Nothing is compared in floating point: prices are fractions p/q, q = 0 an infinite one.
    Far from the answer a guess may be tried in place of where the lines meet; it has to lie between the two known prices.

    A box that stays whole at a price stays whole at all higher ones, so that ever fewer boxes are looked at.
    """
    n = len(cost)
    top = n - 1
    best_a, best_s = np.empty(n, np.int64), np.empty(n, np.int64)
    choice = np.full(n, STAYS, np.int64)
    active = np.arange(n)
    ways = (way_off, way_kind, way_lost, link_off, link)
    evaluate(active, cost, volume, *ways, allowed, 1, 0, best_a, best_s, choice)
    right_a, right_s, p, q = best_a[top], best_s[top], 1, 0
    if right_s > budget:
        return False, 1, 0, right_a, right_s, choice
    evaluate(active, cost, volume, *ways, allowed, 0, 1, best_a, best_s, choice)
    left_a, left_s, left_p, left_q = best_a[top], best_s[top], 0, 1
    if left_s <= budget:
        return True, 0, 1, left_a, left_s, choice
    active = _still_open(active, way_off, way_kind, link_off, link, allowed, choice, top)
    try_p, try_q, s, steps = 0, 1, 0, 0
    while right_s < budget:
        last_p, last_q, last_s, steps = try_p, try_q, s, steps + 1
        try_p, try_q = right_a - left_a, left_s - right_s
        guessed = False
        if 1 < steps < MOST_GUESSES and left_s - right_s > budget // 50:
            guess_p, guess_q = _guess(last_p, last_q, last_s, budget)
            if guess_p * left_q > left_p * guess_q and (q == 0 or guess_p * q < p * guess_q):
                try_p, try_q, guessed = guess_p, guess_q, True
        common = _divisor(try_p, try_q)
        try_p, try_q = try_p // common, try_q // common
        evaluate(active, cost, volume, *ways, allowed, try_p, try_q, best_a, best_s, choice)
        a, s = best_a[top], best_s[top]
        if not guessed and try_q * a + try_p * s >= try_q * right_a + try_p * right_s:
            # The lines meet on the curve: the piece with the least S there is the right one.
            return True, try_p, try_q, a, s, choice
        if s <= budget:
            right_a, right_s, p, q = a, s, try_p, try_q
        else:
            left_a, left_s, left_p, left_q = a, s, try_p, try_q
            active = _still_open(active, way_off, way_kind, link_off, link, allowed, choice, top)
    if try_p != p or try_q != q:
        evaluate(active, cost, volume, *ways, allowed, p, q, best_a, best_s, choice)
    return True, p, q, right_a, right_s, choice


@kernel
def published_boxes(choice: Ints, link_off: Ints, link: Ints) -> tuple[Ints, Ints]:
    """The boxes that stay whole, and those that are split, from the last box (the whole map) down."""
    n = len(choice)
    stack = np.empty(n, np.int64)
    kept = np.empty(n, np.int64)
    split = np.empty(n, np.int64)
    stack[0] = n - 1
    depth, found, parted = 1, 0, 0
    while depth > 0:
        depth -= 1
        i = stack[depth]
        if choice[i] == STAYS:
            kept[found] = i
            found += 1
        elif choice[i] != GOES:
            split[parted] = i
            parted += 1
            for e in range(link_off[choice[i]], link_off[choice[i] + 1]):
                stack[depth] = link[e]
                depth += 1
    return kept[:found].copy(), split[:parted].copy()


@kernel
def best_splits(
    whole: Ints,
    cost: Ints,
    way_off: Ints,
    way_kind: Ints,
    way_lost: Ints,
    link_off: Ints,
    link: Ints,
    allowed: Small,
    rest: int,
) -> tuple[Floats, Ints]:
    """For each whole box, the split into whole boxes that gains most for a suppressed trip within `rest`, and the gain."""
    gain = np.zeros(len(whole), np.float64)
    best = np.full(len(whole), STAYS, np.int64)
    for at in range(len(whole)):
        i = whole[at]
        for way in range(way_off[i], way_off[i + 1]):
            if way_lost[way] > rest or not allowed[i] & way_kind[way]:
                continue
            after, may = 0, True
            for e in range(link_off[way], link_off[way + 1]):
                after += cost[link[e]]
                may &= (allowed[link[e]] & WHOLE) > 0
            worth = (cost[i] - after) / max(way_lost[way], 1)
            if may and worth > gain[at]:
                gain[at] = worth
                best[at] = way
    return gain, best


@kernel
def apply_splits(boxes: Ints, ways: Ints, way_lost: Ints, link_off: Ints, link: Ints, choice: Ints, rest: int) -> int:
    """Split boxes in the order given as long as `rest` trips last; returns the volume that this suppressed."""
    spent = 0
    for at in range(len(boxes)):
        way = ways[at]
        if way_lost[way] > rest - spent:
            continue
        choice[boxes[at]] = way
        spent += way_lost[way]
        for e in range(link_off[way], link_off[way + 1]):
            choice[link[e]] = STAYS
    return spent


@kernel
def best_origins(outgoing: Ints, target: float, child_offsets: Ints, children: Ints) -> Ints:
    """The nodes that a tree is cut into for the least sum of (target − outgoing)²: a node, or its children's best."""
    n = len(outgoing)
    best = np.empty(n, np.float64)
    split = np.zeros(n, np.bool_)
    for node in range(n):
        best[node] = (target - outgoing[node]) ** 2
        below = 0.0
        for e in range(child_offsets[node], child_offsets[node + 1]):
            below += best[children[e]]
        if child_offsets[node + 1] > child_offsets[node] and below < best[node]:
            best[node] = below
            split[node] = True
    reached = np.zeros(n, np.bool_)
    reached[n - 1] = True
    found = 0
    for node in range(n - 1, -1, -1):
        if not reached[node]:
            continue
        if split[node]:
            reached[node] = False
            for e in range(child_offsets[node], child_offsets[node + 1]):
                reached[children[e]] = True
        else:
            found += 1
    origins = np.empty(found, np.int64)
    found = 0
    for node in range(n):
        if reached[node]:
            origins[found] = node
            found += 1
    return origins
