from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_trees import nested_of, tiles_of, without_chains

from crowdveil.errors import InputError
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.testing import hierarchies, nested_trees, tree_arrays

# Two pairs and a fifth tile: ((2, 0), (1, 4)), 3.
FIVE = [[2, 0], [1, 4], 3]


def five(**changes: Any) -> Hierarchy:
    """The tree FIVE with some arrays changed."""
    fields = dict(zip(("parent", "first_leaf", "last_leaf", "leaf_tile"), tree_arrays(FIVE), strict=True))
    return Hierarchy(**(fields | changes))


def plain_valid(parent: list[int], first: list[int], last: list[int], leaf_tile: list[int]) -> bool:
    """Whether the arrays are what recursion over the tree they describe would write."""
    n = len(parent)
    if parent.count(-1) != 1 or any(not -1 <= p < n or 0 <= p <= i for i, p in enumerate(parent)):
        return False
    if sorted(leaf_tile) != list(range(len(leaf_tile))) or any(parent.count(i) == 1 for i in range(n)):
        return False
    leaves = sum(i not in parent for i in range(n))
    if leaves != len(leaf_tile):
        return False
    tiles = iter(leaf_tile)
    trees: list[Any] = []
    for node in range(n):
        below = [trees[child] for child in range(node) if parent[child] == node]
        trees.append(below or next(tiles))
    return tree_arrays(trees[-1]) == (parent, first, last, leaf_tile)


