from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st
from plain_combinations import all_shared, without_repeats
from plain_combinations import merged_tiles as plain_merged
from plain_combinations import remove_rare_visits as plain_shared
from run_files import read_run_file

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.io.trajectories import read_trajectories
from crowdveil.methods.trajectory.protected_generalization import ProtectedGeneralizationParams, run
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.run import pipeline
from crowdveil.solve.trajectory import visits
from crowdveil.solve.trajectory.visits import Visits, merged_tiles, remove_rare_visits, tiles_of
from crowdveil.testing import trajectories

HOUR = 3600


def _release(data: Trajectories, **parameters: Any) -> TrajectoryRelease:
    return run(data, ProtectedGeneralizationParams(**parameters), np.random.default_rng(5), no_progress)


def _walks(release: TrajectoryRelease, interval_s: int | None = None) -> list[list[object]]:
    """What is seen of each trajectory: places with times as finely as they may be known, repeats left out."""
    t = release.t if interval_s is None else release.t // interval_s if interval_s else 0 * release.t
    rows = list(zip(release.lon.tolist(), release.lat.tolist(), t.tolist(), strict=True))
    walks = [rows[a:b] for a, b in zip(release.offsets[:-1], release.offsets[1:], strict=True)]
    return [[row for i, row in enumerate(walk) if i == 0 or row != walk[i - 1]] for walk in walks]


few = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=7), min_size=1, max_size=9)


# The visit to 1 goes, so that two visits to 0 become one, which then goes: both of them must.
@example(sequences=[[2, 3, 0, 1, 0], [2, 3], [0, 4, 0], [0, 4, 0], [1], [1]], people=6, k=2, knowledge=2, block=40)
@given(
    sequences=few, people=st.integers(1, 9), k=st.integers(2, 3), knowledge=st.integers(1, 4), block=st.integers(1, 40)
)
def test_what_stays_is_that_of_the_plain_twin(
    sequences: list[list[int]], people: int, k: int, knowledge: int, block: int
) -> None:
    owner = sorted(i % people for i in range(len(sequences)))
    numbers = iter(range(sum(map(len, sequences))))
    walks = [without_repeats([(s, [next(numbers)]) for s in sequence]) for sequence in sequences]
    trajectory = np.repeat(np.arange(len(sequences)), [len(s) for s in sequences])
    made, visit = Visits.of(np.array([s for q in sequences for s in q]), trajectory, np.array(owner))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(visits, "BLOCK", block)
        place = remove_rare_visits(made, k, knowledge, no_progress)[visit]
    wanted = [points for walk in plain_shared(walks, owner, k, knowledge) for _, points in walk]
    found = [np.flatnonzero(place == i).tolist() for i in range(int(place.max()) + 1)]
    assert found == wanted


@given(
    sequences=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=4, max_size=14),
    k=st.integers(2, 4),
    knowledge=st.integers(1, 4),
)
def test_every_combination_that_is_left_is_shared(sequences: list[list[int]], k: int, knowledge: int) -> None:
    trajectory = np.repeat(np.arange(len(sequences)), [len(s) for s in sequences])
    symbol = np.array([s for q in sequences for s in q])
    owner = np.arange(len(sequences)) // 2
    made, visit = Visits.of(symbol, trajectory, owner)
    place = remove_rare_visits(made, k, knowledge, no_progress)[visit]
    left = [
        [symbol[np.flatnonzero(place == i)[0]] for i in np.unique(place[(trajectory == n) & (place >= 0)])]
        for n in range(len(sequences))
    ]
    assert all_shared(left, owner.tolist(), k, knowledge)
    assert all(a != b for walk in left for a, b in pairwise(walk))


@given(data=trajectories(), least=st.integers(1, 9), size=st.sampled_from([300.0, 800.0]))
def test_small_tiles_join_the_neighbor_with_most_points(data: Trajectories, least: int, size: float) -> None:
    zones, tile = tiles_of(data, size)
    level = data.t // 300
    area = merged_tiles(zones, tile, level, least)
    columns = (level, zones.column[tile], zones.row[tile])
    wanted = plain_merged(list(zip(*(c.tolist() for c in columns), strict=True)), least)
    assert [frozenset(np.flatnonzero(area == a).tolist()) for a in area] == wanted


@given(
    data=trajectories(max_trajectories=12),
    k=st.integers(2, 3),
    knowledge=st.integers(1, 3),
    interval=st.sampled_from([0, 300]),
    times=st.sampled_from(["same", "keep"]),
    strategy=st.sampled_from(["avg", "centroid"]),
)
def test_what_is_published_is_shared(
    data: Trajectories, k: int, knowledge: int, interval: int, times: str, strategy: str
) -> None:
    release = _release(
        data,
        k=k,
        knowledge=knowledge,
        tile_size_m=2000,
        time_interval_s=interval,
        time_strategy=times,
        strategy=strategy,
    )
    walks = _walks(release, None if times == "same" else interval)
    assert all_shared(walks, data.person[release.source].tolist(), k, knowledge)


