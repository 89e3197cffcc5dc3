from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plain_trajectories as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_trajectories import distance_matrix
from synthetic import make_trajectories, usual_city

from crowdveil import engine
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.methods.trajectory.time_partitioned_microaggregation import (
    TimePartitionedParams,
    parts_by_time,
    parts_of,
    run,
)
from crowdveil.model.arrays import Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.run import pipeline
from crowdveil.solve.trajectory.distances import make_distance
from crowdveil.solve.trajectory.mdav import Grouping
from crowdveil.testing import trajectories


def _release(data: Trajectories, **parameters: Any) -> TrajectoryRelease:
    return run(data, TimePartitionedParams(**parameters), np.random.default_rng(5), no_progress)


def _parts(data: Trajectories, k: int, interval: int) -> list[Ints]:
    return parts_of(Outline.of(data), TimePartitionedParams(k=k, interval_s=interval))


def _plain(data: Trajectories) -> list[plain.Path]:
    rows = list(zip(data.lon.tolist(), data.lat.tolist(), data.t.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(data.offsets, data.offsets[1:], strict=False)]


@settings(max_examples=tries(150), deadline=None)
@given(
    data=trajectories(max_trajectories=14, max_points=4),
    k=st.integers(2, 4),
    interval=st.sampled_from([1, 50, 200, 5000]),
)
def test_parts_are_those_of_the_twin_and_hold_k_people(data: Trajectories, k: int, interval: int) -> None:
    parts = _parts(data, k, interval)
    assert [part.tolist() for part in parts] == plain.parts_by_time(_plain(data), data.person.tolist(), k, interval)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(data)))
    if data.people >= k:
        assert all(len(set(data.person[part].tolist())) >= k for part in parts)


@settings(max_examples=tries(60), deadline=None)
@given(
    data=trajectories(max_trajectories=14, max_points=4),
    interval=st.sampled_from([1, 100, 5000]),
    weight=st.sampled_from([0.0, 0.4]),
)
def test_groups_stay_inside_a_part_and_are_those_of_microaggregation(
    data: Trajectories, interval: int, weight: float
) -> None:
    release = _release(data, k=2, interval_s=interval, time_weight=weight, exchange=False)
    assert release.source is not None
    assert len(release) == (len(data) if data.people >= 2 else 0)
    copies: dict[bytes, set[int]] = {}
    table = np.column_stack([release.lon, release.lat, release.t])
    for i, source in enumerate(release.source.tolist()):
        copies.setdefault(table[release.offsets[i] : release.offsets[i + 1]].tobytes(), set()).add(source)
    parts = _parts(data, 2, interval)
    # Parts of which nothing is published are not counted.
    assert release.facts == {"time_weight": weight, "parts": len(parts) if len(release) else 0}
    distance = make_distance(data, "spatiotemporal", weight)
    for part in parts:
        alone = Grouping(distance, data.person, 2).groups([part])
        for g in range(int(alone.max(initial=-1)) + 1):
            # Two groups may come out equal by chance, so a group is inside a set of copies.
            assert any(set(np.flatnonzero(alone == g).tolist()) <= found for found in copies.values())


def test_one_interval_over_all_times_is_microaggregation() -> None:
    data = make_trajectories(usual_city(2), 80, seed=3)
    from crowdveil.methods.trajectory import microaggregation

    whole = microaggregation.run(
        data,
        microaggregation.MicroaggregationParams(time_weight=0.3, aggregation="mean-trajectory", improve=0),
        np.random.default_rng(5),
        no_progress,
    )
    parts = _release(data, interval_s=10**9, time_weight=0.3, exchange=False)
    for column in ("lon", "lat", "t", "offsets", "source"):
        assert np.array_equal(getattr(whole, column), getattr(parts, column))


@settings(max_examples=tries(60), deadline=None)
@given(data=trajectories(max_trajectories=14, max_points=4), interval=st.sampled_from([100, 5000]))
def test_exchanging_stays_inside_parts_and_brings_groups_closer(data: Trajectories, interval: int) -> None:
    parts = _parts(data, 2, interval)
    distance = make_distance(data, "spatiotemporal", 0.0)
    before = Grouping(distance, data.person, 2).groups(parts)
    after = Grouping(distance, data.person, 2, exchange=True).groups(parts)
    assert np.array_equal(before < 0, after < 0)
    for part in parts:
        assert set(before[part].tolist()) == set(after[part].tolist())
        assert _spread(distance, part, after) <= _spread(distance, part, before) * (1 + 1e-9)
    for g in set(after[after >= 0].tolist()):
        assert len(set(data.person[after == g].tolist())) >= 2


def _spread(distance: Any, part: Any, group: Any) -> float:
    """Squared distances of pairs of a group over its size, summed over the groups of a part."""
    total = 0.0
    for g in set(group[part].tolist()):
        own = part[group[part] == g]
        total += float((distance_matrix(distance, own, own) ** 2).sum()) / 2 / len(own)
    return total


def test_large_parts_are_left_as_they_are() -> None:
    data = make_trajectories(usual_city(2), 150, seed=3)
    whole = [_release(data, interval_s=10**9, exchange=exchange) for exchange in (False, True)]
    small = [_release(data, interval_s=7200, exchange=exchange) for exchange in (False, True)]
    assert np.array_equal(whole[0].source, whole[1].source) and np.array_equal(whole[0].lon, whole[1].lon)
    assert not np.array_equal(small[0].lon, small[1].lon)


def test_parts_by_first_time() -> None:
    data = make_trajectories(usual_city(2), 60, seed=3)
    release = _release(data, interval_s=3600, parts_by="first-time")
    first = (data.t[data.offsets[:-1]] - data.t.min()).astype(float)
    assert release.facts["parts"] == len(parts_by_time(first, data.person, 3, 3600))


def test_the_same_bytes_on_one_thread_and_on_many(tmp_path: Path) -> None:
    data, contents = make_trajectories(usual_city(2), 300, seed=3), []
    for threads in (1, 4):
        out = tmp_path / str(threads)
        with engine.use(engine.LocalEngine(threads)):
            request = pipeline.Request(
                "time-partitioned-microaggregation", data, out, {"k": 3, "interval_s": 7200}, options={"seed": 7}
            )
            pipeline.run(request)
        contents.append((out / "trajectories.parquet").read_bytes())
    assert contents[0] == contents[1]


def test_more_k_than_people_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    data = make_trajectories(usual_city(2), 5, seed=3)
    with pytest.raises(InputError, match="Choose a smaller k"):
        pipeline.run(pipeline.Request("time-partitioned-microaggregation", data, tmp_path / "out", {"k": 6}))
    assert list(tmp_path.iterdir()) == []
