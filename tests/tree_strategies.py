"""Random trees for hypothesis, built by plain recursion over nested lists: nothing here uses the code under test."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from crowdveil.model.hierarchy import Hierarchy

Nested = Any
"""A tile (int), or the list of the subtrees below a node."""


@st.composite
def nested_trees(draw: st.DrawFn, max_tiles: int = 12, chains: bool = False) -> Nested:
    """A nested list over the tiles 0, 1, ... in any order; with `chains`, nodes may have one child."""
    n = draw(st.integers(1, max_tiles))

    def grow(tiles: list[int]) -> Nested:
        if len(tiles) == 1:
            tree: Nested = tiles[0]
        else:
            cuts = draw(st.sets(st.integers(1, len(tiles) - 1), min_size=1, max_size=3))
            edges = [0, *sorted(cuts), len(tiles)]
            tree = [grow(tiles[a:b]) for a, b in pairwise(edges)]
        for _ in range(draw(st.integers(0, 2)) if chains else 0):
            tree = [tree]
        return tree

    return grow(draw(st.permutations(range(n))))


def tiles_of(tree: Nested) -> list[int]:
    """The tiles under a nested list, in depth-first order."""
    return [tree] if isinstance(tree, int) else [tile for child in tree for tile in tiles_of(child)]


def without_chains(tree: Nested) -> Nested:
    """The nested list without lists of one."""
    if isinstance(tree, int):
        return tree
    return without_chains(tree[0]) if len(tree) == 1 else [without_chains(child) for child in tree]


def arrays_of(tree: Nested) -> tuple[list[int], list[int], list[int], list[int]]:
    """parent, first_leaf, last_leaf and leaf_tile of a nested list, by recursion."""
    parent: list[int] = []
    first: list[int] = []
    last: list[int] = []
    leaf_tile: list[int] = []

    def visit(node: Nested) -> int:
        begin = len(leaf_tile)
        below = []
        if isinstance(node, int):
            leaf_tile.append(node)
        else:
            below = [visit(child) for child in node]
        number = len(parent)
        parent.append(-1)
        first.append(begin)
        last.append(len(leaf_tile))
        for child in below:
            parent[child] = number
        return number

    visit(tree)
    return parent, first, last, leaf_tile


def nested_of(hierarchy: Hierarchy) -> Nested:
    """A hierarchy as a nested list, read from `parent` and `leaf_tile` alone."""
    parent = hierarchy.parent.tolist()
    tiles = iter(hierarchy.leaf_tile.tolist())
    trees: list[Nested] = []
    for node in range(len(parent)):
        below = [trees[child] for child in range(node) if parent[child] == node]
        trees.append(below or next(tiles))
    return trees[-1]


def node_sets(hierarchy: Hierarchy) -> set[frozenset[int]]:
    """The sets of tiles that are nodes; they say all about the tree but the order of children."""
    return {frozenset(hierarchy.node_tiles(node).tolist()) for node in range(len(hierarchy))}


@st.composite
def hierarchies(draw: st.DrawFn, max_tiles: int = 12) -> Hierarchy:
    """A random tree over 1 to `max_tiles` tiles."""
    return Hierarchy(*arrays_of(draw(nested_trees(max_tiles))))  # type: ignore[arg-type]
