"""Parts of trajectories without Spark: any way to cut the data gives the rows of a run on one machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb_cluster
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_cluster import DuckdbCluster, Frame
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import ParameterError
from crowdveil.guarantees import Guarantee, TrajectoryKAnonymity, WellFormedTrajectories
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_writer import trajectory_table
from crowdveil.io.trajectories import read_trajectories
from crowdveil.io.written_release import file_hash
from crowdveil.methods.base import Method
from crowdveil.model.canonical import canonical, numbered
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Extent, Outline, Trajectories
from crowdveil.reading import READINGS, TrajectoryReading
from crowdveil.registry import METHODS, find_method
from crowdveil.run.options import RunOptions
from crowdveil.run.pipeline import run_stages
from crowdveil.run.spark import trajectories
from crowdveil.run.spark.sources import check_supported
from crowdveil.run.spark.trajectories import SparkTrajectories
from crowdveil.run.stages import RunSpec
from crowdveil.run.trajectory_partitions import FILE, KEY, TrajectoryFile, new_numbers, runs_of

TRACKS = [find_method(name) for name in METHODS if find_method(name).takes is Trajectories]
APART = [method for method in TRACKS if method.partitioning(method.params.checked({})) is None]
SEED = 11


def _points(data: Trajectories, order: np.ndarray) -> pa.Table:
    """The rows of trajectories in some order."""
    columns = {"lat": data.lat, "lon": data.lon, "timestamp": data.t, "trajectory_id": data.ids[data.trajectory]}
    if data.k_unit == "people":
        columns["user_id"] = data.people_ids[data.person][data.trajectory]
    return pa.table({name: pa.array(values[order]) for name, values in columns.items()})


def _run(method: Method, params: Any, data: Trajectories) -> TrajectoryRelease:
    made = method.run(data, params, np.random.default_rng(SEED), no_progress)
    assert isinstance(made, TrajectoryRelease)
    return made


def _backend(method: Method, params: Any, table: pa.Table, folder: Path, **reading: Any) -> SparkTrajectories:
    """A run whose executors are functions of this process."""
    options = RunOptions(seed=SEED, report=False, attack=False)
    spec = RunSpec(method, params, TrajectoryReading.checked(reading), options, Frame(table), folder / "there")
    return SparkTrajectories(spec, DuckdbCluster())  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions and files so small that there are many."""
    monkeypatch.setattr(trajectories, "PARTITION_POINTS", 9)
    monkeypatch.setattr(trajectories, "FILE_ROWS", 7)
    monkeypatch.setattr(duckdb_cluster, "CHUNK_ROWS", 5)


@pytest.mark.parametrize("method", APART, ids=lambda method: method.name)
@settings(max_examples=tries(40), deadline=None)
@given(draw=st.data())
def test_parts_give_the_rows_of_one_machine(method: Method, draw: st.DataObject) -> None:
    drawn = draw.draw(testing.trajectories(max_trajectories=12, max_points=5))
    order = np.random.default_rng(draw.draw(st.integers(0, 99))).permutation(drawn.points)
    table = _points(drawn, order)
    whole = canonical(read_trajectories(table))
    parameters: dict[str, Any] = {"k": 2, "interval_s": draw.draw(st.sampled_from([60, 400, 5000]))} if hasattr(
        method.params.checked({}), "k"
    ) else {"overlapping_strategy": draw.draw(st.sampled_from(["all", "one"]))}  # fmt: skip
    params = method.params.checked(parameters)
    if whole.people < 2:
        return
    here = numbered(_run(method, params, whole))
    with TemporaryDirectory() as folder, _backend(method, params, table, Path(folder)) as backend:
        there = run_stages(backend.spec, backend, no_progress, lambda name: None)
        rows = pq.read_table(Path(folder) / "there" / "trajectories.parquet")
        listed = there.manifest["files"]["data"]["parts"]
        assert set(listed) == {path.name for path in (Path(folder) / "there" / "trajectories.parquet").iterdir()}
        assert not (Path(folder) / "there" / "solved").exists()
    expected = trajectory_table(here, "parquet")
    for name in expected.column_names:
        assert rows[name].cast(expected[name].type).to_pylist() == expected[name].to_pylist(), name
    assert there.manifest["method"]["facts"] == here.facts
    cost = backend.cost
    assert (cost.trajectories, cost.points) == (len(here), here.points)
    assert (cost.all_trajectories, cost.all_points) == (len(whole), whole.points)
    assert there.manifest["original_ids_published"] is False


