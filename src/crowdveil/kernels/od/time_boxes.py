"""Boxes over origin, destination and time: links to the parts of an interval, and volumes in single time steps."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import BY_TIME, BoxArrays, Splits


@kernel
def find_in_part(listed: Ints, part_volume: Ints, splits: Splits) -> Ints:
    """Return the box of a part of an interval that stands for each box of the interval; -1 where it is below k in the part.

    `listed` has the box of the part with the same regions, -1 where the part has none. Of boxes with the same trips a part has
    only the smallest: a box that it lacks has all of its trips in one of the boxes below it, or is below k, as these are then.
    """
    offsets, link_offsets, link = splits.offsets, splits.link_offsets, splits.link
    found = np.empty(len(listed), np.int64)
    for i in range(len(listed)):
        best = listed[i]
        if best < 0:
            for e in range(link_offsets[offsets[i]], link_offsets[offsets[i + 1]]):
                other = found[link[e]]
                if other >= 0 and (best < 0 or part_volume[other] > part_volume[best]):
                    best = other
        found[i] = best
    return found


@kernel
def link_parts(
    boxes: BoxArrays, splits: Splits, part: Ints, part_volume: Ints, divided: bool, before: int
) -> tuple[Ints, Ints, Splits]:
    """Number the boxes of an interval among all boxes, and return how each new one can be split, also by time.

    Parameters
    ----------
    part, part_volume
        For each part of the interval and each box, one part after the other: the number among all boxes of the box that stands
        for it in the part, -1 where there is none; and its trips.
    divided
        Whether the interval has parts; they may all hold no crowd, and are not given then.
    before
        The number of boxes so far.

    Returns the number of each box among all, the boxes that are new, and their splits, with links among all boxes. A box with
    all of its trips in one part is not new: the box of the part is smaller and has the same trips.
    """
    offsets, kind, lost, link_offsets, link = splits
    n = len(boxes.volume)
    parts = len(part) // max(n, 1)
    number, new = np.empty(n, np.int64), np.empty(n, np.int64)
    new_offsets = np.zeros(n + 1, np.int64)
    most = offsets[n] + n
    new_kind, new_lost = np.empty(most, np.int64), np.empty(most, np.int64)
    new_link_offsets, new_link = np.zeros(most + 1, np.int64), np.empty(len(link) + len(part), np.int64)
    made, at, links = 0, 0, 0
    for i in range(n):
        same, kept = -1, 0
        for c in range(parts):
            if part[c * n + i] >= 0:
                kept += part_volume[c * n + i]
                if part_volume[c * n + i] == boxes.volume[i]:
                    same = part[c * n + i]
        if same >= 0:
            number[i] = same
            continue
        number[i] = before + made
        new[made] = i
        for split in range(offsets[i], offsets[i + 1]):
            new_kind[at], new_lost[at] = kind[split], lost[split]
            for e in range(link_offsets[split], link_offsets[split + 1]):
                new_link[links] = number[link[e]]
                links += 1
            at += 1
            new_link_offsets[at] = links
        if divided:
            new_kind[at], new_lost[at] = BY_TIME, boxes.volume[i] - kept
            for c in range(parts):
                if part[c * n + i] >= 0:
                    new_link[links] = part[c * n + i]
                    links += 1
            at += 1
            new_link_offsets[at] = links
        made += 1
        new_offsets[made] = at
    kept_splits = Splits(
        new_offsets[: made + 1].copy(), new_kind[:at].copy(), new_lost[:at].copy(), new_link_offsets[: at + 1].copy(),
        new_link[:links].copy(),
    )  # fmt: skip
    return number, new[:made].copy(), kept_splits


@kernel
def fill_step(listed: Ints, step: BoxArrays, splits: Splits, volume: Ints, cells: Ints) -> None:
    """Fill `volume` and `cells` with the trips, and the cells with trips, of each box in one time step; 0 where it is below k.

    `listed` has the number of each box of the step among all boxes, which come after the boxes that they can be split into. Of
    boxes with the same trips the step has only the smallest. A box that it lacks holds the trips of one of the boxes below it,
    or does not reach k, and neither does any box below it then.
    """
    offsets, link_offsets, link = splits.offsets, splits.link_offsets, splits.link
    volume[:] = 0
    cells[:] = 0
    for i in range(len(listed)):
        volume[listed[i]], cells[listed[i]] = step.volume[i], step.cells[i]
    for i in range(len(volume)):
        if volume[i] > 0:
            continue
        for e in range(link_offsets[offsets[i]], link_offsets[offsets[i + 1]]):
            if volume[link[e]] > volume[i]:
                volume[i], cells[i] = volume[link[e]], cells[link[e]]
