"""Boxes whose partition is not settled between two multipliers: a smaller problem with the same partitions in between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints, Small
from crowdveil.kernels.od.exact_compare import sign_at
from crowdveil.kernels.od.multiplier_search import FOUND, GO_ON, TRIED, P, Q, judge
from crowdveil.kernels.od.structures import PUBLISH

MARGIN = 1 + 1e-9
"""Factor by which a split must cost more than the best one to be left out: sums in floating point are much more exact."""


class OpenBoxes(NamedTuple):
    """Boxes that are not settled, each after those that it can be split into.

    The number of each among all boxes; its cost if it is published whole (-1: never); its splits: offsets by box, the number of
    each among all splits, cost and suppressed volume of its settled parts, and its open parts.
    """

    box: Ints
    whole: Ints
    offsets: Ints
    split: Ints
    settled_a: Ints
    settled_s: Ints
    link_offsets: Ints
    link: Ints


class AtMultiplier(NamedTuple):
    """The best partition of each open box at a multiplier p/q: cost A, suppressed volume S, and what becomes of the box."""

    p: int
    q: int
    a: Ints
    s: Ints
    choice: Ints


@kernel
def evaluate_open(boxes: OpenBoxes, p: int, q: int) -> AtMultiplier:
    """Find the best partition of each open box at a multiplier, as `partition.evaluate` does."""
    end_if_stopped()
    n = len(boxes.box)
    a, s, choice = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    _, whole, offsets, number, settled_a, settled_s, link_offsets, link = boxes
    for i in range(n):
        best_a, best_s, how = whole[i], 0, PUBLISH
        none = best_a < 0
        for split in range(offsets[i], offsets[i + 1]):
            split_a, split_s = settled_a[split], settled_s[split]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                split_a += a[link[e]]
                split_s += s[link[e]]
            if none:
                better = True
            elif q == 0:
                better = split_s < best_s or (split_s == best_s and split_a < best_a)
            else:
                sign = sign_at(p, q, split_a - best_a, split_s - best_s)
                better = sign < 0 or (sign == 0 and split_s < best_s)
            if better:
                best_a, best_s, how, none = split_a, split_s, number[split], False
        a[i], s[i], choice[i] = best_a, best_s, how
    return AtMultiplier(p, q, a, s, choice)


@kernel
def narrow(boxes: OpenBoxes, left: AtMultiplier, right: AtMultiplier) -> tuple[OpenBoxes, Ints]:
    """Return the boxes that may still change between two multipliers, and their positions among those that did before.

    The best cost of a box is a concave function of the multiplier, with slope S. So a box with the same S at both ends keeps
    its partition in between, and its cost is added to the splits that it is part of. A split costs no less than the chord
    between its costs at both ends, and the best one no more than the tangents there: one whose chord lies above them is left out,
    and with it the boxes that no other split needs.
    """
    n = len(boxes.box)
    offsets, settled_a, settled_s = boxes.offsets, boxes.settled_a, boxes.settled_s
    link_offsets, link = boxes.link_offsets, boxes.link
    left_cost, left_volume, right_cost, right_volume = left.a, left.s, right.a, right.s
    pruned = right.q > 0  # an infinite multiplier has no chords
    low, high = left.p / left.q, right.p / right.q if pruned else np.inf
    whole = boxes.whole.copy()
    used = np.zeros(len(boxes.split), np.int8)
    place = np.full(n, -1, np.int64)  # 0: reached and open
    place[n - 1] = 0
    count, splits, links = 0, 0, 0
    for i in range(n - 1, -1, -1):
        if place[i] < 0:
            continue
        if left_volume[i] == right_volume[i]:
            place[i] = -1
            continue
        count += 1
        # What the best partition costs at both ends, and where the tangents there meet, as a share of the way between them.
        best_low, best_high = left_cost[i] + low * left_volume[i], right_cost[i] + high * right_volume[i]
        meet = (right_cost[i] - left_cost[i]) / (left_volume[i] - right_volume[i])
        share = min(max((meet - low) / (high - low), 0.0), 1.0)
        best_meet = left_cost[i] + meet * left_volume[i]
        cost = float(whole[i])
        if pruned and cost > MARGIN * max(best_low, best_high, best_meet):
            whole[i] = -1
        for split in range(offsets[i], offsets[i + 1]):
            left_a, left_s = settled_a[split], settled_s[split]
            right_a, right_s = left_a, left_s
            for e in range(link_offsets[split], link_offsets[split + 1]):
                part = link[e]
                left_a, left_s = left_a + left_cost[part], left_s + left_volume[part]
                right_a, right_s = right_a + right_cost[part], right_s + right_volume[part]
            at_low, at_high = left_a + low * left_s, right_a + high * right_s
            at_meet = at_low + (at_high - at_low) * share
            if pruned and at_low > MARGIN * best_low and at_high > MARGIN * best_high and at_meet > MARGIN * best_meet:
                continue
            used[split] = 1
            splits += 1
            links += link_offsets[split + 1] - link_offsets[split]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                place[link[e]] = 0
    return _compact(boxes, whole, used, place, left, count, splits, links)


@kernel
def _compact(
    boxes: OpenBoxes, whole: Ints, used: Small, place: Ints, left: AtMultiplier, count: int, splits: int, links: int
) -> tuple[OpenBoxes, Ints]:
    """Return the open boxes with their used splits; settled parts are added to the splits."""
    kept, offsets = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    split_of, settled_a = np.empty(splits, np.int64), np.empty(splits, np.int64)
    settled_s, link_offsets = np.empty(splits, np.int64), np.zeros(splits + 1, np.int64)
    link = np.empty(links, np.int64)
    made, parts, linked = 0, 0, 0
    for i in range(len(place)):
        if place[i] < 0:
            continue
        for split in range(boxes.offsets[i], boxes.offsets[i + 1]):
            if not used[split]:
                continue
            split_of[parts] = boxes.split[split]
            settled_a[parts], settled_s[parts] = boxes.settled_a[split], boxes.settled_s[split]
            for e in range(boxes.link_offsets[split], boxes.link_offsets[split + 1]):
                part = boxes.link[e]
                if place[part] < 0:
                    settled_a[parts] += left.a[part]
                    settled_s[parts] += left.s[part]
                else:
                    link[linked] = place[part]
                    linked += 1
            parts += 1
            link_offsets[parts] = linked
        place[i], kept[made] = made, i
        made += 1
        offsets[made] = parts
    found = OpenBoxes(
        boxes.box[kept], whole[kept], offsets, split_of, settled_a, settled_s, link_offsets, link[:linked].copy()
    )
    return found, kept


@kernel
def search_open(
    boxes: OpenBoxes, left: AtMultiplier, right: AtMultiplier, budget: int, notes: Ints, choice: Ints
) -> tuple[bool, int, int, int, int]:
    """Find the multiplier of one budget between two others, from the one in `notes` on, as `partition.search` does.

    Returns found or not, p, q, cost and suppressed volume; `choice` of all boxes is filled for those that are open.
    """
    while True:
        p, q = notes[TRIED + P], notes[TRIED + Q]
        here = evaluate_open(boxes, p, q)
        for i in range(len(boxes.box)):
            choice[boxes.box[i]] = here.choice[i]
        a, s = here.a[-1], here.s[-1]
        verdict = judge(notes, a, s, budget)
        if verdict != GO_ON:
            return verdict == FOUND, p, q, a, s
        if s <= budget:
            right = here
        else:
            left = here
        boxes, kept = narrow(boxes, left, right)
        left = AtMultiplier(left.p, left.q, left.a[kept], left.s[kept], kept)
        right = AtMultiplier(right.p, right.q, right.a[kept], right.s[kept], kept)
