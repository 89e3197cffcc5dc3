"""Runs that are cut short and go on: the same bytes as in one go, and no time step solved twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from examples import slow_param
from synthetic import write_city

import crowdveil
from conftest import Ran
from crowdveil.cli.main import cli
from crowdveil.compat.mobidatalab.runfiles import read_run_file
from crowdveil.engine import Arrays, FinishedPartitions, LocalEngine, StoppedEarlyError, local
from crowdveil.errors import GuaranteeViolatedError, InputError, OutputError, ParameterError
from crowdveil.guarantees import FlowKAnonymity
from crowdveil.run import local as local_backend
from crowdveil.run import pipeline, releases
from crowdveil.run.pipeline import Request, run
from crowdveil.synth.city import City

DAYS = 14
DATA_FILES = ("flows.parquet", "steps.parquet", "areas.geojson")


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two weeks of trips in a small city, its zones, and what one uninterrupted run makes of them."""
    return write_city(tmp_path_factory.mktemp("city"), tiles=49, people=1_000, trips=40_000, days=DAYS)


@pytest.fixture(scope="module")
def whole(city: Path) -> dict[str, bytes]:
    """The files of a run in one go."""
    run(request(city, city / "whole"))
    return data_files(city / "whole")


def request(city: Path, output: Path, resume: Path | None = None, **changed: Any) -> Request:
    how: dict[str, Any] = {"parameters": {"k": 5}, "reading": {"zones": city / "zones.geojson"}, **changed}
    options = {"resume": resume, **how.pop("options", {})}
    return Request(how.pop("method", "joint"), how.pop("data", city / "trips.parquet"), output, options=options, **how)


def data_files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in DATA_FILES}


class Steps:
    """Watches the engine: which steps are begun; and holds back those after the half until `stopped`, if asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, hold: bool = False) -> None:
        self.begun: list[int] = []
        self.count = 0
        self.stopped = threading.Event()
        plain = LocalEngine.map

        def watched(engine: LocalEngine, task: Any, count: int, progress: Any) -> list[Arrays]:
            self.count = count

            def step(partition: int) -> Arrays:
                self.begun.append(partition)
                if hold and partition >= count // 2:
                    self.stopped.wait(20)
                result: Arrays = task(partition)
                return result

            return plain(engine, step, count, progress)

        monkeypatch.setattr(LocalEngine, "map", watched)

    def stop_half_way(self, done: int, total: int) -> None:
        """Progress that interrupts, as Ctrl-C would."""
        if done >= total // 2 and not self.stopped.is_set():
            self.stopped.set()
            raise KeyboardInterrupt


@pytest.fixture
def half(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A run of joint into out/ that was interrupted half way, with kept/ to resume from."""
    with monkeypatch.context() as patched:
        patched.setattr(local, "TICK_S", 0.01)
        steps = Steps(patched, hold=True)
        with pytest.raises(
            StoppedEarlyError, match=r"of 3\d\d time steps are kept in .*kept; run the same command again"
        ):
            run(request(city, tmp_path / "out", tmp_path / "kept"), steps.stop_half_way)
    return steps


