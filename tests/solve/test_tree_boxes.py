"""Boxes over trees of several hundred tiles: crowds that add up, and people of whom everybody makes one trip, are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.io.flows import trips_to_flows
from crowdveil.kernels.od.structures import BY_ORIGIN
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.solve.od.box_building import build_matrix_boxes
from crowdveil.solve.od.region_space import RegionExtent, RegionSpace
from crowdveil.solve.od.step_matrix import Matrix


def drawn_tree(rng: np.random.Generator, tiles: int, most: int) -> Hierarchy:
    """A tree in which neighbors are joined at random, 2 to `most` at once."""
    roots, parent = list(range(tiles)), [-1] * tiles
    while len(roots) > 1:
        count = min(int(rng.integers(2, most + 1)), len(roots))
        begin = int(rng.integers(0, len(roots) - count + 1))
        for node in roots[begin : begin + count]:
            parent[node] = len(parent)
        roots[begin : begin + count] = [len(parent)]
        parent.append(-1)
    return Hierarchy.from_parents(parent, [*rng.permutation(tiles).tolist(), *[-1] * (len(parent) - tiles)])


def drawn_flows(rng: np.random.Generator, tiles: int, trips: int, most: int) -> tuple[Flows, Flows]:
    """The same trips without people, and with a person for each; most of them between few tiles."""
    zones = Zones.from_ids([f"z{i:03}" for i in range(tiles)])
    o, d = (np.minimum(rng.geometric(min(4 / tiles, 0.5), trips) - 1, tiles - 1) for _ in range(2))
    trees = drawn_tree(rng, tiles, most), drawn_tree(rng, tiles, most)
    both = (Trips(zones, o, d, person=person) for person in (None, rng.permutation(trips)))
    first, second = (trips_to_flows(drawn, members=True) for drawn in both)
    return tuple(replace(f, origin_tree=trees[0], destination_tree=trees[1]) for f in (first, second))  # type: ignore[return-value]


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    tiles=st.integers(2, 9) | st.sampled_from([64, 65, 130, 300]),
    trips=st.integers(1, 99) | st.sampled_from([300, 1500]),
    most=st.sampled_from([2, 3, 9]),
    k=st.integers(2, 12),
    min_tiles=st.sampled_from([1, 1, 5]),
    origins_first=st.booleans(),
)
def test_one_trip_each_is_as_no_people(
    seed: int, tiles: int, trips: int, most: int, k: int, min_tiles: int, origins_first: bool
) -> None:
    rng = np.random.default_rng(seed)
    found = []
    for flows in drawn_flows(rng, tiles, trips, most):
        system = RegionSpace.trees(flows, extent=RegionExtent(tiles=min(min_tiles, tiles)))
        found.append(build_matrix_boxes(Matrix.of(flows, 0, system), k, origins_first=origins_first))
    for ours, theirs in zip(*found, strict=True):
        assert [np.asarray(a).tolist() for a in ours] == [np.asarray(a).tolist() for a in theirs]
    (o, d, volume, _, _), splits, cost = found[0]
    assert cost.tolist() == ((system.origins.cost[o] + system.destinations.cost[d]) * volume).tolist()
    if origins_first:
        child_offsets, children = system.origins.as_origins.child_offsets, system.origins.as_origins.children
        box_of_split = np.repeat(np.arange(len(o)), np.diff(splits.offsets))
        for split in np.flatnonzero(splits.kind[: len(box_of_split)] == BY_ORIGIN).tolist():
            a = o[box_of_split[split]]
            parts = o[splits.link[splits.link_offsets[split] : splits.link_offsets[split + 1]]]
            with_crowd = set(children[child_offsets[a] : child_offsets[a + 1]].tolist()) & set(o.tolist())
            assert sorted(parts.tolist()) == sorted(with_crowd), "each child with a crowd is a part"
