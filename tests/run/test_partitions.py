"""Partitions of time steps, one after the other or on a cluster: the rows, files and findings of a run of all data at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_cluster import DuckdbCluster, Frame
from examples import tries
from given_boxes import with_boxes
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_runs import same_rows
from written_flows import written

import crowdveil
from crowdveil import guarantees as library
from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, OutputError, ParameterError
from crowdveil.guarantees import Finding, Guarantee, PeriodBudget, SuppressionBudget
from crowdveil.io import archive
from crowdveil.model.flows import VISITED, CountedTiles, Flows
from crowdveil.model.release import FlowRelease
from crowdveil.reading import FlowReading
from crowdveil.registry import METHODS, find_method
from crowdveil.run import flow_partitions
from crowdveil.run.flow_partitions import LocalPartitions, PartitionedFlows
from crowdveil.run.options import RunOptions
from crowdveil.run.pipeline import run_stages
from crowdveil.run.result import Result
from crowdveil.run.spark import flows
from crowdveil.run.spark.flows import SparkFlows
from crowdveil.run.spark.sources import check_supported
from crowdveil.run.stages import RunSpec
from test_every_method import _on_grid

OD = [name for name in METHODS if find_method(name).takes is Flows]
HOUR, TZ, PEOPLE, ZONES = 3600, "Europe/Paris", 60, 9


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
        parameters["min_tiles"] = draw.draw(st.integers(1, 2))
        data = replace(data, counted=CountedTiles(VISITED, data.visited))
        parameters["splits"] = draw.draw(st.sampled_from(["tree", "dyadic", "free"]))
    params = method.params.checked(parameters)
    if method.partitioning(params) is not None:  # it needs all time steps at once, and says why
        return

    def run(flows: Flows) -> FlowRelease:
        release = method.run(flows, params, np.random.default_rng(5), no_progress)
        assert isinstance(release, FlowRelease)
        return release

    try:
        whole = run(data)
    except InputError as error:
        if "suppressed" in str(error) or "fewer tiles" in str(error):  # what is asked cannot be kept on this map
            return
        raise
    cut = draw.draw(st.integers(1, data.steps))
    pieces = [np.arange(low, min(low + cut, data.steps)) for low in range(0, data.steps, cut)]
    parts = [run(data.at_steps(steps)) for steps in pieces]
    assert sorted(row for part in parts for row in _rows(part)) == _rows(whole)
    assert np.concatenate([part.suppressed for part in parts]).tolist() == whole.suppressed.tolist()
    figures = [part.figures for part in parts if part.figures is not None]
    if whole.figures is not None:
        assert np.array_equal(np.concatenate(figures)[:, 0], whole.figures[:, 0], equal_nan=True) or len(figures) < len(
            parts
        )


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


def spec_of(method: str, data: Any, output: Any, options: dict[str, Any], **run: Any) -> RunSpec:
    """A run with parameters and input options in one dictionary."""
    found = find_method(method)
    reading = {name: value for name, value in options.items() if name in FlowReading.model_fields}
    params = found.params.checked({name: value for name, value in options.items() if name not in reading})
    return RunSpec(found, params, FlowReading.checked(reading), RunOptions(seed=7, **run), data, output)


def in_partitions(backend: PartitionedFlows) -> Result:
    with backend:
        return run_stages(backend.spec, backend, no_progress, lambda name: None)


CASES: list[tuple[str, dict[str, Any]]] = [
    ("suppression", {"user": "person"}),
    ("joint", {"user": "person", "weight": "w", "aggregate_small": True}),
    ("mondrian", {"user": "person"}),
    ("atg-dual", {"user": "person"}),
    ("joint", {"user": "person", "time_partition": "adaptive", "hour_weight": 1}),
    ("joint", {"user": "person", "time_partition": "stable", "aggregate_small": True}),
    ("joint", {"time_partition": "stable", "stable_by": "hour-of-day"}),
    ("atg-dual", {"user": "person", "time_partition": "stable", "stable_by": "day-type"}),
    ("joint", {"time_partition": "stable", "splits": "free", "stable_by": "hour-of-day"}),
]


@pytest.mark.parametrize(("method", "options"), CASES)
def test_partitions_give_the_release_of_a_whole_run(
    method: str, options: dict[str, Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_partitions, "PARTITION_ROWS", 150)
    trips, zones = folder / "trips.parquet", folder / "zones.geojson"
    options = {"k": 5, "zones": str(zones), "step": "1h", "tz": TZ, **options}
    whole = crowdveil.anonymize(trips, tmp_path / "whole", method=method, seed=7, **options)
    local = in_partitions(LocalPartitions(spec_of(method, trips, tmp_path / "local", options)))
    cluster: Any = DuckdbCluster()
    spark = in_partitions(SparkFlows(spec_of(method, trips, str(tmp_path / "spark"), options), cluster))
    for name, made in (("local", local), ("spark", spark)):
        rows = [pq.read_table(tmp_path / place / "flows.parquet") for place in ("whole", name)]
        assert same_rows(*rows) and rows[0].schema.equals(rows[1].schema) and len(rows[0])
        steps = [pq.read_table(tmp_path / place / "steps.parquet") for place in ("whole", name)]
        assert steps[0].equals(steps[1])
        for file in ("areas.geojson", "crosswalk.csv"):
            texts = [(tmp_path / place / file).read_text() for place in ("whole", name)]
            lines = [sorted(line.rstrip(",") for line in text.splitlines()) for text in texts]
            assert lines[0] == lines[1]
        for part in ("method", "k_unit", "step_seconds", "guarantees", "cost", "risk"):
            assert made.manifest[part] == whole.manifest[part], part
        assert made.cost == whole.cost[: len(made.cost)]
        assert sorted(made.manifest["input"]["notes"]) == sorted(whole.manifest["input"]["notes"])
        assert all(f.holds for _, f in crowdveil.verify(tmp_path / name, trips, zones=zones))
        assert (tmp_path / name / "report.html").exists()
    assert len(list((tmp_path / "local" / "flows.parquet").iterdir())) > 1 or options.get("time_partition") == "stable"


def test_intervals_stay_where_other_partitions_may_have_longer_ones(folder: Path, tmp_path: Path) -> None:
    """A whole run has no column `until` where all intervals are time steps; a partition cannot know that of the others."""
    options = {"k": 5, "zones": str(folder / "zones.geojson"), "step": "1h", "tz": TZ, "user": "person",
               "time_partition": "adaptive", "hour_weight": 100_000, "suppress": "90%"}  # fmt: skip
    crowdveil.anonymize(folder / "trips.parquet", tmp_path / "whole", method="joint", seed=7, **options)
    in_partitions(LocalPartitions(spec_of("joint", folder / "trips.parquet", tmp_path / "out", options)))
    whole, rows = (pq.read_table(tmp_path / place / "flows.parquet") for place in ("whole", "out"))
    assert "until" not in whole.column_names and "until" in rows.column_names
    assert same_rows(whole, rows.drop_columns("until"))
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "out"))


def test_zones_of_the_data_and_unusable_rows(tmp_path: Path) -> None:
    """Ids of the data, text, a clock that is turned, rows without a volume or a time: as in a whole run."""
    rng = np.random.default_rng(1)
    rows = [f"z{a},z{b},2024-03-31T{h:02}:30,{v}" for a, b, h, v in rng.integers([0, 0, 0, 0], [9, 9, 24, 9], (900, 4))]
    rows += ["z1,,2024-03-31T01:00,3", "NA,z2,2024-03-31T01:00,3", "z1,z2,never,3"]
    data = tmp_path / "flows.csv"
    data.write_text("origin,destination,time,volume\n" + "\n".join(rows) + "\n")
    options = {"k": 5, "step": "1h", "tz": TZ, "drop_invalid": True}
    whole = crowdveil.anonymize(data, tmp_path / "whole", method="suppression", seed=7, format="parquet", **options)
    cluster: Any = DuckdbCluster()
    made = in_partitions(SparkFlows(spec_of("suppression", data, str(tmp_path / "out"), options), cluster))
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("whole", "out")))
    assert made.notes.dropped.values() and sum(made.notes.dropped.values()) == sum(whole.notes.dropped.values())
    assert sorted(made.manifest["input"]["notes"]) == sorted(whole.manifest["input"]["notes"])
    refused = SparkFlows(
        spec_of("suppression", data, str(tmp_path / "bad"), {**options, "drop_invalid": False}), cluster
    )
    with pytest.raises(InputError, match="row"):
        in_partitions(refused)
    assert not (tmp_path / "bad").exists()


def test_a_partition_without_a_trip_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Volumes of 0, and weights that are rounded to nothing, leave other partitions as they are."""
    n, day = 40, 86_400
    table = pa.table({
        "origin": ["a"] * n, "destination": ["b"] * n, "user": [f"u{i}" for i in range(n)],
        "time": pa.array([1_700_000_000 + (i % 2) * day for i in range(n)], pa.timestamp("s", tz="UTC")),
        "w": [1.0 if i % 2 else 1e-6 for i in range(n)],
    })  # fmt: skip
    options = {"k": 5, "step": "1d", "weight": "w"}
    whole = crowdveil.anonymize(table, tmp_path / "whole", method="suppression", seed=7, **options)
    cluster: Any = DuckdbCluster()
    monkeypatch.setattr(flows, "PARTITIONS_A_SLOT", 1000)
    made = in_partitions(SparkFlows(spec_of("suppression", Frame(table), str(tmp_path / "out"), options), cluster))
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("whole", "out")))
    assert made.manifest["cost"] == whole.manifest["cost"] and made.cost == whole.cost


