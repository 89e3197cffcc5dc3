"""Best partition of a map into boxes over any kind of regions; one evaluation is one pass over the boxes."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
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
def _sink(heap: Ints, size: int, at: int, gain: Floats, boxes: Ints) -> None:
    """Move an entry of a heap down to its place; that with the largest gain is on top, of equal ones the first box."""
    entry = heap[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size:
            left, right = heap[below], heap[below + 1]
            below += gain[right] > gain[left] or (gain[right] == gain[left] and boxes[right] < boxes[left])
        other = heap[below]
        if gain[other] < gain[entry] or (gain[other] == gain[entry] and boxes[entry] < boxes[other]):
            break
        heap[at] = other
        at = below
    heap[at] = entry


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
    whole: Ints,
    cost: Ints,
    splits: Splits,
    allowed: Small,
    lost_cost: int,
    rest: int,
) -> tuple[Ints, int, int]:
    """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last.

    Of each box the split into whole boxes counts that saves most cost for a suppressed trip. Boxes that come of it are split
    again, until nothing more is suppressed. `whole` has the published boxes, and `choice` is changed. Returns the boxes that are
    then published, those of `whole` first; and how many trips were spent and how much cost was saved before the last round.
    """
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    # Entries of the list of boxes; few of them are used, and memory is taken for those alone.
    n, count, before = len(choice), len(whole), 0
    boxes, best, heap = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    gain = np.empty(n, np.float64)
    for entry in range(count):
        boxes[entry] = whole[entry]
    spent_before, saved_before = 0, 0
    while True:
        size, least = 0, rest
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
                heap[size] = entry
                size += 1
                least = min(least, lost[best[entry]])
        before = count
        spent, saved, at = 0, 0, size // 2
        while size > 0 and spent + least <= rest:  # otherwise nothing can be paid for any more
            if at > 0:
                at -= 1  # not yet a heap
            else:
                entry = heap[0]
                size -= 1
                heap[0] = heap[size]
                i, split = boxes[entry], best[entry]
                if lost[split] <= rest - spent:
                    choice[i] = split
                    gain[entry] = 0.0
                    spent += lost[split]
                    saved += cost[i]
                    for e in range(link_offsets[split], link_offsets[split + 1]):
                        boxes[count] = link[e]
                        count += 1
                        choice[link[e]] = PUBLISH
                        saved -= cost[link[e]]
            _sink(heap, size, at, gain, boxes)
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
