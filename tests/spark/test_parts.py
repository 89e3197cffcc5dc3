"""Parts of whole time steps without Spark: any way to cut the data gives the rows of a run on one machine."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from given_boxes import with_boxes
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_runs import same_rows
from synthetic import write_city
from written_flows import written

import crowdveil
from crowdveil import testing
from crowdveil.engine.packing import unpacked
from crowdveil.errors import InputError, MissingExtraError, ParameterError
from crowdveil.guarantees import (
    DifferentialPrivacy,
    DisjointFlows,
    Finding,
    FlowKAnonymity,
    GeneralizationLimit,
    Guarantee,
    MaxArea,
    MinInhabitedTiles,
    MinPoiCategories,
    MinPois,
    MinTiles,
    SuppressionBudget,
    TrueVolumes,
    WellFormedFlows,
)
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import find_od_columns
from crowdveil.io.partition import read_partition
from crowdveil.io.source import open_source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.written_release import WrittenRelease
from crowdveil.io.zones import read_zones
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import TimeAxis
from crowdveil.progress import no_progress
from crowdveil.registry import METHODS, find_method
from crowdveil.run.flow_partitions import PartitionSolver
from crowdveil.run.merge_partitions import FlowTotals, merge_findings, split_by_size
from crowdveil.run.spark.backend import check_supported_on_spark
from crowdveil.run.spark.flow_partitions import FlowPartition
from crowdveil.run.spark.trip_rows import PACKED_TRIPS, FlowPartitionReader, TripReader
from crowdveil.run.verification import structural_guarantees
from test_every_method import _on_grid

OD = [name for name in METHODS if find_method(name).takes is Flows]
HOUR = 3600


def _rows(release: FlowRelease) -> list[tuple[Any, ...]]:
    names = release.areas.names
    columns = (release.t[release.step], names[release.origin], names[release.destination], release.volume, release.people,
               release.state)  # fmt: skip
    return sorted(zip(*(c.tolist() for c in columns), strict=True))


@pytest.mark.parametrize("name", OD)
@settings(max_examples=tries(20), deadline=None)
@given(draw=st.data())
def test_a_time_step_gives_the_same_alone_and_among_others(name: str, draw: st.DataObject) -> None:
    method, data = find_method(name), draw.draw(testing.flows())
    data = _on_grid(data) if name == "uniform" else with_boxes(data, 1) if name == "fixed" else data
    parameters: dict[str, Any] = {"k": 2} if "k" in method.params.model_fields else {}
    if "aggregate_small" in method.params.model_fields:
        parameters["aggregate_small"] = draw.draw(st.booleans())
    if name == "joint":
        parameters["min_inhabited_tiles"] = draw.draw(st.integers(0, 2))
        parameters["splits"] = draw.draw(st.sampled_from(["tree", "dyadic", "free"]))
    params = method.params.checked(parameters)

    def run(flows: Flows) -> FlowRelease:
        release = method.run(flows, params, np.random.default_rng(5), no_progress)
        assert isinstance(release, FlowRelease)
        return release

    try:
        whole = run(data)
    except InputError as error:
        if "suppressed" in str(error) or "ask for fewer" in str(error):  # what is asked cannot be kept on this map
            return
        raise
    cut = draw.draw(st.integers(1, data.steps))
    pieces = [np.arange(low, min(low + cut, data.steps)) for low in range(0, data.steps, cut)]
    parts = [run(replace(data.at_steps(steps), visited_tiles=data.visited)) for steps in pieces]
    assert sorted(row for part in parts for row in _rows(part)) == _rows(whole)
    assert np.concatenate([part.suppressed for part in parts]).tolist() == whole.suppressed.tolist()
    figures = [part.figures for part in parts if part.figures is not None]
    if whole.figures is not None:
        assert np.array_equal(np.concatenate(figures)[:, 0], whole.figures[:, 0], equal_nan=True) or len(figures) < len(
            parts
        )


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few days of trips with people, in a small city."""
    return write_city(tmp_path_factory.mktemp("city"), tiles=36, people=300, trips=6_000, days=2)


