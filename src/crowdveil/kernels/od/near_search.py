"""Search for the multiplier that keeps a budget, from multipliers that were tried for all boxes.

One pass over all boxes tries several multipliers (`several_multipliers`). Few boxes then differ between the two nearest to the
budget: these alone are copied into arrays of their own, and evaluated at the multipliers that follow (`partition.search`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import inner_kernel, kernel, lowest_bit
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.multiplier_search import (
    FOUND,
    GO_ON,
    MAX_GUESSES,
    TO_CORNER,
    TRIED,
    TRIES,
    P,
    Q,
    begin_search,
    judge,
)
from crowdveil.kernels.od.partition import search
from crowdveil.kernels.od.several_multipliers import LATER, evaluate_keys, read_key
from crowdveil.kernels.od.structures import ANY_CHOICE, CHOICE_BITS, COLUMNS, PARTS, PUBLISH, SearchArrays, Splits

MARGIN = 1 + 1e-9
"""Factor by which a split must cost more than the best one to be left out: sums in floating point are much more exact."""


LEFT_END, RIGHT_END = 0, 2
"""Where an array of what `Ends` has begins with the left and with the right one."""


class Ends(NamedTuple):
    """The multipliers that a budget lies between, in PARTS, and where the keys of the first box at them are; -1: not known.

    Those of another box are COLUMNS further for each box before it. `bits` are those of a suppressed volume in a key.
    """

    left: int
    left_p: int
    right: int
    right_p: int
    bits: int


class OpenBoxes(NamedTuple):
    """The boxes that may change between two multipliers, and those that they are split into, each after those.

    They are at the end of arrays that have room for all. Number and cost of each, its splits, the number of each split; and those
    that are open.
    """

    box: Ints
    cost: Ints
    splits: Splits
    split: Ints
    opened: Ints


@inner_kernel
def _slopes(keys: Ints, ends: Ends, i: int) -> tuple[int, int]:
    """Return the suppressed volume of a box at both ends; a box is open if they differ.

    Its best cost is a concave function of the multiplier with this slope: with the same one at both ends it has the same
    partition in between. Beyond all multipliers nothing is suppressed, and before all of them every box is open.
    """
    mask = (1 << ends.bits) - 1
    right = (keys[np.uintp(ends.right + COLUMNS * i)] >> CHOICE_BITS) & mask if ends.right >= 0 else 0
    left = (keys[np.uintp(ends.left + COLUMNS * i)] >> CHOICE_BITS) & mask if ends.left >= 0 else right + 1
    return left, right


@inner_kernel
def _is_used(
    split: int, splits: Splits, keys: Ints, ends: Ends, low: int, high: int, meet: float, share: float
) -> bool:
    """Return whether a split may be the best one somewhere between both ends.

    It costs no less than the chord between its costs there. The best one costs no more than `low` and `high` there and, where
    the tangents at both ends meet at a `share` of the way, no more than `meet`.
    """
    split_low, split_high = ends.left_p * splits.lost[np.uintp(split)], ends.right_p * splits.lost[np.uintp(split)]
    for e in range(np.uintp(splits.link_offsets[np.uintp(split)]), np.uintp(splits.link_offsets[np.uintp(split + 1)])):
        part = COLUMNS * splits.link[e]
        split_low += keys[np.uintp(ends.left + part)] >> (ends.bits + CHOICE_BITS)
        split_high += keys[np.uintp(ends.right + part)] >> (ends.bits + CHOICE_BITS)
    above = split_low > MARGIN * low and split_high > MARGIN * high
    return not (above and split_low + (split_high - split_low) * share > MARGIN * meet)


@inner_kernel
def _reach(reached: Ints, last: int, box: int) -> None:
    """Mark a box. Marks are by distance from the last one: those above a box come before it."""
    place = last - box
    reached[np.uintp(place >> 6)] |= 1 << (place & 63)


@inner_kernel
def _open_boxes(cost: Ints, splits: Splits, keys: Ints, ends: Ends, arrays: SearchArrays) -> OpenBoxes:
    """Copy the boxes that may change between both ends, of those that a partition may need, and those that they consist of.

    What the others cost goes into `arrays.best`.
    """
    best, on_left, on_right = arrays.best, arrays.left, arrays.right
    n, bits, both = len(cost), ends.bits, ends.left >= 0 and ends.right >= 0
    known, known_p = (ends.right, ends.right_p) if ends.right >= 0 else (ends.left, ends.left_p)
    box, place, own_cost = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    opened, at_open, at = np.empty(n, np.int64), n, n
    at_split, at_link = len(splits.lost), len(splits.link)
    number, kind, own_lost = np.empty(at_split, np.int64), np.empty(at_split, np.int64), np.empty(at_split, np.int64)
    offsets, link_offsets = np.empty(n + 1, np.int64), np.empty(at_split + 1, np.int64)
    offsets[n], link_offsets[at_split], link = at_split, at_link, np.empty(at_link, np.int64)
    reached = np.zeros((n >> 6) + 1, np.int64)
    reached[0] = 1
    for word in range(len(reached)):
        while reached[word] != 0:
            i = n - 1 - 64 * word - lowest_bit(reached[word])
            reached[word] &= reached[word] - 1
            at -= 1
            to, of = np.uintp(at), np.uintp(i)
            left_s, right_s = _slopes(keys, ends, i)
            box[to], place[of], offsets[to] = i, at, at_split
            on_left[to], on_right[to] = left_s, right_s
            if left_s == right_s:
                best[2 * to], best[2 * to + np.uintp(1)] = read_key(keys[known + COLUMNS * i], known_p, bits)
                continue
            at_open -= 1
            opened[np.uintp(at_open)], own_cost[to] = at, cost[of]
            low, high, meet, share = 0, 0, 0.0, 0.0
            if both:
                low, high = keys[ends.left + COLUMNS * i], keys[ends.right + COLUMNS * i]
                low, high = low >> (bits + CHOICE_BITS), high >> (bits + CHOICE_BITS)
                wide = ends.right_p - ends.left_p
                to_meet = (high - low - wide * right_s) / (left_s - right_s)
                share, meet = min(max(to_meet / wide, 0.0), 1.0), low + to_meet * left_s
            for split in range(splits.offsets[of + np.uintp(1)] - 1, splits.offsets[of] - 1, -1):
                if both and not _is_used(split, splits, keys, ends, low, high, meet, share):
                    continue
                at_split -= 1
                number[np.uintp(at_split)], own_lost[np.uintp(at_split)] = split, splits.lost[np.uintp(split)]
                kind[np.uintp(at_split)] = ANY_CHOICE  # each box may be split in any way
                for e in range(splits.link_offsets[np.uintp(split)], splits.link_offsets[np.uintp(split + 1)]):
                    part = splits.link[np.uintp(e)]
                    _reach(reached, n - 1, part)
                    at_link -= 1
                    link[np.uintp(at_link)] = part
                link_offsets[np.uintp(at_split)] = at_link
            offsets[to] = at_split
    for e in range(at_link, len(link)):
        link[e] = place[link[e]]
    return OpenBoxes(box, own_cost, Splits(offsets, kind, own_lost, link_offsets, link), number, opened[at_open:])


@inner_kernel
def _settled_choice(i: int, splits: Splits, keys: Ints, column: int, p: int, bits: int) -> int:
    """Return what becomes of a box at a multiplier: the first choice with the best key; staying whole comes before splits."""
    key = keys[np.uintp(column + COLUMNS * i)]
    which, first = key & LATER, splits.offsets[np.uintp(i)]
    if which < LATER:
        return first + which - 1 if which > 0 else PUBLISH
    last: int = splits.offsets[np.uintp(i + 1)] - 1
    for split in range(first + LATER - 1, last):
        option = splits.lost[np.uintp(split)] * ((p << bits) + 1)
        for e in range(splits.link_offsets[np.uintp(split)], splits.link_offsets[np.uintp(split + 1)]):
            option += keys[np.uintp(column + COLUMNS * splits.link[np.uintp(e)])] >> CHOICE_BITS
        if option == key >> CHOICE_BITS:
            return split
    return last


@inner_kernel
def _add_settled_choices(
    i: int, mask: int, splits: Splits, keys: Ints, tried: Ints, bits: int, is_open: Ints, choices: Ints
) -> None:
    """Add what becomes of a box in the partitions of a mask, where it was not open."""
    while mask != 0:
        at = np.uintp(lowest_bit(mask))
        mask &= mask - 1
        if not (is_open[at, np.uintp(i >> 6)] >> (i & 63)) & 1:
            known = np.uintp(LEFT_END if tried[at, np.uintp(RIGHT_END)] < 0 else RIGHT_END)
            p = tried[at, known + np.uintp(1)]
            choices[at, np.uintp(i)] = _settled_choice(i, splits, keys, tried[at, known], p, bits)


@inner_kernel
def complete_partitions(
    splits: Splits, keys: Ints, tried: Ints, bits: int, is_open: Ints, choices: Ints
) -> tuple[Ints, Ints]:
    """Add the choices of all boxes of partitions that were not open; return the boxes that each publishes.

    Those of a partition rise, at the end of a row; also returned is where they begin. Rows of `tried` have what `Ends` has, and
    rows of `is_open` a bit for each box. Partitions of several budgets, MOST_PARTITIONS of them, have most boxes in common: each
    box is looked at once, with a mask of the partitions that have it.
    """
    count, n = choices.shape
    every, several = (1 << count) - 1, count > 1
    masks, reached = np.zeros(n if several else 1, np.int64), np.zeros((n >> 6) + 1, np.int64)
    published, first = np.empty((count, n), np.int64), np.full(count, n, np.int64)
    masks[-1], reached[0] = every, 1
    for word in range(len(reached)):
        while reached[word] != 0:
            i = n - 1 - 64 * word - lowest_bit(reached[word])
            reached[word] &= reached[word] - 1
            mask = masks[np.uintp(i)] if several else every
            _add_settled_choices(i, mask, splits, keys, tried, bits, is_open, choices)
            while mask != 0:
                how, rest, alike = choices[np.uintp(lowest_bit(mask)), np.uintp(i)], mask, 0
                while rest != 0:
                    at = np.uintp(lowest_bit(rest))
                    rest &= rest - 1
                    if choices[at, np.uintp(i)] == how:
                        alike |= 1 << int(at)
                        if how == PUBLISH:
                            first[at] -= 1
                            published[at, np.uintp(first[at])] = i
                mask ^= alike
                if how != PUBLISH:
                    for e in range(splits.link_offsets[np.uintp(how)], splits.link_offsets[np.uintp(how + 1)]):
                        _reach(reached, n - 1, splits.link[np.uintp(e)])
                        if several:
                            masks[np.uintp(splits.link[np.uintp(e)])] |= alike
    return published, first


@inner_kernel
def search_between(
    cost: Ints,
    splits: Splits,
    budget: int,
    keys: Ints,
    tried: Ints,
    bits: int,
    to_corner: bool,
    is_open: Ints,
    choice: Ints,
) -> tuple[bool, int, int, int, int]:
    """Find the multiplier whose best partition suppresses at most `budget` trips, as `partition.search` does.

    It lies between two that were tried, in the order of `Ends`, whose keys are given; one of them may not be known. Boxes may all
    be published and split in any way. With `to_corner` the multiplier is that at which the piece begins, so that it does not
    depend on those tried. What becomes of boxes that change between both is put into `choice`, and their bits are set in
    `is_open`.
    """
    n = len(cost)
    ends = Ends(tried[0], tried[1], tried[2], tried[3], bits)
    notes, verdict, a, s = begin_search(ends.left_p, int(np.int64(PARTS))), GO_ON, 0, 0
    notes[TO_CORNER] = to_corner
    if ends.left >= 0 and ends.right >= 0:
        notes[TRIES] = MAX_GUESSES  # where the lines of both meet is nearer to the answer than a guess
    for column, p in ((ends.left, ends.left_p), (ends.right, ends.right_p)):
        if column >= 0 and verdict != FOUND:
            notes[TRIED + P], notes[TRIED + Q] = p, PARTS
            a, s = read_key(keys[column + COLUMNS * (n - 1)], p, ends.bits)
            verdict = judge(notes, a, s, budget)
    if verdict == FOUND:
        return True, ends.right_p, PARTS, a, s
    arrays = SearchArrays(
        np.empty(2 * n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    )
    part = _open_boxes(cost, splits, keys, ends, arrays)
    allowed = np.full(n, ANY_CHOICE, np.int8)
    found, p, q, a, s = search(part.opened, part.cost, part.cost, part.splits, allowed, budget, notes, arrays)
    for at in part.opened:
        box, how = part.box[at], arrays.choice[at]
        is_open[box >> 6] |= 1 << (box & 63)
        choice[box] = PUBLISH if how == PUBLISH else part.split[how]
    return found, p, q, a, s


@kernel
def search_near(
    cost: Ints, splits: Splits, budget: int, p: Ints, bits: int
) -> tuple[bool, int, int, int, int, Ints, Ints]:
    """Find the same from the multipliers p / PARTS, COLUMNS of them, which rise and are tried first, in one pass."""
    last = COLUMNS * (len(cost) - 1)
    keys = np.empty(last + COLUMNS, np.int64)
    evaluate_keys(cost, splits, p, bits, keys)
    right = 0
    while right < COLUMNS and read_key(keys[last + right], p[right], bits)[1] > budget:
        right += 1
    tried = np.array([[right - 1, p[max(right - 1, 0)], -1, 0]])
    if right < COLUMNS:
        tried[0, 2], tried[0, 3] = right, p[right]
    is_open, choices = np.zeros((1, (len(cost) >> 6) + 1), np.int64), np.empty((1, len(cost)), np.int64)
    given = tried[0], bits, False, is_open[0], choices[0]
    found, at_p, q, a, s = search_between(cost, splits, budget, keys, *given)
    published, first = complete_partitions(splits, keys, tried, bits, is_open, choices)
    return found, at_p, q, a, s, choices[0], published[0, first[0] :].copy()
