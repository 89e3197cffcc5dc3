"""Releases whose rows overlap, held against the flows that they were made from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from written_flows import honest, written

from crowdveil import testing
from crowdveil.guarantees import BoundedVolumes
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones

TILES = {"ab": ["a", "b"], "bc": ["b", "c"], "c": ["c"]}
ROWS: list[tuple[Any, ...]] = [(0, "ab", "c", 12, 12), (0, "bc", "c", 8, 8)]
STEPS: list[tuple[Any, ...]] = [(0, 20, 10)]


def _flows() -> Flows:
    """10 trips from each of a, b and c to c."""
    o = np.arange(3)
    return Flows.from_rows(Zones.from_ids(list("abc")), 0 * o, o, 0 * o + 2, 0 * o + 10, step_s=3600)


def _check(rows: list[tuple[Any, ...]], steps: list[tuple[Any, ...]]) -> Any:
    return BoundedVolumes().check_with_flows(written(rows, steps, TILES, "trips"), _flows())


def test_rows_may_overlap() -> None:
    finding = _check(ROWS, STEPS)
    assert finding.holds and finding.with_original
    assert BoundedVolumes().check(written(ROWS, STEPS, TILES, "trips")).outcome == "not checked"


@pytest.mark.parametrize(
    ("rows", "steps", "fault"),
    [
        ([(0, "ab", "c", 21, 12), ROWS[1]], [(0, 29, 1)], "1 volumes"),
        ([(0, "ab", "c", 12, 21), ROWS[1]], STEPS, "1 group sizes"),
        ([(0, "ab", "c", 20, 20), (0, "bc", "c", 20, 20)], [(0, 40, None)], "1 time steps with too many"),
        (ROWS, [(0, 20, 9)], "1 with a total"),
        (ROWS, [(0, 21, None)], "1 with a total"),
        ([(3600, "ab", "c", 12, 12)], [(3600, 12, None)], "not in the original"),
        ([(0, "ab", "nowhere", 12, 12)], [(0, 12, None)], "list of areas"),
    ],
)
def test_tampering_is_found(rows: list[tuple[Any, ...]], steps: list[tuple[Any, ...]], fault: str) -> None:
    finding = _check(rows, steps)
    assert finding.violated and fault in finding.detail, finding.detail


@settings(max_examples=tries(100))
@given(data=testing.flows(), cuts=st.lists(st.integers(0, 6)), more=st.integers(0, 1))
def test_what_is_exact_is_within_bounds_and_one_more_is_not(data: Flows, cuts: list[int], more: int) -> None:
    release = honest(data, cuts, 2)
    if release.data.num_rows == 0:
        return
    rows = release.data.to_pylist()
    for name in ("volume", data.k_unit):
        changed = [dict(row) for row in rows]
        changed[0][name] += more
        table = type(release.data).from_pylist(changed, release.data.schema)
        tampered = type(release)(release.folder, table, release.steps_table, release.features)
        assert BoundedVolumes().check_with_flows(tampered, data).holds is (more == 0)
