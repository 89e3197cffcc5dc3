"""What must hold of measures on any data, on New York's taxis by hour of the day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plain_rivals
import pytest
from examples import slow_param

from crowdveil.comparison.requested_measures import named_measures
from crowdveil.engine.progress import no_progress
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.registry import find_method
from crowdveil.report.measurement import measured
from crowdveil.solve.od.assignment import row_of_flows

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def taxis(realdata: Path) -> Flows:
    return plain_rivals.taxis(realdata, "ward")


def _release(taxis: Flows, name: str, **parameters: Any) -> FlowRelease:
    method = find_method(name)
    release = method.run(taxis, method.params.checked(parameters), np.random.default_rng(0), no_progress)
    assert isinstance(release, FlowRelease)
    return release


def test_suppression_has_e_equal_to_s_and_d_to_twice_s(taxis: Flows) -> None:
    found = measured(taxis, _release(taxis, "suppression"), named_measures(None))
    assert found["E"].by_step == pytest.approx(found["S"].by_step)
    assert found["D"].by_step == pytest.approx(2 * found["S"].by_step)
    assert np.all(found["generalization"].by_step == 2)
    assert found["flows"].pooled == np.count_nonzero(taxis.people >= 10)


@pytest.mark.parametrize("splits", ["tree", slow_param("dyadic")])
def test_flows_add_up_to_the_rows_that_they_lie_in(taxis: Flows, splits: str) -> None:
    release = _release(taxis, "joint", splits=splits)
    row = row_of_flows(taxis, release)
    inside = row >= 0
    assert np.bincount(row[inside], taxis.volume[inside], len(release)).tolist() == release.volume.tolist()
    found = measured(taxis, release, named_measures(None))
    assert np.all(found["S"].by_step <= 0.1 + 1e-9)
    assert found["generalization"].by_step == pytest.approx(
        found["origin-tiles"].by_step + found["destination-tiles"].by_step
    )
    assert found["E"].mean < 1 and 0 < found["trip-length"].mean < 2 and found["CPC"].mean > 0.5
