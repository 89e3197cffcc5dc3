"""Runs on Spark, with real executors: the same rows as on one machine, whatever happens to the cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_runs import executors, same_rows
from synthetic import write_city

import crowdveil
from crowdveil.engine.spark import SparkEngine
from crowdveil.errors import GuaranteeViolatedError, InputError, OutputError
from crowdveil.model.flows import Flows
from crowdveil.registry import METHODS, find_method
from crowdveil.run import pipeline
from crowdveil.run.spark import backend

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]
SOURCES = Path(crowdveil.__file__).parents[1]
OD = [name for name in METHODS if find_method(name).takes is Flows]


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_city(tmp_path_factory.mktemp("city"), tiles=49, people=600, trips=20_000, days=2)


def _both(spark: Any, tmp_path: Path, method: str, data: Any, **options: Any) -> tuple[Any, Any]:
    """Run on one machine and on the cluster, and hold the rows and the manifests against each other."""
    in_parquet = {"format": "parquet", **options}
    here = crowdveil.anonymize(data, tmp_path / "here", method=method, seed=4, report=False, **in_parquet)
    there = crowdveil.anonymize(
        str(data), tmp_path / "there", method=method, seed=4, report=False, spark=spark, **options
    )
    rows = [pq.read_table(tmp_path / place / "flows.parquet") for place in ("here", "there")]
    assert same_rows(*rows)
    assert rows[0].schema.equals(rows[1].schema), "times have the same zone"
    steps = [pq.read_table(tmp_path / place / "steps.parquet") for place in ("here", "there")]
    assert steps[0].equals(steps[1])
    features = [json.loads((tmp_path / place / "areas.geojson").read_text())["features"] for place in ("here", "there")]
    by_name = [sorted(of_one, key=lambda f: f["properties"]["area"]) for of_one in features]
    assert by_name[0] == by_name[1]
    for part in ("method", "k_unit", "guarantees", "cost", "risk"):
        assert here.manifest[part] == there.manifest[part], part
    assert here.cost == there.cost
    assert here.manifest["input"]["dropped"] == there.manifest["input"]["dropped"]
    assert sorted(here.manifest["input"]["notes"]) == sorted(there.manifest["input"]["notes"])
    return here, there


def _options(method: str) -> dict[str, Any]:
    return {} if method == "laplace" else {"k": 5, "aggregate_small": True}


@pytest.mark.parametrize("method", [name for name in OD if name not in ("uniform", "fixed")])
def test_a_city_gives_the_same_rows(method: str, spark: Any, city: Path, tmp_path: Path) -> None:
    _both(spark, tmp_path, method, city / "trips.parquet", zones=city / "zones.geojson", step="3h", **_options(method))


TIME_PARTITIONS: list[tuple[str, dict[str, Any]]] = [
    ("joint", {"time_partition": "adaptive", "hour_weight": 1}),
    ("joint", {"time_partition": "adaptive", "longest": "4h", "aggregate_small": True}),
    ("joint", {"time_partition": "stable", "aggregate_small": True}),
    (
        "joint",
        {"time_partition": "stable", "stable_by": "hour-of-day", "splits": "dyadic", "objective": "reconstruction"},
    ),
    ("atg-dual", {"time_partition": "stable", "stable_by": "day-type"}),
    ("joint", {"time_partition": "stable", "stable_by": "day-type", "splits": "free"}),
]


@pytest.mark.parametrize(("method", "options"), TIME_PARTITIONS)
def test_intervals_and_stable_areas_are_those_of_one_machine(
    method: str, options: dict[str, Any], spark: Any, city: Path, tmp_path: Path
) -> None:
    trips, zones = city / "trips.parquet", str(city / "zones.geojson")
    _both(spark, tmp_path, method, trips, zones=zones, step="1h", tz="Europe/Paris", k=5, **options)
    there = tmp_path / "there"
    assert all(finding.holds for _, finding in crowdveil.verify(there, str(trips), zones=zones))


@pytest.mark.parametrize("method", ["suppression", "mondrian"])
def test_weights_are_rounded_and_noted_as_on_one_machine(method: str, spark: Any, city: Path, tmp_path: Path) -> None:
    """The trips of the second day weigh next to nothing, so that whole parts are rounded to 0 trips; their weight is reported."""
    trips = pq.read_table(city / "trips.parquet")
    times = trips["departure"].cast(pa.int64()).to_numpy()
    rng = np.random.default_rng(1)
    weight = np.where(times > np.median(times), 1e-6, rng.choice([0.3, 0.7, 1.1], len(trips)))
    pq.write_table(trips.append_column("w", pa.array(weight)), tmp_path / "trips.parquet")
    zones = city / "zones.geojson"
    here, there = _both(spark, tmp_path, method, tmp_path / "trips.parquet", zones=zones, step="3h", k=5, weight="w")
    assert any("rounded to whole trips" in note for note in there.manifest["input"]["notes"])
    assert here.manifest["cost"] == there.manifest["cost"]


@pytest.mark.realdata
@pytest.mark.parametrize("method", [name for name in OD if name not in ("uniform", "fixed")])
def test_taxis_give_the_same_rows(method: str, spark: Any, realdata: Path, tmp_path: Path) -> None:
    taxi = realdata / "nyc_taxi"
    trips = taxi / "yellow_sample_2018_2020.parquet"
    if method == "glove-sk":  # it takes minutes for all of them
        pq.write_table(pq.read_table(trips).slice(0, 20_000), tmp_path / "fewer.parquet")
        trips = tmp_path / "fewer.parquet"
    _both(
        spark, tmp_path, method, trips, zones=str(taxi / "taxi_zones.geojson"),
        zone_id="OBJECTID", step="1w", tz="America/New_York", drop_invalid=True, **_options(method),
    )  # fmt: skip


@pytest.mark.parametrize("tiles", [{"zones": "grid:2km"}, {"zones": "h3:7"}, {"zones": "zones.geojson"}])
def test_coordinates_are_put_into_zones_there(tiles: dict[str, Any], spark: Any, city: Path, tmp_path: Path) -> None:
    ids = pq.read_table(city / "trips.parquet")
    zones = {f["properties"]["zone_id"]: f for f in json.loads((city / "zones.geojson").read_text())["features"]}
    center = {name: np.mean(f["geometry"]["coordinates"][0], axis=0) for name, f in zones.items()}
    table = {name: ids[name] for name in ids.column_names if name not in ("origin", "destination")}
    for end in ("origin", "destination"):
        places = np.array([center[str(name)] for name in ids[end].to_pylist()])
        table |= {f"{end}_lon": places[:, 0], f"{end}_lat": places[:, 1]}
    pq.write_table(pa.table(table), tmp_path / "places.parquet")
    tiles = {n: str(city / v) if n == "zones" else v for n, v in tiles.items()}
    method = "uniform" if tiles["zones"].startswith("grid:") else "suppression"
    _both(spark, tmp_path, method, tmp_path / "places.parquet", step="all", k=5, **tiles)


def test_text_and_names_that_come_up(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"z{a},z{b},2024-03-31T{h:02}:30,{v}" for a, b, h, v in rng.integers([0, 0, 0, 1], [9, 9, 24, 9], (900, 4))]
    rows += ["z1,,2024-03-31T01:00,3", "NA,z2,2024-03-31T01:00,3"]
    (tmp_path / "flows.csv").write_text("origin;destination;time;volume\n".replace(";", ",") + "\n".join(rows) + "\n")
    _both(spark, tmp_path, "suppression", tmp_path / "flows.csv", step="1h", tz="Europe/Paris", k=5, drop_invalid=True)
    again = {"step": "1h", "tz": "Europe/Paris", "k": 5, "spark": spark}
    with pytest.raises(InputError, match=r"flows.csv: \d row.* name"):
        crowdveil.anonymize(str(tmp_path / "flows.csv"), tmp_path / "bad", method="suppression", **again)
    assert {p.name for p in tmp_path.iterdir()} == {"flows.csv", "here", "there"}


def test_a_data_frame_and_the_users_settings(spark: Any, city: Path, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(city / "trips.parquet"))
    options = {"zones": str(city / "zones.geojson"), "step": "3h", "k": 5}
    crowdveil.anonymize(city / "trips.parquet", tmp_path / "here", method="joint", **options)
    crowdveil.anonymize(frame, (tmp_path / "there").as_uri(), method="joint", spark=spark, **options)
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("here", "there")))
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    assert not spark.catalog.listTables("global_temp")
    assert "report.html" in {p.name for p in (tmp_path / "there").iterdir()}
    assert all(not p.name.startswith((".", "_")) for p in (tmp_path / "there").rglob("*"))


def test_a_release_is_verified_and_a_changed_part_is_found(spark: Any, city: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    crowdveil.anonymize(
        str(city / "trips.parquet"), out, method="joint", zones=str(city / "zones.geojson"), k=5, spark=spark
    )
    parts = json.loads((out / "manifest.json").read_text())["files"]["data"]["parts"]
    assert {*parts} == {p.name for p in (out / "flows.parquet").iterdir()}
    here = crowdveil.verify(out, str(city / "trips.parquet"), zones=str(city / "zones.geojson"))
    assert all(f.holds for _, f in here)
    name = sorted(parts)[0]
    table = pq.read_table(out / "flows.parquet" / name)
    pq.write_table(table.slice(1), out / "flows.parquet" / name)
    with pytest.raises(GuaranteeViolatedError, match=r"flows\.parquet changed since"):
        crowdveil.verify(out)


def test_kept_rows_stay_kept_whatever_is_asked_of_them(spark: Any) -> None:
    engine = SparkEngine(spark)
    rows = engine.table(pa.table({"n": np.arange(100)}))
    with engine.kept(rows):
        for _ in range(2):
            assert engine.gather(engine.sql("SELECT sum(n) AS n FROM {rows}", rows=rows))["n"].to_pylist() == [4950]
            assert rows.storageLevel.useDisk
    assert not rows.storageLevel.useDisk


def test_data_and_release_in_another_file_system(spark: Any, city: Path, tmp_path: Path) -> None:
    """Hadoop's viewfs stands for hdfs: and s3a:, which need a cluster: names have a scheme, and none is local."""
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
        spark.sparkContext._jsc.hadoopConfiguration().set(
            f"fs.viewfs.mounttable.cluster.link./{folder}", (tmp_path / folder).as_uri()
        )
    shutil.copy(city / "trips.parquet", tmp_path / "in/trips.parquet")
    trips, release = "viewfs://cluster/in/trips.parquet", "viewfs://cluster/out/a/release"
    options = {"zones": str(city / "zones.geojson"), "spark": spark}
    crowdveil.anonymize(trips, release, method="joint", k=5, step="3h", **options)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"a"}
    crowdveil.anonymize(
        city / "trips.parquet", tmp_path / "here", method="joint", k=5, step="3h", zones=options["zones"]
    )
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("here", "out/a/release")))
    with pytest.raises(OutputError, match="the folder exists"):
        crowdveil.anonymize(trips, release, method="joint", k=5, step="3h", **options)
    crowdveil.anonymize(trips, release, method="joint", k=6, step="3h", overwrite=True, **options)
    assert {p.name for p in (tmp_path / "out/a").iterdir()} == {"release"}
    written = tmp_path / "out/a/release"
    assert all(f.holds for _, f in crowdveil.verify(written, city / "trips.parquet", zones=options["zones"]))
    with pytest.raises(InputError, match="there is no such file"):
        crowdveil.anonymize("viewfs://cluster/in/none.parquet", release + "2", method="joint", k=5, **options)


