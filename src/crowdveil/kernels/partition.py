"""The best partition of a map into boxes, whatever regions they are made of: one evaluation is one pass over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Small = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]

WHOLE, ANYTHING = 1, 7
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
    best: Ints,
    choice: Ints,
) -> None:
    """The best partition of each box at the price p/q of a suppressed trip: cost A and suppressed volume S, q·A + p·S least.

    Of equal ones the least S is taken, which is the piece right of a breakpoint. q = 0 stands for an infinite price: S
    counts first, then A. `allowed` says whether each box may stay whole and which kinds of ways it may go, and `choice` is
    filled with the way that it goes, or STAYS; or GOES, if it may not stay whole and cannot be split. Only boxes in `active`
    are looked at, children before parents. `best` is filled with A and S of each box, side by side.
    """
    for i in active:
        may = allowed[i]
        if may & WHOLE:
            a, s, how = cost[i], 0, STAYS
        else:
            a, s, how = 0, volume[i], GOES
        here = q * a + p * s
        for way in range(way_off[i], way_off[i + 1]):
            if may != ANYTHING and not may & way_kind[way]:
                continue
            split_a, split_s = 0, way_lost[way]
            for e in range(link_off[way], link_off[way + 1]):
                at = 2 * link[e]
                split_a += best[at]
                split_s += best[at + 1]
            there = q * split_a + p * split_s
            if how == GOES:
                better = True
            elif q == 0:
                better = split_s < s or (split_s == s and split_a < a)
            else:
                better = there < here or (there == here and split_s < s)
            if better:
                a, s, how, here = split_a, split_s, way, there
        best[2 * i], best[2 * i + 1], choice[i] = a, s, how


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
    if budget == 0 or s == 0 or q == 0 or p == 0:
        return 0, 1
    ratio = min(max(s / budget, 1 / 16), 16.0)
    ratio *= 1.02 if ratio > 1 else 0.98  # a little beyond, so that the budget soon lies between two prices
    return int(p / q * ratio * GUESS_PARTS), GUESS_PARTS


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
    first_p: int,
    first_q: int,
) -> tuple[bool, int, int, int, int, Ints]:
    """The price whose best partition suppresses at most `budget`: found or not, p, q, cost, suppressed volume, choices.

    The best cost as a function of the price is concave and made of straight pieces with slope S. With two pieces known, left
    of the budget and right of it, the price at which their lines meet is tried, and the new piece replaces one of them, until
    no piece lies below. The least S of equal ones is taken, so that the piece right of the last breakpoint, which keeps the
    budget, is the answer. Nothing is compared in floating point: prices are fractions p/q, q = 0 an infinite one.
    Far from the answer prices are guessed, the first of them by the caller; what they give is exact, and a guess has to lie
    between the prices known so far.

    A box that stays whole at a price stays whole at all higher ones, so that ever fewer boxes are looked at.
    """
    n = len(cost)
    top = n - 1
    best = np.empty(2 * n, np.int64)
    choice = np.full(n, STAYS, np.int64)
    active = np.arange(n)
    ways = (way_off, way_kind, way_lost, link_off, link)
    # A piece on either side of the budget: none is known yet. A price of 0 is as far left as there is, an infinite one as right.
    left_a, left_s, left_p, left_q, has_left = 0, 0, 0, 1, False
    right_a, right_s, right_p, right_q, has_right = 0, 0, 1, 0, False
    p, q = first_p, first_q
    guesses = 0
    while True:
        evaluate(active, cost, volume, *ways, allowed, p, q, best, choice)
        a, s = best[2 * top], best[2 * top + 1]
        met = has_left and has_right and q * (right_a - left_a) == p * (left_s - right_s)
        if met and q * a + p * s >= q * right_a + p * right_s:
            # The lines meet on the curve: the piece with the least S there is the right one.
            return True, p, q, a, s, choice
        if s <= budget:
            right_a, right_s, right_p, right_q, has_right = a, s, p, q, True
            if p == 0 or s == budget:
                return True, p, q, a, s, choice
        else:
            left_a, left_s, left_p, left_q, has_left = a, s, p, q, True
            if q == 0:
                return False, p, q, a, s, choice
            active = _still_open(active, way_off, way_kind, link_off, link, allowed, choice, top)
        guesses += 1
        near = has_left and has_right and left_s - right_s <= budget // 50
        p, q = _guess(p, q, s, budget)
        inside = p * left_q > left_p * q and (right_q == 0 or p * right_q < right_p * q)
        if near or guesses > MOST_GUESSES or not inside:
            if not has_left:
                p, q = 0, 1
            elif not has_right:
                p, q = 1, 0
            else:
                p, q = right_a - left_a, left_s - right_s
        common = _divisor(p, q)
        p, q = p // common, q // common


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
    lost_cost: int,
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
            worth = (cost[i] - after - lost_cost * way_lost[way]) / max(way_lost[way], 1)
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
def best_origins(
    origin: Indices,
    volume: Ints,
    target: float,
    child_offsets: Ints,
    children: Ints,
    first_leaf: Ints,
    leaves: int,
) -> Ints:
    """The nodes that a tree is cut into for the least sum of (target − outgoing)²: a node, or its children's best.

    `origin` and `volume` are leaf and trips of each flow; `first_leaf` is the first leaf of each node, of `leaves` in all.
    """
    n = len(first_leaf)
    leaving = np.zeros(leaves, np.int64)
    for row in range(len(origin)):
        leaving[origin[row]] += volume[row]
    outgoing = np.empty(n, np.int64)
    best = np.empty(n, np.float64)
    split = np.zeros(n, np.bool_)
    for node in range(n):
        below, total = 0.0, 0
        for e in range(child_offsets[node], child_offsets[node + 1]):
            below += best[children[e]]
            total += outgoing[children[e]]
        if child_offsets[node + 1] == child_offsets[node]:
            total = leaving[first_leaf[node]]
        outgoing[node] = total
        best[node] = (target - total) ** 2
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