def _line(*walks: list[tuple[float, int]], people: list[int] | None = None) -> Trajectories:
    """Walks along the equator: [(meters from the middle, seconds), …]."""
    flat = [point for walk in walks for point in walk]
    lon = np.array([x / 111_319.49 for x, _ in flat])
    person = np.arange(len(walks)) if people is None else np.array(people)
    return Trajectories(
        lon, np.zeros(len(flat)), np.array([t for _, t in flat]), np.cumsum([0, *map(len, walks)]), np.arange(len(walks)),
        person, np.array([f"p{i}" for i in range(len(walks))], dtype=object),
    )  # fmt: skip


WALK = [(100.0, 60), (150.0, 120), (2600.0, 600), (5100.0, 900)]


def test_a_visit_is_one_point_at_the_middle_of_its_interval() -> None:
    release = _release(_line(WALK, WALK, WALK), tile_size_m=1000)
    assert np.diff(release.offsets).tolist() == [3, 3, 3]
    assert set(release.t.tolist()) == {HOUR // 2}
    assert np.allclose(release.lon[:3] * 111_319.49, [125, 2600, 5100], atol=0.2)


def test_kept_times_keep_all_points() -> None:
    release = _release(_line(WALK, WALK, WALK), tile_size_m=1000, time_strategy="keep")
    assert release.t.tolist() == [60, 120, 600, 900] * 3
    assert len(set(release.lon.tolist())) == 3


def test_a_single_level_has_one_time_for_all() -> None:
    later = [(x, t + 5 * HOUR) for x, t in WALK]
    data = replace(_line(WALK, later, WALK), t=_line(WALK, later, WALK).t + 86_400 * 7)
    assert len(_release(data, tile_size_m=1000, k=3)) == 0
    release = _release(data, tile_size_m=1000, k=3, time_interval_s=0)
    assert len(release) == 3 and set(release.t.tolist()) == {86_400 * 7}


def test_one_person_counts_once() -> None:
    data = _line(WALK, WALK, WALK, people=[0, 0, 1])
    assert len(_release(data, tile_size_m=1000)) == 0
    assert len(_release(data, tile_size_m=1000, count_trajectories=True)) == 3


def test_the_unshared_visit_is_removed_and_the_rest_stays() -> None:
    tiles = Zones(
        np.array(["a", "b", "c", "d"], dtype=object), np.array([0.005, 0.015, 0.025, 0.035]), np.zeros(4),
        np.array([shapely.box(i / 100, -1, (i + 1) / 100, 1) for i in range(4)], dtype=object),
    )  # fmt: skip
    walk = [(500.0, 0), (1500.0, 60), (2500.0, 120)]
    own_way = [(500.0, 0), (3700.0, 30), (1500.0, 60), (2500.0, 120), (9000.0, 180)]
    data = replace(_line(walk, walk, own_way), zones=tiles)
    release = _release(data, strategy="centroid")
    assert release.lon.round(6).tolist() == [0.005, 0.015, 0.025] * 3
    assert sorted(release.areas.names.tolist()) == ["a", "b", "c"]


def test_too_many_combinations_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "MAX_COMBINATIONS", 5)
    with pytest.raises(InputError, match=r"^knowledge: 9 combinations of 1 visits are more than can be counted\."):
        _release(_line(WALK, WALK, WALK), tile_size_m=1000)


def test_a_run_file_of_mdl_anonymizer_is_in_minutes(tmp_path: Path) -> None:
    params = {
        "k": 5,
        "knowledge": 3,
        "time_interval": 15,
        "tile_size": 300,
        "strategy": "centroid",
        "time_strategy": "keep",
    }
    content = {"method": "ProtectedGeneralization", "input_file": "a.csv", "output_folder": "o", "params": params}
    (tmp_path / "run.json").write_text(json.dumps(content))
    request = read_run_file(tmp_path / "run.json")
    assert ProtectedGeneralizationParams.checked(request.parameters) == ProtectedGeneralizationParams(
        k=5, knowledge=3, time_interval_s=900, tile_size_m=300, strategy="centroid", time_strategy="keep"
    )


def test_the_guarantee_says_what_times_may_be_known(tmp_path: Path) -> None:
    said = {}
    for name, parameters in {
        "same": {}, "hour": {"time_strategy": "keep"}, "none": {"time_strategy": "keep", "time_interval_s": 0}
    }.items():  # fmt: skip
        result = pipeline.run(
            pipeline.Request("protected-generalization", _line(WALK, WALK, WALK), tmp_path / name, parameters)
        )
        said[name] = result.manifest["guarantees"][0]["statement"]
    assert "finer" not in said["same"]
    assert "does not hold against an adversary with times finer than 3,600 s." in said["hour"]
    assert "does not hold against an adversary with times." in said["none"]


@pytest.mark.realdata
@pytest.mark.parametrize("knowledge", [1, 2, *(pytest.param(h, marks=pytest.mark.slow) for h in (3, 4))])
def test_cabs(knowledge: int, realdata: Path, tmp_path: Path) -> None:
    source = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    request = pipeline.Request(
        "protected-generalization",
        source,
        tmp_path / "out",
        {"knowledge": knowledge},
        options={"attack": False, "report": False},
    )
    release, data = pipeline.run(request).release, read_trajectories(source)
    assert 0.5 < len(release) / len(data) < 1
    assert all_shared(_walks(release), data.person[release.source].tolist(), 3, knowledge)
