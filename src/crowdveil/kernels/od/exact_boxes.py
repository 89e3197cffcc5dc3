"""Cheapest partition of a map into boxes within a budget, near the one that a multiplier found: lists of costs and volumes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Ints, Mask, Small
from crowdveil.kernels.od.partition import sign_at
from crowdveil.kernels.od.structures import PUBLISH, SUPPRESS, WHOLE, Splits

TOO_MANY, FOUND, NONE_FOUND = 0, 1, 2
"""How a search ends: it needs too many states; a partition was found; there is none within the slack."""
BASE = -1
"""In place of the first summand of a state: the state is the volume that a split gives up, and nothing else."""


class Slack(NamedTuple):
    """How much q·A + p·S of a partition may exceed that of the best one: less than q·a + p·s; or any amount."""

    bounded: bool
    a: int
    s: int


class UsedSlack(NamedTuple):
    """Which boxes are part of any partition within the slack, and what the rest of the map uses of it at least, as A and S."""

    reached: Mask
    a: Ints
    s: Ints


@kernel
def reach(best: Ints, cost: Ints, splits: Splits, allowed: Small, p: int, q: int, slack: Slack) -> UsedSlack:
    """Return the boxes of partitions within the slack, and how much of it the rest of the map uses at least for each.

    `best` has the cost and the suppressed volume of the best partition of each box at the multiplier p/q, side by side.
    """
    offsets, kind, lost, link_offsets, link = splits
    n = len(cost)
    reached, used_a, used_s = np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64)
    reached[n - 1] = True
    for i in range(n - 1, -1, -1):
        if not reached[i]:
            continue
        for split in range(offsets[i], offsets[i + 1]):
            if not allowed[i] & kind[split]:
                continue
            more_a, more_s = used_a[i] - best[2 * i], used_s[i] + lost[split] - best[2 * i + 1]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                more_a += best[2 * link[e]]
                more_s += best[2 * link[e] + 1]
            if not slack.bounded:
                more_a, more_s = 0, 0
            elif sign_at(p, q, more_a - slack.a, more_s - slack.s) >= 0:
                continue
            for e in range(link_offsets[split], link_offsets[split + 1]):
                part = link[e]
                if not reached[part] or sign_at(p, q, more_a - used_a[part], more_s - used_s[part]) < 0:
                    reached[part], used_a[part], used_s[part] = True, more_a, more_s
    return UsedSlack(reached, used_a, used_s)


@kernel
def _undominated(state: Ints, low: int, high: int) -> int:
    """Keep the states from `low` to `high` that no other beats in cost and volume, by rising volume; return where they end."""
    count = high - low
    rows = state[4 * low : 4 * high].copy().reshape(count, 4)
    # By volume and, of equal ones, by cost: the second sort keeps the order of the first.
    order = np.argsort(rows[:, 0], kind="mergesort")
    order = order[np.argsort(rows[order, 1], kind="mergesort")]
    end = low
    for place in order:
        if end > low and state[4 * (end - 1)] <= rows[place, 0]:
            continue
        for column in range(4):
            state[4 * end + column] = rows[place, column]
        end += 1
    return end


@kernel
def solve_exactly(
    cost: Ints,
    volume: Ints,
    splits: Splits,
    allowed: Small,
    best: Ints,
    used: UsedSlack,
    budget: int,
    p: int,
    q: int,
    slack: Slack,
    lost_cost: int,
    max_states: int,
) -> tuple[int, Ints]:
    """Return how the search for the cheapest partition within the budget ends, and the choice for each box.

    Boxes that are not `reached` are left out, see `reach`. A state is a cost A and a suppressed volume S; those that another
    beats in both, that exceed the budget, or that exceed the slack together with the rest of the map, are dropped. The search
    ends without a result if more than `max_states` states are needed.
    """
    offsets, kind, lost, link_offsets, link = splits
    n = len(cost)
    # A, S, and two more numbers: a sum has its two states; the first is BASE with the split, or PUBLISH or SUPPRESS.
    state = np.empty(4096, np.int64)
    low, high = np.zeros(n, np.int64), np.zeros(n, np.int64)
    states = 0
    none = np.zeros(0, np.int64)
    for i in range(n):
        if not used.reached[i]:
            continue
        # The bound of q·A + p·S of the box: that of its best partition, and the slack that is left.
        most_a = best[2 * i] + slack.a - used.a[i]
        most_s = best[2 * i + 1] + slack.s - used.s[i]
        may_stay = (allowed[i] & WHOLE) > 0
        may_split = False
        for split in range(offsets[i], offsets[i + 1]):
            may_split |= (allowed[i] & kind[split]) > 0
        kept = states  # sums that are not final stay before the list of the box
        ends = np.empty(2 * (offsets[i + 1] - offsets[i]) + 2, np.int64)
        lists = 0
        if may_stay or not may_split:
            a, s = (cost[i], 0) if may_stay else (0, volume[i])
            if s <= budget and (not slack.bounded or sign_at(p, q, a - most_a, s - most_s) < 0):
                state = grow(state, 4 * (kept + 1))
                state[4 * kept], state[4 * kept + 1] = a, s
                state[4 * kept + 2], state[4 * kept + 3] = (PUBLISH if may_stay else SUPPRESS) - 1, i
                ends[0], ends[1] = kept, kept + 1
                lists, kept = 1, kept + 1
        for split in range(offsets[i], offsets[i + 1]):
            if not allowed[i] & kind[split] or lost[split] > budget:
                continue
            floor_a, floor_s = 0, lost[split]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                floor_a += best[2 * link[e]]
                floor_s += best[2 * link[e] + 1]
            room_a, room_s = most_a - floor_a, most_s - floor_s
            if slack.bounded and sign_at(p, q, -room_a, -room_s) >= 0:
                continue
            state = grow(state, 4 * (kept + 1))
            state[4 * kept], state[4 * kept + 1] = 0, lost[split]
            state[4 * kept + 2], state[4 * kept + 3] = BASE, split
            begin, end = kept, kept + 1
            bound_a, bound_s = 0, lost[split]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                child = link[e]
                bound_a, bound_s = bound_a + best[2 * child], bound_s + best[2 * child + 1]
                new = end
                for x in range(begin, end):
                    for y in range(low[child], high[child]):
                        a, s = state[4 * x] + state[4 * y], state[4 * x + 1] + state[4 * y + 1]
                        over_a, over_s = a - bound_a - room_a, s - bound_s - room_s
                        if s > budget or (slack.bounded and sign_at(p, q, over_a, over_s) >= 0):
                            continue
                        state = grow(state, 4 * (new + 1))
                        state[4 * new], state[4 * new + 1], state[4 * new + 2], state[4 * new + 3] = a, s, x, y
                        new += 1
                        if new > max_states:
                            return TOO_MANY, none
                begin, end = end, _undominated(state, end, new)
            if end > begin:
                ends[2 * lists], ends[2 * lists + 1] = begin, end
                lists += 1
            kept = end
        new = kept
        for which in range(lists):
            for x in range(ends[2 * which], ends[2 * which + 1]):
                state = grow(state, 4 * (new + 1))
                for column in range(4):
                    state[4 * new + column] = state[4 * x + column]
                new += 1
        if new > max_states:
            return TOO_MANY, none
        low[i], high[i] = kept, _undominated(state, kept, new)
        states = high[i]
    return _read_choices(state, low[n - 1], high[n - 1], splits, n, lost_cost)


@kernel
def _read_choices(state: Ints, low: int, high: int, splits: Splits, n: int, lost_cost: int) -> tuple[int, Ints]:
    """Return the choice for each box in the cheapest state of the whole map."""
    link_offsets, link = splits.link_offsets, splits.link
    choice = np.full(n, PUBLISH, np.int64)
    if high == low:
        return NONE_FOUND, choice
    cheapest = low
    for x in range(low, high):
        if state[4 * x] + lost_cost * state[4 * x + 1] < state[4 * cheapest] + lost_cost * state[4 * cheapest + 1]:
            cheapest = x
    boxes, states = np.empty(n, np.int64), np.empty(n, np.int64)
    boxes[0], states[0] = n - 1, cheapest
    depth = 1
    while depth > 0:
        depth -= 1
        box, x = boxes[depth], states[depth]
        first = state[4 * x + 2]
        if first == PUBLISH - 1 or first == SUPPRESS - 1:
            choice[box] = first + 1
            continue
        top = depth
        while state[4 * x + 2] != BASE:
            states[depth] = state[4 * x + 3]
            depth += 1
            x = state[4 * x + 2]
        split = state[4 * x + 3]
        choice[box] = split
        # The last child was added last, and is met first.
        last = link_offsets[split + 1] - 1
        for k in range(top, depth):
            boxes[k] = link[last - (k - top)]
    return FOUND, choice
