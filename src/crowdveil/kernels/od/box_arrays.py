"""Arrays of boxes and their splits while they are built: allocation, and the final cut."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels.od.structures import BoxArrays, CrowdNodes, Splits


@kernel
def new_nodes(size: int) -> CrowdNodes:
    """Allocate arrays for `size` nodes with a crowd."""
    node, volume, crowd = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    return CrowdNodes(node, volume, crowd, np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))


@kernel
def new_boxes(size: int) -> BoxArrays:
    """Allocate arrays for `size` boxes."""
    origin, destination, volume = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    return BoxArrays(origin, destination, volume, np.empty(size, np.int64), np.empty(size, np.int64))


@kernel
def new_splits(boxes: int, splits: int, links: int) -> Splits:
    """Allocate arrays for so many boxes, splits and links."""
    offsets, link_offsets = np.empty(boxes + 1, np.int64), np.empty(splits + 1, np.int64)
    offsets[0], link_offsets[0] = 0, 0
    kind, lost, link = np.empty(splits, np.int64), np.empty(splits, np.int64), np.empty(links, np.int64)
    return Splits(offsets, kind, lost, link_offsets, link)


@kernel
def cut_boxes(boxes: BoxArrays, splits: Splits, count: int) -> tuple[BoxArrays, Splits]:
    """Return the first `count` boxes with their splits, without the unused ends, which were never written and take no memory.

    The box of all trips is the last one that was looked up; boxes that were made after it are not part of it.
    """
    used = splits.offsets[count]
    links = splits.link_offsets[used]
    kept = BoxArrays(
        boxes.origin[:count], boxes.destination[:count], boxes.volume[:count], boxes.crowd[:count], boxes.cells[:count]
    )
    return kept, Splits(
        splits.offsets[: count + 1], splits.kind[:used], splits.lost[:used], splits.link_offsets[: used + 1],
        splits.link[:links],
    )  # fmt: skip
