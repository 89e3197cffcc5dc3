from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.engine.progress import no_progress
from crowdveil.methods.od.suppression import SuppressionParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.testing import flow_rows, flows


def _release(data: Flows, k: int) -> FlowRelease:
    return run(data, SuppressionParams(k=k), np.random.default_rng(0), no_progress)


@settings(deadline=None)
@given(data=flows(), k=st.integers(2, 20))
def test_is_the_plain_twin(data: Flows, k: int) -> None:
    """By the definition: the rows whose crowd is at least k, as they are, and no others."""
    release = _release(data, k)
    names = release.areas.names
    published = {
        (s, names[o], names[d], v, p)
        for s, o, d, v, p in zip(
            release.step.tolist(), release.origin.tolist(), release.destination.tolist(), release.volume.tolist(),
            release.people.tolist(), strict=True,
        )
    }  # fmt: skip
    ids = data.zones.ids
    assert published == {(s, ids[o], ids[d], v, p) for s, o, d, v, p in flow_rows(data) if p >= k}


@settings(deadline=None)
@given(data=flows(), k=st.integers(2, 20))
def test_suppressed_totals_are_given_only_where_k_made_them(data: Flows, k: int) -> None:
    release = _release(data, k)
    for step, published in enumerate(release.suppressed.tolist()):
        small = [(v, p) for s, _, _, v, p in flow_rows(data) if s == step and p < k]
        volume, crowd = sum(v for v, _ in small), sum(p for _, p in small)
        if data.person_ids is not None and data.person_offsets is not None:
            rows = [i for i in range(len(data)) if data.step[i] == step and data.people[i] < k]
            crowd = len({who for i in rows for who in data.person_ids[slice(*data.person_offsets[i : i + 2])].tolist()})
        elif data.k_unit == "people":
            crowd = max((p for _, p in small), default=0)  # the people of two flows may be the same ones
        if volume == 0:
            assert published == 0
        else:
            assert published == (volume if min(volume, crowd) >= k else NOT_GIVEN)


def test_only_areas_that_are_published_are_listed() -> None:
    """A zone with only a few trips must not be distinguishable from one without any."""
    zones = Zones.from_ids(["busy", "quiet", "empty"])
    origin, destination = np.array([0, 1], np.int32), np.array([0, 0], np.int32)
    data = Flows.from_rows(zones, np.zeros(2, np.int64), origin, destination, np.array([30, 2], np.int64))
    assert _release(data, 10).areas.names.tolist() == ["busy"]
