"""Measures of flows in parts: whatever way time steps are cut, every measure is what it is of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.errors import InputError
from crowdveil.measures.base import MeasureRequest, scores
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.od.partition_sums import PartitionTotals, over_all_partitions, sums_of_partition
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import no_progress
from crowdveil.registry import all_measures, find_method

MEASURES = [MeasureRequest.of(measure) for measure in all_measures().values() if measure.takes is Flows]


def _of_steps(release: FlowRelease, steps: np.ndarray) -> FlowRelease:
    """The rows of some time steps; all areas stay."""
    slices = [np.arange(release.offsets[s], release.offsets[s + 1]) for s in steps]
    rows = np.concatenate([np.zeros(0, np.int64), *slices])
    columns = {n: getattr(release, n)[rows] for n in ("origin", "destination", "volume", "people", "state")}
    offsets = np.concatenate([[0], np.cumsum(np.diff(release.offsets)[steps])])
    return replace(
        release, t=release.t[steps], offsets=offsets, suppressed=release.suppressed[steps], figures=None, **columns
    )


@pytest.mark.parametrize("asked", MEASURES, ids=lambda asked: asked.label)
@settings(max_examples=tries(25), deadline=None)
@given(draw=st.data())
def test_every_measure_is_the_same_in_parts(asked: MeasureRequest, draw: st.DataObject) -> None:
    data = draw.draw(testing.flows(max_steps=4))
    # Areas of the one are boxes that may overlap, of the other nodes of a tree.
    method = find_method(draw.draw(st.sampled_from(["mondrian", "joint", "suppression"])))
    try:
        release = method.run(data, method.params.checked({"k": 2}), np.random.default_rng(0), no_progress)
    except InputError:
        return
    assert isinstance(release, FlowRelease)
    whole = scores(asked, OdComparison.between(data, release))
    part = np.array(draw.draw(st.lists(st.integers(0, 2), min_size=data.steps, max_size=data.steps)))
    compared = [
        OdComparison.between(data.at_steps(steps), _of_steps(release, steps))
        for steps in (np.flatnonzero(part == i) for i in range(3))
        if len(steps)
    ]
    totals = sum((PartitionTotals.of(one) for one in compared), PartitionTotals())
    assert totals.overlapping == (OdComparison.between(data, release).row is None)
    by_step = np.concatenate([asked.measure.of(one, asked.params) for one in compared])
    order = np.argsort(np.argsort(part, kind="stable"))
    assert np.allclose(by_step[order], whole.by_step, rtol=1e-12, atol=1e-12, equal_nan=True)
    no_flow, no_row = data.at_steps(np.zeros(0, np.int64)), _of_steps(release, np.zeros(0, np.int64))
    nothing = OdComparison.between(no_flow, no_row)
    sums = [sums_of_partition(asked, one, totals) for one in compared]
    pooled = over_all_partitions(asked, nothing, totals, sums)
    assert np.allclose(pooled[0], whole.pooled, rtol=1e-12, atol=1e-12, equal_nan=True)