@pytest.mark.parametrize("zones", ["grid:2km", "h3:7"])
def test_tiles_are_found_in_all_rows(zones: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    places = {f"{end}_{axis}": low + rng.random(2000) / 20
              for end in ("origin", "destination") for axis, low in (("lon", 2.3), ("lat", 48.8))}  # fmt: skip
    times = pa.array(1_700_000_000 + rng.integers(0, 86_400, 2000), pa.timestamp("s", tz="UTC"))
    table = pa.table({**places, "departure": times, "user": rng.integers(0, 300, 2000)})
    options = {"k": 3, "step": "6h", "zones": zones}
    crowdveil.anonymize(table, tmp_path / "whole", method="suppression", seed=7, **options)
    cluster: Any = DuckdbCluster()
    in_partitions(SparkFlows(spec_of("suppression", Frame(table), str(tmp_path / "out"), options), cluster))
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("whole", "out")))


def trips(times: list[Any], people: list[str]) -> pa.Table:
    n = len(people) * len(times)
    return pa.table({"origin": ["a"] * n, "destination": ["b"] * n, "time": [t for t in times for _ in people],
                     "user_id": people * len(times)})  # fmt: skip


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (trips(["05/06/2008"], ["u", "v"]), "time_format"),
        (trips(["1971-06-08", "2090-06-08"], ["u", "v"]), "100 years"),
        (trips(["1212900000", "1212900000000"], ["u", "v"]), "one unit"),
        (trips(["2008-06-08T01:00Z", "2008-06-08T01:00"], ["u"]), "zone"),
        (trips(["2008-06-08"], ["u", "", " ", "v"]), r"2 rows \(rows \d and \d\) have no user in column user_id"),
        (pa.table({"origin": ["a"], "destination": ["b"], "volume": [3], "people": [4]}), "more people than trips"),
        (pa.table({"origin": ["a"], "destination": ["b"], "volume": [3], "people": [1]}), "at most 1,"),
        (trips([], []), "no rows"),
    ],
)
def test_what_would_be_misread_is_refused_on_a_cluster(table: pa.Table, said: str, tmp_path: Path) -> None:
    cluster: Any = DuckdbCluster()
    with pytest.raises(InputError, match=said):
        in_partitions(SparkFlows(spec_of("suppression", Frame(table), str(tmp_path / "out"), {"k": 2}), cluster))
    assert list(tmp_path.iterdir()) == []