@pytest.mark.parametrize("method", [find_method(name) for name in METHODS], ids=lambda method: method.name)
def test_every_method_runs_on_spark_or_says_why_not(method: Method) -> None:
    params = method.params.checked({})
    spec = RunSpec(method, params, READINGS[method.takes](), RunOptions(), "data.parquet", "out")
    reason = method.partitioning(params)
    if reason is None:
        check_supported(spec)
        assert method.partitions is None or method.takes is Trajectories
        return
    with pytest.raises(
        ParameterError, match=f'^engine="spark": {method.name} cannot be done in partitions, since .*[^.]\\.$'
    ):
        check_supported(spec)


def test_some_trajectories_run_and_others_refuse() -> None:
    assert {method.name for method in APART} == {"time-partitioned-microaggregation", "simple-generalization"}
    assert len(TRACKS) > len(APART)


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("time-partitioned-microaggregation", {"time_weight": "mobidatalab"}, "weight of time"),
        ("time-partitioned-microaggregation", {"time_weight": 0.5, "aggregation": "closest-locations"}, "mean speed"),
        ("simple-generalization", {"link_users": True}, "link_users"),
    ],
)
def test_what_is_found_from_all_trajectories_is_refused(name: str, parameters: dict[str, Any], said: str) -> None:
    method = find_method(name)
    assert said in str(method.partitioning(method.params.checked(parameters)))


@settings(max_examples=tries(30), deadline=None)
@given(data=testing.trajectories(), keep=st.integers(0, 255))
def test_a_part_has_the_meters_and_times_of_the_whole(data: Trajectories, keep: int) -> None:
    kept = np.array([keep >> (i % 8) & 1 for i in range(len(data))], np.bool_)
    part = replace(data, within=Extent.of_points(data.lon, data.lat, data.t)).where(kept)
    points = np.repeat(kept, np.diff(data.offsets))
    assert part.projection == data.projection
    assert part.start == data.start
    assert np.array_equal(np.column_stack(part.xy), np.column_stack(data.xy)[points])
    whole, some = Outline.of(data), Outline.of(part)
    assert np.array_equal(some.total, whole.total[kept])
    assert np.array_equal(some.first, whole.first[kept])


def test_bad_rows_are_counted_as_on_one_machine(tmp_path: Path) -> None:
    lines = ["lat,lon,timestamp,trajectory_id,user_id"]
    for i in range(40):
        lat, lon, when, track, user = 48 + i / 100, 2.0, f"2024-05-01 08:00:{i:02}", f"t{i % 8}", f"u{i % 3}"
        bad = {0: (-91, lon, when), 5: ("NA", lon, when), 13: (lat, 181, "never"), 21: (lat, lon, "")}.get(
            i, (lat, lon, when)
        )
        lines.append(",".join(str(x) for x in (*bad, "" if i in (3, 30) else track, "NULL" if i == 30 else user)))
    (tmp_path / "points.csv").write_text("\n".join(lines) + "\n")
    notes, there = ReadNotes(), ReadNotes()
    here = canonical(read_trajectories(tmp_path / "points.csv", drop_invalid=True, notes=notes))
    method = find_method("simple-generalization")
    backend = _backend(method, method.params.checked({}), pa.table({}), tmp_path, drop_invalid=True)
    backend.spec = replace(backend.spec, data=tmp_path / "points.csv")
    backend.read(there, no_progress)
    assert (
        there.dropped == notes.dropped
        and sorted(there.sentences()) == sorted(notes.sentences())
        and there.rows == notes.rows
    )
    plan = backend.planned
    assert sorted(zip(plan["number"].to_pylist(), plan["trajectory"].to_pylist(), strict=True)) == list(
        enumerate(here.ids.tolist())
    )
    # People that are left are numbered in canonical order.
    owner = dict(zip(plan["number"].to_pylist(), plan["owner"].to_pylist(), strict=True))
    assert [owner[i] for i in range(len(here))] == here.person.tolist()


