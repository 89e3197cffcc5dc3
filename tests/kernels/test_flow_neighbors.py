from __future__ import annotations

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.od.flow_neighbors import nearest_points
from crowdveil.model.arrays import frozen


@settings(max_examples=tries(200))
@given(n=st.integers(2, 120), most=st.integers(1, 130), side=st.sampled_from([1, 3, 1000]), seed=st.integers(0, 1000))
def test_they_are_as_near_as_the_nearest_of_all(n: int, most: int, side: int, seed: int) -> None:
    most = min(most, n - 1)
    place = np.random.default_rng(seed).integers(0, side, (n, 4)).astype(np.float64)  # many on one place
    offsets, near, far = nearest_points(frozen(place, np.float64), frozen(np.arange(n), np.int64), most)
    assert offsets.tolist() == [i * most for i in range(n + 1)]
    away = np.abs(place[:, None] - place).sum(axis=2)
    for i in range(n):
        wanted = sorted((away[i, j], j) for j in range(n) if j != i)[:most]
        mine = slice(offsets[i], offsets[i + 1])
        assert list(zip(far[mine], near[mine], strict=True)) == wanted


@pytest.mark.parametrize("clumped", [False, True])
def test_of_many_points_too(clumped: bool) -> None:
    rng = np.random.default_rng(3)
    place = rng.normal(0, 1, (3000, 4))
    if clumped:  # most on two places, some far out
        place[::2], place[1::3] = 0, 7
        place[::500] *= 1e6
    chosen = np.flatnonzero(rng.random(3000) < 0.9)
    offsets, near, _ = nearest_points(frozen(place, np.float64), frozen(chosen, np.int64), 50)
    assert np.array_equal(np.flatnonzero(np.diff(offsets)), chosen)
    for i in chosen[::50]:
        away = np.abs(place[chosen] - place[i]).sum(axis=1)
        others = [c for c in chosen[np.lexsort((chosen, away))] if c != i]
        assert near[offsets[i] : offsets[i + 1]].tolist() == others[:50]
