"""Runs whose flows stay on the disk: the same files as in memory, every part checked, and memory that is given back."""

from __future__ import annotations

import json
import mmap
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic import write_city

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, OutputError, ParameterError
from crowdveil.io import column_files
from crowdveil.io.column_files import columns_in_files, new_column
from crowdveil.io.flows import read_flows
from crowdveil.run import disk

SAME = ("flows.parquet", "steps.parquet", "crosswalk.csv")


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_city(tmp_path_factory.mktemp("city"), tiles=36, people=300, trips=6_000, days=4)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PART_ROWS", 500)


def _run(city: Path, out: Path, method: str = "joint", **options: Any) -> Any:
    given = {"seed": 7, "step": "1h", "zones": city / "zones.geojson", "report": False, **options}
    return crowdveil.anonymize(method, city / "trips.parquet", out, **given)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("joint", {"k": 5}),
        ("joint", {"k": 5, "time_partition": "adaptive", "hour_weight": 1}),
        ("joint", {"k": 5, "time_partition": "adaptive", "longest": "1h"}),
        ("joint", {"k": 5, "step": "all"}),
        ("joint", {"k": 5, "min_inhabited_tiles": 2}),
        ("suppression", {"k": 5}),
        ("suppression", {"k": 200}),
        ("atg-dual", {"k": 5, "aggregate_small": True}),
    ],
    ids=str,
)
def test_files_are_those_of_a_run_in_memory(method: str, options: dict[str, Any], city: Path, tmp_path: Path) -> None:
    held = _run(city, tmp_path / "memory", method, rows_in="memory", **options)
    made = _run(city, tmp_path / "disk", method, rows_in="disk", **options)
    for name in SAME:
        assert (tmp_path / "memory" / name).read_bytes() == (tmp_path / "disk" / name).read_bytes()
    areas = [json.loads((tmp_path / f / "areas.geojson").read_text())["features"] for f in ("memory", "disk")]
    by_name = [sorted(features, key=lambda f: f["properties"]["area"]) for features in areas]
    assert by_name[0] == by_name[1]
    apart = ("files", "created", "risk")
    stated = [{name: value for name, value in m.items() if name not in apart} for m in (held.manifest, made.manifest)]
    assert stated[0] == stated[1]
    assert made.release is None
    assert held.cost == made.cost
    crowdveil.verify(tmp_path / "disk", city / "trips.parquet", zones=city / "zones.geojson")


def test_weights_are_summed_once(city: Path, tmp_path: Path) -> None:
    trips = pq.read_table(city / "trips.parquet")
    weights = np.where(np.arange(len(trips)) % 7 == 0, 0.4, 1.3)
    early = trips["departure"].to_numpy() < trips["departure"].to_numpy().min() + np.timedelta64(1, "h")
    weights[early] = 1e-4  # a time step that is rounded to nothing
    pq.write_table(trips.append_column("w", pa.array(weights)), tmp_path / "trips.parquet")
    shutil.copy(city / "zones.geojson", tmp_path)
    held, made = (
        _run(tmp_path, tmp_path / where, k=5, weight="w", rows_in=where).manifest["cost"]
        for where in ("memory", "disk")
    )
    assert held == made
    assert (tmp_path / "memory/flows.parquet").read_bytes() == (tmp_path / "disk/flows.parquet").read_bytes()


