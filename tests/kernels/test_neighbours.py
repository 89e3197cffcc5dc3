from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.neighbours import nearest_points


@settings(max_examples=200)
@given(n=st.integers(2, 120), most=st.integers(1, 130), side=st.sampled_from([1, 3, 1000]), seed=st.integers(0, 1000))
def test_they_are_as_near_as_the_nearest_of_all(n: int, most: int, side: int, seed: int) -> None:
    most = min(most, n - 1)
    place = np.random.default_rng(seed).integers(0, side, (n, 4)).astype(np.float64)  # many on one place
    found = nearest_points(place, most)
    away = np.abs(place[:, None] - place).sum(axis=2)
    for i in range(n):
        assert i not in found[i] and len(set(found[i].tolist())) == most
        others = np.delete(away[i], i)
        assert np.array_equal(np.sort(away[i, found[i]]), np.sort(others)[:most])


def test_of_many_points_too() -> None:
    place = np.random.default_rng(3).normal(0, 1, (3000, 4))
    found = nearest_points(place, 50)
    for i in range(0, 3000, 100):
        away = np.abs(place - place[i]).sum(axis=1)
        assert set(found[i].tolist()) == set(np.argsort(away)[1:51].tolist())
