"""Putting points into the order of trajectories and time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@kernel
def in_order(group: Ints, t: Ints) -> bool:
    """Whether groups rise from row to row, and times do not fall inside a group."""
    for i in range(1, len(group)):
        if group[i] < group[i - 1] or (group[i] == group[i - 1] and t[i] < t[i - 1]):
            return False
    return True


@kernel
def one_owner(group: Ints, owner: Ints, groups: int) -> tuple[bool, Ints]:
    """Whether all rows of a group have one owner, and the owner of each group's first row."""
    first = np.full(groups, -1, np.int64)
    for i in range(len(group)):
        g = group[i]
        if first[g] == -1:
            first[g] = owner[i]
        elif first[g] != owner[i]:
            return False, first
    return True, first


@kernel
def group_offsets(group: Ints, groups: int) -> Ints:
    """Where each group begins once rows are sorted by group."""
    offsets = np.zeros(groups + 1, np.int64)
    for i in range(len(group)):
        offsets[group[i] + 1] += 1
    for g in range(groups):
        offsets[g + 1] += offsets[g]
    return offsets


@kernel
def rows_by_group_and_time(group: Ints, t: Ints, offsets: Ints) -> Ints:
    """Row numbers sorted by group, then time, then row: a counting sort, then small sorts inside each group."""
    place = offsets[:-1].copy()
    order = np.empty(len(group), np.int64)
    for i in range(len(group)):
        g = group[i]
        order[place[g]] = i
        place[g] += 1
    for g in range(len(offsets) - 1):
        lo, hi = offsets[g], offsets[g + 1]
        sorted_already = True
        reversed_already = True
        for j in range(lo + 1, hi):
            if t[order[j]] < t[order[j - 1]]:
                sorted_already = False
            if t[order[j]] >= t[order[j - 1]]:
                reversed_already = False
        if sorted_already:
            continue
        if reversed_already:
            order[lo:hi] = order[lo:hi][::-1].copy()
        elif hi - lo <= 32:
            for j in range(lo + 1, hi):
                row = order[j]
                key = t[row]
                i = j - 1
                while i >= lo and t[order[i]] > key:
                    order[i + 1] = order[i]
                    i -= 1
                order[i + 1] = row
        else:
            rows = order[lo:hi].copy()
            order[lo:hi] = rows[np.argsort(t[rows], kind="mergesort")]
    return order


@kernel
def spread(flags: Mask, group: Ints, groups: int) -> Mask:
    """Which groups have a flagged row."""
    hit = np.zeros(groups, np.bool_)
    for i in range(len(group)):
        if flags[i]:
            hit[group[i]] = True
    return hit
