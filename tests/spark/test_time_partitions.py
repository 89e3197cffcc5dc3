"""Windows of time, and one partition for all time steps, in partitions without Spark: the rows of a run on one machine."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_runs import same_rows
from written_flows import written

import crowdveil
from crowdveil.engine.packing import unpacked
from crowdveil.guarantees import SuppressionBudget, WellFormedFlows
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import find_od_columns
from crowdveil.io.source import open_source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.zones import read_zones
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import TimeAxis, TimeUnits, step_classes
from crowdveil.registry import find_method
from crowdveil.run.flow_partitions import PartitionSolver
from crowdveil.run.merge_partitions import FlowTotals, merge_findings, summarize_facts
from crowdveil.run.release_partitions import ReleasePartition, overlapping_windows
from crowdveil.run.spark.flow_partitions import FlowPartition
from crowdveil.run.spark.shared_partition import (
    SharedStage,
    boxes_by_class,
    facts_by_class,
)
from crowdveil.run.spark.trip_rows import PACKED_TRIPS, FlowPartitionReader, TripReader
from crowdveil.run.verification import structural_guarantees

HOUR, TZ = 3600, "Europe/Paris"
PEOPLE, ZONES = 60, 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trips of four days, few at night, between the squares of a small map."""
    made = tmp_path_factory.mktemp("trips")
    rng = np.random.default_rng(2)
    hour = np.concatenate([rng.integers(7, 20, 1400), rng.integers(0, 24, 200)])
    seconds = 1_700_000_000 // 86_400 * 86_400 + rng.integers(0, 4, 1600) * 86_400 + hour * HOUR
    table = pa.table({
        "origin": [f"z{i}" for i in rng.integers(0, ZONES, 1600)], "destination": [f"z{i}" for i in rng.integers(0, 3, 1600)],
        "time": pa.array(seconds * 1000, pa.timestamp("ms", tz="UTC")), "person": rng.integers(0, PEOPLE, 1600),
        "w": rng.choice([0.3, 0.8, 1.4], 1600),
    })  # fmt: skip
    pq.write_table(table, made / "trips.parquet")
    features = []
    for i in range(ZONES):
        x, y = i % 3 / 10, i // 3 / 10
        ring = [[x, y], [x + 0.1, y], [x + 0.1, y + 0.1], [x, y + 0.1], [x, y]]
        outline = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"zone_id": f"z{i}"}, "geometry": outline})
    (made / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return made


def _packed(folder: Path, people: bool, weight: str | None = None) -> tuple[TripReader, pa.Table]:
    source = open_source(folder / "trips.parquet")
    columns = find_od_columns(source, {"user": "person" if people else None, "weight": weight}, False, ReadNotes())
    columns = columns if people else replace(columns, user=None)
    zones = read_zones(folder / "zones.geojson", notes=ReadNotes())
    reader = TripReader(source, columns, zones, TZ, TimeForm(), TimeAxis(HOUR, TZ))
    pieces = (batch.slice(at, 300) for batch in source.batches(columns.used) for at in range(0, batch.num_rows, 300))
    packs = pa.concat_tables([pa.Table.from_batches(list(reader(iter([piece]))), PACKED_TRIPS) for piece in pieces])
    return reader, packs.filter(pa.compute.is_null(packs["note"]))


def _reader(reader: TripReader, people: bool) -> FlowPartitionReader:
    none, nowhere = np.zeros(0, np.int64), np.zeros(0, np.int32)
    weight = none if reader.columns.weight is not None else None
    frame = Flows(
        reader.zones, none, np.zeros(1, np.int64), nowhere, nowhere, none, none, "people" if people else "trips", HOUR, TZ,
        weight=weight,
    )  # fmt: skip
    return FlowPartitionReader(reader.schema, reader.steps, frame, True)


def _sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # as it is sent to executors


def _groups(table: pa.Table, key: str) -> list[pa.Table]:
    return [table.filter(pa.compute.equal(table[key], value)) for value in pa.compute.unique(table[key]).to_pylist()]


def _partition(name: str, options: dict[str, Any], reader: FlowPartitionReader, shared: Any) -> FlowPartition:
    method = find_method(name)
    params = method.params.checked(options)
    guarantees = (*method.guarantees(reader.frame, params), *structural_guarantees(method, params))
    unit = reader.frame.k_unit
    solver = PartitionSolver(name, params, 7, guarantees, True, np.zeros(0, np.int64), unit, shared)
    return _sent(FlowPartition(solver, reader))


def _shared_boxes(name: str, options: dict[str, Any], reader: FlowPartitionReader, parts: list[pa.Table]) -> Any:
    stage = SharedStage(name, find_method(name).params.checked(options), reader)
    if stage.shared.needs_flows:
        rows = pa.concat_tables(parts)
        classes = step_classes(reader.steps.starts(rows["step"].to_numpy()), TZ, stage.shared.by)
        groups = _groups(rows.append_column("partition_id", pa.array(classes)), "partition_id")
        solved = pa.concat_tables([_sent(stage.solve_whole_class)(group) for group in groups])
        return boxes_by_class(dict(zip(*solved.to_pydict().values(), strict=True)), np.unique(classes))
    sums = pa.concat_tables([_sent(stage.sum_flows)(part) for part in parts])
    begun = pa.concat_tables([_sent(stage.make_candidates)(group) for group in _groups(sums, "step_class")])
    stage = replace(stage, candidates=dict(zip(*begun.to_pydict().values(), strict=True)))
    added = pa.concat_tables([_sent(stage.sum_candidates)(part) for part in parts])
    solved = pa.concat_tables([_sent(stage.solve_class)(group) for group in _groups(added, "step_class")])
    found = dict(zip(*solved.to_pydict().values(), strict=True))
    return boxes_by_class(found, np.unique(sums["step_class"].to_numpy()))


CASES: list[tuple[str, dict[str, Any], bool]] = [
    ("joint", {"time_partition": "adaptive", "hour_weight": 1}, True),
    ("joint", {"time_partition": "adaptive", "hour_weight": 100_000, "suppress": "100%"}, True),
    ("joint", {"time_partition": "stable", "aggregate_small": True}, True),
    ("joint", {"time_partition": "stable", "stable_by": "hour-of-day"}, False),
    ("atg-dual", {"time_partition": "stable"}, True),
    ("joint", {"time_partition": "stable", "splits": "free", "aggregate_small": True}, True),
    ("joint", {"time_partition": "stable", "splits": "free", "stable_by": "hour-of-day"}, False),
]


@pytest.mark.parametrize(("name", "options", "people"), CASES)
def test_partitions_of_time_give_the_release_of_one_machine(
    name: str, options: dict[str, Any], people: bool, folder: Path, tmp_path: Path
) -> None:
    options = {"k": 5, **options}
    packed_reader, packs = _packed(folder, people)
    given = {"user": "person"} if people else {}
    trips = pq.read_table(folder / "trips.parquet").drop_columns([] if people else ["person", "w"])
    made = crowdveil.anonymize(trips, tmp_path / "out", method=name, zones=folder / "zones.geojson", step="1h",
                               tz=TZ, seed=7, report=False, **given, **options)  # fmt: skip
    reader = _reader(packed_reader, people)
    windowed = find_method(name).windowed(find_method(name).params.checked(options))
    start = packed_reader.steps.starts(packs["step"].to_numpy())
    place = TimeUnits(windowed is not None, TZ).number(start) // (1 if windowed else HOUR) % 3
    parts = [packs.filter(pa.array(place == i)) for i in range(3)]
    shared = {} if windowed else _shared_boxes(name, options, reader, parts)
    function = _partition(name, options, reader, shared)
    outcome = pa.concat_tables([function(part) for part in parts if len(part)])
    totals = FlowTotals.of(outcome["summary"].drop_null().to_pylist()[::-1])
    assert totals.has_intervals == ("until" in pq.read_table(tmp_path / "out/flows.parquet").column_names)
    names = [n for n in function.solver.rows.names if n != "until" or totals.has_intervals]
    rows = unpacked(outcome["packed"].drop_null(), function.solver.rows).select(names)
    assert same_rows(rows, pq.read_table(tmp_path / "out/flows.parquet")) and len(rows)
    assert totals.steps_table(TZ).equals(pq.read_table(tmp_path / "out/steps.parquet"))
    assert totals.cost.lines() == made.cost[:3]
    assert all(finding.holds for _, finding in totals.checked(function.solver.guarantees))
    facts = totals.facts(find_method(name), function.solver.params)
    if shared:
        facts = summarize_facts(facts_by_class(shared), find_method(name), function.solver.params)
    assert facts == dict(made.release.facts)


def test_intervals_of_one_time_step_in_some_partitions_alone_stay_intervals(folder: Path) -> None:
    packed_reader, packs = _packed(folder, True)
    options = {"k": 5, "time_partition": "adaptive", "hour_weight": 1}
    function = _partition("joint", options, _reader(packed_reader, True), {})
    day = TimeUnits(True, TZ).number(packed_reader.steps.starts(packs["step"].to_numpy()))
    outcome = function(packs.filter(pa.array(day == day.min())))
    line = outcome["summary"].drop_null().to_pylist()[0]
    assert FlowTotals.of([line]).has_intervals


@pytest.mark.parametrize("period", ["all", "hour-of-day"])
def test_a_budget_for_all_time_steps_is_that_of_no_partition(period: Any) -> None:
    """A partition may suppress more than its share where another suppresses less."""
    guarantee = SuppressionBudget(suppress=0.1, k=10, period=period)
    full, over = (
        written([(0, "a", "b", 200, 90)], [(0, 200, 0)]),
        written([(86_400, "a", "b", 85, 85)], [(86_400, 85, 15)]),
    )
    assert guarantee.check(over).violated
    merged = merge_findings([guarantee], [[guarantee.check(part).as_json()] for part in (full, over)])[0][1]
    assert merged.holds and merged.counts["steps"] == 2
    twice = merge_findings([guarantee], [[guarantee.check(part).as_json()] for part in (over, over, over)])[0][1]
    assert twice.violated


def test_overlapping_windows_in_two_partitions_are_found() -> None:
    times = pa.timestamp("ms", tz="UTC")
    steps = pa.table({
        "t": pa.array([0, 80_000_000], times), "until": pa.array([86_400_000, 166_400_000], times),
        "published": [10, 10], "suppressed": [0, 0],
    })  # fmt: skip
    small = written([(0, "a", "b", 12, 12)])
    rows = pa.schema([("t", times), ("until", times), *[f for f in small.data.schema if f.name != "t"]])
    release = ReleasePartition(rows, steps, [], TimeUnits(True))
    (found,) = overlapping_windows(release, [WellFormedFlows()])
    assert found[0]["outcome"] == "violated" and found[0]["counts"]["overlapping_windows"] == 1