def test_there_are_several_parts(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    whole = disk.DiskBackend._parts

    def counted(self: disk.DiskBackend) -> list[Any]:
        parts.extend(found := whole(self))
        return found

    monkeypatch.setattr(disk.DiskBackend, "_parts", counted)
    result = _run(city, tmp_path / "out", k=5, rows_in="disk", report=True)
    assert len(parts) > 3
    assert np.array_equal(np.concatenate(parts), np.arange(sum(map(len, parts))))
    assert result.report().html
    assert (tmp_path / "out/report.html").exists()


def test_many_rows_have_no_report(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "REPORT_ROWS", 10)
    result = _run(city, tmp_path / "out", k=5, rows_in="disk", report=True)
    assert not (tmp_path / "out/report.html").exists()
    assert any("no report" in note for note in result.manifest["input"]["notes"])


@pytest.mark.parametrize("change", ["smaller group", "a time step in two places", "unlisted area", "broken outline"])
def test_files_that_were_changed_are_not_published(
    change: str, city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is checked as it was written: a fault of the writer does not pass, in whichever part it is."""
    write = disk.DiskBackend.write

    def wrong(self: disk.DiskBackend, progress: Any) -> Any:
        entries = write(self, progress)
        _change(change, self.folder)
        return entries

    monkeypatch.setattr(disk.DiskBackend, "write", wrong)
    with pytest.raises(GuaranteeViolatedError):
        _run(city, tmp_path / "out", k=5, rows_in="disk")
    assert not (tmp_path / "out").exists()


def _change(change: str, folder: Path) -> None:
    file = folder / "flows.parquet"
    rows = pq.read_table(file)
    last = len(rows) - 1
    if change == "smaller group":
        people = rows["people"].to_pylist()
        people[last] = 4
        rows = rows.set_column(rows.column_names.index("people"), "people", pa.array(people))
    elif change == "a time step in two places":
        rows = pa.concat_tables([rows, rows.slice(0, 1)])
    elif change == "unlisted area":
        names = rows["origin_area"].to_pylist()
        names[last] = "nowhere"
        rows = rows.set_column(rows.column_names.index("origin_area"), "origin_area", pa.array(names))
    else:
        areas = json.loads((folder / "areas.geojson").read_text())
        bow = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
        areas["features"][0]["geometry"] = {"type": "Polygon", "coordinates": [bow]}
        (folder / "areas.geojson").write_text(json.dumps(areas))
    pq.write_table(rows, file)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("joint", {"time_partition": "stable"}, "one partition of the map"),
        ("joint", {"format": "csv"}, "Parquet"),
        ("joint", {"wide": True}, "further files"),
        ("laplace", {"unit": "person"}, "cannot be done in parts"),
        ("laplace", {}, "all time steps of the period get noise"),
    ],
)
def test_what_needs_all_rows_is_refused(
    method: str, options: dict[str, Any], said: str, city: Path, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=said):
        _run(city, tmp_path / "out", method, rows_in="disk", **options)
    assert not (tmp_path / "out").exists()


def test_few_flows_of_a_large_file_are_held_in_memory(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdveil.run.pipeline.LARGE_INPUT", 1)
    assert _run(city, tmp_path / "few", k=5).release is not None
    monkeypatch.setattr(disk, "MEMORY_ROWS", 100)
    assert _run(city, tmp_path / "many", k=5).release is None
    assert _run(city, tmp_path / "wide", k=5, wide=True).release is not None
    for name in SAME:
        assert (tmp_path / "few" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_columns_are_read_into_files_and_their_pages_dropped(city: Path) -> None:
    wanted = read_flows(city / "trips.parquet", zones=city / "zones.geojson", step="1h")
    with columns_in_files() as files:
        found = read_flows(city / "trips.parquet", zones=city / "zones.geojson", step="1h")
    for _ in range(2):
        for name in ("origin", "destination", "volume", "people"):
            column = getattr(found, name)
            assert np.array_equal(column, getattr(wanted, name))
            assert isinstance(_root(column), mmap.mmap)
        files.drop_pages()


def _root(array: Any) -> Any:
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_short_columns_are_in_memory() -> None:
    with columns_in_files(above=10):
        assert new_column(10, np.int64).base is None
        assert isinstance(_root(new_column(11, np.int64)), mmap.mmap)
    assert new_column(11, np.int64).base is None


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(column_files.os, "posix_fallocate", full)
    with columns_in_files(), pytest.raises(OutputError, match="TMPDIR"):
        new_column(1, np.int64)


def test_parts_of_a_failed_run_are_removed(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    write = disk.DiskBackend.write

    def wrong(self: disk.DiskBackend, progress: Any) -> Any:
        seen.append(sorted(file.name for file in (self.folder / disk.PARTS_FOLDER).iterdir()))
        write(self, progress)
        assert not (self.folder / disk.PARTS_FOLDER).exists()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.DiskBackend, "write", wrong)
    with pytest.raises(OutputError, match="full"):
        _run(city, tmp_path / "out", k=5, rows_in="disk")
    assert len(seen[0]) > 3 and seen[0][0] == "000000.parquet"
    assert list(tmp_path.iterdir()) == []
