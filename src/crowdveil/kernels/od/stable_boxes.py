"""Boxes of all time steps together: what each of them holds in one time step."""

from __future__ import annotations

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import BoxArrays, Splits


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
