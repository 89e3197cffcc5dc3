"""Best destinations of given origins under one budget: a forest of trees of boxes, solved at one multiplier or exactly.

A tree is solved by passing up from each box the cost A and the suppressed volume S of the better of staying whole and being
split, so that one evaluation is one pass over flat arrays in post-order.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints, Mask
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.exact_compare import sign_at
from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, TRIED, P, Q, begin_search, judge
from crowdveil.kernels.od.structures import ForestCosts


@kernel
def evaluate_forest(
    start: int,
    cost: Ints,
    split_a: Ints,
    split_s: Ints,
    above: Ints,
    p: int,
    q: int,
    sum_a: Ints,
    sum_s: Ints,
    whole: Mask,
) -> tuple[int, int]:
    """Find the best partition at the multiplier p/q: its cost A and its suppressed volume S; `whole` gets which boxes stay whole.

    A box that is split costs `split_a` and gives up `split_s` (-1: it cannot be split) in addition to what its children cost.
    Of equal ones the least S is taken. q = 0 is an infinite multiplier. Boxes before `start` do not count. `sum_a` and `sum_s`
    are buffers and must be zero.
    """
    total_a, total_s = 0, 0
    infinite = q == 0
    # Indices are unsigned: others would each be tested for being counted from the end.
    for i in range(np.uintp(start), np.uintp(len(cost))):
        a, s = sum_a[i] + split_a[i], sum_s[i] + split_s[i]
        sum_a[i], sum_s[i] = 0, 0
        # Without a branch: which of the two it is changes from box to box, so that it would be mispredicted.
        dearer = (s > 0) | (a >= cost[i]) if infinite else sign_at(p, q, a - cost[i], s) >= 0
        stays = dearer | (split_s[i] < 0)
        whole[i] = stays
        a, s = cost[i] if stays else a, 0 if stays else s
        over = above[i]
        if over >= 0:
            sum_a[np.uintp(over)] += a
            sum_s[np.uintp(over)] += s
        else:
            total_a += a
            total_s += s
    return total_a, total_s


@kernel
def _contract(
    start: int,
    cost: Ints,
    split_a: Ints,
    split_s: Ints,
    above: Ints,
    number: Ints,
    whole: Mask,
    place: Ints,
    known_whole: bool,
    fate: Mask,
) -> tuple[int, int, int]:
    """Remove boxes that are settled, in place: those that stay whole, or those that are split. Their cost goes to the box above.

    Returns where the boxes that are left begin, and the cost and suppressed volume without a box above. `fate` gets whether a
    box stays whole, by its original `number`; that of boxes inside whole ones does not matter. Boxes are moved to the end,
    those above first, so that one pass from the back is enough. `place` is a buffer for where each went: its new number, that of
    the box above where it was split, -1 for none, or -2 inside a box that stays whole.
    """
    base_a, base_s = 0, 0
    end = len(cost)
    for back in range(len(cost) - 1, start - 1, -1):
        i = np.uintp(back)
        over = place[np.uintp(above[i])] if above[i] >= 0 else -1
        up = np.uintp(over)
        if over == -2:
            place[i] = -2
        elif known_whole and whole[i]:
            place[i] = -2
            fate[np.uintp(number[i])] = True
            if over >= 0:
                split_a[up] += cost[i]
            else:
                base_a += cost[i]
        elif not known_whole and not whole[i]:
            place[i] = over
            if over >= 0:
                split_a[up] += split_a[i]
                split_s[up] += split_s[i]
            else:
                base_a += split_a[i]
                base_s += split_s[i]
        else:
            end -= 1
            place[i] = end
            to = np.uintp(end)
            cost[to], split_a[to], split_s[to], above[to], number[to] = cost[i], split_a[i], split_s[i], over, number[i]
    return end, base_a, base_s


@kernel
def boxes_inside(above: Ints, stops: Mask) -> Mask:
    """Return the boxes that lie inside one of `stops`, below it."""
    inside = np.zeros(len(above), np.bool_)
    for i in range(len(above) - 1, -1, -1):
        if above[i] >= 0:
            inside[i] = inside[above[i]] or stops[above[i]]
    return inside


@kernel
def _published(above: Ints, whole: Mask) -> Mask:
    """Return the boxes that stay whole and lie in none that does."""
    published = boxes_inside(above, whole)
    for i in range(len(above)):
        published[i] = whole[i] and not published[i]
    return published


@kernel
def solve_forest(costs: ForestCosts, p: int, q: int) -> tuple[int, int, Mask]:
    """Find the best partition at the multiplier p/q: its cost A, its suppressed volume S, and the boxes that are published."""
    cost, lost, above, lost_cost, gone = costs
    n = len(cost)
    split_a = np.empty(n, np.int64)
    for i in range(n):
        split_a[i] = lost_cost * max(lost[i], 0)
    sums_a, sums_s, whole = np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(n, np.bool_)
    a, s = evaluate_forest(0, cost, split_a, lost, above, p, q, sums_a, sums_s, whole)
    return a + lost_cost * gone, s + gone, _published(above, whole)


@kernel
def find_offers(costs: ForestCosts, p: int, q: int) -> tuple[Ints, Ints, Mask]:
    """Return what splitting each box saves and what it suppresses, with the best partition inside it at the multiplier p/q;
    and which boxes stay whole at it. Boxes that cannot be split save nothing.
    """
    cost, lost, above, lost_cost, _ = costs
    n = len(cost)
    saved, spent = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sum_a, sum_s, whole = np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(n, np.bool_)
    for i in range(n):
        a, s = cost[i], 0
        if lost[i] >= 0:
            split_a, split_s = sum_a[i] + lost_cost * lost[i], sum_s[i] + lost[i]
            saved[i], spent[i] = a - split_a, split_s
            whole[i] = (split_s > 0 or split_a >= a) if q == 0 else sign_at(p, q, split_a - a, split_s) >= 0
            if not whole[i]:
                a, s = split_a, split_s
        if above[i] >= 0:
            sum_a[above[i]] += a
            sum_s[above[i]] += s
    return saved, spent, whole


@kernel
def take_offers(boxes: Ints, spent: Ints, above: Ints, whole: Mask, rest: int) -> tuple[int, Mask]:
    """Split boxes that stay whole, in the order given, as long as `rest` trips last.

    Returns how many trips were suppressed, and which boxes are published then. `whole` is changed.
    """
    taken = 0
    for i in boxes:
        if spent[i] <= rest - taken:
            whole[i] = False
            taken += spent[i]
    return taken, _published(above, whole)


@kernel
def search_forest(costs: ForestCosts, budget: int, first_p: int, first_q: int) -> tuple[bool, int, int, int, int, Mask]:
    """Find the multiplier whose best partition suppresses at most `budget`; `first_p`/`first_q` is tried first.

    Returns found or not, p, q, cost A, suppressed volume S, and the boxes that are published. Boxes that are settled by the two
    multipliers around the answer are taken out: one that stays whole at the lower one, one that is split at the higher one. All
    steps together cost a few passes.
    """
    cost, lost, above, lost_cost, gone = costs
    n = len(cost)
    cost_left, up = cost.copy(), above.copy()
    split_a, split_s = np.empty(n, np.int64), lost.copy()
    for i in range(n):
        split_a[i] = lost_cost * max(lost[i], 0)
    sum_a, sum_s, whole = np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(n, np.bool_)
    place, number, fate = np.empty(n, np.int64), np.arange(n), np.zeros(n, np.bool_)
    start, fixed_a, fixed_s, settled = 0, lost_cost * gone, gone, 0
    notes = begin_search(first_p, first_q)
    while True:
        end_if_stopped()
        p, q = notes[TRIED + P], notes[TRIED + Q]
        a, s = evaluate_forest(start, cost_left, split_a, split_s, up, p, q, sum_a, sum_s, whole)
        a, s = a + fixed_a, s + fixed_s
        verdict = judge(notes, a, s, budget)
        if verdict != GO_ON:
            for i in range(start, n):
                fate[number[i]] = whole[i]
            return verdict == FOUND, p, q, a, s, _published(above, fate)
        side = 1 if s > budget else -1
        if side == settled:
            continue  # another multiplier on the same side settles few boxes more
        settled = side
        start, more_a, more_s = _contract(
            start, cost_left, split_a, split_s, up, number, whole, place, s > budget, fate
        )
        fixed_a, fixed_s = fixed_a + more_a, fixed_s + more_s


@kernel
def solve_forest_exactly(
    costs: ForestCosts, budget: int, p: int, q: int, spare: int, max_states: int
) -> tuple[bool, int, int, Mask]:
    """Find the cheapest partition within the budget, by dynamic programming over lists of (cost, suppressed volume).

    `p`/`q` is the multiplier that `search_forest` found and `spare` the budget less its S: a state whose q·A + p·S exceeds the
    lower bound of its box by more than p · `spare` cannot be part of anything better than what the multiplier gave, and is
    dropped, as are states that another beats in both. Bounds are kept as pairs of A and S. Returns whether it was done, cost,
    suppressed volume and the boxes that stay whole (of those above which all are split). Not done: more than `max_states`
    states would be needed.
    """
    cost, lost, above, lost_cost, gone = costs
    n = len(cost)
    whole = np.zeros(n, np.bool_)
    # Children of each box, and of the place above all trees (number n), as linked lists.
    first, following = np.full(n + 1, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        up = above[i] if above[i] >= 0 else n
        following[i] = first[up]
        first[up] = i
    state_a, state_s = np.empty(1024, np.int64), np.empty(1024, np.int64)
    # A state is a sum of two (the first may be none), or a box that stays whole (-2, its number).
    state_x, state_y = np.empty(1024, np.int64), np.empty(1024, np.int64)
    states = 0
    low, high = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    bound_a, bound_s = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for i in range(n + 1):
        end_if_stopped()
        base = gone if i == n else lost[i]
        begin, end = states, states
        floor_a, floor_s = 0, 0
        if base >= 0:
            state_a, state_s = grow(state_a, states + 1), grow(state_s, states + 1)
            state_x, state_y = grow(state_x, states + 1), grow(state_y, states + 1)
            state_a[states], state_s[states] = lost_cost * base, base
            state_x[states], state_y[states] = -1, -1
            states += 1
            end = states
            floor_a, floor_s = lost_cost * base, base
            child = first[i]
            while child >= 0:  # to the end even if no state is left: the bound must be known
                floor_a, floor_s = floor_a + bound_a[child], floor_s + bound_s[child]
                new, new_end = states, states
                for x in range(begin, end):
                    for y in range(low[child], high[child]):
                        a, s = state_a[x] + state_a[y], state_s[x] + state_s[y]
                        if s > budget or sign_at(p, q, a - floor_a, s - floor_s - spare) > 0:
                            continue
                        # Into the list by rising S and falling A: behind all with S not above.
                        left, right = new, new_end
                        while left < right:
                            middle = (left + right) // 2
                            if state_s[middle] <= s:
                                left = middle + 1
                            else:
                                right = middle
                        if left > new and state_a[left - 1] <= a:
                            continue
                        place = left
                        if place > new and state_s[place - 1] == s:
                            place -= 1
                        over = place
                        while over < new_end and state_a[over] >= a:
                            over += 1
                        shift = place + 1 - over
                        if shift > 0:
                            state_a, state_s = grow(state_a, new_end + 1), grow(state_s, new_end + 1)
                            state_x, state_y = grow(state_x, new_end + 1), grow(state_y, new_end + 1)
                            for z in range(new_end - 1, over - 1, -1):
                                state_a[z + 1], state_s[z + 1] = state_a[z], state_s[z]
                                state_x[z + 1], state_y[z + 1] = state_x[z], state_y[z]
                        elif shift < 0:
                            for z in range(over, new_end):
                                state_a[z + shift], state_s[z + shift] = state_a[z], state_s[z]
                                state_x[z + shift], state_y[z + shift] = state_x[z], state_y[z]
                        new_end += shift
                        state_a[place], state_s[place], state_x[place], state_y[place] = a, s, x, y
                begin, end, states = new, new_end, new_end
                if states > max_states:
                    return False, 0, 0, whole
                child = following[child]
        if i < n:
            stays = base < 0 or sign_at(p, q, cost[i] - floor_a, -floor_s) < 0
            bound_a[i], bound_s[i] = cost[i] if stays else floor_a, 0 if stays else floor_s
            # Staying whole suppresses nothing: only a split that suppresses nothing and is cheaper beats it.
            beaten = end > begin and state_s[begin] == 0 and state_a[begin] < cost[i]
            keep = not beaten and sign_at(p, q, cost[i] - bound_a[i], -bound_s[i] - spare) <= 0
            new = states
            state_a, state_s = grow(state_a, new + end - begin + 1), grow(state_s, new + end - begin + 1)
            state_x, state_y = grow(state_x, new + end - begin + 1), grow(state_y, new + end - begin + 1)
            if keep:
                state_a[states], state_s[states], state_x[states], state_y[states] = cost[i], 0, -2, i
                states += 1
            for z in range(begin, end):
                a, s = state_a[z], state_s[z]
                if (keep and a >= cost[i]) or sign_at(p, q, a - bound_a[i], s - bound_s[i] - spare) > 0:
                    continue
                state_a[states], state_s[states], state_x[states], state_y[states] = a, s, -1, z
                states += 1
            begin, end = new, states
        low[i], high[i] = begin, end
    if high[n] == low[n]:
        return False, 0, 0, whole
    # By rising S costs fall: the last one is the cheapest.
    answer = high[n] - 1
    todo = np.empty(states + 1, np.int64)
    todo[0] = answer
    depth = 1
    while depth > 0:
        depth -= 1
        state = todo[depth]
        if state_x[state] == -2:
            whole[state_y[state]] = True
            continue
        for part in (state_x[state], state_y[state]):
            if part >= 0:
                todo[depth] = part
                depth += 1
    return True, state_a[answer], state_s[answer], whole
