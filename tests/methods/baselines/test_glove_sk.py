from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rivals import boxes, by_tiles, crowd, plain_box, plain_cut, plain_linkage, rows_of, taxis, volume

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import MissingExtraError
from crowdveil.methods.baselines.glove_sk import GloveSkParams, connected, dendrogram, run
from crowdveil.model.arrays import frozen
from crowdveil.model.flows import Flows
from crowdveil.solve.od.clusters import nearest_flows, places


@settings(max_examples=tries(150))
@given(data=testing.flows(max_tiles=8), k=st.integers(2, 30), share=st.sampled_from([0.0, 0.1, 0.25]))
def test_it_is_the_lowest_cut_of_the_dendrogram(data: Flows, k: int, share: float) -> None:
    release = run(data, GloveSkParams(k=k, suppress=share), np.random.default_rng(0), no_progress)
    for step in range(data.steps):
        rows = rows_of(data, step)
        if crowd(rows) < k:
            assert boxes(release, step) == []
            continue
        merges = dendrogram(places(data, step), 100).tolist()
        wanted = plain_cut(rows, merges, k, int(share * volume(rows) + 1e-9))
        assert by_tiles(boxes(release, step)) == by_tiles([plain_box(data, held) for held in wanted])


@settings(max_examples=tries(50))
@given(seed=st.integers(0, 10_000), n=st.integers(2, 12))
def test_with_all_flows_as_neighbors_it_is_complete_linkage(seed: int, n: int) -> None:
    place = frozen(np.random.default_rng(seed).uniform(0, 1000, (n, 4)), np.float64)  # no two distances are the same
    held = [frozenset([i]) for i in range(n)]
    for a, b in dendrogram(place, 100).tolist():
        held.append(held[a] | held[b])
    assert set(held[n:]) == set(plain_linkage(place.tolist()))


def test_parts_of_the_graph_are_joined_where_they_are_nearest() -> None:
    place = frozen([[x, 0.0, 0.0, 0.0] for x in (0, 1, 10, 11, 30, 31)], np.float64)
    graph = connected(place, nearest_flows(place, np.arange(6), 1)).toarray() > 0
    assert {(int(a), int(b)) for a, b in np.argwhere(graph) if a < b} == {(0, 1), (2, 3), (4, 5), (1, 2), (3, 4)}


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match="crowdveil\\[analysis\\]"):
        dendrogram(np.zeros((3, 4)), 5)


@pytest.mark.slow
@pytest.mark.realdata
def test_taxis(realdata: Path) -> None:
    data = taxis(realdata)
    data = data.where(data.step == 4)
    release = run(data, GloveSkParams(neighbors=20), np.random.default_rng(0), no_progress)
    rows, published = rows_of(data, 4), boxes(release, 4)
    assert all(v >= 10 and people == v for _, _, v, people in published)
    assert 0 <= volume(rows) - sum(v for _, _, v, _ in published) <= volume(rows) // 10
