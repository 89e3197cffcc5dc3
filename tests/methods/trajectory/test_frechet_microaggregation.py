from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import plain_couplings as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import make_trajectories, usual_city

from crowdveil import engine
from crowdveil.engine.progress import no_progress
from crowdveil.methods.trajectory import frechet_microaggregation
from crowdveil.methods.trajectory.frechet_microaggregation import FrechetMicroaggregationParams, run
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline, releases
from crowdveil.solve.trajectory import pivots
from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths
from crowdveil.testing import paths, trajectories


def _release(data: Trajectories, seed: int = 5, **parameters: Any) -> TrajectoryRelease:
    return run(data, FrechetMicroaggregationParams(**parameters), np.random.default_rng(seed), no_progress)


def _classes(data: Trajectories, release: TrajectoryRelease) -> list[set[int]]:
    """The people of each set of equal trajectories."""
    table = np.column_stack([release.lon, release.lat, release.t])
    people: dict[bytes, set[int]] = {}
    assert release.source is not None
    for i, source in enumerate(release.source.tolist()):
        points = table[release.offsets[i] : release.offsets[i + 1]].tobytes()
        people.setdefault(points, set()).add(int(data.person[source]))
    return list(people.values())


@settings(max_examples=tries(60), deadline=None)
@given(
    data=trajectories(max_trajectories=12, max_points=5),
    k=st.integers(2, 3),
    resample=st.booleans(),
    exact=st.booleans(),
    path=st.sampled_from(["sketched", "exact"]),
    left_over=st.sampled_from(["join", "drop"]),
)
def test_every_equivalence_class_has_k_people(
    data: Trajectories, k: int, resample: bool, exact: bool, path: str, left_over: str
) -> None:
    distance = "frechet-manhattan-exact" if exact else "frechet-manhattan"
    release = _release(
        data, k=k, resample=resample, distance=distance, pivot_path=path, left_over=left_over, pivots=4
    )  # fmt: skip
    assert all(len(people) >= k for people in _classes(data, release))
    assert release.source is not None and len(set(release.source.tolist())) == len(release)
    if left_over == "join":
        assert len(release) == (len(data) if data.people >= k else 0)
    else:
        left = set(range(len(data))) - set(release.source.tolist())
        assert len({int(data.person[i]) for i in left}) < k or data.people < k
    falls = np.diff(release.t) < 0
    falls[release.offsets[1:-1] - 1] = False
    assert not falls.any()


@settings(max_examples=tries(60), deadline=None)
@given(data=paths(min_paths=2, max_paths=4), resample=st.booleans(), people=st.integers(1, 4))
def test_the_mean_of_a_cluster_is_its_twin_and_its_times_never_fall(data: Paths, resample: bool, people: int) -> None:
    from crowdveil.kernels.trajectory.frechet_manhattan import mean_of_cluster

    listed = [list(zip(*(c.tolist() for c in data.one(i)), strict=True)) for i in range(len(data))]
    columns = FrechetManhattan(data).columns
    if resample:
        # Interpolated places are off by rounding, so that equal means may be chosen from otherwise: places that differ enough.
        rng = np.random.default_rng(1)
        data = Paths(data.x + rng.random(len(data.x)), data.y + rng.random(len(data.y)), data.t, data.offsets)
        listed = [list(zip(*(c.tolist() for c in data.one(i)), strict=True)) for i in range(len(data))]
        columns = FrechetManhattan(data).columns
    person = [i % people for i in range(len(data))]
    weight = np.array([1 / person.count(one) for one in person])
    found = np.column_stack(mean_of_cluster(0, np.arange(1, len(data)), weight, columns, resample, False))
    assert np.allclose(found, plain.mean_of_cluster(listed[0], listed[1:], resample, person), rtol=0, atol=1e-9)
    assert np.all(np.diff(found[:, 2]) >= 0)