def _read(city: Path) -> tuple[TripReader, pa.Table]:
    """The trips in packs."""
    source = open_source(city / "trips.parquet")
    columns = find_od_columns(source, {}, False, ReadNotes())
    zones = read_zones(city / "zones.geojson", notes=ReadNotes())
    reader = TripReader(source, columns, zones, "UTC", TimeForm(), TimeAxis(HOUR, "UTC"))
    # Small pieces, so that rows of one step, and trips of one person, lie in several packs.
    pieces = (batch.slice(at, 700) for batch in source.batches(columns.used) for at in range(0, batch.num_rows, 700))
    packs = pa.concat_tables([pa.Table.from_batches(list(reader(iter([piece]))), PACKED_TRIPS) for piece in pieces])
    return reader, packs.filter(pa.compute.is_null(packs["note"]))


def _part(reader: TripReader, method: Method, numbers: np.ndarray) -> FlowPartition:
    none, nowhere = np.zeros(0, np.int64), np.zeros(0, np.int32)
    frame = Flows(reader.zones, none, np.zeros(1, np.int64), nowhere, nowhere, none, none, "people", HOUR)
    params = method.params.checked({"k": 5} if "k" in method.params.model_fields else {})
    guarantees = (*method.guarantees(frame, params), *structural_guarantees(method, params))
    parts = FlowPartitionReader(reader.schema, reader.steps, frame, method.needs_person_ids)
    counts = "trips" if method.row_semantics == "noisy" else "people"
    solver = PartitionSolver(method.name, params, 7, guarantees, True, reader.steps.starts(numbers), counts)
    return FlowPartition(solver, parts)


@pytest.mark.parametrize("name", ["suppression", "joint", "mondrian"])
def test_parts_make_the_release_of_a_run_on_one_machine(name: str, city: Path, tmp_path: Path) -> None:
    options = {"k": 5}
    made = crowdveil.anonymize(city / "trips.parquet", tmp_path / "out", method=name, zones=city / "zones.geojson", step="1h",
                               seed=7, report=False, **options)  # fmt: skip
    method, (reader, packs) = find_method(name), _read(city)
    numbers = np.unique(packs["step"].to_numpy())
    function = pickle.loads(pickle.dumps(_part(reader, method, numbers)))  # as it is sent to executors
    assert not function.reader.frame.zones.lon.flags.writeable
    place = np.searchsorted(numbers, packs["step"].to_numpy()) % 5
    outcome = pa.concat_tables([function(packs.filter(pa.array(place == i))) for i in range(5)])
    rows = unpacked(outcome["packed"].drop_null(), function.solver.rows)
    assert same_rows(rows, pq.read_table(tmp_path / "out/flows.parquet"))
    gathered = FlowTotals.of(outcome["summary"].drop_null().to_pylist()[::-1])
    assert gathered.steps_table("UTC").equals(pq.read_table(tmp_path / "out/steps.parquet"))
    assert gathered.cost.lines() == made.cost[:3]
    assert all(finding.holds and finding.with_original for p, finding in gathered.checked(function.solver.guarantees)
               if p.name in ("true-volumes", "suppression-budget"))  # fmt: skip
    assert gathered.facts(method, function.solver.params) == dict(made.release.facts)
    trials = [(trial.attack, trial.after, trial.worst, trial.succeeded) for trial in gathered.trials]
    assert [(t["attack"], t["risk_percent"]) for t in made.manifest["risk"]] == [
        (a, after) for a, after, _, _ in trials
    ]


