"""Arrays that travel together through the OD kernels, as NamedTuples; their allocation; and the kinds of splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints

WHOLE, BY_DESTINATION, BY_ORIGIN, BY_TIME = 1, 2, 4, 8
"""Choices for a box: published whole, split by destination, by origin, by time. Sums of these are allowed choices."""
ANY_CHOICE = WHOLE + BY_DESTINATION + BY_ORIGIN + BY_TIME
PUBLISH, SUPPRESS = -1, -2
"""Choices for a box that is not split: published whole, or suppressed if it may not be published."""


class MatrixRows(NamedTuple):
    """The flows of a time step by origin tile: offsets; the destination tile, trips and crowd of each row."""

    offsets: Ints
    tile: Indices | Ints
    volume: Ints
    crowd: Ints


class PeoplePairs(NamedTuple):
    """Who went to which leaf, by origin, in order of person and leaf; empty where people are not known."""

    offsets: Ints
    person: Ints
    leaf: Ints


class OriginTree(NamedTuple):
    """A tree of origins in post-order: children, first leaf of each node, tile of each leaf, which nodes are large enough."""

    child_offsets: Ints
    children: Ints
    first_leaf: Ints
    leaf_tile: Ints
    large_enough: Ints


class DestinationTree(NamedTuple):
    """A tree of destinations in post-order.

    The leaf of each tile; the lowest node above each leaf that may be published (`anchor`); the table of common ancestors
    and its exponents (see `region_space.join_table`); the first node of each subtree; the depth; which nodes are leaves.
    """

    tile_leaf: Ints
    anchor: Ints
    table: Indices
    exponent: Indices
    first_node: Ints
    depth: int
    is_leaf: Ints


class LeafLists(NamedTuple):
    """Lists of leaves (see `tree_nodes`): leaves; trips, crowd and cells with a trip of the leaves before each in its list."""

    leaf: Ints
    volume: Ints
    crowd: Ints
    cells: Ints


class CrowdNodes(NamedTuple):
    """Nodes of destinations that hold a crowd, in post-order by origin.

    Number, trips, crowd and cells with a trip; the trips that a split by destination gives up, and the number of listed nodes in
    the subtree, itself among them.
    """

    node: Ints
    volume: Ints
    crowd: Ints
    cells: Ints
    lost: Ints
    size: Ints


class DyadicArrays(NamedTuple):
    """Dyadic regions, smaller ones first: the tiles of each, its splits, and the two halves of each split."""

    tile_offsets: Ints
    tiles: Ints
    split_offsets: Ints
    first: Ints
    second: Ints


class BoxArrays(NamedTuple):
    """Boxes: regions of origin and destination, trips, crowd, and the number of cells with a trip."""

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    cells: Ints


class Splits(NamedTuple):
    """How boxes can be split: offsets by box; the kind of each split, the volume that it gives up, the boxes that it leaves."""

    offsets: Ints
    kind: Ints
    lost: Ints
    link_offsets: Ints
    link: Ints


class SearchArrays(NamedTuple):
    """Arrays of a search for a multiplier, by box.

    The cost and suppressed volume of its best partition, side by side, and its choice, at the multiplier tried last; and the
    suppressed volume at the nearest multipliers known on either side of the budget.
    """

    best: Ints
    choice: Ints
    left: Ints
    right: Ints


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
    """Allocate arrays for given numbers of boxes, splits and links."""
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
