from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.engine.progress import no_progress
from crowdveil.io.trajectories import read_trajectories
from crowdveil.methods.baselines.log_cost_generalization import LogCost, LogCostGeneralizationParams, run
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline, releases
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.testing import trajectories

ROUNDED_M = 1.5
"""Five decimals of a degree."""


def _release(data: Trajectories, seed: int = 5, **parameters: Any) -> TrajectoryRelease:
    return run(data, LogCostGeneralizationParams(**parameters), np.random.default_rng(seed), no_progress)


def _rows(data: Trajectories | TrajectoryRelease) -> list[tuple[tuple[float, float, int], ...]]:
    rows = list(zip(data.lon.tolist(), data.lat.tolist(), data.t.tolist(), strict=True))
    return [tuple(rows[a:b]) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


@given(
    data=trajectories(),
    k=st.integers(2, 3),
    grouping=st.sampled_from(["representative", "pivot"]),
    reconstruction=st.sampled_from(["center", "random"]),
    share=st.sampled_from([1.0, 0.4]),
    alone=st.booleans(),
)
def test_what_is_published_of_a_group_is_in_its_boxes_and_the_same_for_all(
    data: Trajectories, k: int, grouping: str, reconstruction: str, share: float, alone: bool
) -> None:
    person = np.arange(len(data)) if alone else data.person
    cost = LogCost(Paths.of(data), suppression=share)
    groups = cost.groups(person, k, grouping == "representative", np.random.default_rng(5))
    release = _release(
        data, k=k, grouping=grouping, reconstruction=reconstruction, suppression_cost=share, count_trajectories=alone
    )
    published = dict(zip(release.source.tolist(), _rows(release), strict=True))
    assert set(published) == {i for g in groups if g.sides.shape[1] for i in g.members.tolist()}
    for group in groups:
        if not group.sides.shape[1]:
            continue
        paths = {published[i] for i in group.members.tolist()}
        assert len(paths) == 1 and len(set(person[group.members].tolist())) >= k
        lon, lat, t = map(np.array, zip(*paths.pop(), strict=True))
        x, y = data.projection.to_plane(lon, lat)
        west, east, south, north, early, late = group.sides
        assert (x >= west - ROUNDED_M).all() and (x <= east + ROUNDED_M).all()
        assert (y >= south - ROUNDED_M).all() and (y <= north + ROUNDED_M).all()
        assert (np.diff(t) >= 0).all()
        since = t - data.start
        assert (since >= early).all() and (since <= late).all()
        if reconstruction == "center":
            assert np.allclose(x, (west + east) / 2, atol=ROUNDED_M)
            assert np.array_equal(since, np.floor((early + late) / 2))


def _line(*starts: tuple[float, int]) -> Trajectories:
    """Walks of five points north, from a longitude and a moment on."""
    lon, t = (np.repeat([s[i] for s in starts], 5) for i in (0, 1))
    n = len(starts)
    along = np.tile(np.arange(5), n)
    return Trajectories(lon, along * 0.001, t + 60 * along, np.arange(0, 5 * n + 1, 5), *[np.arange(n)] * 3)


def test_two_pairs_by_hand() -> None:
    """0 and 1 walk side by side, 2 and 3 do so elsewhere; of each pair the middle is published."""
    data = _line((0.0, 0), (0.001, 20), (0.1, 4000), (0.101, 4040))
    release = _release(data, k=2)
    paths = dict(zip(release.source.tolist(), _rows(release), strict=True))
    assert paths[0] == paths[1] and paths[2] == paths[3]
    assert np.allclose([row[0] for row in paths[0]], 0.0005) and np.allclose([row[0] for row in paths[2]], 0.1005)
    assert [row[2] for row in paths[0]] == [10, 70, 130, 190, 250]
    assert [row[2] for row in paths[2]] == [4020, 4080, 4140, 4200, 4260]
    assert release.facts == {"mean_box_s": 30.0, "mean_box_side_m": 60.0}  # 55.66 m: an exact size would reveal ends


def test_weights_say_whether_space_or_time_counts() -> None:
    """The first is near the second in time, and near the third in space."""
    data = _line((0.0, 0), (0.05, 0), (0.0, 40_000), (0.05, 40_000))
    for weights, together in (((1.0, 0.0), {0, 2}), ((0.0, 1.0), {0, 1})):
        release = _release(data, k=2, space_weight=weights[0], time_weight=weights[1])
        paths = dict(zip(release.source.tolist(), _rows(release), strict=True))
        assert {i for i in paths if paths[i] == paths[0]} == together


def test_outliers_are_left_out_only_where_leaving_out_is_cheap() -> None:
    """One point of the second walk is far away."""
    data = _line((0.0, 0), (0.0001, 0))
    lon = data.lon.copy()
    lon[7] = 0.5
    data = Trajectories(lon, data.lat, data.t, data.offsets, data.ids, data.person, data.people_ids)
    assert np.diff(_release(data, k=2).offsets).tolist() == [5, 5]
    assert np.diff(_release(data, k=2, suppression_cost=0.1).offsets).tolist() == [4, 4]


def test_a_group_of_which_nothing_is_left_is_left_out() -> None:
    """Two walk together, and two far from all: nothing is left of these, or of anybody if one of them is drawn first."""
    data = _line((0.0, 0), (0.0, 0), (1.0, 0), (2.0, 90_000))
    releases = [_release(data, seed=seed, k=2, suppression_cost=0.01) for seed in range(20)]
    assert {tuple(sorted(release.source.tolist())) for release in releases} == {(), (0, 1)}
    assert all(set(np.diff(release.offsets).tolist()) <= {5} for release in releases)


def test_random_points_are_drawn_once_for_a_group_and_depend_on_the_seed() -> None:
    data = _line((0.0, 0), (0.001, 20), (0.1, 4000), (0.101, 4040))
    first, again, other = (_release(data, seed=seed, k=2, reconstruction="random") for seed in (1, 1, 2))
    assert _rows(first) == _rows(again) and set(_rows(first)).isdisjoint(_rows(other))
    assert len(set(_rows(first))) == 2


@pytest.mark.realdata
@pytest.mark.parametrize("reconstruction", ["center", "random"])
def test_cabs(realdata: Path, tmp_path: Path, reconstruction: str) -> None:
    source = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    parameters = {"k": 3, "reconstruction": reconstruction}
    result = pipeline.run(
        pipeline.Request(
            "log-cost-generalization", source, tmp_path / "out", parameters, options={"attack": False, "report": False}
        )
    )
    release, data = result.release, read_trajectories(source)
    assert len(release) == len(data) and 0.6 < release.points / data.points < 1
    assert not any(finding.violated for _, finding in releases.verify(tmp_path / "out"))
    assert 100 < result.manifest["method"]["facts"]["mean_box_side_m"] < 3000
