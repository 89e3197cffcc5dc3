from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import slow_param, tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rivals import (
    PlainGlove,
    Row,
    boxes,
    brute_merging,
    by_tiles,
    crowd,
    plain_box,
    plain_nearest,
    points_of,
    rows_of,
    taxis,
    volume,
)

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.experiments.profiles import make_profile
from crowdveil.methods.baselines.glove import Clusters, GloveParams, merge, run
from crowdveil.model.flows import Flows
from crowdveil.model.release import REPORTED
from crowdveil.model.zones import Zones
from crowdveil.solve.od.clusters import StepFlows, number_clusters

CHOICES = st.fixed_dictionaries(
    {
        "k": st.integers(2, 30),
        "suppress": st.sampled_from([0.0, 0.1, 0.25]),
        "join": st.sampled_from(["small", "any"]),
        "cost": st.sampled_from(["extent", "growth"]),
    }
)


def _solved(data: Flows, params: GloveParams, step: int) -> list[Any]:
    """The clusters of a time step as lists of rows."""
    label, rows = merge(data, params, step), rows_of(data, step)
    return [[rows[i] for i in np.flatnonzero(label == c)] for c in range(int(label.max(initial=-1)) + 1)]


def _by_rows(clusters: list[list[Any]]) -> list[Any]:
    return sorted(sorted((row.origin, row.destination) for row in held) for held in clusters)


@settings(max_examples=tries(300))
@given(data=testing.flows(max_tiles=7), choices=CHOICES)
def test_with_all_flows_as_neighbors_it_is_exact_greedy_merging(data: Flows, choices: dict[str, Any]) -> None:
    params = GloveParams(**choices)
    release = run(data, params, np.random.default_rng(0), no_progress)
    for step in range(data.steps):
        rows = rows_of(data, step)
        if crowd(rows) < params.k:
            assert boxes(release, step) == []
            continue
        budget = int(params.suppress * volume(rows) + 1e-9)
        how: Any = {"join_any": params.join == "any", "by_volume": params.cost == "growth"}
        wanted = brute_merging(rows, points_of(data, rows), params.k, budget, **how)
        assert by_tiles(boxes(release, step)) == by_tiles([plain_box(data, held) for held in wanted])


@settings(max_examples=tries(300))
@given(data=testing.flows(max_tiles=8, max_steps=1), choices=CHOICES, most=st.integers(1, 4))
def test_with_few_neighbors_it_is_the_plain_twin(data: Flows, choices: dict[str, Any], most: int) -> None:
    params, rows = GloveParams(**choices, neighbors=most), rows_of(data, 0)
    if crowd(rows) < params.k:
        return
    join_any = params.join == "any"
    points, budget = points_of(data, rows), int(params.suppress * volume(rows) + 1e-9)
    near = plain_nearest(rows, points, 10**9 if join_any else params.k, most)
    twin = PlainGlove(rows, points, near, most, params.k, budget, join_any=join_any, by_volume=params.cost == "growth")
    assert _by_rows(_solved(data, params, 0)) == _by_rows(twin.solve())


@cache
def _whole_matrix(join: str, most: int) -> tuple[Flows, Any, Any, Any]:
    """A quarter of a matrix of New York with the nearest flows of each, which are the same for any cost."""
    data = make_profile("nyc", np.random.default_rng(5))
    data = data.where(np.arange(len(data)) % 4 == 0)
    rows = rows_of(data, 0)
    points = points_of(data, rows)
    return data, rows, points, plain_nearest(rows, points, 10**9 if join == "any" else 10, most)


