"""The one way through, from files to a verified release; and what happens when it is cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import ALL, slow_param

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError, OutputError, ParameterError
from crowdveil.guarantees import FlowKAnonymity
from crowdveil.io.written_release import file_hash
from crowdveil.methods.od import suppression
from crowdveil.run import pipeline
from crowdveil.run.pipeline import Request, run
from crowdveil.run.releases import verify


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """Forty trips by twenty people between two zones in an hour, and three by three people elsewhere."""
    path = tmp_path / "trips.parquet"
    table = pa.table(
        {
            "origin": ["n"] * 40 + ["s"] * 3,
            "destination": ["s"] * 40 + ["n"] * 3,
            "time": pa.array(np.arange(43) * 60_000_000, pa.timestamp("us")),
            "user_id": [*range(20), *range(20), 0, 1, 2],
        }
    )
    pq.write_table(table, path)
    return path


def test_from_file_to_verified_release(trips: Path, tmp_path: Path) -> None:
    result = run(Request("suppression", trips, tmp_path / "out", {"k": 10}))
    table = pq.read_table(tmp_path / "out" / "flows.parquet")
    assert table.column_names == ["t", "origin_area", "destination_area", "volume", "people", "state"]
    assert table.select(["origin_area", "destination_area", "volume", "people", "state"]).to_pylist() == [
        {"origin_area": "n", "destination_area": "s", "volume": 40, "people": 20, "state": "published"}
    ]
    assert not any(f.violated for _, f in verify(tmp_path / "out"))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest == result.manifest
    parameters = {"k": 10, "aggregate_small": False, "include_empty": True}
    method = {"name": "suppression", "status": "proven", "parameters": parameters, "seed_given": False, "facts": {}}
    assert manifest["method"] == method
    assert manifest["input"]["data"]["kind"] == "table"
    assert manifest["k_unit"] == "people" and manifest["original_ids_published"] is False
    assert str(tmp_path) not in json.dumps(manifest), "where files lay is nobody's business"


def test_k_counts_people_and_not_trips(trips: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="people in the data, 20, got 21"):
        run(Request("suppression", trips, tmp_path / "out", {"k": 21}))
    assert not (tmp_path / "out").exists()
    few = pq.read_table(trips).slice(25)  # eighteen trips by fifteen and three people, and no flow of eighteen people
    run(Request("suppression", few, tmp_path / "out", {"k": 16}))
    assert len(pq.read_table(tmp_path / "out" / "flows.parquet")) == 0


def test_the_suppressed_step_is_not_listed(tmp_path: Path) -> None:
    """A time step in which only a few people traveled is not distinguishable from one without anyone."""
    table = pa.table(
        {"t": ["2026-01-01T00:00"] * 12 + ["2026-01-01T05:00"], "origin": ["a"] * 13, "destination": ["b"] * 13}
    )
    run(Request("suppression", table, tmp_path / "out", {"k": 5}, options={"format": "csv"}))
    steps = (tmp_path / "out" / "steps.csv").read_text().splitlines()
    assert steps == ["t,published,suppressed", "2026-01-01T00:00:00+00:00,12,0"]


def test_python_door_takes_the_same_names(trips: Path, tmp_path: Path) -> None:
    result = crowdveil.anonymize(trips, tmp_path / "out", method="suppression", k=3, step="1d", format="csv")
    assert result.manifest["method"]["parameters"]["k"] == 3 and result.manifest["input"]["options"] == {"step": "1d"}
    assert not any(f.violated for _, f in crowdveil.verify(tmp_path / "out"))
    with pytest.raises(ParameterError, match="no such parameter"):
        crowdveil.anonymize(trips, tmp_path / "out2", method="suppression", kk=3)


def test_a_broken_guarantee_publishes_nothing(trips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stricter = lambda params, facts: (FlowKAnonymity(k=1000, k_unit=facts.k_unit),)  # noqa: E731
    method = suppression.METHOD
    monkeypatch.setattr(pipeline, "find_method", lambda name: _with_guarantees(method, stricter))
    with pytest.raises(GuaranteeViolatedError, match="nothing was published"):
        run(Request("suppression", trips, tmp_path / "out", {"k": 10}))
    assert [p.name for p in tmp_path.iterdir()] == ["trips.parquet"]


def _with_guarantees(method: Any, guarantees: Any) -> Any:
    from dataclasses import replace

    return replace(method, guarantees=guarantees)


@pytest.mark.parametrize("name", ["flows.parquet", "areas.geojson", "steps.parquet"])
def test_a_changed_file_is_found(trips: Path, tmp_path: Path, name: str) -> None:
    run(Request("suppression", trips, tmp_path / "out", {"k": 10}))
    path = tmp_path / "out" / name
    if name.endswith("parquet"):
        pq.write_table(pq.read_table(path).replace_schema_metadata({"x": "y"}), path)
    else:
        path.write_text(path.read_text() + "\n")
    with pytest.raises(GuaranteeViolatedError, match=name):
        verify(tmp_path / "out")


def test_a_forged_release_is_found(trips: Path, tmp_path: Path) -> None:
    """An adversary who also corrects the hash in the manifest still cannot publish a small flow."""
    out = tmp_path / "out"
    run(Request("suppression", trips, out, {"k": 10}, options={"format": "csv"}))
    lines = (out / "flows.csv").read_text().splitlines()
    (out / "flows.csv").write_text("\n".join([*lines, lines[1].replace("n,s,40,20", "s,n,3,3")]) + "\n")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"]["data"]["sha256"] = file_hash(out / "flows.csv")
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert [p.name for p, f in verify(out) if f.violated] == ["flow-k-anonymity"]


@pytest.mark.parametrize("damage", ["no manifest", "no data", "broken json", "other format"])
def test_what_cannot_be_verified(trips: Path, tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out"
    run(Request("suppression", trips, out, {"k": 10}))
    if damage == "no manifest":
        (out / "manifest.json").unlink()
    elif damage == "no data":
        (out / "flows.parquet").unlink()
    elif damage == "broken json":
        (out / "manifest.json").write_text("{")
    else:
        (out / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(InputError):
        verify(out)


def test_an_earlier_release_is_replaced_only_when_asked(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Request("suppression", trips, out, {"k": 10}))
    with pytest.raises(OutputError, match="overwrite="):
        run(Request("suppression", trips, out, {"k": 11}))
    run(Request("suppression", trips, out, {"k": 11}, options={"overwrite": True}))
    assert json.loads((out / "manifest.json").read_text())["method"]["parameters"]["k"] == 11
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "trips.parquet"]


def test_a_folder_that_is_no_release_is_never_replaced(trips: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="no release"):
        run(Request("suppression", trips, home, {"k": 10}, options={"overwrite": True}))
    assert (home / "thesis.txt").read_text() == "years of work"


def test_the_release_is_moved_into_place_in_one_step(trips: Path, tmp_path: Path) -> None:
    """The folder that was verified is the very folder that is published: nothing is copied after the check."""
    out, seen = tmp_path / "out", []

    def stage(name: str) -> None:
        if name == "verifying":
            seen.extend(p.stat().st_ino for p in tmp_path.iterdir() if p.is_dir())
            assert not out.exists()

    run(Request("suppression", trips, out, {"k": 10}), stage=stage)
    assert seen == [out.stat().st_ino]


_STAGES = """
import sys, time
from pathlib import Path
from crowdveil.run.pipeline import Request, run
def stage(name):
    print(name, flush=True)
    if name == sys.argv[3]:
        time.sleep(60)
