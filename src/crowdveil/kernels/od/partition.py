"""Best partition of a map into boxes over any kind of regions; one evaluation is one pass over the boxes."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Floats, Ints, Small
from crowdveil.kernels.od.exact_compare import sign_at
from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, KNOWN, LEFT, RIGHT, TRIED, P, Q, judge
from crowdveil.kernels.od.structures import ANY_CHOICE, PUBLISH, SUPPRESS, WHOLE, SearchArrays, Splits


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

    Of equal ones the least S is taken, which is the piece right of a breakpoint. q = 0 stands for an infinite multiplier: S
    counts first, then A. `allowed` says whether each box may stay whole and which kinds of splits it may take. `choice` is
    filled with the split that it takes, or PUBLISH; or SUPPRESS, if it must not stay whole and cannot be split. Only boxes in
    `active` are evaluated, children before parents. `best` is filled with A and S of each box, side by side.
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
    active: Ints,
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
    the multipliers known so far are not evaluated again: their costs and choices stay as they were found last. A search that
    begins has all boxes in `active`; one that goes on has those that are still open between the multipliers in its notes.
    """
    best, choice, left, right = arrays
    top = len(cost) - 1
    reached = np.zeros(len(cost), np.int8)
    while True:
        end_if_stopped()
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
    """Return the boxes that stay whole and those that are split, from the last box (the whole map) down."""
    link_offsets, link = splits.link_offsets, splits.link
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
            for e in range(link_offsets[choice[i]], link_offsets[choice[i] + 1]):
                stack[depth] = link[e]
                depth += 1
    return kept[:found].copy(), split[:parted].copy()


@kernel
def best_splits(
    whole: Ints,
    cost: Ints,
    splits: Splits,
    allowed: Small,
    lost_cost: int,
    rest: int,
) -> tuple[Floats, Ints]:
    """Return, for each whole box, the gain of its best split within `rest` trips and that split.

    The best split into whole boxes is the one that saves most cost for a suppressed trip.
    """
    offsets, kind, lost, link_offsets, link = splits
    gain = np.zeros(len(whole), np.float64)
    best = np.full(len(whole), PUBLISH, np.int64)
    for at in range(len(whole)):
        i = whole[at]
        for split in range(offsets[i], offsets[i + 1]):
            if lost[split] > rest or not allowed[i] & kind[split]:
                continue
            after, may = 0, True
            for e in range(link_offsets[split], link_offsets[split + 1]):
                after += cost[link[e]]
                may &= (allowed[link[e]] & WHOLE) > 0
            worth = (cost[i] - after - lost_cost * lost[split]) / max(lost[split], 1)
            if may and worth > gain[at]:
                gain[at] = worth
                best[at] = split
    return gain, best


@kernel
def apply_splits(boxes: Ints, chosen: Ints, splits: Splits, choice: Ints, rest: int) -> int:
    """Split boxes in the order given as long as `rest` trips last; return the volume that this suppressed."""
    lost, link_offsets, link = splits.lost, splits.link_offsets, splits.link
    spent = 0
    for at in range(len(boxes)):
        split = chosen[at]
        if lost[split] > rest - spent:
            continue
        choice[boxes[at]] = split
        spent += lost[split]
        for e in range(link_offsets[split], link_offsets[split + 1]):
            choice[link[e]] = PUBLISH
    return spent
