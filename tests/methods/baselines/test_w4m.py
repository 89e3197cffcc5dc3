"""W4M: the edit distance and its matches against all alignments, clusters, and points within δ."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.engine.progress import no_progress
from crowdveil.errors import GuaranteeViolatedError
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid
from crowdveil.kernels.trajectory.structures import Points
from crowdveil.methods.baselines import w4m
from crowdveil.methods.baselines.w4m import GreedyClusters
from crowdveil.model.arrays import frozen
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_method
from crowdveil.run import pipeline

Path3 = list[tuple[float, float, float]]
METERS, SECONDS = 2.0, 3.0
walk = st.lists(st.tuples(*(st.integers(0, 6).map(float) for _ in range(3))), min_size=1, max_size=5)


def _points(*paths: Path3) -> Points:
    columns = (frozen([p[i] for path in paths for p in path], np.float64) for i in range(3))
    return Points(*columns, frozen(np.cumsum([0, *map(len, paths)]), np.int64))


def _match(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return abs(a[0] - b[0]) <= METERS and abs(a[1] - b[1]) <= METERS and abs(a[2] - b[2]) <= SECONDS


def _edits(one: Path3, other: Path3) -> int:
    """The edit distance by its recursive definition."""

    @cache
    def of(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        replaced = of(i - 1, j - 1) + (not _match(one[i - 1], other[j - 1]))
        return min(replaced, of(i - 1, j) + 1, of(i, j - 1) + 1)

    return of(len(one), len(other))


@settings(max_examples=tries(100), deadline=None)
@given(one=walk, others=st.lists(walk, min_size=1, max_size=3))
def test_the_edit_distance_is_its_definition(one: Path3, others: list[Path3]) -> None:
    ordered = [sorted(path, key=lambda p: p[2]) for path in (one, *others)]
    points = _points(*ordered)
    found = w4m.edit_distances(points, 0, np.arange(1, len(ordered)), METERS, SECONDS)
    assert found.tolist() == [_edits(ordered[0], other) for other in ordered[1:]]


@settings(max_examples=tries(100), deadline=None)
@given(one=walk, other=walk)
def test_matches_are_in_order_and_explain_the_distance(one: Path3, other: Path3) -> None:
    points = _points(one, other)
    found = w4m.matched_points(points, 0, 1, METERS, SECONDS).tolist()
    pairs = [(i, j - len(one)) for i, j in enumerate(found) if j >= 0]
    assert all(_match(one[i], other[j]) for i, j in pairs)
    assert all(a[1] < b[1] for a, b in pairwise(pairs))
    # Between matches, points are replaced one by one, and what the longer side has more is inserted.
    ends = [(-1, -1), *pairs, (len(one), len(other))]
    edits = sum(max(b[0] - a[0], b[1] - a[1]) - 1 for a, b in pairwise(ends))
    assert edits == _edits(one, other)


@settings(max_examples=tries(60), deadline=None)
@given(
    places=st.lists(st.integers(0, 40), min_size=6, max_size=14),
    people=st.lists(st.integers(0, 5), min_size=14, max_size=14),
    left_out=st.sampled_from([0.0, 0.2]),
)
def test_clusters_have_k_people_and_few_are_left_out(places: list[int], people: list[int], left_out: float) -> None:
    at, person = np.array(places) / 40, np.array(people[: len(places)])
    if len(set(person.tolist())) < 2:
        return
    search = GreedyClusters(lambda i: np.abs(at - at[i]), person, 2)
    found = search.clusters(left_out, np.random.default_rng(1), no_progress)
    members = [m for _, of in found for m in of.tolist()]
    assert len(members) == len(set(members)) >= len(places) - int(left_out * len(places))
    for pivot, of in found:
        assert pivot in of.tolist() and len(set(person[of].tolist())) >= 2


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    return make_movers(street_grid(2, side=12), 24, seed=5)


def _release(data: Trajectories, **parameters: object) -> TrajectoryRelease:
    method = find_method("w4m")
    made = method.run(data, method.params.checked({"k": 3, **parameters}), np.random.default_rng(1), no_progress)
    assert isinstance(made, TrajectoryRelease)
    return made


@pytest.mark.parametrize("delta", [0, 100, 1000])
def test_a_release_holds_and_delta_zero_makes_clusters_equal(delta: float, movers: Trajectories) -> None:
    release = _release(movers, delta_m=delta)
    x, y = movers.projection.to_plane(release.lon, release.lat)
    ways = [
        (release.t[a:b].tobytes(), np.column_stack([x[a:b], y[a:b]]))
        for a, b in zip(release.offsets[:-1], release.offsets[1:], strict=True)
    ]
    assert len(ways) >= 0.9 * len(movers)
    for times, way in ways:
        near = [np.hypot(*(way - other).T).max() for same, other in ways if same == times]
        assert sum(far <= delta + 0.01 for far in near) >= 3


def test_a_matched_point_moves_no_farther_than_it_must() -> None:
    points = _points([(0.0, 0.0, 0.0)], [(10.0, 0.0, 1.0)], [(-10.0, 0.0, 0.0)], [(90.0, 0.0, 0.0)])
    draws = np.full((2, 4, 1), 0.25)
    x, y = w4m.translated(points, np.arange(4), 0, 20.0, 5.0, 4.0, draws)
    # The mean of the three that match is 0: they move to within 4; the fourth is drawn in the disk, half way at 90 degrees.
    assert x[:, 0].tolist() == pytest.approx([0.0, 4.0, -4.0, 0.0]) and y[:, 0].tolist() == pytest.approx(
        [0, 0, 0, 2.0]
    )


def test_a_method_that_moves_too_little_publishes_nothing(
    movers: Trajectories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(w4m, "INSIDE", 3.0)
    request = pipeline.Request("w4m", movers, tmp_path / "out", {"k": 3, "delta_m": 100, "tolerance_m": 500})
    with pytest.raises(GuaranteeViolatedError, match="k-delta-anonymity"):
        pipeline.run(request)
    assert not (tmp_path / "out").exists()


def test_an_adversary_who_knows_points_finds_people_in_the_cylinder(movers: Trajectories, tmp_path: Path) -> None:
    """(k, δ)-anonymity is no k-anonymity: risks are measured, and exceed 1 / k with a wide cylinder."""
    result = pipeline.run(
        pipeline.Request("w4m", movers, tmp_path / "out", {"k": 5, "delta_m": 2000}, options={"report": False})
    )
    assert result.manifest["method"]["status"] == "heuristic"
    assert max(entry["risk_percent"] for entry in result.manifest["risk"]) > 20
