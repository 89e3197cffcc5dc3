"""Arrays that travel together through the OD kernels, as NamedTuples, and the kinds of splits."""

from __future__ import annotations

from typing import NamedTuple

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
    """Lists of leaves (see `leaf_sums`): leaves; and trips, crowd and cells with a trip of the leaves before each in its list."""

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
    """What a search for a multiplier knows of each box.

    The cost and suppressed volume of its best partition, in turn, and what becomes of it, at the multiplier tried last; and the
    suppressed volume at the nearest multipliers known on either side of the budget.
    """

    best: Ints
    choice: Ints
    left: Ints
    right: Ints