def test_an_interrupted_run_goes_on(
    city: Path, whole: dict[str, bytes], half: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept"], "nothing of the release is there"
    assert half.count // 2 <= len(half.begun) < half.count
    steps = Steps(monkeypatch)
    result = run(request(city, tmp_path / "out", tmp_path / "kept"))
    assert data_files(tmp_path / "out") == whole
    assert len(pq.read_table(tmp_path / "out" / "flows.parquet")) > 100
    assert sorted(half.begun + steps.begun) == list(range(steps.count)), "each step is solved once"
    assert steps.count > 300 and not any("kept" in sentence for sentence in result.notes.messages)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"], "what was kept is removed"
    assert not any(f.violated for _, f in releases.verify(tmp_path / "out"))


def test_a_run_that_is_stopped_after_the_last_step_solves_none_again(
    city: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stage(name: str) -> None:
        if name == "verifying":
            raise KeyboardInterrupt

    with pytest.raises(StoppedEarlyError):
        run(request(city, tmp_path / "out", tmp_path / "kept"), stage=stage)
    steps = Steps(monkeypatch)
    run(request(city, tmp_path / "out", tmp_path / "kept"))
    assert steps.begun == [] and data_files(tmp_path / "out") == whole


_SLOW = """
import sys, threading, time
from pathlib import Path
from crowdveil.cli.main import main
from crowdveil.engine import LocalEngine, local
local.TICK_S = local.KEEP_S = 0.01
plain, said, kept = LocalEngine.map, threading.Lock(), Path(sys.argv[1])
del sys.argv[1]
def map_slowly(engine, task, count, progress):
    def step(partition):
        if partition >= count // 2:
            until = time.monotonic() + 20
            while not list(kept.glob("*.npz")):
                time.sleep(0.01)
                assert time.monotonic() < until, "nothing was kept"
            if said.acquire(blocking=False):
                print("half way", flush=True)
            time.sleep(2)
        return task(partition)
    return plain(engine, step, count, progress)
LocalEngine.map = map_slowly
main()
"""


def arguments(city: Path, out: Path, kept: Path) -> list[str]:
    return [
        "anonymize", "joint", str(city / "trips.parquet"), "--zones", str(city / "zones.geojson"), "--k", "5",
        "-o", str(out), "--resume", str(kept),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [slow_param(signal.SIGINT), slow_param(signal.SIGTERM), signal.SIGKILL])
def test_a_process_that_is_stopped_goes_on(
    number: int, city: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., Ran],
) -> None:  # fmt: skip
    out, kept = tmp_path / "out", tmp_path / "kept"
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW, str(kept), *arguments(city, out, kept)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n", process.communicate()[1]
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert not out.exists()
    content = json.loads((kept / "key.json").read_text())
    # There was no seed, so the entropy of the first run is kept for the second.
    before = FinishedPartitions(kept, content["key"], content["entropy"]).load(*content["partitions"])
    if number != signal.SIGKILL:
        sentence = (
            f"Stopped; {len(before):,} of {content['partitions'][0]:,} time steps are kept in {kept}; run the same"
        )
        assert sentence in Ran(process.returncode, "", err).sentence and process.returncode == 128 + number
    steps = Steps(monkeypatch)
    ran = command(*arguments(city, out, kept))
    assert ran.code == 0, ran.err
    assert len(before) > 0 and sorted([*before, *steps.begun]) == list(range(steps.count))
    assert data_files(out) == whole and not kept.exists()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"parameters": {"k": 6}}, "parameters"),
        ({"options": {"seed": 1}}, "seed"),
        ({"reading": {"zones": "zones.geojson", "tz": "Europe/Paris"}}, "input options"),
        ({"method": "atg-dual"}, "method"),
        ({"data": "more.parquet"}, "data"),
        ({"reading": {"zones": "moved.geojson"}}, "data"),
    ],
)
def test_steps_of_another_run_are_refused_before_anything_is_read(
    changed: dict[str, Any], named: str, city: Path, half: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(city)
    if changed.get("data"):
        table = pq.read_table("trips.parquet")
        pq.write_table(table.slice(0, len(table) - 1), "more.parquet")
    Path("moved.geojson").write_text(Path("zones.geojson").read_text().replace("}}", "}} ", 1))
    said: list[str] = []
    with pytest.raises(OutputError, match=rf"of another run \(other .*{named}"):
        run(request(city, tmp_path / "out", tmp_path / "kept", **changed), stage=said.append)
    assert said == [] and any((tmp_path / "kept").glob("*.npz"))


def test_steps_of_another_version_are_refused(
    city: Path, half: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdveil.run.resume.__version__", "99")
    with pytest.raises(OutputError, match=r"of another run \(other version of crowdveil\)"):
        run(request(city, tmp_path / "out", tmp_path / "kept"))


def test_where_a_file_lies_and_the_form_of_the_tables_do_not_matter(
    city: Path, half: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere.parquet").write_bytes((city / "trips.parquet").read_bytes())
    steps = Steps(monkeypatch)
    run(
        request(
            city, tmp_path / "o", tmp_path / "kept", data=str(tmp_path / "elsewhere.parquet"), options={"format": "csv"}
        )
    )
    assert sorted(half.begun + steps.begun) == list(range(steps.count))


def test_a_broken_guarantee_removes_what_was_kept(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept may be what is wrong; going on from it would only end here again."""
    broken = (FlowKAnonymity(k=10**6, k_unit="people"),)
    checked = local_backend.check
    monkeypatch.setattr(local_backend, "check", lambda written, guarantees, *more: checked(written, broken, *more))
    with pytest.raises(GuaranteeViolatedError):
        run(request(city, tmp_path / "out", tmp_path / "kept"))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_before_the_first_step_is_a_plain_one(city: Path, tmp_path: Path) -> None:
    def stage(name: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        run(request(city, tmp_path / "out", tmp_path / "kept"), stage=stage)
    assert stopped.type is KeyboardInterrupt, "there are no numbers to report"
    assert list(tmp_path.iterdir()) == []


def test_a_method_in_one_go_says_that_nothing_was_kept(city: Path, tmp_path: Path) -> None:
    result = run(request(city, tmp_path / "out", tmp_path / "kept", method="suppression"))
    assert any("nothing was kept" in sentence for sentence in result.notes.messages)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    plain = run(request(city, tmp_path / "plain", method="suppression"))
    assert not any("kept" in sentence for sentence in plain.notes.messages)


def test_data_in_memory_cannot_be_resumed(city: Path, tmp_path: Path) -> None:
    table = pq.read_table(city / "trips.parquet")
    with pytest.raises(ParameterError, match="resume: wanted data in a file"):
        run(request(city, tmp_path / "out", tmp_path / "kept", data=table))
    zones = City.make(seed=3, tiles=49, people=10).zones
    with pytest.raises(ParameterError, match="resume: wanted zones in a file"):
        run(request(city, tmp_path / "out", tmp_path / "kept", reading={"zones": zones}))
    assert list(tmp_path.iterdir()) == []


def test_data_that_is_not_there_is_reported_as_before(city: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        run(request(city, tmp_path / "out", tmp_path / "kept", data=tmp_path / "none.parquet"))
    with pytest.raises(InputError):
        run(request(city, tmp_path / "out", tmp_path / "kept", reading={"zones": tmp_path / "none.geojson"}))


@pytest.mark.parametrize(("output", "resume"), [("out", "out"), ("out", "out/kept"), ("kept/out", "kept")])
def test_the_folder_lies_apart_from_the_release(city: Path, tmp_path: Path, output: str, resume: str) -> None:
    with pytest.raises(ParameterError, match="apart from that of the release"):
        run(request(city, tmp_path / output, tmp_path / resume))


def test_every_part_of_a_shapefile_counts(city: Path, tmp_path: Path) -> None:
    """Ids of zones lie in a file of their own next to the outlines."""
    for name in ("zones.shp", "zones.dbf"):
        (tmp_path / name).write_bytes(b"x")
    from crowdveil.run.resume import _hashes

    before = _hashes(tmp_path / "zones.shp")
    (tmp_path / "zones.dbf").write_bytes(b"y")
    assert _hashes(tmp_path / "zones.shp") != before


def test_every_door_takes_it(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def ran(request: Request, *_: Any) -> Any:
        asked.append(request)
        raise ParameterError("enough.")

    monkeypatch.setattr(pipeline, "run", ran)
    with pytest.raises(ParameterError, match=r"enough\."):
        crowdveil.anonymize("joint", "trips.parquet", tmp_path / "out", resume=str(tmp_path / "kept"))
    with pytest.raises(ParameterError, match=r"enough\."):
        cli.main(arguments(city, tmp_path / "out", tmp_path / "kept"), standalone_mode=False)
    assert [r.options["resume"] for r in asked] == [str(tmp_path / "kept")] * 2
    content = {"method": "joint", "input": "trips.parquet", "output": "out", "resume": "kept"}
    (tmp_path / "run.json").write_text(json.dumps(content))
    assert read_run_file(tmp_path / "run.json").options["resume"] == "kept"
    for wrong in (5, "", ["x"]):
        (tmp_path / "run.json").write_text(json.dumps({**content, "resume": wrong}))
        with pytest.raises(ParameterError, match="resume: wanted the path of a file or a folder"):
            read_run_file(tmp_path / "run.json")


def test_only_methods_in_time_steps_offer_it(command: Callable[..., Ran]) -> None:
    assert "--resume FOLDER" in command("anonymize", "joint", "--help").out
    assert "--resume" not in command("anonymize", "simple-generalization", "--help").out
