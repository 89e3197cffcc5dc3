"""Define a tree over tiles, as arrays: every node is a range of leaves in depth-first order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crowdveil.errors import InputError, Option, counted
from crowdveil.kernels.trees import collapse, post_order
from crowdveil.model.arrays import (
    Indices,
    Ints,
    Mask,
    check_lengths,
    freeze_columns,
    frozen,
    require,
    row_slices,
    take_slices,
)
from crowdveil.model.tabular import Tabular


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Tabular):
    """A tree whose leaves are the tiles, each once. Nodes are numbered in post-order: children before parents.

    The leaves under a node are the positions first_leaf[node] up to, but not including, last_leaf[node]; the
    children of a node cut that range into consecutive ranges, in order of their numbers. The root is the last
    node. Every node is a leaf or has at least two children, so two nodes never stand for the same tiles.

    Attributes
    ----------
    parent
        The node above each node; -1 at the root.
    first_leaf, last_leaf
        The half-open range [first_leaf, last_leaf) of leaf positions under each node.
    leaf_tile
        The tile at each leaf position.
    kind
        What built the tree: `ward`, `kd`, `quadtree`, `h3`, `levels`, `parents`, or a name of the caller's.
    """

    parent: Indices
    first_leaf: Indices
    last_leaf: Indices
    leaf_tile: Indices
    kind: str = "custom"

    def __post_init__(self) -> None:
        freeze_columns(self)
        n = len(self.parent)
        require(n > 0 and len(self.leaf_tile) > 0, "hierarchy: expected a tree over at least one tile, got no tile.")
        check_lengths("hierarchy", n, parent=self.parent, first_leaf=self.first_leaf, last_leaf=self.last_leaf)
        self._check_tiles()
        self._check_parents()
        self._check_ranges()

    def _check_tiles(self) -> None:
        tile, n = self.leaf_tile, len(self.leaf_tile)
        require(tile.ndim == 1, "hierarchy: expected a one-dimensional list of tiles.")
        in_range = int(tile.min()) >= 0 and int(tile.max()) < n
        once = in_range and bool(np.all(np.bincount(tile, minlength=n) == 1))
        require(once, f"hierarchy: each of the tiles 0 to {n - 1:,} must be exactly one leaf.")

    def _check_parents(self) -> None:
        below, n = self.parent[:-1], len(self.parent)
        require(self.parent[-1] == -1, "hierarchy is not a tree: the last node must be the root, with parent -1.")
        later = (below > np.arange(n - 1)) & (below < n)
        bad = int(np.count_nonzero(~later))
        require(
            bad == 0,
            f"hierarchy: nodes must be in post-order, but the parent of {counted(bad, 'node')} is no later node.",
        )
        single = int(np.count_nonzero(self._child_counts() == 1))
        require(
            single == 0,
            f"hierarchy: no node may have one child, got {counted(single, 'such node')}. Leave them out.",
        )

    def _check_ranges(self) -> None:
        first, last, leaves = self.first_leaf, self.last_leaf, len(self.leaf_tile)
        is_leaf = self._child_counts() == 0
        require(
            bool(np.all(last[is_leaf] - first[is_leaf] == 1)), "hierarchy: a node without children must be one leaf."
        )
        require(
            first[-1] == 0 and last[-1] == leaves,
            f"hierarchy: the range of the root must be all {counted(leaves, 'leaf', 'leaves')}.",
        )
        # Nested ranges are in post-order exactly if they rise by their end and, for one end, the inner comes first.
        rises = (last[1:] > last[:-1]) | ((last[1:] == last[:-1]) & (first[1:] < first[:-1]))
        require(bool(rises.all()), "hierarchy: nodes must be in post-order of their ranges of leaves.")
        child, begins = self.child_nodes, self.child_offsets[:-1][~is_leaf]
        ends, inner = self.child_offsets[1:][~is_leaf] - 1, np.flatnonzero(~is_leaf)
        joined = np.ones(len(child), np.bool_)
        joined[1:] = first[child[1:]] == last[child[:-1]]
        joined[begins] = first[child[begins]] == first[inner]
        joined[ends] &= last[child[ends]] == last[inner]
        require(
            bool(joined.all()), "hierarchy: the children of a node must cut its range of leaves without gap or overlap."
        )

    @classmethod
    def from_parents(cls, parent: npt.ArrayLike, tile: npt.ArrayLike, kind: str = "custom") -> Hierarchy:
        """Make a tree from the parent of each node, in any order; nodes with one child are left out.

        Parameters
        ----------
        parent
            The number of the node above each node; -1 at the root.
        tile
            The tile that each childless node is; -1 at all other nodes.
        kind
            What built the tree.

        Children stay in order of their numbers. Takes linear time and no recursion.
        """
        above, tiles = _whole(parent, "parent"), _whole(tile, "tile")
        check_lengths("hierarchy", len(above), tile=tiles)
        _check_forest(above, tiles)
        up = above.astype(np.int32)
        order = post_order(up)
        lost = len(up) - len(order)
        require(
            lost == 0,
            f"hierarchy is not a tree: {counted(lost, 'node')} cannot reach the root, because parents run in a circle; "
            "give one node of each circle a parent outside it.",
        )
        old, new_parent, first, last = collapse(up, order)
        leaf_tile = tiles[old]
        return cls(new_parent, first, last, leaf_tile[leaf_tile >= 0], kind)

    @classmethod
    def from_units(cls, units: Sequence[npt.NDArray[Any]], kind: str = "custom") -> Hierarchy:
        """Make a tree from the unit of each tile, one array of units a level, from fine to coarse.

        Tiles of one unit must have one unit at each coarser level (not checked here). One root is put above all.
        Units are ordered by their number.
        """
        require(len(units) > 0 and len(units[0]) > 0, "hierarchy: expected a tree over at least one tile, got no tile.")
        n = len(units[0])
        unit, units_below = np.arange(n), n
        parents, nodes = [], n
        for codes in (*units, np.zeros(n, np.int8)):
            numbers, coarser = np.unique(codes, return_inverse=True)
            level = np.empty(units_below, np.int64)
            level[unit] = nodes + coarser
            parents.append(level)
            unit, units_below = coarser, len(numbers)
            nodes += units_below
        return cls.from_parents(np.concatenate([*parents, [-1]]), tiles_first(n, nodes), kind)

    def to_arrow(self) -> pa.Table:
        """Return a table of the nodes: number, parent (null for the root), depth, number of tiles, and tile of a leaf."""
        return pa.table(
            {
                "node": np.arange(len(self)),
                "parent": pa.array(self.parent, mask=self.parent < 0),
                "depth": self.depth,
                "tiles": self.size,
                "tile": pa.array(self.leaf_tile[self.first_leaf], mask=~self.is_leaf),
            }
        )

    def summary(self) -> str:
        """Return the numbers of nodes, tiles and levels, and the kind of tree."""
        levels = int(self.depth.max(initial=0)) + 1
        return f"{len(self):,} nodes over {self.tiles:,} tiles in {levels} levels ({self.kind})"

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def root(self) -> int:
        """Return the number of the root, which is the last node."""
        return len(self.parent) - 1

    @property
    def tiles(self) -> int:
        """Return the number of tiles, which is the number of leaves."""
        return len(self.leaf_tile)

    @cached_property
    def size(self) -> Indices:
        """Return the number of leaves under each node."""
        return frozen(self.last_leaf - self.first_leaf, np.int32)

    @cached_property
    def is_leaf(self) -> Mask:
        """Return whether each node is a tile."""
        return frozen(self.size == 1, np.bool_)

    @cached_property
    def depth(self) -> Indices:
        """Return the number of nodes above each node; 0 at the root."""
        # In pre-order the nodes before a node are its ancestors and the nodes that ended before it began.
        rank = np.empty(len(self), np.int64)
        rank[np.lexsort((-self.size, self.first_leaf))] = np.arange(len(self))
        ended = np.cumsum(np.bincount(self.last_leaf, minlength=self.tiles + 1))
        return frozen(rank - ended[self.first_leaf], np.int32)

    @cached_property
    def child_offsets(self) -> Indices:
        """Return offsets: the children of node i are child_nodes[child_offsets[i] : child_offsets[i + 1]]."""
        return frozen(np.concatenate([[0], np.cumsum(self._child_counts())]), np.int32)

    @cached_property
    def child_nodes(self) -> Indices:
        """Return the children of all nodes, node after node, each node's in depth-first order."""
        return frozen(np.argsort(self.parent[:-1], kind="stable"), np.int32)

    @cached_property
    def tile_leaf(self) -> Indices:
        """Return the leaf position of each tile."""
        position = np.empty(self.tiles, np.int32)
        position[self.leaf_tile] = np.arange(self.tiles, dtype=np.int32)
        return frozen(position, np.int32)

    @cached_property
    def leaf_node(self) -> Indices:
        """Return the node at each leaf position."""
        return frozen(np.flatnonzero(self.is_leaf), np.int32)

    def children(self, node: int) -> Indices:
        """Return the children of a node in depth-first order; none for a leaf."""
        return self.child_nodes[self.child_offsets[node] : self.child_offsets[node + 1]]

    def node_tiles(self, node: int) -> Indices:
        """Return the tiles under a node, in depth-first order."""
        return self.leaf_tile[self.first_leaf[node] : self.last_leaf[node]]

    def parts(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the children of several nodes one after the other, rising, and the position of their node in the list."""
        rows, offsets = take_slices(self.child_offsets.astype(np.int64), nodes)
        return self.child_nodes[rows].astype(np.int64), row_slices(offsets)

    def tiles_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the offsets of the tiles of several nodes, and these tiles one after the other."""
        size = self.size[nodes]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(size, dtype=np.int64)])
        rows = np.arange(offsets[-1]) + np.repeat(self.first_leaf[nodes] - offsets[:-1], size)
        return offsets, self.leaf_tile[rows].astype(np.int64)

    def subtree_sums(self, values_by_tile: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of `values_by_tile` under each node; exact for whole numbers, to rounding of the total for floats."""
        if len(values_by_tile) != self.tiles:
            raise InputError(
                Option("hierarchy"),
                f"Expected {counted(self.tiles, 'value')}, one a tile, got {len(values_by_tile):,}.",
            )
        whole = values_by_tile.dtype.kind in "biu"
        before = np.zeros(self.tiles + 1, np.int64 if whole else np.float64)
        np.cumsum(values_by_tile[self.leaf_tile], out=before[1:], dtype=before.dtype)
        sums: npt.NDArray[Any] = before[self.last_leaf] - before[self.first_leaf]
        return sums

    def _child_counts(self) -> Ints:
        return np.bincount(self.parent[:-1], minlength=len(self.parent))


def tiles_first(tiles: int, nodes: int) -> Ints:
    """Return the tile of each node where the first nodes are the tiles."""
    node = np.arange(nodes)
    return np.where(node < tiles, node, -1)


def _whole(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    require(array.ndim == 1 and len(array) > 0, f"hierarchy: expected a list of nodes with their {name}, got no node.")
    require(array.dtype.kind in "iu", f"hierarchy: the {name} of each node must be a whole number.")
    return array


def _check_forest(parent: npt.NDArray[Any], tile: npt.NDArray[Any]) -> None:
    n = len(parent)
    unknown = int(np.count_nonzero((parent < -1) | (parent >= n)))
    require(unknown == 0, f"hierarchy is not a tree: the parent of {counted(unknown, 'node')} is no node.")
    roots = int(np.count_nonzero(parent == -1))
    require(
        roots > 0,
        "hierarchy is not a tree: every node has a parent, so parents run in a circle. Leave one node without.",
    )
    require(roots == 1, f"hierarchy is not a tree: expected one root, got {roots:,}. Put one node above them.")
    childless = np.bincount(parent[parent >= 0], minlength=n) == 0
    empty = int(np.count_nonzero(childless & (tile < 0)))
    require(
        empty == 0,
        f"hierarchy: expected a tile at each childless node, got none at {counted(empty, 'node')}. Leave them out.",
    )
    inner = int(np.count_nonzero(~childless & (tile >= 0)))
    require(inner == 0, f"hierarchy: tiles must be leaves, got {counted(inner, 'tile')} with children.")
