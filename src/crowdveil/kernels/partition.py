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
STAYS = -1


@kernel
def evaluate(
    cost: Ints,
    way_off: Ints,
    way_kind: Ints,
    way_lost: Ints,
    link_off: Ints,
    link: Ints,
    p: int,
    q: int,
    allowed: Small,
    choice: Ints,
) -> tuple[int, int]:
    """The best partition at the price p/q of a suppressed trip: its cost A and its suppressed volume S, q·A + p·S least.

    Of equal ones the least S is taken, which is the piece right of a breakpoint. q = 0 stands for an infinite price: S
    counts first, then A. `allowed` says whether each box may stay whole and which kinds of ways it may go, and `choice` is
    filled with the way that it goes, or STAYS. A box that may not stay whole goes some way, whatever it costs.
    """
    n = len(cost)
    best_a = np.empty(n, np.int64)
    best_s = np.empty(n, np.int64)
    for i in range(n):
        a, s, how = cost[i], 0, STAYS
        for way in range(way_off[i], way_off[i + 1]):
            if not allowed[i] & way_kind[way]:
                continue
            split_a, split_s = 0, way_lost[way]
            for e in range(link_off[way], link_off[way + 1]):
                split_a += best_a[link[e]]
                split_s += best_s[link[e]]
            if not allowed[i] & WHOLE and how == STAYS:
                better = True
            elif q == 0:
                better = split_s < s or (split_s == s and split_a < a)
            else:
                here, there = q * a + p * s, q * split_a + p * split_s
                better = there < here or (there == here and split_s < s)
            if better:
                a, s, how = split_a, split_s, way
        best_a[i], best_s[i], choice[i] = a, s, how
    return best_a[n - 1], best_s[n - 1]


@kernel
def published_boxes(choice: Ints, link_off: Ints, link: Ints) -> Ints:
    """The boxes that stay whole, from the last box (the whole map) down."""
    n = len(choice)
    stack = np.empty(n, np.int64)
    kept = np.empty(n, np.int64)
    stack[0] = n - 1
    depth, found = 1, 0
    while depth > 0:
        depth -= 1
        i = stack[depth]
        if choice[i] == STAYS:
            kept[found] = i
            found += 1
        else:
            for e in range(link_off[choice[i]], link_off[choice[i] + 1]):
                stack[depth] = link[e]
                depth += 1
    return kept[:found].copy()


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
            after = 0
            for e in range(link_off[way], link_off[way + 1]):
                after += cost[link[e]]
            worth = (cost[i] - after) / max(way_lost[way], 1)
            if worth > gain[at]:
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
def best_pruning(penalty: Floats, child_offsets: Ints, children: Ints) -> npt.NDArray[np.bool_]:
    """Which nodes of a tree are split for the least sum of penalties of what is left: a node, or its children's best."""
    best = np.empty(len(penalty), np.float64)
    split = np.zeros(len(penalty), np.bool_)
    for node in range(len(penalty)):
        best[node] = penalty[node]
        below = 0.0
        for e in range(child_offsets[node], child_offsets[node + 1]):
            below += best[children[e]]
        if child_offsets[node + 1] > child_offsets[node] and below < penalty[node]:
            best[node] = below
            split[node] = True
    return split