def test_ids_that_are_fractions_are_text_as_on_one_machine(tmp_path: Path) -> None:
    ids = [1.5, 2.0, 2.0]
    table = pa.table({"lat": [1.0] * 3, "lon": [1.0] * 3, "timestamp": [1.6e9] * 3, "trajectory_id": ids})
    method = find_method("simple-generalization")
    backend = _backend(method, method.params.checked({}), table, tmp_path)
    backend.read(ReadNotes(), no_progress)
    assert set(backend.planned["trajectory"].to_pylist()) == set(read_trajectories(table).ids.tolist()) == {"1.5", "2"}


def test_findings_of_parts_add_up_and_bounds_stay() -> None:
    guarantee = TrajectoryKAnonymity(k=3, k_unit="people")
    parts = [
        guarantee.make_finding(False, {"trajectories": 3 * n, "classes": n}, with_original=True) for n in (1, 4, 7)
    ]
    merged = guarantee.merge_findings(parts)
    assert merged.holds and merged.with_original
    assert merged.detail == "12 equivalence classes, 0 with fewer than 3 people."
    assert guarantee.merge_findings(parts[:1]).detail == "1 equivalence class, 0 with fewer than 3 people."
    alone = TrajectoryKAnonymity(k=2, k_unit="trajectories")
    looked = [alone.make_finding(False, {"trajectories": n, "classes": 1}) for n in (1, 1_200)]
    assert alone.merge_findings(looked).detail == "1,201 trajectories in 2 equivalence classes, 0 with fewer than 2."


def _rows(numbers: list[int], t: list[int] | None = None) -> pa.Table:
    n = len(numbers)
    when = pa.array([x * 1000 for x in t or range(n)], pa.timestamp("ms", tz="UTC"))
    return pa.table({"lat": [1.0] * n, "lon": [2.0] * n, "timestamp": when, "published_id": numbers,
                     "place": list(range(n)), FILE: [0] * n})  # fmt: skip


def _found(guarantee: Guarantee, rows: pa.Table, folder: Path) -> str:
    summary = json.loads(TrajectoryFile((guarantee,), [], str(folder))(rows)["summary"][0].as_py())
    assert file_hash(folder / "part-00000.parquet") == summary["sha256"]
    outcome: str = summary["findings"][0]["outcome"]
    return outcome


def test_each_file_is_checked_as_it_was_written(tmp_path: Path) -> None:
    for numbers, outcome in (([1, 1, 2], "holds"), ([3, 4, 4], "holds"), ([1, 3], "violated")):
        assert _found(WellFormedTrajectories(), _rows(numbers), tmp_path) == outcome
    pairs = TrajectoryKAnonymity(k=3, k_unit="trajectories")
    assert _found(pairs, _rows([5, 5, 6, 6, 7, 7], t=[0, 1, 0, 1, 0, 1]), tmp_path) == "holds"
    assert _found(pairs, _rows([5, 5, 6, 6, 7, 7], t=[0, 1, 0, 1, 0, 2]), tmp_path) == "violated"


@given(keys=st.lists(st.integers(0, 5), max_size=40), files=st.integers(1, 9))
def test_equal_trajectories_are_in_one_file(keys: list[int], files: int) -> None:
    """Files are in the order of the numbers, and no key is in two."""
    content = np.array([range(len(keys)), *[keys] * len(KEY)], np.int64)
    pieces = [np.ascontiguousarray(content[:, i::3]).tobytes() for i in range(3)]
    table = new_numbers(pieces, files)
    assert sorted(table["source"].to_pylist()) == list(range(len(keys)))
    file = table[FILE].to_pylist()
    assert file == sorted(file) and all(0 <= number < files for number in file)
    of_key: dict[int, set[int]] = {}
    for source, number in zip(table["source"].to_pylist(), file, strict=True):
        of_key.setdefault(keys[source], set()).add(number)
    assert all(len(numbers) == 1 for numbers in of_key.values())


@given(sizes=st.lists(st.integers(0, 9), max_size=20), most=st.integers(1, 20))
def test_partitions_are_as_large_as_they_may(sizes: list[int], most: int) -> None:
    numbers = runs_of(np.array(sizes, np.int64), most).tolist()
    assert numbers == sorted(numbers) and set(numbers) == set(range(len(set(numbers))))
    for number in set(numbers):
        inside = [size for size, of in zip(sizes, numbers, strict=True) if of == number]
        assert sum(inside) <= most or len(inside) == 1
