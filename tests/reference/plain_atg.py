"""ATG-Dual as its paper has it, by plain recursion over Python objects: the twin that the fast one is held against.

With the corrections that make it right: the search starts with an infinite price, asks at price 0 first, compares whole numbers,
and nodes below k are not split.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy


@dataclass
class Node:
    """A node of a tree of tiles."""

    number: int
    tiles: list[int]
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Box:
    """A node as destination of an origin: its volume, what publishing it costs, and its children with trips."""

    node: Node
    volume: int
    cost: int
    children: list[Box]


def nodes(tree: Hierarchy) -> Node:
    """The tree as objects; returns the root."""
    made = [Node(i, tree.node_tiles(i).tolist()) for i in range(len(tree))]
    for node in made:
        node.children = [made[c] for c in tree.children(node.number).tolist()]
        for child in node.children:
            child.parent = node
    return made[-1]


def leaves(node: Node) -> dict[int, Node]:
    """The leaf of each tile."""
    if not node.children:
        return {node.tiles[0]: node}
    return {tile: leaf for child in node.children for tile, leaf in leaves(child).items()}


def outgoing(node: Node, by_tile: dict[int, int], found: dict[int, int]) -> int:
    """Volume that leaves each node."""
    below = sum(outgoing(c, by_tile, found) for c in node.children)
    found[node.number] = below if node.children else by_tile.get(node.tiles[0], 0)
    return found[node.number]


def best_origins(node: Node, leaving: dict[int, int], target: float) -> tuple[float, list[Node]]:
    """The pruning with the least sum of squared distances from the target volume."""
    whole = (target - leaving[node.number]) ** 2
    if node.children:
        below = [best_origins(c, leaving, target) for c in node.children]
        split = sum(b[0] for b in below)
        if split < whole:
            return split, [origin for b in below for origin in b[1]]
    return whole, [node]


def volumes_above(by_tile: dict[int, int], leaf: dict[int, Node]) -> dict[int, int]:
    """The volume of each node that has a trip."""
    found: dict[int, int] = {}
    for tile, volume in by_tile.items():
        node: Node | None = leaf[tile]
        while node is not None:
            found[node.number] = found.get(node.number, 0) + volume
            node = node.parent
    return found


def destinations(node: Node, volumes: dict[int, int], origin: Node, k: int) -> Box:
    """The tree of destinations of an origin; nodes without a trip are left out, and nodes below k not looked into."""
    volume = volumes[node.number]
    if volume < k:
        return Box(node, volume, 0, [])
    children = [destinations(c, volumes, origin, k) for c in node.children if c.number in volumes]
    return Box(node, volume, (len(origin.tiles) + len(node.tiles)) * volume, children)


def best_error(box: Box, price: Fraction | None, k: int) -> tuple[int, int]:
    """(cost, suppressed) of the best pruning error B_n at a price; None is an infinite one."""
    if box.volume < k:
        return 0, box.volume
    whole = box.cost, 0
    if not box.node.children:
        return whole
    below = [best_error(b, price, k) for b in box.children]
    split = sum(a for a, _ in below), sum(s for _, s in below)
    if price is None:
        return min(whole, split, key=lambda x: (x[1], x[0]))
    p, q = price.numerator, price.denominator
    return split if q * split[0] + p * split[1] < q * whole[0] else whole


def search(boxes: list[Box], k: int, budget: int) -> tuple[Fraction | None, int, int] | None:
    """The price by the search for specific breakpoints, with cost and suppressed volume; None if no price keeps the budget."""

    def solve(price: Fraction | None) -> tuple[int, int]:
        parts = [best_error(b, price, k) for b in boxes]
        return sum(a for a, _ in parts), sum(s for _, s in parts)

    left = solve(Fraction(0))
    if left[1] <= budget:
        return Fraction(0), *left
    right, price = solve(None), None
    if right[1] > budget:
        return None
    while right[1] < budget:
        meet = Fraction(right[0] - left[0], left[1] - right[1])
        new = solve(meet)
        p, q = meet.numerator, meet.denominator
        if q * new[0] + p * new[1] >= q * right[0] + p * right[1]:
            return meet, *new
        if new[1] <= budget:
            right, price = new, meet
        else:
            left = new
    return price, *right


def solve(
    flows: Flows, step: int, root: Node, leaf: dict[int, Node], k: int, budget: int, target: float
) -> tuple[int, int] | None:
    """Cost and suppressed volume of a time step."""
    rows = range(flows.offsets[step], flows.offsets[step + 1])
    triples = [(int(flows.origin[i]), int(flows.destination[i]), int(flows.volume[i])) for i in rows]
    leaving: dict[int, int] = {}
    by_origin: dict[int, dict[int, int]] = {}
    for o, d, v in triples:
        by_origin.setdefault(o, {})[d] = v
    outgoing(root, {o: sum(d.values()) for o, d in by_origin.items()}, leaving)
    boxes = []
    for origin in best_origins(root, leaving, target)[1]:
        volumes: dict[int, int] = {}
        for tile in origin.tiles:
            for d, v in by_origin.get(tile, {}).items():
                volumes[d] = volumes.get(d, 0) + v
        if volumes:
            boxes.append(destinations(root, volumes_above(volumes, leaf), origin, k))
    found = search(boxes, k, budget)
    return None if found is None else (found[1], found[2])
