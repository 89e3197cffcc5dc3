from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import make_trajectories, usual_city

from crowdveil import engine
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid
from crowdveil.methods.trajectory.microaggregation import MicroaggregationParams, run
from crowdveil.methods.trajectory.time_partitioned_microaggregation import TimePartitionedParams
from crowdveil.methods.trajectory.time_partitioned_microaggregation import run as run_by_parts
from crowdveil.model.canonical import numbered
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline, releases
from crowdveil.solve.trajectory.aggregation import NAMES as AGGREGATIONS
from crowdveil.solve.trajectory.aggregation import AggregationName
from crowdveil.solve.trajectory.clustering import NAMES as CLUSTERINGS
from crowdveil.solve.trajectory.distances import NAMES as DISTANCES
from crowdveil.solve.trajectory.distances import DistanceName
from crowdveil.testing import trajectories


def _release(data: Trajectories, seed: int = 5, **parameters: Any) -> TrajectoryRelease:
    return run(data, MicroaggregationParams(**parameters), np.random.default_rng(seed), no_progress)


def _published(release: TrajectoryRelease) -> list[bytes]:
    """The points of each trajectory as one value."""
    table = np.column_stack([release.lon, release.lat, release.t])
    return [table[a:b].tobytes() for a, b in zip(release.offsets, release.offsets[1:], strict=False)]


def _classes(data: Trajectories, release: TrajectoryRelease) -> list[set[int]]:
    """The people of each set of equal trajectories."""
    people: dict[bytes, set[int]] = {}
    assert release.source is not None
    for points, source in zip(_published(release), release.source.tolist(), strict=True):
        people.setdefault(points, set()).add(int(data.person[source]))
    return list(people.values())


@pytest.mark.parametrize("aggregation", AGGREGATIONS.own)
@pytest.mark.parametrize("distance", DISTANCES.own)
@settings(max_examples=tries(25), deadline=None)
@given(
    data=trajectories(max_trajectories=12, max_points=5),
    k=st.integers(2, 3),
    center=st.sampled_from(["once", "remaining"]),
)
def test_every_equivalence_class_has_k_people(
    distance: DistanceName, aggregation: AggregationName, data: Trajectories, k: int, center: str
) -> None:
    release = _release(data, k=k, distance=distance, aggregation=aggregation, center=center)
    assert all(len(people) >= k for people in _classes(data, release))
    assert release.source is not None and len(set(release.source.tolist())) == len(release)
    if distance != "graph":
        assert len(release) == (len(data) if data.people >= k else 0)
    assert ("time_weight" in release.facts) == (distance == "spatiotemporal")


@settings(max_examples=tries(40), deadline=None)
@given(data=trajectories(max_trajectories=12))
def test_trajectories_can_be_counted_instead_of_people(data: Trajectories) -> None:
    release = _release(data, k=2, count_trajectories=True)
    sizes = {p: _published(release).count(p) for p in _published(release)}
    assert len(release) == (len(data) if len(data) >= 2 else 0)
    assert all(size >= 2 for size in sizes.values())


def test_the_same_bytes_on_one_thread_and_on_many(tmp_path: Path) -> None:
    data = make_trajectories(usual_city(2), 250, seed=3)
    contents = []
    for threads in (1, 4):
        out = tmp_path / str(threads)
        with engine.use(engine.LocalEngine(threads)):
            pipeline.run(pipeline.Request("microaggregation", data, out, {"k": 3}, options={"seed": 7}))
        contents.append((out / "trajectories.parquet").read_bytes())
    assert contents[0] == contents[1]


def test_the_order_and_the_ids_of_the_file_are_not_kept() -> None:
    data = make_trajectories(usual_city(2), 120, seed=3)
    release = numbered(_release(data))
    assert release.source is not None
    assert sorted(release.source.tolist()) == list(range(120)) != release.source.tolist()
    assert release.person is None
    assert release.source.tolist() == numbered(_release(data, seed=6)).source.tolist()  # type: ignore[union-attr]


def test_the_unit_of_k_is_published_everywhere(tmp_path: Path) -> None:
    """Three trajectories of one person: a crowd of three if trajectories are counted, and none if people are."""
    t = np.arange(6) * 60
    one = Trajectories(
        2 + t / 1e5, 48 + t / 1e5, t, np.array([0, 2, 4, 6]), np.arange(3), np.zeros(3), np.array(["ann"], dtype=object)
    )
    with pytest.raises(InputError, match=r"at most the people in the data, 1, got 3. Choose a smaller k"):
        pipeline.run(pipeline.Request("microaggregation", one, tmp_path / "no", {"k": 3}))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"at most the trajectories in the data, 3, got 4. Choose a smaller k"):
        pipeline.run(pipeline.Request("microaggregation", one, tmp_path / "no", {"k": 4, "count_trajectories": True}))
    result = pipeline.run(
        pipeline.Request("microaggregation", one, tmp_path / "out", {"k": 3, "count_trajectories": True})
    )
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["k_unit"] == "trajectories"
    assert manifest["guarantees"][0]["parameters"] == {"k": 3, "k_unit": "trajectories"}
    assert any("k counts trajectories, as asked" in note for note in result.notes.messages)