run(Request("suppression", sys.argv[1], Path(sys.argv[2]), {"k": 10}), stage=stage)
"""


@pytest.mark.parametrize("at", [slow_param("anonymizing"), slow_param("writing"), "verifying"])
def test_killed_at_any_stage_there_is_no_release_and_the_next_run_cleans_up(
    trips: Path, tmp_path: Path, at: str
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", _STAGES, str(trips), str(out), at]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == at:
                break
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    run(Request("suppression", trips, out, {"k": 10}))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "trips.parquet"], "leftovers are swept away"


_KILL_LOOP = """
import sys
from pathlib import Path
from crowdveil.run.pipeline import Request, run
print("ready", flush=True)
while True:
    run(Request("suppression", sys.argv[1], Path(sys.argv[2]), {"k": 10}, options={"overwrite": True}))
"""


def test_killed_while_replacing_there_is_a_whole_release_or_none(trips: Path, tmp_path: Path) -> None:
    """Runs replace one another without a pause and are killed at arbitrary moments."""
    out = tmp_path / "out"
    rng = np.random.default_rng(1)
    for _ in range(4 if ALL else 1):
        command = [sys.executable, "-c", _KILL_LOOP, str(trips), str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(0.3 + float(rng.random()))
            process.kill()
        if out.exists():
            assert not any(f.violated for _, f in verify(out))
    os.sync()


@pytest.mark.parametrize("name", ["steps.csv", "areas.csv", "manifest.csv"])
def test_data_do_not_take_the_name_of_another_file(name: str, tmp_path: Path) -> None:
    request = pipeline.Request("joint", "trips.csv", tmp_path / "out", {"k": 2}, data_name=name)
    with pytest.raises(ParameterError, match="another file of this name"):
        pipeline.run(request)
