from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rivals import boxes, by_tiles, crowd, plain_box, plain_cuts, points_of, rows_of, taxis

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.experiments.profiles import make_profile
from crowdveil.methods.baselines.mondrian import MondrianParams, cut, run
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.solve.od.assignment import row_of_flows


@settings(max_examples=tries(300))
@given(data=testing.flows(max_tiles=9), k=st.integers(2, 30), weight=st.sampled_from([1, 3]))
def test_it_is_the_plain_twin(data: Flows, k: int, weight: int) -> None:
    # With weights the volume is no longer the crowd.
    data = replace(data, volume=data.volume * np.where(np.arange(len(data)) % 2, weight, 1))
    release = run(data, MondrianParams(k=k), np.random.default_rng(0), no_progress)
    for step in range(data.steps):
        rows = rows_of(data, step)
        wanted = [] if crowd(rows) < k else [plain_box(data, c) for c in plain_cuts(rows, points_of(data, rows), k)]
        assert by_tiles(boxes(release, step)) == by_tiles(wanted)


def test_it_is_the_plain_twin_on_a_whole_matrix() -> None:
    data = make_profile("nyc", np.random.default_rng(5))
    rows, label = rows_of(data, 0), cut(data, 10, 0)
    clusters = [[rows[i] for i in np.flatnonzero(label == c)] for c in range(int(label.max()) + 1)]
    assert len(clusters) > 100
    assert sorted(map(sorted, clusters)) == sorted(map(sorted, plain_cuts(rows, points_of(data, rows), 10)))


@settings(max_examples=tries(200))
@given(data=testing.flows(max_tiles=9), k=st.integers(2, 10))
def test_boxes_hold_the_flows_of_their_cluster_and_no_others(data: Flows, k: int) -> None:
    release = run(data, MondrianParams(k=k), np.random.default_rng(0), no_progress)
    row = row_of_flows(data, release)  # raises if a flow lies in two rows
    inside = row >= 0
    assert np.bincount(row[inside], data.volume[inside], len(release)).tolist() == release.volume.tolist()
    steps_with_a_crowd = [s for s in range(data.steps) if crowd(rows_of(data, s)) >= k]
    assert sorted(set(data.step[inside].tolist())) == steps_with_a_crowd
    assert bool(np.all(inside | ~np.isin(data.step, steps_with_a_crowd)))


def _line(x: list[int], volumes: list[int]) -> Flows:
    """Trips from places on a line, all to one place."""
    n = len(x)
    zones = Zones(np.arange(n + 1), 2 + np.array([*x, 0]) / 1000, np.full(n + 1, 48.0), kind="centroids")
    o = np.arange(n, dtype=np.int32)
    return Flows.from_rows(zones, np.zeros(n, np.int64), o, np.full(n, n, np.int32), np.array(volumes))


def test_where_the_median_itself_has_too_many_what_is_below_it_is_tried() -> None:
    # The median is 2, with 12 of 18 trips: nobody is above it, but 6 are below.
    release = run(_line([1, 2], [6, 12]), MondrianParams(k=5), np.random.default_rng(0), no_progress)
    assert sorted(release.volume.tolist()) == [6, 12]


def test_a_branch_that_cannot_be_cut_does_not_stop_the_others() -> None:
    release = run(_line([1, 2, 50, 60], [9, 1, 5, 5]), MondrianParams(k=5), np.random.default_rng(0), no_progress)
    assert sorted(release.volume.tolist()) == [5, 5, 10]


def test_nothing_is_left_to_report() -> None:
    release = run(
        _line([1, 2], [6, 12]), MondrianParams(k=5, aggregate_small=True), np.random.default_rng(0), no_progress
    )
    assert release.suppressed.tolist() == [0] and set(release.state.tolist()) == {0}


def test_zones_without_positions_are_refused() -> None:
    one = np.ones(1, np.int64)
    flows = Flows.from_rows(Zones.from_ids(["a"]), 0 * one, 0 * one, 0 * one, 20 * one)
    with pytest.raises(InputError, match="zones="):
        run(flows, MondrianParams(), np.random.default_rng(0), no_progress)


@pytest.mark.realdata
def test_taxis(realdata: Path) -> None:
    data = taxis(realdata)
    release = run(data, MondrianParams(), np.random.default_rng(0), no_progress)
    row = row_of_flows(data, release)
    assert np.all(row >= 0) and np.all(release.people >= 10) and np.all(release.suppressed == 0)
    assert np.bincount(row, data.volume, len(release)).tolist() == release.volume.tolist()