class TestDoor:
    @given(nested_trees())
    def test_takes_every_tree(self, tree: Any) -> None:
        arrays = tree_arrays(tree)
        hierarchy = Hierarchy(*arrays)  # type: ignore[arg-type]
        assert nested_of(hierarchy) == tree
        assert plain_valid(*arrays)

    @given(nested_trees(6), st.data())
    def test_refuses_exactly_what_recursion_would_not_write(self, tree: Any, data: st.DataObject) -> None:
        arrays = [list(a) for a in tree_arrays(tree)]
        for _ in range(data.draw(st.integers(1, 2))):
            changed = data.draw(st.sampled_from(arrays))
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(-2, len(arrays[0])))
        if plain_valid(*arrays):
            Hierarchy(*arrays)  # type: ignore[arg-type]
        else:
            with pytest.raises(InputError):
                Hierarchy(*arrays)  # type: ignore[arg-type]

    def test_one_tile_is_a_tree(self) -> None:
        one = Hierarchy([-1], [0], [1], [0])  # type: ignore[arg-type]
        assert (len(one), one.tiles, one.root, one.depth.tolist(), one.children(0).tolist()) == (1, 1, 0, [0], [])

    def test_no_tile_is_none(self) -> None:
        with pytest.raises(InputError, match="at least one tile"):
            Hierarchy([], [], [], [])  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"leaf_tile": [2, 0, 1, 4, 4]}, "must be exactly one leaf"),
            ({"leaf_tile": [2, 0, 1, 4, 5]}, "must be exactly one leaf"),
            ({"leaf_tile": [2, 0, 1, 3]}, "range of the root"),
            ({"parent": [2, 2, 7, 5, 5, 7, 7, 7]}, "last node must be the root"),
            ({"parent": [2, 2, 7, 5, 5, 7, -1, -1]}, "no later node"),
            ({"parent": [2, 2, 7, 5, 5, 1, 7, -1]}, "parent of 1 node is no later node"),
            ({"parent": [2, 2, 7, 5, 5, 7, 8, -1]}, "no later node"),
            ({"parent": [2, 2, 7, 7, 5, 7, 7, -1]}, "no node may have one child"),
            ({"parent": [2, 2, 5, 5, 5, 7, 7, -1]}, "without gap or overlap"),
            ({"first_leaf": [0, 1, 0, 2, 3, 2, 4, 1]}, "range of the root"),
            ({"last_leaf": [1, 2, 2, 3, 4, 4, 6, 5]}, "must be one leaf"),
            ({"first_leaf": [0, 1, 0, 2, 3, 2, 4]}, "column first_leaf has 7 rows instead of 8"),
        ],
    )
    def test_says_what_is_wrong(self, changes: dict[str, Any], message: str) -> None:
        five()
        with pytest.raises(InputError, match=message):
            five(**changes)

    def test_refuses_children_before_parents_that_are_not_in_post_order(self) -> None:
        # The pairs (0, 1) and (2, 3), with all leaves first: every range is right, only the order is not.
        with pytest.raises(InputError, match="post-order of their ranges"):
            Hierarchy(
                [4, 4, 5, 5, 6, 6, -1],  # type: ignore[arg-type]
                [0, 1, 2, 3, 0, 2, 0],  # type: ignore[arg-type]
                [1, 2, 3, 4, 2, 4, 4],  # type: ignore[arg-type]
                [0, 1, 2, 3],  # type: ignore[arg-type]
            )

    @pytest.mark.parametrize(
        ("first", "last"),
        [([0, 1, 0], [1, 2, 3]), ([1, 2, 0], [2, 3, 3]), ([0, 2, 0], [1, 3, 3])],
        ids=["last", "first", "middle"],
    )
    def test_refuses_a_leaf_that_no_child_holds(self, first: list[int], last: list[int]) -> None:
        with pytest.raises(InputError, match="without gap or overlap"):
            Hierarchy([2, 2, -1], first, last, [0, 1, 2])  # type: ignore[arg-type]

    def test_arrays_cannot_be_changed(self) -> None:
        for name in ("parent", "leaf_tile", "size", "depth", "child_nodes", "tile_leaf", "leaf_node"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(five(), name)[0] = 0


class TestQueries:
    @given(hierarchies())
    def test_arrays_agree_with_walking_up(self, tree: Hierarchy) -> None:
        parent = tree.parent.tolist()
        for node in range(len(tree)):
            path = [node]
            while parent[path[-1]] != -1:
                path.append(parent[path[-1]])
            assert tree.depth[node] == len(path) - 1
            first, last = tree.first_leaf <= tree.first_leaf[node], tree.last_leaf[node] <= tree.last_leaf
            assert np.flatnonzero(first & last).tolist() == sorted(path)
            assert tree.children(node).tolist() == [i for i, p in enumerate(parent) if p == node]
            assert tree.is_leaf[node] == (node not in parent)

    @given(hierarchies())
    def test_tiles_of_a_node_are_those_of_its_children(self, tree: Hierarchy) -> None:
        for node in range(len(tree)):
            tiles = tree.node_tiles(node).tolist()
            assert tree.size[node] == len(tiles)
            if not tree.is_leaf[node]:
                assert tiles == [t for child in tree.children(node) for t in tree.node_tiles(int(child)).tolist()]
        for tile in range(tree.tiles):
            assert tree.leaf_tile[tree.tile_leaf[tile]] == tile
            assert tree.node_tiles(int(tree.leaf_node[tree.tile_leaf[tile]])).tolist() == [tile]
        assert tree.leaf_tile[tree.tile_leaf[tree.leaf_tile]].tolist() == tree.leaf_tile.tolist()
        assert tree.node_tiles(tree.root).tolist() == tree.leaf_tile.tolist()

    @given(hierarchies(), st.data())
    def test_subtree_sums_add_up_every_tile(self, tree: Hierarchy, data: st.DataObject) -> None:
        bound = 2**58
        values = data.draw(st.lists(st.integers(-bound, bound), min_size=tree.tiles, max_size=tree.tiles))
        sums = tree.subtree_sums(np.array(values, np.int64))
        assert sums.dtype == np.int64
        assert sums.tolist() == [sum(values[t] for t in tree.node_tiles(node)) for node in range(len(tree))]

    def test_subtree_sums_of_floats_and_masks(self) -> None:
        tree = five()
        assert tree.subtree_sums(np.array([0.5, 0.25, 1, 2, 4]))[-1] == 7.75
        mask = tree.subtree_sums(np.array([True, True, True, False, False]))
        assert mask.tolist() == [1, 1, 2, 1, 0, 1, 0, 3]
        # Small counts must not overflow in their own type.
        assert tree.subtree_sums(np.full(5, 100, np.int8))[-1] == 500

    def test_subtree_sums_want_a_value_for_each_tile(self) -> None:
        with pytest.raises(InputError, match="Expected 5 values, one a tile, got 4"):
            five().subtree_sums(np.zeros(4))


def numbered(tree: Any, data: st.DataObject) -> tuple[list[int], list[int]]:
    """Parents and tiles of a nested list whose nodes get random numbers."""
    post_parent, _, _, _ = tree_arrays(tree)
    leaf_tile = iter(tiles_of(tree))
    tile = [-1 if node in post_parent else next(leaf_tile) for node in range(len(post_parent))]
    number = data.draw(st.permutations(range(len(post_parent))))
    parent, tiles = [0] * len(number), [0] * len(number)
    for node, above in enumerate(post_parent):
        parent[number[node]] = -1 if above < 0 else number[above]
        tiles[number[node]] = tile[node]
    return parent, tiles


def plain_tree(parent: list[int], tile: list[int]) -> Any:
    """The nested list of parents, children in order of number, by recursion."""

    def below(node: int) -> Any:
        children = [below(i) for i in range(len(parent)) if parent[i] == node]
        return children or tile[node]

    return below(parent.index(-1))


class TestFromParents:
    @settings(deadline=None)  # the first call may compile
    @given(nested_trees(chains=True), st.data())
    def test_is_the_tree_of_plain_recursion_without_chains(self, tree: Any, data: st.DataObject) -> None:
        parent, tile = numbered(tree, data)
        wanted = without_chains(plain_tree(parent, tile))
        got = Hierarchy.from_parents(parent, tile, "mine")
        assert nested_of(got) == wanted
        assert [a.tolist() for a in (got.parent, got.first_leaf, got.last_leaf, got.leaf_tile)] == list(
            tree_arrays(wanted)
        )
        assert got.kind == "mine"

    def test_ten_thousand_levels_deep(self) -> None:
        n = 10_000
        inner = np.arange(n, 2 * n - 1)
        parent = np.concatenate([[n], np.minimum(inner, 2 * n - 2), inner[1:], [-1]])
        tree = Hierarchy.from_parents(parent, np.where(np.arange(2 * n - 1) < n, np.arange(2 * n - 1), -1))
        assert tree.depth.max() == n - 1
        assert tree.size[tree.root] == n

    @pytest.mark.parametrize(
        ("parent", "tile", "message"),
        [
            ([], [], "got no node"),
            ([2, 2, -1, -1], [0, 1, -1, 2], "is not a tree: expected one root, got 2"),
            ([2, 2, 0], [-1, 0, -1], "is not a tree: every node has a parent"),
            ([2, 2, -1, 4, 3, 3, 4], [0, 1, -1, -1, -1, 2, 3], "is not a tree: 4 nodes cannot reach the root"),
            ([2, 2, -1, 3], [0, 1, -1, -1], "is not a tree: 1 node cannot reach"),
            ([2, 2, 5], [0, 1, -1], "is not a tree: the parent of 1 node is no node"),
            ([2, 2, -2], [0, 1, -1], "is not a tree: the parent of 1 node is no node"),
            ([2, 2, -1], [0, -1, -1], "got none at 1 node"),
            ([2, 2, -1], [0, 1, 2], "got 1 tile with children"),
            ([2, 2, -1], [0, 0, -1], "must be exactly one leaf"),
            ([2, 2, -1], [0, 2, -1], "must be exactly one leaf"),
            ([2, 2, -1], [0, 1], "column tile has 2 rows instead of 3"),
            ([2.0, 2.0, -1.0], [0, 1, -1], "must be a whole number"),
        ],
    )
    def test_refuses_what_is_no_tree(self, parent: list[int], tile: list[int], message: str) -> None:
        with pytest.raises(InputError, match=message):
            Hierarchy.from_parents(parent, tile)


class TestFromUnits:
    def test_puts_units_in_order_of_their_number_under_one_root(self) -> None:
        fine, coarse = np.array([7, 3, 7, 3, 5]), np.array([1, 0, 1, 0, 1])
        assert nested_of(Hierarchy.from_units([fine, coarse])) == [[1, 3], [4, [0, 2]]]

    def test_wants_a_tile(self) -> None:
        with pytest.raises(InputError, match="at least one tile"):
            Hierarchy.from_units([np.array([], np.int64)])
        with pytest.raises(InputError, match="at least one tile"):
            Hierarchy.from_units([])
