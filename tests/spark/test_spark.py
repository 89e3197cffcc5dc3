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

import pyarrow.parquet as pq
import pytest
from spark_runs import executors, same_rows
from synthetic import write_city

import crowdveil
from crowdveil.errors import InputError
from crowdveil.model.flows import Flows
from crowdveil.registry import METHODS, find_method
from crowdveil.run import pipeline

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
    assert sorted(here.manifest["input"]["notes"]) == sorted(there.manifest["input"]["notes"])
    return here, there


CASES: list[tuple[str, dict[str, Any]]] = [
    ("suppression", {}),
    ("joint", {"aggregate_small": True, "export": "all"}),
    ("joint", {"time_partition": "adaptive", "hour_weight": 1}),
    ("atg-dual", {"time_partition": "stable", "stable_by": "day-type"}),
]


@pytest.mark.parametrize(("method", "options"), CASES)
def test_a_city_gives_the_same_rows(
    method: str, options: dict[str, Any], spark: Any, city: Path, tmp_path: Path
) -> None:
    zones = str(city / "zones.geojson")
    _both(spark, tmp_path, method, city / "trips.parquet", zones=zones, step="3h", tz="Europe/Paris", k=5, **options)
    parts = json.loads((tmp_path / "there" / "manifest.json").read_text())["files"]["data"]["parts"]
    assert {*parts} == {p.name for p in (tmp_path / "there" / "flows.parquet").iterdir()}
    found = crowdveil.verify(tmp_path / "there", str(city / "trips.parquet"), zones=zones)
    assert all(f.holds for _, f in found)


def test_text_is_read_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    rows = [f"z{i % 3},z{i % 4},2024-03-31T{i % 24:02}:30,{1 + i % 7}" for i in range(900)]
    rows += ["NA,z2,2024-03-31T01:00,3"]
    (tmp_path / "flows.csv").write_text("origin;destination;time;volume\n" + "\n".join(rows).replace(",", ";") + "\n")
    _both(spark, tmp_path, "suppression", tmp_path / "flows.csv", step="1h", tz="Europe/Paris", k=5, drop_invalid=True)


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
        with pytest.raises(InputError, match=r"^no_such: Expected a (table|path) .* but Spark cannot read it"):
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
