"""Order of points by trajectory and time."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints, Mask


@kernel
def in_order(group: Ints, t: Ints) -> bool:
    """Return whether groups rise from row to row, and times do not fall inside a group."""
    for i in range(1, len(group)):
        if group[i] < group[i - 1] or (group[i] == group[i - 1] and t[i] < t[i - 1]):
            return False
    return True


@kernel
def first_from(values: Ints | Floats, low: int, high: int, lower_bound: float) -> int:
    """Return the first position from `low` on, below `high`, where rising values reach `lower_bound`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < lower_bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def codes_in_range(values: Ints, low: int, place: Ints, seen: Ints, n: int, codes: Ints) -> int:
    """Number the distinct values from 0 in order of appearance, by a table of places from `low` on.

    Rows may come in pieces: `place` (-1 at first) and `seen` are kept from piece to piece, `n` is the number of values seen
    so far, and the new number is returned. `codes` gets the numbers of this piece.
    """
    code = -1
    for i in range(len(values)):
        if i > 0 and values[i] == values[i - 1]:
            codes[i] = code
            continue
        at = values[i] - low
        code = place[at]
        if code < 0:
            code = n
            place[at] = n
            seen[n] = values[i]
            n += 1
        codes[i] = code
    return n


@kernel
def one_owner(group: Ints, owner: Ints, known: Mask, first: Ints) -> bool:
    """Return whether all rows of a group have one owner; `first` gets the owner of each group, and `known` says which have one.

    Rows may come in pieces: call it with the same `known` and `first` for each.
    """
    for i in range(len(group)):
        g = group[i]
        if not known[g]:
            known[g] = True
            first[g] = owner[i]
        elif first[g] != owner[i]:
            return False
    return True


@kernel
def group_offsets(group: Ints, groups: int) -> Ints:
    """Return where each group begins once rows are sorted by group."""
    offsets = np.zeros(groups + 1, np.int64)
    for i in range(len(group)):
        offsets[group[i] + 1] += 1
    for g in range(groups):
        offsets[g + 1] += offsets[g]
    return offsets


@kernel
def sort_by(keys: Floats | Ints, values: Ints, n: int) -> None:
    """Sort the first n keys, and the values with them, by insertion over shrinking gaps."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            key, value = keys[i], values[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j], values[j] = keys[j - gap], values[j - gap]
                j -= gap
            keys[j], values[j] = key, value
        gap //= 3


@kernel
def merge_sort(times: Ints, rows: Ints, lo: int, hi: int) -> None:
    """Sort times[lo:hi] and the rows with them, keeping the order of equal times: runs of two, four, eight … are merged.

    Written out, because numpy's argsort inside a kernel takes many times as long to compile as everything else here.
    """
    other_times = np.empty(hi - lo, np.int64)
    other_rows = np.empty(hi - lo, np.int64)
    width = 1
    while width < hi - lo:
        for start in range(lo, hi, 2 * width):
            middle = min(start + width, hi)
            end = min(start + 2 * width, hi)
            left = start
            right = middle
            for at in range(start - lo, end - lo):
                if left < middle and (right >= end or times[left] <= times[right]):
                    other_times[at] = times[left]
                    other_rows[at] = rows[left]
                    left += 1
                else:
                    other_times[at] = times[right]
                    other_rows[at] = rows[right]
                    right += 1
        for at in range(hi - lo):
            times[lo + at] = other_times[at]
            rows[lo + at] = other_rows[at]
        width *= 2


@kernel
def rows_by_group_and_time(group: Ints, t: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """Return row numbers sorted by group, then time, then row, and the times in that order.

    A counting sort puts rows and times of a group side by side; what is left are small sorts inside the cache.
    """
    place = offsets[:-1].copy()
    order = np.empty(len(group), np.int64)
    times = np.empty(len(group), np.int64)
    for i in range(len(group)):
        at = place[group[i]]
        order[at] = i
        times[at] = t[i]
        place[group[i]] = at + 1
    for g in range(len(offsets) - 1):
        lo, hi = offsets[g], offsets[g + 1]
        rising = True
        falling = True
        for j in range(lo + 1, hi):
            if times[j] < times[j - 1]:
                rising = False
            else:
                falling = False
        if rising:
            continue
        if falling:
            for j in range((hi - lo) // 2):
                a, b = lo + j, hi - 1 - j
                order[a], order[b] = order[b], order[a]
                times[a], times[b] = times[b], times[a]
        elif hi - lo <= 32:
            for j in range(lo + 1, hi):
                row = order[j]
                key = times[j]
                i = j - 1
                while i >= lo and times[i] > key:
                    order[i + 1] = order[i]
                    times[i + 1] = times[i]
                    i -= 1
                order[i + 1] = row
                times[i + 1] = key
        else:
            merge_sort(times, order, lo, hi)
    return order, times


@kernel
def spread(flags: Mask, group: Ints, groups: int) -> Mask:
    """Return which groups have a flagged row."""
    hit = np.zeros(groups, np.bool_)
    for i in range(len(group)):
        if flags[i]:
            hit[group[i]] = True
    return hit


@kernel
def count_rows_by_two(first: Ints, second: Ints, firsts: int, seconds: int) -> Ints:
    """Return row numbers sorted by two keys, the first of which counts more: a stable counting sort by each, the second first."""
    place = group_offsets(second, seconds)
    half = np.empty(len(first), np.int64)
    for row in range(len(first)):
        half[place[second[row]]] = row
        place[second[row]] += 1
    place = group_offsets(first, firsts)
    order = np.empty(len(first), np.int64)
    for i in range(len(half)):
        key = first[half[i]]
        order[place[key]] = half[i]
        place[key] += 1
    return order


@kernel
def copy_slices(column: Indices | Ints, offsets: Ints, order: Ints) -> Indices | Ints:
    """Return the slices of a column in another order, one after the other."""
    length = 0
    for g in order:
        length += offsets[g + 1] - offsets[g]
    copied = np.empty(length, column.dtype)
    at = 0
    for g in order:
        for i in range(offsets[g], offsets[g + 1]):
            copied[at] = column[i]
            at += 1
    return copied


@kernel
def copy_point_slices(first: Ints, second: Ints, third: Ints, offsets: Ints, order: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the slices of three columns in another order, one after the other.

    Slices are short and far from one another: the processor waits for three at a time, not for each.
    """
    length = 0
    for g in order:
        length += offsets[g + 1] - offsets[g]
    one, two, three = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    at = np.uintp(0)
    for g in order:
        for i in range(np.uintp(offsets[g]), np.uintp(offsets[g + 1])):
            one[at], two[at], three[at] = first[i], second[i], third[i]
            at += np.uintp(1)
    return one, two, three


FEW = 20_000
"""Rows up to which a sort of numpy takes less time than loading compiled code, not to speak of compiling it."""


def rows_by_two(first: Ints, second: Ints, firsts: int, seconds: int) -> Ints:
    """Return row numbers sorted by two keys, the first of which counts more; equal ones stay in order."""
    if len(first) <= FEW:
        return np.lexsort((second, first))
    return count_rows_by_two(first, second, firsts, seconds)