def test_areas_made_before_travel_with_a_partition(city: Path, tmp_path: Path) -> None:
    """The method fixed in partitions has the rows of a run on one machine: the areas are sent to executors."""
    reader, packs = _read(city)
    ids = reader.zones.ids.tolist()
    groups = pa.table({"zone": ids, "group": [f"g{i % 4}" for i in range(len(ids))]})
    crowdveil.anonymize(city / "trips.parquet", tmp_path / "out", method="fixed", zones=city / "zones.geojson", step="1h", k=5,
                        partition=groups, seed=7, report=False, attack=False)  # fmt: skip
    part = _part(reader, find_method("fixed"), np.unique(packs["step"].to_numpy()))
    frame = replace(part.reader.frame, partition=read_partition(groups, reader.zones))
    function = pickle.loads(pickle.dumps(replace(part, reader=replace(part.reader, frame=frame))))
    place = packs["step"].to_numpy() % 3
    outcome = pa.concat_tables([function(packs.filter(pa.array(place == i))) for i in range(3)])
    rows = unpacked(outcome["packed"].drop_null(), function.solver.rows)
    assert len(rows) and same_rows(rows, pq.read_table(tmp_path / "out/flows.parquet"))


def test_what_needs_all_time_steps_is_refused_on_a_cluster() -> None:
    laplace = find_method("laplace")
    for unit, said in (
        ("person", "trips of a person are limited"),
        ("person-step", "all time steps of the period get noise"),
    ):
        params = laplace.params.checked({"unit": unit, "trips_per_person": 2})
        spec: Any = SimpleNamespace(method=laplace, params=params, options=None)
        with pytest.raises(ParameterError, match=f"laplace cannot be done in partitions, since {said}"):
            check_supported_on_spark(spec)


def test_a_failing_time_step_is_named_among_all_of_the_data(city: Path) -> None:
    reader, packs = _read(city)
    numbers = np.unique(packs["step"].to_numpy())
    part = _part(reader, find_method("atg-dual"), numbers)
    params = find_method("atg-dual").params.checked({"k": 5, "suppress": 0, "v_target": 5})
    hard = replace(part, solver=replace(part.solver, params=params))
    last = packs.filter(pa.compute.equal(packs["step"], int(numbers[-5])))
    with pytest.raises(InputError, match=rf"^time step {len(numbers) - 4} of {len(numbers)}: v_target"):
        hard(last)


def _merged(guarantee: Guarantee, releases: list[WrittenRelease]) -> Finding:
    """The finding of partitions, as it comes back from executors."""
    lines = [json.dumps([guarantee.check(release).as_json()]) for release in releases]
    return merge_findings([guarantee], [json.loads(line) for line in lines])[0][1]


OF_FLOWS: tuple[Guarantee, ...] = (
    FlowKAnonymity(k=10, k_unit="trips"), DisjointFlows(), SuppressionBudget(suppress=0.1, k=10), GeneralizationLimit(tiles=2),
    SuppressionBudget(suppress=0.1, k=10, period="all"), SuppressionBudget(suppress=0.1, k=10, period="hour-of-day"),
    MinTiles(tiles=2), MinInhabitedTiles(tiles=2), MinPois(pois=2),
    MinPoiCategories(categories=2), MaxArea(km2=3), WellFormedFlows(), TrueVolumes(),
    DifferentialPrivacy(epsilon=1, trips=1),
)  # fmt: skip


@pytest.mark.parametrize("guarantee", OF_FLOWS, ids=lambda guarantee: guarantee.name)
@settings(max_examples=tries(30))
@given(draw=st.data())
def test_partitions_find_what_is_found_in_all_of_it(guarantee: Guarantee, draw: st.DataObject) -> None:
    """Outcome, counts and sentence of the whole, whatever time steps lie in which partition."""
    areas = st.sampled_from(["a", "b", "ab", "c"])
    row = st.tuples(st.sampled_from([0, 3600, 7200]), areas, areas, st.integers(8, 30), st.integers(8, 30))
    rows = draw.draw(st.lists(row, max_size=8))
    listed = [(t, 1, draw.draw(st.sampled_from([None, 0, 3, 20]))) for t in (0, 3600, 7200)]
    place = {t: draw.draw(st.integers(0, 2)) for t in (0, 3600, 7200)}
    parts = [
        written([r for r in rows if place[r[0]] == i], [s for s in listed if place[s[0]] == i], k_unit="trips")
        for i in range(3)
    ]
    assert _merged(guarantee, parts) == guarantee.check(written(rows, listed, k_unit="trips"))


