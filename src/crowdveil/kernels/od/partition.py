"""The best partition of a map into boxes, whatever regions they are made of: one evaluation is one pass over them."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Small
from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, KNOWN, LEFT, RIGHT, TRIED, P, Q, begin_search, judge

WHOLE, ANYTHING = 1, 7
"""What a box may do besides being split; the kinds of ways are 2 (by destination) and 4 (by origin)."""
PUBLISH, SUPPRESS = -1, -2
"""What becomes of a box that is not split: it is published whole, or suppressed since it may not be."""


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
    filled with the split that it takes, or PUBLISH; or SUPPRESS, if it must not stay whole and cannot be split.
    Only boxes in `active`
    are looked at, children before parents. `best` is filled with A and S of each box, side by side.
    """
    for i in active:
        may = allowed[i]
        if may & WHOLE:
            a, s, how = cost[i], 0, PUBLISH
        else:
            a, s, how = 0, volume[i], SUPPRESS
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
            if how == SUPPRESS:
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
    active: Ints,
    way_off: Ints,
    way_kind: Ints,
    link_off: Ints,
    link: Ints,
    allowed: Small,
    left: Ints,
    right: Ints,
    has_right: bool,
    reached: Small,
) -> Ints:
    """The boxes that may still change between two prices, of those that did before; `reached` is room, and must be zero.

    `left` and `right` have the S of each box at both ends. A box with the same S at both keeps its partition in between: its
    best cost is a concave function of the price, with slope S. So does one with S = 0 at the lower end, whatever the higher one
    is. What is inside such boxes only matters if others hold it too.
    """
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
        for way in range(way_off[i], way_off[i + 1]):
            if allowed[i] & way_kind[way]:
                for e in range(link_off[way], link_off[way + 1]):
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

    Boxes whose fate is settled between the prices known so far are not looked at again, so that ever fewer are: their costs, and
    what becomes of them, stay as they were found last.
    """
    n = len(cost)
    top = n - 1
    best, left, right = np.empty(2 * n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    choice = np.full(n, PUBLISH, np.int64)
    active = np.arange(n)
    reached = np.zeros(n, np.int8)
    ways = (way_off, way_kind, way_lost, link_off, link)
    notes = begin_search(first_p, first_q)
    while True:
        p, q = notes[TRIED + P], notes[TRIED + Q]
        evaluate(active, cost, volume, *ways, allowed, p, q, best, choice)
        a, s = best[2 * top], best[2 * top + 1]
        verdict = judge(notes, a, s, budget)
        if verdict != GO_ON:
            return verdict == FOUND, p, q, a, s, choice
        side = right if s <= budget else left
        for i in active:
            side[i] = best[2 * i + 1]
        if notes[LEFT + KNOWN]:
            has_right = notes[RIGHT + KNOWN] > 0
            active = _still_open(active, way_off, way_kind, link_off, link, allowed, left, right, has_right, reached)


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
        if choice[i] == PUBLISH:
            kept[found] = i
            found += 1
        elif choice[i] != SUPPRESS:
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
    best = np.full(len(whole), PUBLISH, np.int64)
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
            choice[link[e]] = PUBLISH
    return spent