def test_a_cluster_by_hand() -> None:
    """Two people side by side, 0.002 degrees and ten seconds apart: the mean is between them, at the mean of times."""
    lat = 48 + np.array([0.0, 0.001, 0.002])
    data = Trajectories(
        np.repeat([2.0, 2.002], 3), np.tile(lat, 2), np.array([0, 60, 120, 10, 70, 130]), np.array([0, 3, 6]),
        np.arange(2), np.arange(2), np.array(["ann", "bob"], dtype=object),
    )  # fmt: skip
    release = _release(data, k=2)
    assert len(release) == 2 and release.facts == {"clusters": 1, "left_over_percent": 0}
    assert np.allclose(release.lon, 2.001, atol=1e-5) and np.allclose(release.lat, np.tile(lat, 2), atol=1.1e-5)
    assert release.t.tolist() == [5, 65, 125] * 2


def test_trajectories_at_other_hours_do_not_make_times_jump() -> None:
    """One path is dense where the other is not, and nine hours later: the mean time would fall if points were counted."""
    dense = np.linspace(0, 0.002, 21)
    data = Trajectories(
        np.full(24, 2.0), 48 + np.concatenate([[0.0, 0.001, 0.004], dense]),
        np.concatenate([[0, 300, 600], 32_400 + np.arange(21) * 30]), np.array([0, 3, 24]),
        np.arange(2), np.arange(2), np.array(["ann", "bob"], dtype=object),
    )  # fmt: skip
    for seed in range(4):
        t = _release(data, seed, k=2, resample=False).t
        t = t[: len(t) // 2]
        assert np.all(np.diff(t) >= 0) and t[0] >= 16_200 and t[-1] <= 16_800


def test_those_left_over_are_counted_and_join_or_are_dropped() -> None:
    data = make_trajectories(usual_city(2), 41, seed=3)
    joined, dropped = (_release(data, k=10, count_trajectories=True, left_over=how) for how in ("join", "drop"))
    assert len(joined) == 41 and len(dropped) == 40
    assert joined.facts == dropped.facts == {"clusters": 4, "left_over_percent": 0}, (
        "a percent would show that it is one"
    )
    many = _release(make_trajectories(usual_city(2), 119, seed=3), k=20, count_trajectories=True)
    assert many.facts == {"clusters": 5, "left_over_percent": 20}, "19 of 119, in steps of at least 20"


def test_the_same_bytes_on_one_thread_and_on_many(tmp_path: Path) -> None:
    data = make_trajectories(usual_city(2), 200, seed=3)
    contents = []
    for threads in (1, 4):
        out = tmp_path / str(threads)
        with (
            patch.object(pivots, "thread_count", lambda threads=threads: threads),
            patch.object(frechet_microaggregation, "BATCHES", 8 * threads),
            engine.use(engine.LocalEngine(threads)),
        ):
            pipeline.run(pipeline.Request("frechet-microaggregation", data, out, {"k": 3}, options={"seed": 7}))
        contents.append((out / "trajectories.parquet").read_bytes())
    assert contents[0] == contents[1]


def test_the_unit_of_k_is_published(tmp_path: Path) -> None:
    """Three trajectories of one person: a crowd of three if trajectories are counted."""
    t = np.arange(6) * 60
    one = Trajectories(
        2 + t / 1e5, 48 + t / 1e5, t, np.array([0, 2, 4, 6]), np.arange(3), np.zeros(3), np.array(["ann"], dtype=object)
    )
    pipeline.run(
        pipeline.Request("frechet-microaggregation", one, tmp_path / "out", {"k": 3, "count_trajectories": True})
    )
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["guarantees"][0]["parameters"] == {"k": 3, "k_unit": "trajectories"}


@pytest.mark.realdata
def test_cabs_of_san_francisco(realdata: Path, tmp_path: Path) -> None:
    """A quarter of an hour of 382 cabs: all are published, each with two others of other cabs at least."""
    cabs = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    result = pipeline.run(
        pipeline.Request(
            "frechet-microaggregation", cabs, tmp_path / "out", {"k": 3}, options={"attack": False, "report": False}
        )
    )
    assert len(result.release) == 643
    assert result.manifest["guarantees"][0]["with_original"]
    assert not any(finding.violated for _, finding in releases.verify(tmp_path / "out"))