def test_an_executor_is_killed_in_the_middle(spark: Any, city: Path, tmp_path: Path) -> None:
    options = {"zones": str(city / "zones.geojson"), "step": "1h", "k": 5}
    crowdveil.anonymize(city / "trips.parquet", tmp_path / "here", method="atg-dual", **options)
    stages: list[str] = []
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if stages[-1] == "anonymizing" and done < total and not killed:
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    request = pipeline.Request(
        "atg-dual", str(city / "trips.parquet"), str(tmp_path / "there"), {"k": 5},
        {"zones": str(city / "zones.geojson"), "step": "1h"}, spark=spark, options={"report": False},
    )  # fmt: skip
    pipeline.run(request, kill, stages.append)
    assert killed
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("here", "there")))


def test_one_time_step_with_a_hundred_times_the_trips(spark: Any, city: Path, tmp_path: Path) -> None:
    trips = pq.read_table(city / "trips.parquet")
    few = trips.slice(0, 3_000)
    moment = pa.chunked_array([pa.array([few["departure"][0].as_py()] * 3_000, few["departure"].type)])
    heavy = few.set_column(few.column_names.index("departure"), "departure", moment)
    pq.write_table(pa.concat_tables([trips.slice(0, 1_000), *[heavy] * 100]), tmp_path / "skewed.parquet")
    _both(spark, tmp_path, "joint", tmp_path / "skewed.parquet", zones=str(city / "zones.geojson"), k=5)


