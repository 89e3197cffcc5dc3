"""Trajectories on Spark, with real executors: the same rows as on one machine, numbered, checked and filtered there."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from spark_runs import executors

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError, ParameterError
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import METHODS, find_method
from crowdveil.run import pipeline, releases
from crowdveil.run.spark import trajectories
from crowdveil.run.spark.trajectories import NO_ATTACK
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]
DATA = "trajectories.parquet"
TRACKS = [name for name in METHODS if find_method(name).takes is Trajectories]
APART = [name for name in TRACKS if find_method(name).partitioning(find_method(name).params.checked({})) is None]


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of drives in a small city, some of them by the same people."""
    folder = tmp_path_factory.mktemp("city")
    made = City.make(seed=3, tiles=49, people=200)
    write_trajectories(made, folder / "drives.parquet", 1_200, 1, seed=3)
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts so small that there are many."""
    monkeypatch.setattr(trajectories, "PARTITION_POINTS", 800)


def _same(tmp_path: Path, here: Any, there: Any) -> None:
    """Hold rows, areas and manifests against each other; numbers are the same, so the rows need not be sorted."""
    rows = [pq.read_table(tmp_path / place / DATA) for place in ("here", "there")]
    assert rows[0].equals(rows[1])
    areas = [tmp_path / place / "areas.geojson" for place in ("here", "there")]
    assert areas[0].exists() == areas[1].exists()
    if areas[0].exists():
        assert json.loads(areas[0].read_text()) == json.loads(areas[1].read_text())
    for part in ("k", "k_unit", "step_seconds", "time_zone", "guarantees", "cost"):
        assert here.manifest[part] == there.manifest[part], part
    facts = here.manifest["method"]["facts"]
    facts.pop("continuity", None)  # an attack on all trajectories at once
    assert there.manifest["method"]["facts"] == facts
    assert here.cost[:2] == there.cost[:2]
    assert here.manifest["input"]["dropped"] == there.manifest["input"]["dropped"]
    notes = sorted([*here.manifest["input"]["notes"], NO_ATTACK])
    assert notes == sorted(there.manifest["input"]["notes"])
    assert there.manifest["risk"] is None
    assert sorted(there.manifest["files"]["data"]["parts"]) == sorted(
        p.name for p in (tmp_path / "there" / DATA).iterdir()
    )


def _both(spark: Any, tmp_path: Path, method: str, data: Any, **options: Any) -> tuple[Any, Any]:
    # A CSV would be published as one, where the cluster writes Parquet.
    here = crowdveil.anonymize(
        data, tmp_path / "here", method=method, seed=4, report=False, **{"format": "parquet", **options}
    )
    there = crowdveil.anonymize(
        str(data), tmp_path / "there", method=method, seed=4, report=False, spark=spark, **options
    )
    _same(tmp_path, here, there)
    return here, there


@pytest.mark.parametrize("method", APART)
def test_a_city_gives_the_same_rows(method: str, spark: Any, city: Path, tmp_path: Path) -> None:
    _, there = _both(spark, tmp_path, method, city / "drives.parquet")
    assert not any(finding.violated for _, finding in releases.verify(tmp_path / "there"))
    assert there.cost[-1].startswith("distance to originals")


@pytest.mark.realdata
@pytest.mark.parametrize("method", APART)
def test_cabs_give_the_same_rows(method: str, spark: Any, realdata: Path, tmp_path: Path) -> None:
    _both(spark, tmp_path, method, realdata / "sf_cabs" / "cabs_dataset_20080608_0800_1200.parquet")


@pytest.mark.realdata
def test_a_csv_and_tiles_of_the_user_give_the_same_rows(spark: Any, realdata: Path, tmp_path: Path) -> None:
    folder = realdata / "sf_cabs"
    _both(spark, tmp_path, "simple-generalization", folder / "mock_dataset.csv", zones=str(folder / "mock_tiles.geojson"),
          overlapping_strategy="one")  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {
            "k": 4,
            "interval_s": 300,
            "parts_by": "first-time",
            "center": "remaining",
            "aggregation": "closest-trajectory",
        },
        {"k": 2, "time_weight": 0.5, "count_trajectories": True, "exchange": False},
    ],
)
def test_options_of_parts_give_the_same_rows(options: dict[str, Any], spark: Any, city: Path, tmp_path: Path) -> None:
    _both(spark, tmp_path, "time-partitioned-microaggregation", city / "drives.parquet", **options)


@pytest.mark.parametrize("side", [0.004, 1e-9])
def test_numbers_close_up_where_trajectories_go(side: float, spark: Any, city: Path, tmp_path: Path) -> None:
    """Tiles that hold some of the points, and none of them."""
    points = pq.read_table(city / "drives.parquet")
    x, y = (float(np.median(points[name].to_numpy())) for name in ("lon", "lat"))
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    tile = {"type": "Feature", "properties": {"zone_id": "a"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    (tmp_path / "tiles.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [tile]}))
    here, _ = _both(
        spark, tmp_path, "simple-generalization", city / "drives.parquet", zones=str(tmp_path / "tiles.geojson")
    )
    published = here.manifest["cost"]["published_trajectories"]
    assert 0 < published < 1_200 if side > 0.001 else published == 0
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "there"))


def test_an_executor_is_killed_in_the_middle(spark: Any, city: Path, tmp_path: Path) -> None:
    method, stages, killed = "time-partitioned-microaggregation", [], []

    def kill(done: int, total: int) -> None:
        if stages[-1] == "anonymizing" and done < total and not killed:
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    here = crowdveil.anonymize(city / "drives.parquet", tmp_path / "here", method=method, seed=4, report=False)
    request = pipeline.Request(
        method, str(city / "drives.parquet"), str(tmp_path / "there"), options={"seed": 4, "report": False}, spark=spark
    )
    there = pipeline.run(request, kill, stages.append)
    assert killed
    _same(tmp_path, here, there)


def _awkward(city: Path, folder: Path) -> Path:
    """A CSV in no order, with ids that begin again for each user, equal times, and rows that cannot be used."""
    table = pq.read_table(city / "drives.parquet").slice(0, 9_000)
    order = np.random.default_rng(1).permutation(len(table))
    columns = {name: table[name].take(pa.array(order)).to_pylist() for name in table.column_names}
    columns["trajectory_id"] = [f"t{int(i) % 40}" for i in columns["trajectory_id"]]
    columns["timestamp"] = [t.replace(second=0, microsecond=0).isoformat(sep=" ") for t in columns["timestamp"]]
    for row, column, value in ((3, "lat", None), (500, "lon", 190.5), (700, "timestamp", "noon"), (900, "trajectory_id", None),
                               (901, "user_id", None)):  # fmt: skip
        columns[column][row] = value
    pacsv.write_csv(pa.table(columns), folder / "points.csv")
    return folder / "points.csv"


@pytest.mark.parametrize("method", APART)
def test_awkward_rows_are_read_as_on_one_machine(method: str, spark: Any, city: Path, tmp_path: Path) -> None:
    _, there = _both(spark, tmp_path, method, _awkward(city, tmp_path), drop_invalid=True)
    assert "are in a trajectory with such a row" in there.manifest["input"]["dropped"]
    assert any("each pair of user and id" in note for note in there.manifest["input"]["notes"])
    with pytest.raises(InputError, match=r"1 row has no usable value in column trajectory_id. Fix them"):
        crowdveil.anonymize(str(tmp_path / "points.csv"), tmp_path / "more", method=method, spark=spark)
    assert not (tmp_path / "more").exists()


def test_a_data_frame_and_a_folder_of_files_are_read(spark: Any, city: Path, tmp_path: Path) -> None:
    method, table = "time-partitioned-microaggregation", pq.read_table(city / "drives.parquet")
    (tmp_path / "drives").mkdir()
    cut = len(table) // 3
    for i in range(3):
        pq.write_table(table.slice(i * cut, cut if i < 2 else None), tmp_path / "drives" / f"part-{i}.parquet")
    here = crowdveil.anonymize(table, tmp_path / "here", method=method, seed=4, report=False)
    for data in (str(tmp_path / "drives"), spark.read.parquet(str(city / "drives.parquet"))):
        there = crowdveil.anonymize(
            data, tmp_path / "there", method=method, seed=4, overwrite=True, report=False, spark=spark
        )
        _same(tmp_path, here, there)


def test_what_is_wrong_is_one_sentence_and_leaves_nothing(spark: Any, city: Path, tmp_path: Path) -> None:
    run = lambda **options: crowdveil.anonymize(  # noqa: E731
        str(city / "drives.parquet"),
        tmp_path / "out",
        method="time-partitioned-microaggregation",
        spark=spark,
        **options,
    )
    with pytest.raises(InputError, match="k: Expected at most the people in the data, "):
        run(k=5_000)
    with pytest.raises(ParameterError, match="cannot be done in partitions, since the weight of time"):
        run(time_weight="mobidatalab")
    with pytest.raises(ParameterError, match="the original does not leave the cluster"):
        run(pairing=tmp_path / "pairs.csv")
    with pytest.raises(ParameterError, match="swapmob cannot be done in partitions"):
        crowdveil.anonymize(str(city / "drives.parquet"), tmp_path / "out", method="swapmob", spark=spark)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_seen(spark: Any, city: Path, tmp_path: Path) -> None:
    crowdveil.anonymize(
        str(city / "drives.parquet"), tmp_path / "out", method="time-partitioned-microaggregation", spark=spark
    )
    assert "<html" in (tmp_path / "out" / "report.html").read_text()[:500]
    part = sorted((tmp_path / "out" / DATA).iterdir())[0]
    rows = pq.read_table(part)
    moved = rows.set_column(0, "lat", pa.array(np.append(rows["lat"].to_numpy()[:-1], 37.0)))
    pq.write_table(moved, part)
    with pytest.raises(GuaranteeViolatedError, match=f"{DATA} changed since the release was made"):
        crowdveil.verify(tmp_path / "out")
    # An edited manifest is found by the guarantee itself.
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    from crowdveil.io.manifest import FileEntry

    manifest["files"]["data"] = FileEntry.of(tmp_path / "out" / DATA).plain()
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    broken = [guarantee.name for guarantee, finding in crowdveil.verify(tmp_path / "out") if finding.violated]
    assert broken == ["trajectory-k-anonymity"]
    (tmp_path / "out" / DATA / part.name).unlink()
    manifest["files"]["data"] = FileEntry.of(tmp_path / "out" / DATA).plain()
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    found = {guarantee.name: finding.holds for guarantee, finding in crowdveil.verify(tmp_path / "out")}
    assert not found["well-formed-trajectories"]


def test_exchanged_coordinates_are_refused_as_on_one_machine(spark: Any, city: Path, tmp_path: Path) -> None:
    rows = pq.read_table(city / "drives.parquet")
    west = pc.subtract(rows["lon"], 76.35)  # as in New York, whose longitudes are latitudes where nobody lives
    places = {"lat": west, "lon": rows["lat"]}
    exchanged = pa.table({name: places.get(name, rows[name]) for name in rows.column_names})
    pq.write_table(exchanged, tmp_path / "drives.parquet")
    for there in (None, spark):
        with pytest.raises(InputError, match="Exchange the two columns"):
            crowdveil.anonymize(
                str(tmp_path / "drives.parquet"), tmp_path / "out", method="simple-generalization", spark=there
            )
