from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.measures.od import generalisation, reconstruction
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.testing import flows
from plain_measures import dense, rebuilt, releases


@given(st.data())
def test_error_and_distance_are_the_dense_twins(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    compared = OdComparison.between(data, release)
    error, distance = reconstruction.error(compared), reconstruction.distance(compared)
    original = np.stack([dense(data, step) for step in range(data.steps)])
    back = np.stack([rebuilt(data, release, step) for step in range(data.steps)])
    for step, (v, w) in enumerate(zip(original, back, strict=True)):
        assert error[step] == pytest.approx(np.abs(v - w).sum() / v.sum())
        if w.sum():
            assert distance[step] == pytest.approx(np.abs(v / v.sum() - w / w.sum()).sum())
        else:
            assert np.isnan(distance[step])
    together = compared.all_steps()
    assert reconstruction.error(together)[0] == pytest.approx(np.abs(original - back).sum() / original.sum())
    if back.sum():
        wanted = np.abs(original / original.sum() - back / back.sum()).sum()
        assert reconstruction.distance(together)[0] == pytest.approx(wanted)


@given(st.data())
def test_generalisation_is_the_plain_twin(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    compared = OdComparison.between(data, release)
    size = release.areas.size
    for step in range(data.steps):
        rows = [i for i in range(len(release)) if release.t[release.step[i]] == data.t[step]]
        total = sum((size[release.origin[i]] + size[release.destination[i]]) * release.volume[i] for i in rows)
        volume = sum(release.volume[i] for i in rows)
        lost = dense(data, step).sum() - volume
        assert generalisation.total(compared)[step] == total
        assert generalisation.mean(compared)[step] == pytest.approx(total / volume if volume else np.nan, nan_ok=True)
        cost = total + lost * 2 * 0.01 * len(data.zones)
        assert generalisation.with_suppressed(compared)[step] == pytest.approx(cost)