def test_a_failing_time_step_is_named_among_all(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_partitions, "PARTITION_ROWS", 150)
    options = {"k": 5, "zones": str(folder / "zones.geojson"), "step": "1h", "tz": TZ, "user": "person", "suppress": 0,
               "v_target": 5}  # fmt: skip
    said = []
    for run in (
        lambda: crowdveil.anonymize(folder / "trips.parquet", tmp_path / "out", method="atg-dual", **options),
        lambda: in_partitions(
            LocalPartitions(spec_of("atg-dual", folder / "trips.parquet", tmp_path / "out", options))
        ),
    ):
        with pytest.raises(InputError) as stopped:
            run()
        said.append(str(stopped.value))
    assert said[0] == said[1] and said[0].startswith("time step ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "options", "run", "said"),
    [
        ("laplace", {"unit": "person", "trips_per_person": 2}, {}, "trips of a person are limited"),
        ("atg-dual", {"v_target": "sample"}, {}, "v_target = sample looks at all time steps"),
        ("joint", {"bbox": "0,0,1,1"}, {}, "cropped on one machine"),
        ("joint", {"min_tiles_of": "visited"}, {}, "visited tiles"),
        ("joint", {}, {"ledger": "ledger"}, "an audit compares all trips"),
        ("joint", {}, {"format": "csv"}, "writes Parquet"),
    ],
)
def test_what_needs_all_data_is_refused_on_a_cluster(
    method: str, options: dict[str, Any], run: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        check_supported(spec_of(method, "trips.parquet", "out", options, **run))


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 60))
def test_partitions_are_runs_of_steps_that_are_not_too_large(sizes: list[int], most: int) -> None:
    backend = LocalPartitions(spec_of("suppression", "trips.csv", "out", {"k": 2}))
    none = np.zeros(0, np.int64)
    zones = crowdveil.model.zones.Zones.from_ids(["a"])
    backend.starts = np.arange(len(sizes)) * HOUR
    backend.frame = Flows(zones, none, np.zeros(1, np.int64), none, none, none, none, "trips")
    numbers = backend.partition_numbers(np.array(sizes), most)
    assert numbers[0] == 0 and set(np.diff(numbers).tolist()) <= {0, 1}
    for number in range(int(numbers[-1]) + 1):
        own = np.array(sizes)[numbers == number]
        assert own.sum() <= most or len(own) == 1 or own[0] > most


