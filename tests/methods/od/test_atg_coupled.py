from __future__ import annotations

from typing import Any

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import PlainOriginsFirst, on_hull, problems

from crowdveil.engine.progress import no_progress
from crowdveil.methods.od.atg_coupled import AtgCoupledParams, run


@examples(150)
@given(problem=problems(), k=st.integers(2, 5), share=st.sampled_from([0.0, 0.1, 0.25, 0.5]))
def test_it_is_the_best_that_a_price_can_reach(problem: Any, k: int, share: float) -> None:
    flows, trips = problem
    plain = PlainOriginsFirst(flows, trips, k)
    release = run(flows, AtgCoupledParams(k=k, suppress=share), np.random.default_rng(0), no_progress)
    if not plain.publishable(plain.origins.root, plain.destinations.root):
        assert len(release) == 0
        return
    everything, budget = plain.pruned(plain.origins.root), int(share * flows.total + 1e-9)
    size = release.areas.size
    cost = int(((size[release.origin] + size[release.destination]) * release.volume).sum())
    suppressed = flows.total - int(release.volume.sum())
    hull = min((a, s) for a, s in everything if s <= budget and on_hull((a, s), everything))
    assert (cost, suppressed) == hull


@examples(100)
@given(problem=problems(), k=st.integers(2, 5))
def test_each_origin_tile_is_in_one_origin(problem: Any, k: int) -> None:
    flows, _ = problem
    release = run(flows, AtgCoupledParams(k=k, suppress=0.3), np.random.default_rng(0), no_progress)
    offsets, tiles = release.areas.offsets, release.areas.tiles
    origins = [set(tiles[offsets[o] : offsets[o + 1]].tolist()) for o in np.unique(release.origin)]
    assert sum(map(len, origins)) == len(set().union(*origins))
