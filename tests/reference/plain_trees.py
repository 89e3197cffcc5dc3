"""Plain twins of trees, as nested lists: nothing here uses the code under test."""

from __future__ import annotations

from crowdveil.model.hierarchy import Hierarchy
from crowdveil.testing import Nested


def tiles_of(tree: Nested) -> list[int]:
    """The tiles under a nested list, in depth-first order."""
    return [tree] if isinstance(tree, int) else [tile for child in tree for tile in tiles_of(child)]


def without_chains(tree: Nested) -> Nested:
    """The nested list without lists of one."""
    if isinstance(tree, int):
        return tree
    return without_chains(tree[0]) if len(tree) == 1 else [without_chains(child) for child in tree]


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


def plain_ward(places: list[tuple[float, float]], tie: float) -> set[frozenset[int]]:
    """The sets of places that are nodes of a Ward tree: in rounds, clusters that are nearly cheapest for each other merge."""

    def cost(a: frozenset[int], b: frozenset[int]) -> float:
        means = [[sum(places[i][axis] for i in c) / len(c) for axis in (0, 1)] for c in (a, b)]
        return len(a) * len(b) / (len(a) + len(b)) * sum((p - q) ** 2 for p, q in zip(*means, strict=True))

    clusters = [frozenset([i]) for i in range(len(places))]
    nodes = set(clusters)
    while len(clusters) > 1:
        least = {a: min(cost(a, b) for b in clusters if b != a) for a in clusters}
        joined: list[frozenset[int]] = []
        for at, a in enumerate(clusters):
            if not any(a <= c for c in joined):
                near = (b for b in clusters[at + 1 :] if cost(a, b) <= tie * min(least[a], least[b]))
                joined.append(a | next((b for b in near if not any(b <= c for c in joined)), frozenset()))
        clusters = sorted(joined, key=min)
        nodes |= set(clusters)
    return nodes