def test_a_release_in_partitions_is_saved_and_packed_whole(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are a folder of files, in memory and in a zip file too."""
    monkeypatch.setattr(flow_partitions, "LARGE_INPUT", 0)
    monkeypatch.setattr(flow_partitions, "PARTITION_ROWS", 500)
    options = {"k": 5, "zones": folder / "zones.geojson", "step": "1d", "user": "person"}
    made = crowdveil.anonymize(folder / "trips.parquet", method="suppression", **options)
    parts = [name for name in made.files if name.startswith("flows.parquet/part-")]
    assert made.folder is None and len(parts) > 1
    made.save(tmp_path / "saved")
    archive.pack(tmp_path / "saved", tmp_path / "release.zip")
    archive.unpack(tmp_path / "release.zip", tmp_path / "unpacked", 1 << 30)
    for release in (made, tmp_path / "saved", tmp_path / "unpacked"):
        assert crowdveil.verify(release, folder / "trips.parquet", zones=folder / "zones.geojson").ok
    assert len(made.flows) == made.manifest["cost"]["published_flows"]


def test_a_release_by_uri_appears_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    options = {"k": 5, "zones": str(folder / "zones.geojson"), "step": "1d", "user": "person"}
    out = (tmp_path / "a" / "release").as_uri()

    def run(**more: Any) -> Result:
        return in_partitions(LocalPartitions(spec_of("suppression", folder / "trips.parquet", out, options, **more)))

    run()
    release = tmp_path / "a" / "release"
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"release"}
    assert all(f.holds for _, f in crowdveil.verify(release, folder / "trips.parquet", zones=folder / "zones.geojson"))
    with pytest.raises(OutputError, match="the folder exists"):
        run()
    before = (release / "manifest.json").read_text()
    options["k"] = 5000
    with pytest.raises(InputError, match="smaller k"):
        run(overwrite=True)
    assert (release / "manifest.json").read_text() == before, "a failed run leaves the earlier release"
    options["k"] = 6
    run(overwrite=True)
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"release"}
    (release / "manifest.json").unlink()
    with pytest.raises(OutputError, match="holds no release"):
        run(overwrite=True)


def _merged(guarantee: Guarantee, parts: list[Any]) -> Finding:
    """The finding of partitions, as it comes back from executors."""
    found = json.loads(json.dumps([guarantee.check(part).as_json() for part in parts]))
    return guarantee.merge_findings([Finding.from_json(values) for values in found])


OF_FLOWS: tuple[Guarantee, ...] = (
    library.FlowKAnonymity(k=10, k_unit="trips"), library.DisjointFlows(), SuppressionBudget(suppress=0.1, k=10),
    library.GeneralizationLimit(tiles=2), PeriodBudget(suppress=0.1, k=10, period="all"),
    PeriodBudget(suppress=0.1, k=10, period="hour-of-day"), library.MinTiles(tiles=2),
    library.MinTiles(tiles=2, of="visited"), library.MaxArea(km2=3), library.WellFormedFlows(),
    library.TrueVolumes(), library.DifferentialPrivacy(epsilon=1, trips=1),
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


def test_one_open_partition_leaves_the_whole_not_checked() -> None:
    guarantee = SuppressionBudget(suppress=0.1, k=10)
    stated, open_ = written([(0, "a", "b", 90, 90)], [(0, 90, 3)]), written([(0, "a", "b", 20, 10)], [(0, 20, None)])
    over = written([(0, "a", "b", 20, 10)], [(0, 20, 11)])
    assert _merged(guarantee, [stated, stated]).holds
    assert _merged(guarantee, [stated, open_]).outcome == "not checked"
    assert _merged(guarantee, [stated, open_, over]).violated
    assert _merged(guarantee, []).outcome == "not checked", "nothing was looked at"


@pytest.mark.parametrize("period", ["all", "hour-of-day"])
def test_a_budget_for_all_time_steps_is_that_of_no_partition(period: Any) -> None:
    """A partition may suppress more than its share where another suppresses less."""
    guarantee = PeriodBudget(suppress=0.1, k=10, period=period)
    full = written([(0, "a", "b", 200, 90)], [(0, 200, 0)])
    over = written([(86_400, "a", "b", 85, 85)], [(86_400, 85, 15)])
    assert guarantee.check(over).violated
    assert _merged(guarantee, [full, over]).holds
    assert _merged(guarantee, [over, over, over]).violated