def test_parts_that_no_chain_of_contemporaries_joins_stay_apart() -> None:
    """Three in the morning, three in the evening, and one at night who is left out."""
    start = np.repeat([0, 0, 0, 40_000, 40_000, 40_000, 80_000], 2)
    lon = 2 + np.repeat([0, 1, 2, 0, 1, 2, 0], 2) / 1000
    data = Trajectories(
        lon, np.full(14, 48.0), start + np.tile([0, 600], 7), np.arange(0, 15, 2), np.arange(7), np.arange(7),
        np.arange(7).astype(object),
    )  # fmt: skip
    release = _release(data, k=3, distance="graph")
    assert release.source is not None
    assert sorted(release.source.tolist()) == [0, 1, 2, 3, 4, 5]
    assert {frozenset(people) for people in _classes(data, release)} == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}


@pytest.mark.realdata
def test_cabs_of_san_francisco(realdata: Path, tmp_path: Path) -> None:
    """A quarter of an hour of 382 cabs: all are published, each with two others of other cabs at least."""
    cabs = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    request = pipeline.Request(
        "microaggregation",
        cabs,
        tmp_path / "out",
        {"k": 3, "time_weight": 0.0066},
        options={"attack": False, "report": False},
    )
    result = pipeline.run(request)
    assert len(result.release) == 643
    assert result.manifest["guarantees"][0]["with_original"]
    assert not any(finding.violated for _, finding in releases.verify(tmp_path / "out"))


@pytest.mark.parametrize("clustering", CLUSTERINGS.own)
@pytest.mark.parametrize("k", [2, 3])
def test_every_clustering_makes_groups_of_k_people(clustering: str, k: int) -> None:
    data = make_movers(street_grid(1, side=8), 14, seed=4)
    data = replace(data, person=np.arange(14) // 2)  # seven people
    distance = "frechet-manhattan" if clustering == "pivots" else "spatiotemporal"
    params = MicroaggregationParams(k=k, clustering=clustering, distance=distance)
    made: Any = run(data, params, np.random.default_rng(0), no_progress)
    assert sorted(made.source.tolist()) == list(range(14))
    shapes = [made.lon[made.offsets[i] : made.offsets[i + 1]].tobytes() for i in range(14)]
    for shape in set(shapes):
        assert len({int(data.person[made.source[i]]) for i in range(14) if shapes[i] == shape}) >= k
    with pytest.raises(ParameterError, match="distance frechet-manhattan or"):
        MicroaggregationParams.checked({"clustering": "pivots"})
    with pytest.raises(ParameterError, match="'mdav' or 'pivots'"):
        MicroaggregationParams.checked({"clustering": "magic"})


def test_the_nearest_trajectory_may_weigh_time_otherwise() -> None:
    data = make_movers(street_grid(1, side=8), 30, seed=4)
    made = [
        run(data, MicroaggregationParams(k=5, time_weight=0.0, aggregation="closest-trajectory", aggregation_time_weight=w),
            np.random.default_rng(0), no_progress)
        for w in (None, 0.0, 50.0)
    ]  # fmt: skip
    assert made[0].t.tolist() == made[1].t.tolist() != made[2].t.tolist()


@pytest.mark.parametrize("distance", ["dtw", "discrete-frechet", "frechet-manhattan"])
def test_parts_take_any_distance_of_two_trajectories(distance: str) -> None:
    data = make_movers(street_grid(1, side=8), 30, seed=4)
    params = TimePartitionedParams(k=3, interval_s=10**6, distance=distance, exchange=False)
    one = MicroaggregationParams(k=3, distance=distance, aggregation="mean-trajectory")
    made = run_by_parts(data, params, np.random.default_rng(0), no_progress)
    whole = run(data, one, np.random.default_rng(0), no_progress)  # one part of all is all of them
    assert made.lon.tolist() == whole.lon.tolist() and made.t.tolist() == whole.t.tolist()
    with pytest.raises(ParameterError, match="which graph is not"):
        TimePartitionedParams.checked({"distance": "graph"})


def test_a_composed_trajectory_is_the_default() -> None:
    data = make_movers(street_grid(1, side=8), 30, seed=4)
    made, stated, means = (
        run(data, params, np.random.default_rng(0), no_progress)
        for params in (
            MicroaggregationParams(k=3),
            MicroaggregationParams(k=3, aggregation="composed-trajectory"),
            MicroaggregationParams(k=3, aggregation="mean-trajectory"),
        )
    )
    assert made.lon.tolist() == stated.lon.tolist() and made.t.tolist() == stated.t.tolist()
    assert made.lon.tolist() != means.lon.tolist()
