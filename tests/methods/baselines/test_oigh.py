from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_rivals import boxes, by_tiles, crowd, plain_levels, stepwise_levels, taxis, volume
from plain_rivals import rows_of as plain_rows

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.methods.baselines.oigh import Levels, OighParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy


@st.composite
def flows_on_trees(draw: st.DrawFn) -> Flows:
    """Flows with one tree for both sides, or two."""
    data = draw(testing.flows(max_tiles=9))
    tree = testing.hierarchies(max_tiles=len(data.zones), min_tiles=len(data.zones))
    origins = draw(tree)
    return replace(data, origin_tree=origins, destination_tree=draw(st.one_of(st.just(origins), tree)))


@examples(200)
@given(tree=testing.hierarchies(max_tiles=16))
def test_levels_are_those_of_the_stepwise_text(tree: Hierarchy) -> None:
    levels, tiles = Levels(tree), np.arange(tree.tiles)
    assert [frozenset(levels.nodes(tiles, most).tolist()) for most in levels.sizes] == list(stepwise_levels(tree))


@examples(300)
@given(data=flows_on_trees(), k=st.integers(2, 30), share=st.sampled_from([0.0, 0.1, 0.25, 0.5]))
def test_it_is_the_best_of_all_pairs_of_levels(data: Flows, k: int, share: float) -> None:
    release = run(data, OighParams(k=k, suppress=share), np.random.default_rng(0), no_progress)
    assert data.origin_tree is not None and data.destination_tree is not None
    for step in range(data.steps):
        rows = plain_rows(data, step)
        if crowd(rows) < k:
            assert boxes(release, step) == []
            continue
        budget = int(share * volume(rows) + 1e-9)
        _, published = plain_levels(rows, data.origin_tree, data.destination_tree, k, budget)
        assert by_tiles(boxes(release, step)) == by_tiles(published)


def test_a_coarser_pair_may_be_better_than_one_on_the_edge_of_the_budget() -> None:
    """What is published only at a coarser level may be finer than the mean, so the search must not stop at the edge."""
    joined, all_but_one = [10, 9, 9, *([10] * 6), 10, -1], [10, *([9] * 8), 10, -1]
    origins, destinations = (Hierarchy.from_parents(p, [*range(9), -1, -1]) for p in (joined, all_but_one))
    origin, destination = np.array([0] * 8 + [1, 2]), np.array([*range(1, 9), 0, 0])
    zones, volumes = testing.Zones.from_ids(list("abcdefghi")), np.array([2] * 8 + [6, 6])
    data = Flows.from_rows(zones, 0 * origin, origin, destination, volumes)
    data = replace(data, origin_tree=origins, destination_tree=destinations)
    release = run(data, OighParams(k=10, suppress="12trips"), np.random.default_rng(0), no_progress)
    assert sorted((len(o), len(d), v) for o, d, v, _ in boxes(release, 0)) == [(1, 8, 16), (2, 1, 12)]


def test_small_volumes_are_reported_if_wanted() -> None:
    zones = testing.Zones.from_ids(list("abcd"))
    tree = Hierarchy.from_parents([4, 4, 5, 5, 6, 6, -1], [0, 1, 2, 3, -1, -1, -1])
    d = np.arange(4)
    data = Flows.from_rows(zones, 0 * d, 0 * d, d, np.array([90, 3, 3, 4]))
    data = replace(data, origin_tree=tree)
    release = run(data, OighParams(k=10, aggregate_small=True), np.random.default_rng(0), no_progress)
    assert sorted(release.volume.tolist()) == [10, 90] and release.suppressed.tolist() == [0]


@pytest.mark.realdata
def test_taxis(realdata: Path) -> None:
    data = taxis(realdata, "ward")
    release = run(data, OighParams(), np.random.default_rng(0), no_progress)
    for step in range(0, data.steps, 6):
        published, rows = boxes(release, step), plain_rows(data, step)
        assert all(v >= 10 for _, _, v, _ in published)
        assert volume(rows) - sum(v for _, _, v, _ in published) <= volume(rows) // 10
        # All origins are of one level, and so are all destinations.
        for side in (0, 1):
            areas = {box[side] for box in published}
            assert sum(len(a) for a in areas) == len(frozenset().union(*areas))