def test_counts_are_merged_and_never_read_out_of_sentences() -> None:
    small = written([(0, "a", "b", 12, 12)])
    merged = _merged(MinTiles(tiles=2), [small] * 3)
    assert merged.violated and merged.counts == {"rows": 3, "small": 3}
    assert merged.detail == "3 rows checked, 3 name a smaller area."
    broken = written([(0, "nowhere", "b", 12, 12)])
    flagged = _merged(WellFormedFlows(), [broken, small, broken])
    assert flagged.counts["unlisted_area"] == 1, "a flag is no sum"
    assert flagged.detail == "a row names an area that is not in the list of areas."


def test_one_open_partition_leaves_the_whole_not_checked() -> None:
    guarantee = SuppressionBudget(suppress=0.1, k=10)
    stated, open_ = written([(0, "a", "b", 90, 90)], [(0, 90, 3)]), written([(0, "a", "b", 20, 10)], [(0, 20, None)])
    over = written([(0, "a", "b", 20, 10)], [(0, 20, 11)])
    assert _merged(guarantee, [stated, stated]).holds
    merged = _merged(guarantee, [stated, open_])
    assert merged.outcome == "not checked" and merged.detail.endswith("not given in 1 time step.")
    assert _merged(guarantee, [stated, open_, over]).violated
    assert _merged(guarantee, []).outcome == "not checked", "nothing was looked at"


@given(st.lists(st.integers(0, 50)), st.integers(1, 60))
def test_parts_are_runs_of_steps_that_are_not_too_large(sizes: list[int], most: int) -> None:
    parts = split_by_size(sizes, most)
    assert [i for part in parts for i in part] == list(range(len(sizes)))
    assert all(sum(sizes[i] for i in part) <= most or len(part) == 1 for part in parts)


def test_what_cannot_be_done_in_parts_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", sys)
    with pytest.raises(ParameterError, match=r"since v_target = sample looks at all time steps"):
        crowdveil.anonymize("trips.parquet", tmp_path / "out", method="atg-dual", spark=object(), v_target="sample")
    with pytest.raises(ParameterError, match="cannot be done in partitions, since"):
        crowdveil.anonymize("cabs.csv", tmp_path / "out", method="microaggregation", spark=object())
    with pytest.raises(ParameterError, match="wanted a classic session"):
        crowdveil.anonymize("trips.parquet", tmp_path / "out", method="joint", spark=object())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", sys)
    monkeypatch.setitem(sys.modules, package, None)
    request = crowdveil.run.pipeline.Request("joint", "trips.parquet", tmp_path / "out", options={"engine": "spark"})
    with pytest.raises(
        MissingExtraError,
        match=rf"^engine=\"spark\" needs the package {package}: install it with pip install 'crowdveil\[spark\]', "
        r"or in a checkout with pip install '\.\[spark\]'\.$",
    ):
        crowdveil.run.pipeline.run(request)


def test_the_summary_is_plain_json(city: Path) -> None:
    reader, packs = _read(city)
    numbers = np.unique(packs["step"].to_numpy())
    outcome = _part(reader, find_method("joint"), numbers)(packs)
    (line,) = outcome["summary"].drop_null().to_pylist()
    summary = json.loads(line)
    assert {*summary} == {"columns", "steps", "t", "crowd", "figures", "findings", "trials", "cost"}
    people = {str(p) for p in unpacked(packs["packed"], reader.schema)["person"].to_pylist()}
    assert not any(f'"{person}"' in line for person in people)
