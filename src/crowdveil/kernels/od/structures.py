"""Arrays that travel together through the OD kernels, as NamedTuples, and the kinds of splits.

Nothing here imports numba: solvers name these types without loading the compiler.
"""

from __future__ import annotations

from typing import NamedTuple

from crowdveil.kernels._lanes import LANES
from crowdveil.kernels._types import Floats, Indices, Ints, Mask

WHOLE, BY_DESTINATION, BY_ORIGIN, BY_TIME = 1, 2, 4, 8
"""What a box may do: be published whole, be split by destination, by origin, by time. Sums of these are allowed choices."""
ANY_CHOICE = WHOLE + BY_DESTINATION + BY_ORIGIN + BY_TIME
PUBLISH, SUPPRESS = -1, -2
"""What becomes of a box that is not split: it is published whole, or suppressed since it may not be."""
PARTS = 16
"""Denominator of the multipliers that are tried side by side."""
COLUMNS = LANES
"""Multipliers that are tried in one pass."""
CHOICE_BITS = 2
"""Bits of a key for what becomes of a box."""
MOST_PARTITIONS = 62
"""Partitions of a matrix that are completed together: a word has a bit for each, and one for its sign."""


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


class ForestBoxes(NamedTuple):
    """Boxes of given origins, each after those below it, and the volume that is in no box.

    The rows of `table`: origin (as a position), destination node, trips, crowd and cost of each box; the volume that splitting
    it gives up (-1: it cannot be split); the box above it (-1: none). One array, since Python takes over each by itself.
    """

    table: Ints
    gone: int


class ForestCosts(NamedTuple):
    """What a forest of boxes is solved by.

    The cost of each box, the volume that splitting it gives up (-1: it cannot be split), and the box above it (-1: none); what
    each suppressed trip costs, and the trips that are suppressed whatever is chosen.
    """

    cost: Ints
    lost: Ints
    above: Ints
    lost_cost: int
    gone: int


class StepFlows(NamedTuple):
    """The flows of a time step: four coordinates (meters), trips and crowd of each, and the people behind it.

    People are empty where they are not known.
    """

    place: Floats
    volume: Ints
    crowd: Ints
    member_offsets: Ints
    member: Ints


class FlowNeighbors(NamedTuple):
    """The nearest flows of each flow, nearest first: offsets, flows, and distances in meters."""

    offsets: Ints
    flow: Ints
    distance: Floats


class LevelRows(NamedTuple):
    """Flows by leaf of origin: leaves of origin and destination, trips and crowd, and the people behind each."""

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    member_offsets: Ints
    member: Ints


class LevelTree(NamedTuple):
    """A tree in post-order: the node above each node, its number of leaves, its first leaf."""

    parent: Ints
    size: Ints
    first_leaf: Ints


class ZoneShares(NamedTuple):
    """The zones that each area touches: offsets by area, zone, its part of the area's whole, and whether the area lies inside."""

    offsets: Ints
    zone: Indices
    part: Floats
    whole: Floats
    inside: Mask