def test_a_failing_time_step_is_named_and_nothing_is_left(spark: Any, city: Path, tmp_path: Path) -> None:
    options = {"zones": str(city / "zones.geojson"), "step": "3h", "k": 5, "suppress": 0, "v_target": 5}
    said = []
    for there in (None, spark):
        with pytest.raises(InputError) as stopped:
            crowdveil.anonymize(
                str(city / "trips.parquet"), tmp_path / "a/out", method="atg-dual", spark=there, **options
            )
        said.append(str(stopped.value))
    assert said[0].startswith("time step ") and said[1].startswith("time step ")
    assert said[0].partition(": ")[2][:40] == said[1].partition(": ")[2][:40]
    assert not list(tmp_path.iterdir())


def test_tables_are_read_by_name_and_by_path(spark: Any, city: Path, tmp_path: Path) -> None:
    options = {"zones": str(city / "zones.geojson"), "step": "3h", "k": 5, "seed": 4, "report": False}
    crowdveil.anonymize(city / "trips.parquet", tmp_path / "here", method="suppression", **options)
    spark.read.parquet(str(city / "trips.parquet")).write.mode("overwrite").option("path", str(tmp_path / "table")).saveAsTable(
        "city_trips"
    )  # fmt: skip
    for place, data, table in (("name", "default.city_trips", "catalog"), ("path", str(tmp_path / "table"), "parquet")):
        crowdveil.anonymize(data, tmp_path / place, method="suppression", spark=spark, table=table, **options)
        assert same_rows(*(pq.read_table(tmp_path / p / "flows.parquet") for p in ("here", place)))
    spark.sql("DROP TABLE city_trips")
    for table in ("catalog", "delta"):
        with pytest.raises(InputError, match=r"^no_such: wanted a (table|path) .* but Spark cannot read it"):
            crowdveil.anonymize("no_such", tmp_path / "bad", method="suppression", spark=spark, table=table, **options)
    assert not (tmp_path / "bad").exists()


