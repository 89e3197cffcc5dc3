"""t-closeness: the distance on a tree against a linear program, and releases in which origins reveal nothing or everything."""

from __future__ import annotations

import numpy as np
import pytest
from examples import tries
from scipy.optimize import linprog

from crowdveil.measures.od.closeness import closeness, mean_variation, tree_distances
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import FlowRelease
from crowdveil.model.zones import Zones


def random_tree(rng: np.random.Generator, tiles: int) -> Hierarchy:
    """Return a tree in which random nodes were joined, two or three at a time."""
    parent, roots = [-1] * tiles, list(range(tiles))
    while len(roots) > 1:
        joined = rng.choice(roots, min(len(roots), int(rng.integers(2, 4))), replace=False).tolist()
        for node in joined:
            parent[node] = len(parent)
        roots = [node for node in roots if node not in joined] + [len(parent)]
        parent.append(-1)
    return Hierarchy.from_parents(np.array(parent), np.array([*range(tiles), *[-1] * (len(parent) - tiles)]))


def plain_distances(tree: Hierarchy) -> Floats:
    """Return how far tiles are apart: the height of their lowest common node, as a share of the root's."""
    parent = tree.parent.tolist()

    def height(node: int) -> int:
        return max((1 + height(child) for child, above in enumerate(parent) if above == node), default=0)

    def above(node: int) -> list[int]:
        return [node, *(above(parent[node]) if parent[node] >= 0 else [])]

    leaf = {int(tile): int(node) for tile, node in zip(tree.leaf_tile, tree.leaf_node, strict=True)}
    n = len(leaf)
    apart = [[next(a for a in above(leaf[i]) if a in above(leaf[j])) for j in range(n)] for i in range(n)]
    return np.array([[height(node) for node in row] for row in apart]) / height(len(parent) - 1)


def test_distance_on_a_tree_is_the_least_work_of_moving() -> None:
    rng = np.random.default_rng(2)
    for _ in range(tries(40)):
        n = int(rng.integers(2, 7))
        tree = random_tree(rng, n)
        p, q = rng.dirichlet(np.ones(n), 2)
        sums = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
        work = linprog(plain_distances(tree).ravel(), A_eq=sums, b_eq=np.concatenate([p, q])).fun
        assert tree_distances(tree, p[None], q).tolist() == pytest.approx([work], abs=1e-7)


def released(origin: Ints, destination: Ints, volume: Ints) -> OdComparison:
    """Return a release of single tiles of four, compared with itself."""
    zones = Zones(np.array(list("abcd"), dtype=object), 2 + np.arange(4) / 100, np.full(4, 48.0))
    order = np.lexsort((destination, origin))
    origin, destination, volume = origin[order], destination[order], volume[order]
    offsets = np.array([0, len(origin)])
    flows = Flows(zones, np.zeros(1, np.int64), offsets, origin, destination, volume, volume, "trips")
    release = FlowRelease(
        Areas.of_tiles(zones, np.arange(4, dtype=np.int32)), flows.t, offsets, flows.origin, flows.destination, volume,
        volume, np.zeros(len(volume), np.uint8), np.zeros(1, np.int64), "trips",
    )  # fmt: skip
    return OdComparison.between(flows, release)


def test_an_origin_that_reveals_nothing_and_one_that_reveals_all() -> None:
    alike = released(np.repeat([0, 1], 2), np.tile([2, 3], 2), np.array([10, 20, 10, 20]))
    assert closeness(alike).tolist() == [[0, 0]]
    # All of a go to d, all of b to a: two tiles of different halves of the map, of which half of all trips go to each.
    apart = released(np.array([0, 1]), np.array([3, 0]), np.array([10, 10]))
    assert closeness(apart).tolist() == [[0.5, 0]]
    one_of_many = released(np.arange(4), np.array([3, 0, 0, 0]), np.array([10, 30, 30, 30]))
    mean = (0.1 * 0.9 + 0.9 * 0.1) * 1.0
    assert closeness(one_of_many)[0].tolist() == pytest.approx([mean, 0.1])
    assert closeness(one_of_many.all_steps())[0].tolist() == pytest.approx([mean, 0.1])


def test_equal_distances_against_the_definition() -> None:
    rng = np.random.default_rng(4)
    for _ in range(tries(60)):
        steps, origins, tiles = 2, 3, 5
        held = rng.integers(0, 4, (steps, origins, tiles)).astype(float)
        wanted = trips = 0.0
        for step in held:
            for origin in step:
                if origin.sum():
                    difference = np.abs(origin / origin.sum() - step.sum(axis=0) / step.sum()).sum() / 2
                    wanted, trips = wanted + origin.sum() * difference, trips + origin.sum()
        step, origin, tile = np.nonzero(held)
        rows = step, step * origins + origin, tile, held[step, origin, tile].astype(np.int64)
        found = mean_variation(*rows, np.arange(tiles + 1), np.arange(tiles))
        assert found == pytest.approx(wanted / trips if trips else 0.0)


def test_volumes_are_spread_evenly_over_the_tiles_of_areas() -> None:
    """Some areas overlap, and some have no tile."""
    rng = np.random.default_rng(5)
    for _ in range(tries(60)):
        n, areas, tiles = int(rng.integers(0, 40)), 6, 5
        chosen = rng.random((areas, tiles)) < 0.4
        offsets = np.append(0, np.cumsum(chosen.sum(axis=1)))
        group = np.sort(rng.integers(0, 9, n))
        area, volume = rng.integers(0, areas, n), rng.integers(0, 3, n)
        held = np.zeros((3, 3, tiles))
        for g, a, v in zip(group.tolist(), area.tolist(), volume.tolist(), strict=True):
            held[g // 3, g % 3] += v * chosen[a] / max(chosen[a].sum(), 1)
        wanted = sum(
            np.abs(origin - origin.sum() * step.sum(axis=0) / step.sum()).sum() / 2
            for step in held for origin in step if step.sum()
        )  # fmt: skip
        found = mean_variation(group // 3, group, area, volume, offsets, np.nonzero(chosen)[1])
        assert found == pytest.approx(wanted / held.sum() if held.sum() else 0.0, abs=1e-12)
