"""Clusters around pivots against a twin in plain Python, and with bounds against without."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import plain_couplings as plain
import pytest
from examples import slow_param, tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_trajectories import distance_matrix
from synthetic import make_trajectories, usual_city

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory import pivots
from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths
from crowdveil.solve.trajectory.pivots import Clustering, Clusters, PivotPath
from crowdveil.testing import paths


def _clusters(clustering: Clustering, left_over: pivots.LeftOver = "drop", seed: int = 3) -> Clusters:
    return clustering.clusters(left_over, np.random.default_rng(seed))


class _AllDistances(pivots._Round):
    """Clusters without bounds and without what is remembered: all distances are computed."""

    def _around(self, i: int, alive: Ints, most: float) -> tuple[float, Ints]:
        members, far = self._gather(i, alive, self.clustering.person, self.clustering.k, np.inf)
        return float((far**2).sum()), members

    def _gather(self, i: int, among: Ints, person: Ints, k: int, most: float) -> tuple[Ints, Floats]:
        from crowdveil.kernels.trajectory.spatiotemporal import nearest_people

        to = among[among != i]
        found = self.distance.from_one(i, to)
        members = np.sort(nearest_people(found, to, person, i, self.none_taken, -1, k))
        far = np.zeros(len(self.single), np.float64)
        far[to] = found
        return members, far[members]


def _ways(bounded: bool) -> Any:
    """Find clusters with bounds, or by all distances."""
    return patch.object(pivots, "_Round", pivots._Round if bounded else _AllDistances)


def _sketches(distance: FrechetManhattan) -> list[list[float]]:
    from crowdveil.kernels.trajectory.frechet_manhattan import sketch_distances, sliced

    every, boxes = np.arange(len(distance.paths)), sliced(distance.columns)
    found = np.empty((len(every), len(every)))
    for i in every.tolist():
        sketch_distances(i, every, boxes, found[i])
    return found.tolist()


@pytest.mark.parametrize("bounded", [True, False])
@settings(max_examples=tries(60), deadline=None)
@given(data=paths(max_paths=14), draw=st.data())
def test_clusters_are_those_of_the_twin(bounded: bool, data: Paths, draw: st.DataObject) -> None:
    """Few places, so that many distances are equal; people with several trajectories."""
    n = len(data)
    person = np.array(draw.draw(st.lists(st.integers(0, n), min_size=n, max_size=n)))
    k, tried = draw.draw(st.integers(2, 4)), draw.draw(st.integers(1, 6))
    distance = FrechetManhattan(data, draw.draw(st.booleans()), draw.draw(st.booleans()))
    far, sketch = distance_matrix(distance, np.arange(n), np.arange(n)), _sketches(distance)
    rng = np.random.default_rng(3)
    twins = plain.clusters(
        lambda i, j: float(far[i, j]), lambda i, j: sketch[i][j], person.tolist(), k, tried, lambda m: int(rng.integers(m))
    )  # fmt: skip
    with _ways(bounded):
        found = _clusters(Clustering(distance, person, k, tried))
        joined = _clusters(Clustering(distance, person, k, tried), "join")
    assert found.pivot.tolist() == [pivot for pivot, _ in twins]
    assert [set(np.flatnonzero(found.cluster == c).tolist()) for c in range(len(twins))] == [m for _, m in twins]
    assert found.left_over == int((found.cluster < 0).sum())
    for i in np.flatnonzero(found.cluster < 0).tolist():
        ways = [(far[i, pivot], pivot) for pivot in found.pivot.tolist()]
        assert joined.cluster[i] == (ways.index(min(ways)) if ways else -1)
    kept = found.cluster >= 0
    assert np.array_equal(joined.cluster[kept], found.cluster[kept])


@pytest.mark.parametrize(
    ("resampled", "exact"), [(True, False), (False, True), slow_param(True, True), slow_param(False, False)]
)
def test_bounds_change_nothing_and_skip_most(resampled: bool, exact: bool) -> None:
    data = make_trajectories(usual_city(2), 220, seed=4)
    distance = FrechetManhattan(Paths.of(data), exact, resampled)
    found = []
    for bounded in (True, False):
        with _ways(bounded), _Counted() as looked:
            found.append(_clusters(Clustering(distance, data.person, 4, 6), "join"))
        # Most clusters are known from earlier rounds; there are 6 pivots in nearly each.
        assert (sum(looked) < 0.1 * len(looked) * 220 and len(looked) < 4 * len(found[0].pivot)) or not bounded
    assert np.array_equal(found[0].cluster, found[1].cluster) and np.array_equal(found[0].pivot, found[1].pivot)


@pytest.mark.parametrize("seed", [0, *map(slow_param, range(1, 4))])
def test_what_is_remembered_changes_nothing_where_people_have_several_trajectories(seed: int) -> None:
    """The sum of squares around a pivot falls when trajectories of its own person that are nearer than all others are taken."""
    data = make_trajectories(usual_city(2), 120, seed=seed)
    person = np.random.default_rng(seed).integers(0, 30, 120)
    distance = FrechetManhattan(Paths.of(data), resampled=True)
    found = []
    for bounded in (True, False):
        with _ways(bounded):
            found.append(_clusters(Clustering(distance, person, 3, 8), seed=seed))
    assert np.array_equal(found[0].cluster, found[1].cluster) and np.array_equal(found[0].pivot, found[1].pivot)


class _Counted:
    """How many distances each look around a pivot computed."""

    def __enter__(self) -> list[int]:
        looked: list[int] = []

        def gather(*arguments: object) -> bool:
            may_be_tightest = self.gather(*arguments)  # type: ignore[arg-type]
            looked.append(int(np.isfinite(arguments[-1]).sum()))  # type: ignore[call-overload]
            return may_be_tightest

        self.gather = pivots.nearest_paths
        self.patch = patch.object(pivots, "nearest_paths", gather)
        self.patch.start()
        return looked

    def __exit__(self, *_: object) -> None:
        self.patch.stop()


@pytest.mark.parametrize("path", ["sketched", "exact"])
def test_any_number_of_threads_gives_the_same_clusters(path: PivotPath) -> None:
    data = make_trajectories(usual_city(2), 150, seed=5)
    clustering = Clustering(FrechetManhattan(Paths.of(data), resampled=True), data.person, 3, 5, path)
    found = []
    for threads in (1, 4):
        with patch.object(pivots, "thread_count", lambda threads=threads: threads):
            found.append(_clusters(clustering, "join").cluster)
    assert np.array_equal(*found) and found[0].min() == 0


@settings(max_examples=tries(30), deadline=None)
@given(data=paths(min_paths=4, max_paths=6), tried=st.integers(3, 4))
def test_the_exact_path_has_the_least_sum_of_squares(data: Paths, tried: int) -> None:
    """By all ways that do not stay; what is chosen between them is looked at through the pivots of the first round."""
    n = len(data)
    distance = FrechetManhattan(data)
    far = distance_matrix(distance, np.arange(n), np.arange(n))
    asked: list[list[int]] = []
    real = pivots._Round._exact_path

    def noted(self: pivots._Round, alive: Ints, first: int, last: int, wanted: int) -> list[int]:
        way = real(self, alive, first, last, wanted)
        asked.append([first, last, wanted, *way])
        return way

    with patch.object(pivots._Round, "_exact_path", noted):
        _clusters(Clustering(distance, np.arange(n), n, tried, "exact"))
    first, last, wanted, *way = asked[0]

    def ways(at: int, steps: int) -> float:
        if steps == 0:
            return 0.0 if at == last else np.inf
        return min(float(far[at, j]) ** 2 + ways(j, steps - 1) for j in range(n) if j != at)

    assert way[0] == first and last in way and len(set(way)) == len(way) <= wanted
    if len(way) == wanted:
        taken = sum(float(far[a, b]) ** 2 for a, b in pairwise(way))
        assert np.isclose(taken, ways(first, wanted - 1))


def test_exact_paths_are_refused_on_large_data_in_one_sentence() -> None:
    data = Paths(np.arange(6.0), np.zeros(6), np.zeros(6), np.arange(7))
    with (
        patch.object(pivots, "MAX_FOR_EXACT_PATHS", 5),
        pytest.raises(InputError, match=r"^pivot_path: exact takes .* at most 5 trajectories, got 6. Use sketched\.$"),
    ):
        _clusters(Clustering(FrechetManhattan(data), np.arange(6), 2, 4, "exact"))


def test_progress_rises_to_the_end() -> None:
    data = make_trajectories(usual_city(3), 60, seed=4)
    reported: list[tuple[int, int]] = []
    clustering = Clustering(FrechetManhattan(Paths.of(data), resampled=True), data.person, 3, 4)
    clustering.clusters("join", np.random.default_rng(1), lambda done, total: reported.append((done, total)))
    assert reported == sorted(reported) and reported[-1] == (60, 60) and len(reported) > 5
