from __future__ import annotations

import math

import numpy as np
import pytest

from crowdveil.comparison.requested_measures import named_measures
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.measures.base import shown
from crowdveil.methods.od.suppression import SuppressionParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.report.measurement import measured


def test_numbers_areshown_short_and_undefined_ones_as_a_dash() -> None:
    texts = [shown(v, "") for v in (0.0, 0.00004, 0.25, 1.0, 2.0, 12.3456, 1234.5, math.nan)]
    assert texts == ["0", "0.0000", "0.2500", "1.0000", "2", "12.35", "1,234", "–"]
    assert shown(2.0, "tiles") == "2 tiles"


def test_named_measures_are_found_by_symbol_and_taken_once() -> None:
    assert [asked.label for asked in named_measures(["E", "reconstruction-error", "S"])] == [
        "reconstruction-error",
        "suppressed",
    ]
    with pytest.raises(ParameterError, match="no measure nothing"):
        named_measures(["nothing"])


def _flows(volume: list[int]) -> Flows:
    column = np.zeros(len(volume), np.int32)
    return Flows.from_rows(
        Zones.from_ids(["a"]), np.zeros(len(volume), np.int64), column, column, np.array(volume, np.int64)
    )


def test_a_release_of_nothing_can_be_measured() -> None:
    data = _flows([3])
    found = measured(
        data, run(data, SuppressionParams(k=10), np.random.default_rng(0), no_progress), named_measures(None)
    )
    assert found["S"].pooled == 1 and found["E"].pooled == 1 and found["CPC"].pooled == 0
    measures = found.as_json()["measures"]
    assert measures["generalization"]["mean"] is None and measures["t-closeness"]["by_step"] == [[None] * 2]
    assert sum(line.endswith("–") for line in found.lines()) >= 6
    assert found.table(as_text=True).num_rows == found.table(as_text=False).num_rows


def test_no_flows_are_refused() -> None:
    data = _flows([])
    release = run(_flows([30]), SuppressionParams(k=10), np.random.default_rng(0), no_progress)
    with pytest.raises(InputError, match="Expected at least one flow"):
        measured(data, release, named_measures(None))