def test_the_script_of_the_page_runs_by_spark_submit(city: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/spark.md").read_text()
    (script,) = re.findall(r"```py\n(# run\.py .*?)```", page, re.DOTALL)
    (tmp_path / "run.py").write_text(script)
    submit = Path(pyspark.__file__).parent / "bin/spark-submit"
    command = [str(submit), "--master", "local[1]", str(tmp_path / "run.py"), str(city / "trips.parquet"),
               str(city / "zones.geojson"), str(tmp_path / "out")]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert all(not finding.violated for _, finding in crowdveil.verify(tmp_path / "out"))


def test_the_command(city: Path, tmp_path: Path) -> None:
    """In a process of its own, where no session runs."""
    run = [sys.executable, "-c", "from crowdveil.cli.main import main; main()"]
    there = ["--engine", "spark", "--master", "local[2]"]
    command = [*run, "anonymize", "joint", str(city / "trips.parquet"), "--zones", str(city / "zones.geojson"), "--k", "5",
               "-o", str(tmp_path / "out"), *there]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "verified and written" in done.stdout
    again = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert again.returncode == 2 and "the folder exists" in again.stderr.splitlines()[-1]
    no_java = environment | {"PATH": "", "JAVA_HOME": ""}
    without = subprocess.run(command, capture_output=True, text=True, env=no_java, check=False)
    assert without.returncode == 2 and "needs Java 17 or newer" in without.stderr.splitlines()[-1]


def _with_stations(trips: pa.Table, zones: Any, *, noise: float = 0.0) -> pa.Table:
    """Add the positions of origins and destinations, with noise in meters as of measured ones."""
    rng = np.random.default_rng(2)
    index = {str(zone): i for i, zone in enumerate(zones.ids)}
    for end, short in (("origin", "start"), ("destination", "end")):
        at = np.array([index[zone] for zone in trips[end].to_pylist()])
        for axis, column in (("lon", "lng"), ("lat", "lat")):
            values = getattr(zones, axis)[at] + rng.normal(0, noise / 100_000, len(at))
            trips = trips.append_column(f"{short}_{column}", pa.array(values))
    return trips


@pytest.mark.parametrize("noise", [0.0, 200.0])
def test_stations_of_the_data_are_zones_as_on_one_machine(noise: float, spark: Any, city: Path, tmp_path: Path) -> None:
    zones = crowdveil.read_zones(city / "zones.geojson")
    trips = _with_stations(pq.read_table(city / "trips.parquet"), zones, noise=noise)
    pq.write_table(trips, tmp_path / "trips.parquet", row_group_size=5000)
    here, _ = _both(spark, tmp_path, "suppression", tmp_path / "trips.parquet", step="3h", k=5)
    note = "have no fixed positions" if noise else "their Voronoi cells are the zones"
    assert sum(note in text for text in here.manifest["input"]["notes"]) == 1
    found = crowdveil.verify(tmp_path / "there", str(tmp_path / "trips.parquet"))
    assert all(finding.holds for _, finding in found)


def test_further_files_are_those_of_one_machine(
    spark: Any, city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"zones": city / "zones.geojson", "step": "3h", "k": 5, "export": "all"}
    _both(spark, tmp_path, "joint", city / "trips.parquet", **given)
    made = {file.name for file in (tmp_path / "here").iterdir()}
    assert {"flows.omx", "kepler_flows.csv"} <= made
    assert {file.name for file in (tmp_path / "there").iterdir() if not file.name.startswith(".")} == made
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "there"))
    monkeypatch.setattr(backend, "REPORT_ROWS", 3)
    large = crowdveil.anonymize(str(city / "trips.parquet"), tmp_path / "large", method="joint", spark=spark, **given)
    assert "omx" not in large.manifest["files"] and "crosswalk" in large.manifest["files"]
    assert any("were not written" in note for note in large.notes.sentences())
