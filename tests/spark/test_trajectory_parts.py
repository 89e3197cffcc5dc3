"""Parts of trajectories without Spark: any way to cut the data gives the rows of a run on one machine."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.errors import InputError, ParameterError
from crowdveil.guarantees import CombinationKAnonymity, TrajectoryKAnonymity, WellFormedTrajectories
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_writer import trajectory_table
from crowdveil.io.source import open_source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.trajectories import read_trajectories
from crowdveil.io.trajectory_points import find_point_columns, no_value_reason
from crowdveil.methods.base import Facts, Method
from crowdveil.model.canonical import canonical, numbered
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Extent, Outline, Trajectories
from crowdveil.progress import no_progress
from crowdveil.reading import READINGS
from crowdveil.registry import METHODS, find_method
from crowdveil.run.options import RunOptions
from crowdveil.run.spark.backend import check_supported_on_spark
from crowdveil.run.spark.point_rows import KEY, PointReader
from crowdveil.run.spark.trajectory_backend import TrajectoryTotals, new_numbers
from crowdveil.run.spark.trajectory_partitions import (
    PLANNED,
    PUBLISHED,
    PartitionPlan,
    TrajectoryPartition,
    TrajectoryPartitionReader,
)
from crowdveil.run.spark.trajectory_verification import TrajectoryPartitionCheck, _consecutive, refuse_global_guarantees
from crowdveil.run.spark.trip_rows import BAD
from crowdveil.run.stages import RunSpec
from crowdveil.run.verification import structural_guarantees

TRACKS = [find_method(name) for name in METHODS if find_method(name).takes is Trajectories]
APART = [method for method in TRACKS if method.partitioning(method.params.checked({})) is None]
SEED = 11


def _points(data: Trajectories, order: np.ndarray) -> pa.Table:
    """The rows of trajectories in some order."""
    columns = {"lat": data.lat, "lon": data.lon, "timestamp": data.t, "trajectory_id": data.ids[data.trajectory]}
    if data.k_unit == "people":
        columns["user_id"] = data.people_ids[data.person][data.trajectory]
    return pa.table({name: pa.array(values[order]) for name, values in columns.items()})


def _reader(table: Any) -> PointReader:
    source = open_source(table)
    return PointReader(source, find_point_columns(source, None, None, None, None, None, ReadNotes()), "UTC", TimeForm())


def _read(reader: PointReader, table: pa.Table, pieces: int) -> pa.Table:
    """The rows as the cluster reads them: in pieces, which come in any order."""
    batches = table.combine_chunks().to_batches(max_chunksize=max(1, len(table) // pieces))
    function = pickle.loads(pickle.dumps(reader))
    return pa.Table.from_batches([row for batch in reversed(batches) for row in function(iter([batch]))], reader.schema)


def _tracks(reader: PointReader, rows: pa.Table) -> pa.Table:
    """What the cluster's query says of each trajectory, plainly."""
    points = rows.filter(pc.is_null(rows["note"]))
    lost = points.set_column(points.column_names.index("lost"), "lost", points["lost"].cast(pa.int64()))
    lost = lost.append_column("total", lost["t"])
    sums = [
        ("lost", "sum"),
        ("t", "min"),
        ("total", "sum"),
        ("t", "count"),
        *((name, "sum") for name in KEY),
    ]
    names = {
        "lost_sum": "lost",
        "t_min": "t",
        "total_sum": "total",
        "t_count": "points",
        **{f"{n}_sum": n for n in KEY},
    }
    grouped = lost.group_by(reader.ids).aggregate(sums)
    return grouped.rename_columns([names.get(n, n) for n in grouped.column_names])


def _run(method: Method, params: Any, data: Trajectories) -> TrajectoryRelease:
    made = method.run(data, params, np.random.default_rng(SEED), no_progress)
    assert isinstance(made, TrajectoryRelease)
    return made


