"""The curve of costs of a map between two multipliers, and the partition on it that a budget asks for; for several budgets.

A box has a best partition for each multiplier; drawn as suppressed volume and cost, these are the corners of a convex chain
(`chains`). The chain of a split is the sum of those of its parts, and that of a box the lower hull of its splits and of its own
cost. Between two multipliers that are near each other few boxes are open, that is, have more than one corner.

Budgets are bits of a number: a box is looked at once for all budgets that reach it, since memory is slower than arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import bits_set, end_if_stopped, kernel, lowest_bit
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.chains import add_chain, best_corner, corners_between, join_chains
from crowdveil.kernels.od.several_multipliers import read_key
from crowdveil.kernels.od.structures import PARTS, PUBLISH, Splits

MARGIN = 1 + 1e-9
"""Factor by which a split must cost more than the best one to be left out: sums in floating point are much more exact."""


class Ends(NamedTuple):
    """The multipliers that each budget lies between.

    Both in PARTS, and where the keys of the first box are; those of another are `width` further for each box before it. `bits`
    are those of a suppressed volume in a key.
    """

    keys: Ints
    left_p: Ints
    right_p: Ints
    left: Ints
    right: Ints
    width: int
    bits: int


class OpenBoxes(NamedTuple):
    """Which budgets a box is open for, and which budgets may take a split."""

    box: Ints
    split: Ints


class Curves(NamedTuple):
    """Corners of open boxes: the first chain of each box, which has one for each of its budgets; offsets by chain; corners."""

    first: Ints
    offsets: Ints
    corner: Ints


class Partitions(NamedTuple):
    """A partition for each budget.

    Its multiplier p/q, cost A and suppressed volume S; how many boxes are split, which, and the split of each; how many are
    published, and which. Boxes are in falling order.
    """

    p: Ints
    q: Ints
    a: Ints
    s: Ints
    splits: Ints
    parted: Ints
    chosen: Ints
    whole: Ints
    published: Ints


@kernel
def find_on_curve(cost: Ints, splits: Splits, ends: Ends, budgets: Ints, room: int) -> tuple[bool, Partitions]:
    """Find the corner of the curve that suppresses most within each budget; it lies between two multipliers.

    The best partition at the left one exceeds the budget and that at the right one keeps it, or both are the same, which is the
    one to take. Returns whether there was room for all corners, so many, and the partitions.
    """
    n, m = len(cost), len(budgets)
    opened = _open_boxes(splits, ends)
    enough, curves = _make_curves(cost, splits, ends, opened, room)
    p, q, a, s = np.empty(m, np.int64), np.full(m, PARTS, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    if not enough:
        none = np.zeros((0, 0), np.int64)
        return False, Partitions(p, q, a, s, p, none, none, p, none)
    for b in range(m):
        if not opened.box[n - 1] >> b & 1:
            p[b] = ends.left_p[b]
            a[b], s[b] = read_key(ends.keys[ends.left[b] + (n - 1) * ends.width], p[b], ends.bits)
            continue
        chain = curves.first[n - 1] + bits_set(opened.box[n - 1] & ((1 << b) - 1))
        at = curves.offsets[chain] + 1
        while curves.corner[2 * at + 1] > budgets[b]:
            at += 1
        a[b], s[b] = curves.corner[2 * at], curves.corner[2 * at + 1]
        p[b], q[b] = a[b] - curves.corner[2 * at - 2], curves.corner[2 * at - 1] - s[b]
    lists = _read_partitions(cost, splits, ends, opened, curves, p, q)
    return True, Partitions(p, q, a, s, *lists)


@kernel
def _open_boxes(splits: Splits, ends: Ends) -> OpenBoxes:
    """Return for which budgets each box may have several corners between the ends, and the splits that it may take there.

    The best cost of a box is a concave function of the multiplier, with slope S: a box with the same S at both ends has one
    corner. A split costs no less than the chord between its costs at both ends, and the best one no more than the tangents
    there: a split whose chord lies above them is left out, and so are the boxes that no other split needs.
    """
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    keys, width, bits = ends.keys, ends.width, ends.bits
    n, mask = len(offsets) - 1, (1 << bits) - 1
    reached, opened, used = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(len(lost), np.int64)
    reached[n - 1] = (1 << len(ends.left)) - 1
    end_if_stopped()
    for i in range(n - 1, -1, -1):
        left_over = reached[i]
        while left_over:
            b = lowest_bit(left_over)
            left_over &= left_over - 1
            left, right = ends.left[b], ends.right[b]
            left_key, right_key = keys[left + i * width], keys[right + i * width]
            left_s, right_s = left_key & mask, right_key & mask
            if left_s == right_s:
                continue
            opened[i] |= 1 << b
            low, high = float(left_key >> bits), float(right_key >> bits)
            left_p, right_p = ends.left_p[b], ends.right_p[b]
            to_meet = (high - low - (right_p - left_p) * right_s) / (left_s - right_s)
            share = min(max(to_meet / (right_p - left_p), 0.0), 1.0)
            meet = low + to_meet * left_s
            for split in range(offsets[i], offsets[i + 1]):
                split_low, split_high = left_p * lost[split], right_p * lost[split]
                for e in range(link_offsets[split], link_offsets[split + 1]):
                    split_low += keys[left + link[e] * width] >> bits
                    split_high += keys[right + link[e] * width] >> bits
                above = split_low > MARGIN * low and split_high > MARGIN * high
                if above and split_low + (split_high - split_low) * share > MARGIN * meet:
                    continue
                used[split] |= 1 << b
                for e in range(link_offsets[split], link_offsets[split + 1]):
                    reached[link[e]] |= 1 << b
    return OpenBoxes(opened, used)


@kernel
def _make_curves(cost: Ints, splits: Splits, ends: Ends, opened: OpenBoxes, room: int) -> tuple[bool, Curves]:
    """Return whether there is room for all corners, and those of open boxes between the multipliers of each budget."""
    n, keys, width, bits = len(cost), ends.keys, ends.width, ends.bits
    split_offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    of_box, of_split = opened.box, opened.split
    first = np.zeros(n, np.int64)
    chains, end = 0, 0
    for i in range(n):
        first[i] = chains
        chains += bits_set(of_box[i])
    offsets = np.zeros(chains + 1, np.int64)
    # Arrays of a fixed size, of which little is used: loops over arrays that may grow are much slower.
    corner, option = np.empty(2 * room, np.int64), np.empty(2 * room, np.int64)
    own, buffer = np.empty(2 * room, np.int64), np.empty(2 * room, np.int64)
    end_if_stopped()
    for i in range(n):
        left_over = of_box[i]
        while left_over:
            b = lowest_bit(left_over)
            left_over &= left_over - 1
            left, left_p = ends.left[b], ends.left_p[b]
            own[0], own[1], count = cost[i], 0, 1
            for split in range(split_offsets[i], split_offsets[i + 1]):
                if not of_split[split] >> b & 1:
                    continue
                option[0], option[1], more = 0, lost[split], 1
                for e in range(link_offsets[split], link_offsets[split + 1]):
                    part = link[e]
                    if of_box[part] >> b & 1:
                        chain = first[part] + bits_set(of_box[part] & ((1 << b) - 1))
                        low, high = offsets[chain], offsets[chain + 1]
                        if more + high - low > room:
                            return False, Curves(first, offsets, corner)
                        more = add_chain(option, more, corner, low, high - low)
                    else:
                        a, s = read_key(keys[left + part * width], left_p, bits)
                        for j in range(more):
                            option[2 * j] += a
                            option[2 * j + 1] += s
                if count + more > room:
                    return False, Curves(first, offsets, corner)
                count = join_chains(own, count, option, more, buffer)
            low, high = corners_between(own, count, left_p, ends.right_p[b], PARTS)
            if end + high - low > room:
                return False, Curves(first, offsets, corner)
            for j in range(2 * low, 2 * high):
                corner[2 * (end - low) + j] = own[j]
            end += high - low
            offsets[first[i] + bits_set(of_box[i] & ((1 << b) - 1)) + 1] = end
    return True, Curves(first, offsets, corner)


@kernel
def _read_partitions(
    cost: Ints, splits: Splits, ends: Ends, opened: OpenBoxes, curves: Curves, p: Ints, q: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the boxes that are split at the multiplier p/q of each budget, and how, and those published; see `Partitions`.

    Of equal options the first is taken. Boxes that are not open are read at the left multiplier. What is best there, with the
    same S up to the right one, is best in between, too: an option is a concave function of the multiplier, and cannot fall below
    the best one.
    """
    n, m, keys, width, bits = len(cost), len(p), ends.keys, ends.width, ends.bits
    offsets, lost, link_offsets, link = splits.offsets, splits.lost, splits.link_offsets, splits.link
    of_box, of_split = opened.box, opened.split
    wanted = np.zeros(n, np.int64)
    wanted[n - 1] = (1 << m) - 1
    count, whole = np.zeros(m, np.int64), np.zeros(m, np.int64)
    # Few entries of a row are used, and memory is taken for those alone.
    parted, chosen, published = np.empty((m, n), np.int64), np.empty((m, n), np.int64), np.empty((m, n), np.int64)
    end_if_stopped()
    for i in range(n - 1, -1, -1):
        left_over = wanted[i]
        while left_over:
            b = lowest_bit(left_over)
            left_over &= left_over - 1
            left, left_p, taken = ends.left[b], ends.left_p[b], PUBLISH
            if of_box[i] >> b & 1:
                at = _best_of(curves.first, curves.offsets, curves.corner, of_box[i], i, b, p[b], q[b])
                a, s = curves.corner[2 * at], curves.corner[2 * at + 1]
                split = offsets[i]
                while taken == PUBLISH and (a != cost[i] or s != 0):
                    if of_split[split] >> b & 1:
                        split_a, split_s = 0, lost[split]
                        for e in range(link_offsets[split], link_offsets[split + 1]):
                            part = link[e]
                            if of_box[part] >> b & 1:
                                at = _best_of(
                                    curves.first, curves.offsets, curves.corner, of_box[part], part, b, p[b], q[b]
                                )
                                more_a, more_s = curves.corner[2 * at], curves.corner[2 * at + 1]
                            else:
                                more_a, more_s = read_key(keys[left + part * width], left_p, bits)
                            split_a, split_s = split_a + more_a, split_s + more_s
                        if split_a == a and split_s == s:
                            taken = split
                    split += 1
            else:
                key = keys[left + i * width]
                of_lost = (left_p << bits) + 1
                split = offsets[i]
                while taken == PUBLISH and key != cost[i] * (PARTS << bits):
                    option = lost[split] * of_lost
                    for e in range(link_offsets[split], link_offsets[split + 1]):
                        option += keys[left + link[e] * width]
                    if option == key:
                        taken = split
                    split += 1
            if taken == PUBLISH:
                published[b, whole[b]] = i
                whole[b] += 1
                continue
            parted[b, count[b]], chosen[b, count[b]] = i, taken
            count[b] += 1
            for e in range(link_offsets[taken], link_offsets[taken + 1]):
                wanted[link[e]] |= 1 << b
    return count, parted, chosen, whole, published


@kernel
def _best_of(first: Ints, offsets: Ints, corner: Ints, opened: int, box: int, b: int, p: int, q: int) -> int:
    """Return the best corner of an open box at the multiplier p/q of a budget."""
    chain = first[box] + bits_set(opened & ((1 << b) - 1))
    return best_corner(corner, offsets[chain], offsets[chain + 1], p, q)
