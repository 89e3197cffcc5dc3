"""Areas of nodes of trees and of regions, by a plain twin that takes one node after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.trees import kd, ward
from crowdveil.model.zones import Zones
from crowdveil.solve.od.dyadic_regions import DyadicRegions
from crowdveil.synth.city import City


def _plainly(zones: Zones, nodes: Sequence[tuple[Any, Ints]]) -> tuple[list[str], list[Indices], list[list[int]]]:
    """Name one node after the other; a name that was given before is the same area."""
    number: dict[str, int] = {}
    tiles: list[Indices] = []
    found = []
    for which, (tree, wanted) in enumerate(nodes):
        area = []
        for node in wanted.tolist():
            of_node = tree.node_tiles(node)
            name = zones.ids[of_node[0]] if len(of_node) == 1 else f"area{'-to' if which else ''}-{node}"
            if name not in number:
                number[name] = len(tiles)
                tiles.append(np.sort(of_node))
            area.append(number[name])
        found.append(area)
    return list(number), tiles, found


@pytest.mark.parametrize("kinds", [(ward,), (ward, kd), (DyadicRegions.of,), (DyadicRegions.of, ward)])
@given(st.integers(0, 1000), st.sampled_from([9, 16, 36]), st.sampled_from([0, 1, 5, 1000]))
def test_areas_of_nodes_are_those_of_one_node_after_the_other(
    kinds: tuple[Any, ...], seed: int, tiles: int, wanted: int
) -> None:
    rng = np.random.default_rng(seed)
    zones = City.make(seed % 5, tiles, 10).zones
    nodes = [(tree, rng.permutation(len(tree))[:wanted]) for tree in (make(zones) for make in kinds)]
    areas, found = Areas.of_nodes(zones, nodes)
    names, held, places = _plainly(zones, nodes)
    assert areas.names.tolist() == names
    assert [t.tolist() for t in np.split(areas.tiles, areas.offsets[1:-1])][: len(held)] == [t.tolist() for t in held]
    assert [area.tolist() for area in found] == places