def _solve_partitions(
    method: Method, params: Any, whole: Trajectories, rows: pa.Table, reader: PointReader, most: int
) -> Any:
    """All parts of the data, as the cluster does them: outcome, and summary."""
    plan = PartitionPlan(method.name, params, tuple(reader.ids), whole.start, most)
    planned = pickle.loads(pickle.dumps(plan))(_tracks(reader, rows))
    points = rows.filter(pc.is_null(rows["note"])).drop_columns(["note", "n"])
    keyed = points.join(planned, reader.ids, join_type="inner").combine_chunks()
    none = np.zeros(0)
    frame = Trajectories(none, none, none.astype(np.int64), np.zeros(1, np.int64), none, none.astype(np.int64), none,
                         whole.k_unit, zones=whole.zones, within=whole.extent)  # fmt: skip
    guarantees = (*method.guarantees(params, Facts.of(frame)), *structural_guarantees(method, params))
    parts = np.unique(planned["partition_id"].to_numpy())
    part = TrajectoryPartition(method.name, params, SEED, TrajectoryPartitionReader(frame), guarantees)
    function = pickle.loads(pickle.dumps(part))
    made = [function(keyed.filter(pc.equal(keyed["partition_id"], int(number)))) for number in parts]
    outcome = pa.concat_tables(made)
    return outcome, TrajectoryTotals.of(outcome["summary"].drop_null().to_pylist()), guarantees


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
    reader = _reader(table)
    rows = _read(reader, table, draw.draw(st.integers(1, 4)))
    most = draw.draw(st.integers(1, 40))
    outcome, summary, guarantees = _solve_partitions(method, params, whole, rows, reader, most)
    found = outcome.filter(pc.equal(outcome["kind"], "row"))
    given_out = new_numbers(outcome.filter(pc.equal(outcome["kind"], PUBLISHED)))
    number = dict(zip(*(given_out[name].to_pylist() for name in ("source", "published_id")), strict=True))
    ids = pa.array([number[s] for s in found["source"].to_pylist()], pa.int64())
    there = found.append_column("published_id", ids).sort_by([("published_id", "ascending"), ("place", "ascending")])
    expected = trajectory_table(here, "parquet")
    for name in expected.column_names:
        assert there[name].cast(expected[name].type).to_pylist() == expected[name].to_pylist(), name
    assert not any(finding.violated for _, finding in summary.checked(guarantees))
    assert summary.facts(method, params) == here.facts
    assert (summary.cost.trajectories, summary.cost.points) == (len(here), here.points)
    assert (summary.cost.all_trajectories, summary.cost.all_points) == (len(whole), whole.points)


@pytest.mark.parametrize("method", [find_method(name) for name in METHODS], ids=lambda method: method.name)
def test_every_method_runs_on_spark_or_says_why_not(method: Method) -> None:
    params = method.params.checked({})
    spec = RunSpec(method, params, READINGS[method.takes](), RunOptions(), "data.parquet", "out")
    reason = method.partitioning(params)
    if reason is None:
        check_supported_on_spark(spec)
        assert method.partitions is None or method.takes is Trajectories
        return
    with pytest.raises(
        ParameterError, match=f'^engine="spark": {method.name} cannot be done in partitions, since .*[^.]\\.$'
    ):
        check_supported_on_spark(spec)


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
    notes = ReadNotes()
    here = canonical(read_trajectories(tmp_path / "points.csv", drop_invalid=True, notes=notes))
    source = open_source(tmp_path / "points.csv")
    table = source.read(as_is=True)
    reader = _reader(tmp_path / "points.csv")
    rows = _read(reader, table, 6)
    noted = rows.filter(pc.is_valid(rows["note"])).group_by("note").aggregate([("n", "sum")]).to_pylist()
    counts = {row["note"].removeprefix(BAD): row["n_sum"] for row in noted if row["note"].startswith(BAD)}
    assert counts == {reason: n for reason, n in notes.dropped.items() if "such a row" not in reason}
    assert counts == {
        no_value_reason(c): n for c, n in (("lat", 2), ("lon", 1), ("timestamp", 1), ("trajectory_id", 2))
    }
    tracks = _tracks(reader, rows)
    gone = tracks.filter(pc.greater(tracks["lost"], 0))
    assert (
        pc.sum(gone["points"]).as_py() - pc.sum(gone["lost"]).as_py()
        == notes.dropped["are in a trajectory with such a row"]
    )
    assert len(tracks) - len(gone) == len(here)
    plan = PartitionPlan("simple-generalization", None, tuple(reader.ids), here.start, 7)(tracks)
    assert sorted(zip(plan["number"].to_pylist(), plan["trajectory"].to_pylist(), strict=True)) == list(
        enumerate(here.ids.tolist())
    )
    # People that are left are numbered in canonical order.
    owner = dict(zip(plan["number"].to_pylist(), plan["owner"].to_pylist(), strict=True))
    assert [owner[i] for i in range(len(here))] == here.person.tolist()