@pytest.mark.parametrize("join", ["small", "any"])
@pytest.mark.parametrize("cost", ["extent", "growth"])
@pytest.mark.parametrize("most", [3, slow_param(20)])
def test_it_is_the_plain_twin_on_a_whole_matrix(join: Any, cost: Any, most: int) -> None:
    data, rows, points, near = _whole_matrix(join, most)
    params = GloveParams(neighbors=most, join=join, cost=cost)
    how: Any = {"join_any": join == "any", "by_volume": cost == "growth"}
    twin = PlainGlove(rows, points, near, most, 10, data.total // 10, **how)
    assert _by_rows(_solved(data, params, 0)) == _by_rows(twin.solve())


@pytest.mark.parametrize("join", ["small", "any"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_ties_go_to_the_earliest_clusters(join: Any, most: int) -> None:
    # Whole numbers from 0 to 3 in four dimensions: many pairs cost the same, and many neighbors are as far as the last.
    for seed in range(tries(60)):
        rng = np.random.default_rng(seed)
        place, trips = rng.integers(0, 4, (24, 4)).astype(np.float64), rng.integers(1, 7, 24)
        rows = [Row(i, i, int(v), int(v), None) for i, v in enumerate(trips)]
        points: Any = [tuple(point) for point in place.tolist()]
        near = plain_nearest(rows, points, 10**9, most)
        twin = PlainGlove(rows, points, near, most, 10, 5, join_any=join == "any", by_volume=False)
        merged = Clusters(StepFlows(place, trips, trips, None), GloveParams(k=10, neighbors=most, join=join))
        merged.merge_until(5)
        label = number_clusters(merged.with_a_crowd(), 24)
        clusters = [[rows[i] for i in np.flatnonzero(label == c)] for c in range(int(label.max()) + 1)]
        assert _by_rows(clusters) == _by_rows(twin.solve())


def _line(x: list[int], volumes: list[int]) -> Flows:
    """Trips from places on a line, all to one place."""
    n = len(x)
    zones = Zones(np.arange(n + 1), 2 + np.array([*x, 0]) / 1000, np.full(n + 1, 48.0), kind="centroids")
    o = np.arange(n, dtype=np.int32)
    return Flows.from_rows(zones, np.zeros(n, np.int64), o, np.full(n, n, np.int32), np.array(volumes))


def test_small_clusters_join_small_ones_by_default() -> None:
    # The place at 10 is next to one that has enough; the other small one is far.
    data = _line([9, 10, 40], [20, 4, 4])
    release = run(data, GloveParams(k=5, suppress=0), np.random.default_rng(0), no_progress)
    assert sorted(release.volume.tolist()) == [8, 20]
    release = run(data, GloveParams(k=5, suppress="4trips", join="any"), np.random.default_rng(0), no_progress)
    assert release.volume.tolist() == [24] and len(release.areas) == 2


def test_the_last_small_cluster_joins_any_if_the_budget_is_not_kept_without_it() -> None:
    release = run(_line([1, 2], [20, 4]), GloveParams(k=5, suppress=0), np.random.default_rng(0), no_progress)
    assert release.volume.tolist() == [24] and release.suppressed.tolist() == [0]


@pytest.mark.parametrize("include_empty", [True, False])
def test_suppressed_flows_of_a_tile_are_reported_if_wanted(include_empty: bool) -> None:
    zones = Zones(np.arange(4), 2 + np.arange(4) / 1000, np.full(4, 48.0), kind="centroids")
    d = np.arange(4)
    data = Flows.from_rows(zones, 0 * d, 0 * d, d, np.array([95, 4, 2, 4]))
    params = GloveParams(k=10, suppress=0.1, aggregate_small=True, include_empty=include_empty)
    release = run(data, params, np.random.default_rng(0), no_progress)
    assert release.volume.tolist() == [95, 10] and release.people.tolist() == [95, 10]
    assert release.state.tolist() == [0, REPORTED] and release.suppressed.tolist() == [0]
    assert boxes(release, 0)[1][:2] == ({0}, set(range(4)) if include_empty else {1, 2, 3})


@pytest.mark.realdata
@pytest.mark.parametrize("join", ["small", slow_param("any")])
def test_taxis(realdata: Path, join: Any) -> None:
    data = taxis(realdata)
    data = data.where(data.step % 8 == 0)
    release = run(data, GloveParams(join=join), np.random.default_rng(0), no_progress)
    for step in range(0, data.steps, 8):
        rows, published = rows_of(data, step), boxes(release, step)
        assert all(v >= 10 and people == v for _, _, v, people in published)
        assert 0 <= volume(rows) - sum(v for _, _, v, _ in published) <= volume(rows) // 10
        for o, d, v, _ in published[::20]:
            assert v <= sum(row.volume for row in rows if row.origin in o and row.destination in d)
