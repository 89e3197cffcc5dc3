"""Numbers of topics and their distances: against plain loops, and on hours that were made from known topics."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdveil
from crowdveil.analysis.topic_model import TopicParams, choose_number, perplexity
from crowdveil.analysis.topics import match_topics
from crowdveil.errors import InputError, ParameterError
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones

pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
ZONES = Zones.from_ids([f"z{i}" for i in range(6)])


def _city(topics: int, hours: int = 24) -> Flows:
    """Each hour has flows of one topic: three destinations of its own from every origin."""
    rng = np.random.default_rng(1)
    rows = []
    for hour in range(hours):
        own = np.array_split(np.arange(36), topics)[hour % topics]
        volumes = rng.multinomial(4000, np.full(len(own), 1 / len(own)))
        rows += [(3600 * hour, cell // 6, cell % 6, n) for cell, n in zip(own, volumes, strict=True) if n]
    t, origin, destination, volume = (np.array(column) for column in zip(*rows, strict=True))
    return Flows.from_rows(ZONES, t, origin.astype(np.int32), destination.astype(np.int32), volume, step_s=3600)


def _released(flows: Flows) -> Any:
    return crowdveil.anonymize(flows, method="suppression", k=2, attack=False, report=False).release


def test_the_number_of_made_topics_is_chosen(tmp_path: Path) -> None:
    found = crowdveil.topics(
        _released(_city(3)), tmp_path / "t.json", topics="2-4", documents="day", folds=3, rounds=20
    )
    choice = found.choice
    assert choice is not None and choice.chosen == len(found) == 3 and choice.topics.tolist() == [2, 3, 4]
    assert np.argmin(choice.perplexity) in (1, 2) and 11 < choice.perplexity[1] < 14  # twelve flows, equally likely
    assert any("3 topics: the fewest" in line for line in found.lines())
    assert '"chosen": true' in (tmp_path / "t.json").read_text()


class _Model:
    """A model whose mixtures and words are given."""

    def __init__(self, mixture: Any, words: Any) -> None:
        self.mixture, self.components_ = mixture, words

    def transform(self, counts: Any) -> Any:
        return self.mixture


@settings(max_examples=tries(30), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_perplexity_is_that_of_a_plain_loop(seed: int) -> None:
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 9, (5, 4)).astype(float)
    words, mixture = rng.random((3, 4)) + 0.1, rng.dirichlet(np.ones(3), 2)
    held, given_cells = np.array([False, True, False, True, False]), rng.random(20) < 0.5
    given_cells[4], given_cells[5] = False, True
    logs = trips = 0.0
    for at, row in enumerate((1, 3)):
        for word in range(4):
            if not given_cells[4 * row + word]:
                share = sum(mixture[at, k] * words[k, word] / words[k].sum() for k in range(3))
                logs, trips = logs + dense[row, word] * np.log(share), trips + dense[row, word]
    found = perplexity(_Model(mixture, words), csr_array(dense), held, given_cells)
    assert found == pytest.approx(np.exp(-logs / trips))


@settings(max_examples=tries(50), deadline=None)
@given(own=st.integers(1, 4), other=st.integers(1, 4), seed=st.integers(0, 999))
def test_topics_are_paired_with_the_least_sum_of_distances(own: int, other: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flows, original = rng.dirichlet(np.ones(5), own), rng.dirichlet(np.ones(5), other)
    match = match_topics(flows, original)

    def far(i: int, j: int) -> float:
        return sum(abs(a - b) for a, b in zip(flows[i], original[j], strict=True)) / 2

    if own <= other:
        best = min(sum(far(i, j) for i, j in enumerate(p)) for p in permutations(range(other), own))
    else:
        best = min(sum(far(i, j) for j, i in enumerate(p)) for p in permutations(range(own), other))
    assert np.nansum(match.distance) == pytest.approx(best)
    assert (match.topic >= 0).sum() == min(own, other) and match.original_topics == other


def test_topics_of_the_original_are_compared_and_empty_ones_left_out() -> None:
    flows = _city(3)
    same = crowdveil.topics(_released(flows), original=flows, topics=3, documents="day")
    assert same.match is not None and same.empty == 0 and np.nanmax(same.match.distance) < 1e-6
    many = crowdveil.topics(_released(flows), topics=12, documents="day")
    assert len(many) + many.empty == 12 and many.empty > 0 and many.share.min() >= 0.005
    assert many.hours.sum(axis=1) == pytest.approx(np.ones(24))
    assert any(f"{many.empty} of 12 topics" in line and "left out" in line for line in many.lines())


def test_documents_without_flows_to_predict_are_refused() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match="more flows to predict"):  # half of the cells are given, all of one part here
        choose_number(csr_array(np.ones((5, 2))), TopicParams(topics="2-3", seed=2), lambda done, total: None)
    with pytest.raises(InputError, match="at least 5 documents with trips, got 4"):
        choose_number(csr_array(np.ones((4, 2))), TopicParams(topics="2-3"), lambda done, total: None)


def test_areas_of_a_release_have_no_topics_in_the_original() -> None:
    flows = _city(2)
    with pytest.raises(InputError, match="the original has no areas"):
        crowdveil.topics(_released(flows), original=flows, topics=2, words="areas", documents="day")
    for topics in (1, "1-3", "4-2", "2,3", "x"):
        with pytest.raises(ParameterError, match="a number from 2 to 100, such as 5, or a range"):
            crowdveil.topics(_released(flows), topics=topics)