def test_ids_that_are_fractions_are_text_as_on_one_machine() -> None:
    ids = [1.5, 2.0, 2.0]
    table = pa.table({"lat": [1.0] * 3, "lon": [1.0] * 3, "timestamp": [1.6e9] * 3, "trajectory_id": ids})
    rows = _read(_reader(table), table, 1)
    assert set(rows["trajectory"].drop_null().to_pylist()) == set(read_trajectories(table).ids.tolist()) == {"1.5", "2"}


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


def _piece(numbers: list[int], file: str = "a", t: list[int] | None = None) -> pa.Table:
    n = len(numbers)
    when = pa.array([x * 1000 for x in t or range(n)], pa.timestamp("ms", tz="UTC"))
    return pa.table({"lat": [1.0] * n, "lon": [2.0] * n, "timestamp": when, "published_id": numbers, "file": [file] * n,
                     "at": list(range(n))})  # fmt: skip


def test_pieces_of_files_are_checked_and_must_follow_one_another() -> None:
    function = TrajectoryPartitionCheck((WellFormedTrajectories(),), [])
    first, second = function(_piece([1, 1, 2], "a")), function(_piece([3, 4, 4], "b"))
    for one in (first, second):
        assert json.loads(one["findings"][0].as_py())[0]["outcome"] == "holds"
    assert _consecutive(pa.concat_tables([second, first]))
    assert not _consecutive(second)
    assert not _consecutive(pa.concat_tables([first, function(_piece([4, 5], "b"))]))
    assert not _consecutive(pa.concat_tables([first, function(_piece([2, 3], "b"))]))
    gap = function(_piece([1, 3], "a"))
    assert json.loads(gap["findings"][0].as_py())[0]["outcome"] == "violated"


def test_equal_trajectories_of_a_piece_are_counted() -> None:
    function = TrajectoryPartitionCheck((TrajectoryKAnonymity(k=3, k_unit="trajectories"),), [])
    crowd = function(_piece([5, 5, 9, 9, 11, 11], t=[0, 1, 0, 1, 0, 1]))
    assert json.loads(crowd["findings"][0].as_py())[0]["outcome"] == "holds"
    few = function(_piece([5, 5, 9, 9, 11, 11], t=[0, 1, 0, 1, 0, 2]))
    assert json.loads(few["findings"][0].as_py())[0]["outcome"] == "violated"


def test_guarantees_about_all_trajectories_at_once_are_left_to_one_machine() -> None:
    whole = CombinationKAnonymity(k=2, knowledge=2, k_unit="people", interval_s=None)
    with pytest.raises(InputError, match="combination-k-anonymity is checked on all trajectories at once"):
        refuse_global_guarantees([whole], "out")


def test_the_plan_names_what_parts_need() -> None:
    assert set(PLANNED) == {"number", "owner", "partition_id"}
    assert asdict(Extent(0, 0, 1, 1, 5))["start"] == 5
