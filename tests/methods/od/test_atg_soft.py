from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import TILES, PlainOriginsFirst, problems, pruning, sums

from crowdveil.engine.progress import no_progress
from crowdveil.methods.base import Facts
from crowdveil.methods.od.atg_soft import AtgSoftParams, guarantees, run


@examples(150)
@given(
    problem=problems(), k=st.integers(2, 5), price=st.sampled_from([0.25, 0.5, 0.75, 1.0]), target=st.integers(1, 45)
)
def test_it_is_the_plain_twin(problem: Any, k: int, price: float, target: int) -> None:
    flows, trips = problem
    plain = PlainOriginsFirst(flows, trips, k)
    release = run(flows, AtgSoftParams(k=k, price=price, v_target=target), np.random.default_rng(0), no_progress)
    if not plain.publishable(plain.origins.root, plain.destinations.root):
        assert len(release) == 0
        return
    everything = sums([plain.destinations_of(a, plain.destinations.root) for a in pruning(plain, target)])
    size, tiles = release.areas.size, Fraction(price) * TILES
    cost = int(((size[release.origin] + size[release.destination]) * release.volume).sum())
    suppressed = flows.total - int(release.volume.sum())
    assert (cost + tiles * suppressed, suppressed) == min((a + tiles * s, s) for a, s in everything)


@examples(100)
@given(problem=problems(), k=st.integers(2, 5), price=st.sampled_from([0.3, 0.6, 1.0]))
def test_nothing_is_generalized_beyond_the_price(problem: Any, k: int, price: float) -> None:
    flows, _ = problem
    params = AtgSoftParams(k=k, price=price)
    release = run(flows, params, np.random.default_rng(0), no_progress)
    size = release.areas.size
    wide = size[release.destination] > 1
    assert np.all((size[release.origin] + size[release.destination])[wide] <= price * TILES + 1e-9)
    assert guarantees(params, Facts.of(flows))[2].tiles == float(params.tiles(TILES))  # type: ignore[attr-defined]
