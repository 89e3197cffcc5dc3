"""The sandbox alone: readers that trust their libraries, in processes that are confined, give nothing away."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import SECRET, Hostile, Listener, make_secret
from serving import starter_here

from conftest import COMMAND
from crowdveil.errors import InputError, Name, Option, ParameterError, as_field, render
from crowdveil.server.kinds import KINDS
from crowdveil.server.kinds.base import JobRequest, Task
from crowdveil.server.queue.database import open_database
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.job import NewJob, new_id
from crowdveil.server.queue.store import Store
from crowdveil.server.workers.process import check_rows, default_memory, memory_of
from crowdveil.server.workers.sandbox import confine, trial
from crowdveil.server.workers.sandbox.confine import Offered, clean_environment, installed, offered
from crowdveil.server.workers.subprocess_call import NO_THREADS
from crowdveil.server.workers.worker import SENTENCE_MOST, ChildMessages, Worker

TESTS = Path(__file__).parents[1]
needs_sandbox = pytest.mark.skipif(not offered().is_whole, reason="this kernel has no Landlock or no seccomp")
_ALONE = """
import json, sys
from pathlib import Path
import hostile, pyogrio, h5py
from crowdveil.server.workers.sandbox.confine import Bounds, confine
own = Path(sys.argv[1])
if sys.argv[2] == "confined":
    confine((own,), own / "tmp", Bounds(memory=1 << 28), read=(Path(hostile.__file__).parent,))
seen = {}
for path in sorted(own.iterdir()):
    if path.suffix in (".omx",):
        seen[path.name] = hostile.unsafe_matrix(path)
    elif path.suffix == ".parquet":
        import pyarrow.parquet as pq
        try:
            seen[path.name] = str(pq.read_table(path).nbytes)
        except (MemoryError, OSError) as error:
            seen[path.name] = type(error).__name__
    elif path.is_file():
        seen[path.name] = hostile.unsafe_zones(path)
print(json.dumps(seen))
"""


@pytest.fixture
def attack(tmp_path: Path) -> Iterator[tuple[Path, Listener]]:
    own = tmp_path / "own"
    (own / "tmp").mkdir(parents=True)
    (tmp_path / "else").mkdir()
    with Listener() as listener:
        made = Hostile(make_secret(tmp_path / "else"), listener.url)
        some = (
            "gdalg.json",
            "vrt.geojson",
            "vrt.gpkg",
            "crs-link.geojson",
            "wfs.json",
            "storage.omx",
            "link.omx",
            "virtual.omx",
        )
        for name, content in (made.zones() | made.matrices()).items():
            if name in some:
                (own / name).write_bytes(content)
        yield own, listener


def read_unsafely(own: Path, how: str) -> dict[str, str]:
    environment = {
        **os.environ,
        **NO_THREADS,
        "PYTHONPATH": os.pathsep.join(str(TESTS / part) for part in ("support", "reference")),
        "PYTHONWARNINGS": "ignore",
    }
    ran = subprocess.run(
        [sys.executable, "-c", _ALONE, own, how], env=environment, check=True, capture_output=True, text=True
    )
    seen: dict[str, str] = json.loads(ran.stdout)
    return seen


@needs_sandbox
def test_trusting_readers_give_nothing_away_once_they_are_confined(attack: tuple[Path, Listener]) -> None:
    own, listener = attack
    free = read_unsafely(own, "free")
    stolen = [name for name, text in free.items() if SECRET[:8] in text]
    assert len(stolen) >= 4 and listener.asked > 0, free  # older versions of GDAL know fewer formats
    listener.asked = 0
    confined = read_unsafely(own, "confined")
    assert set(confined) == set(free)
    assert not [name for name, text in confined.items() if SECRET[:8] in text], confined
    assert listener.asked == 0


@pytest.mark.slow
@needs_sandbox
def test_a_table_that_grows_without_end_meets_the_bound_of_memory(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    bomb = Hostile(tmp_path / "secret.csv", "").tables(40_000_000)["bomb.parquet"]
    assert len(bomb) < 3000
    (tmp_path / "bomb.parquet").write_bytes(bomb)
    assert read_unsafely(tmp_path, "confined")["bomb.parquet"] in ("ArrowMemoryError", "MemoryError")


def test_a_table_that_grows_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "bomb.parquet").write_bytes(Hostile(tmp_path / "secret.csv", "").tables()["bomb.parquet"])
    with pytest.raises(InputError, match="far more rows than its size"):
        check_rows(tmp_path / "bomb.parquet", {"max_rows": 100_000_000, "upload_bytes": 1 << 31})


@needs_sandbox
def test_all_that_is_tried_is_refused_here() -> None:
    tried = trial.tried()
    assert len(tried) > 15 and all(attempt.refused for attempt in tried), tried
    trial.check_sandbox(True, print)


def test_a_kernel_without_it_is_reported_and_refused_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(trial, "offered", lambda: Offered(0, True))
    monkeypatch.setattr(trial, "tried", lambda: [trial.Attempt("files", "read a file outside", False)])
    trial.check_sandbox(False, said.append)
    assert len(said) == 1 and said[0].startswith("WARNING") and "Landlock" in said[0]
    with pytest.raises(ParameterError, match=r"require-sandbox.*read a file outside"):
        trial.check_sandbox(True, said.append)
    monkeypatch.setattr(trial, "offered", lambda: Offered(7, True))
    trial.check_sandbox(False, said.append)
    assert len(said) == 1


def test_attempts_are_distinguished_where_nothing_is_enforced(tmp_path: Path) -> None:
    """The attempts themselves succeed in a process that is free, so that their refusal says something."""
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("secret")
    (tmp_path / "own" / "link").symlink_to(tmp_path / "other" / "secret")
    with Listener() as listener:
        asked = {"port": int(listener.url.rpartition(":")[2]), "process": os.getpid()}
        free = trial._attempts(asked, tmp_path / "own", tmp_path / "other")
        refused = [
            what for part, what, do in free if part not in ("limits", "environment", "processes") and trial._refused(do)
        ]
    assert set(refused) <= {"read the memory of the server"}


def test_check_prints_what_is_enforced() -> None:
    ran = subprocess.run([*COMMAND, "serve", "--check"], check=True, capture_output=True, text=True)
    assert "read a file outside the job's folder" in ran.stdout
    assert not offered().is_whole or "NOT ENFORCED" not in ran.stdout


def test_the_environment_of_a_confined_process_has_nothing_of_the_service() -> None:
    given = {
        "CROWDVEIL_DATABASE_URL": "postgresql://u:p@h/d",
        "PGPASSWORD": "p",
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "k",
    }
    clean = clean_environment(given, Path("/x/tmp"))
    assert clean["PATH"] == "/bin" and clean["TMPDIR"] == clean["HOME"] == "/x/tmp" and clean["PROJ_NETWORK"] == "OFF"
    assert not set(given) - {"PATH"} & set(clean)


def test_no_folder_above_the_jobs_own_is_readable() -> None:
    assert Path("/") not in installed() and Path("/etc") not in installed() and Path("/proc") not in installed()


# A job in a worker


def run_job(tmp_path: Path, do: Any, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> tuple[Any, Files]:
    """A job that does something of its own, run by a worker as any other is."""

    def run(task: Task) -> JobRequest:
        (task.out / "seen.json").write_text(json.dumps(do(task)))
        return JobRequest()

    monkeypatch.setitem(KINDS, "filter", dataclasses.replace(KINDS["filter"], run=run))
    files, store = Files(tmp_path / "data"), Store(open_database(f"sqlite:///{tmp_path / 'jobs.sqlite'}"))
    job = new_id()
    folder = files.receive(job)
    (folder / "inputs" / "a.csv").write_text("x\n1\n")
    files.accept(job)
    assert store.add(NewJob(job, "anna", "filter", "trajectories", {}, {"data": "a.csv"}, limits), 100)
    # A child that is forked here begins with the memory of all tests that ran before.
    Worker(store, files, starter_here(), memory_bytes=memory_of(os.getpid()) + (1 << 30)).work(once=True)
    return store.get(job), files


@needs_sandbox
def test_a_job_sees_its_own_folder_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROWDVEIL_DATABASE_URL", SECRET)
    secret = make_secret(tmp_path)
    held = secret.open()  # another's file, open as the job is forked

    def do(task: Task) -> dict[str, Any]:
        import duckdb

        def tried(attempt: Any) -> str:
            try:
                return str(attempt())
            except (OSError, KeyError, duckdb.Error) as error:
                return type(error).__name__

        import tempfile

        with tempfile.TemporaryDirectory() as spill:
            inside = Path(spill).parent == Path(os.environ["TMPDIR"]) and Path(spill).parents[1] == task.out.parent
        return {
            "own": Path("a.csv").read_text(),
            "temporary": inside,
            "secret": tried(secret.read_text),
            "database": tried((tmp_path / "jobs.sqlite").read_bytes),
            "jobs": tried(lambda: list((tmp_path / "data" / "jobs").iterdir())),
            "environment": tried(lambda: os.environ["CROWDVEIL_DATABASE_URL"]),
            "inherited": tried(lambda: os.read(held.fileno(), 100)),
            "engine": tried(lambda: duckdb.sql(f"SELECT * FROM '{secret}'").fetchall()),
        }

    job, files = run_job(tmp_path, do, monkeypatch)
    held.close()
    assert job.state == "done", job
    run = files.run(job.id, job.result["lease"])
    seen = json.loads((run / "seen.json").read_text())
    assert seen["own"] == "x\n1\n" and seen["temporary"] is True and seen["environment"] == "KeyError"
    assert SECRET not in json.dumps(seen), seen
    assert seen["secret"] == seen["database"] == seen["jobs"] == "PermissionError"
    assert seen["inherited"] == "b''"
    assert sorted(p.name for p in run.iterdir()) == ["seen.json", "summary.json"]


def test_the_temporary_folder_goes_however_a_job_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def do(task: Task) -> None:
        import tempfile

        Path(tempfile.gettempdir(), "spill").write_text(SECRET)
        os._exit(3)

    job, files = run_job(tmp_path, do, monkeypatch)
    assert job.state == "failed" and not files.job(job.id).exists()
    assert not [p for p in tmp_path.rglob("spill")]


@pytest.mark.parametrize(
    "said",
    [
        {
            "end": "done",
            "result": {"name": "../../x", "bytes": 1, "sha256": "0" * 64, "media_type": "a/b", "lease": "l"},
        },
        {
            "end": "done",
            "result": {"name": "a\r\nb", "bytes": 1, "sha256": "0" * 64, "media_type": "a/b", "lease": "l"},
        },
        {
            "end": "done",
            "result": {"name": "a", "bytes": 1, "sha256": "0" * 64, "media_type": "a/b\r\nX: y", "lease": "l"},
        },
        {"end": "done", "result": {"name": "a", "bytes": "x", "sha256": "0" * 64, "media_type": "a/b", "lease": "l"}},
        {"end": "done"},
        {"end": "published"},
        [],
        7,
    ],
)
def test_what_a_child_says_is_not_believed(said: Any) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        ChildMessages().take(json.dumps(said).encode() + b"\n")


def test_a_long_sentence_is_shortened_between_references() -> None:
    for length in range(SENTENCE_MOST - 12, SENTENCE_MOST + 2):
        heard = ChildMessages()
        text = f"{'x' * length}{Option('suppress')}, or {Name('a.csv')}."
        heard.take(json.dumps({"end": "failed", "code": "bad_input", "message": text}).encode() + b"\n")
        assert heard.end is not None and len(heard.end["message"]) <= SENTENCE_MOST
        assert not set("\ue000\ue001\ue002") & set(render(heard.end["message"], as_field))


def test_a_child_that_never_ends_its_line_is_not_listened_to() -> None:
    heard = ChildMessages()
    for _ in range(16):
        heard.take(b"x" * (1 << 16))
    with pytest.raises(ValueError, match="too long"):
        heard.take(b"x")


def test_a_result_that_is_a_link_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is not confined could leave one; it must not be served."""
    other = make_secret(tmp_path)

    def do(task: Task) -> None:
        (task.out.parent / "summary.json").symlink_to(other)

    monkeypatch.setattr(confine, "offered", lambda: Offered(0, False))
    job, _ = run_job(tmp_path, do, monkeypatch)
    assert job.state == "failed" and job.result is None, job


@needs_sandbox
def test_a_confined_process_is_the_first_to_end_when_memory_is_short(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from crowdveil.server.workers.sandbox.confine import Bounds, confine; "
        "confine((Path(sys.argv[1]),), Path(sys.argv[1]), Bounds()); print(flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdin=pipe, stdout=pipe, env={**os.environ, **NO_THREADS}
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "1000\n"
        process.communicate()


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/a/b", {"memory.max": "max", "a/memory.max": f"{4 << 30}", "a/b/memory.max": "max"}, 4 << 30),
        ("0::/", {"memory.max": f"{3 << 30}"}, 3 << 30),
        ("2:cpu:/x\n4:memory:/c", {"memory/c/memory.limit_in_bytes": f"{5 << 30}"}, 5 << 30),
        ("4:memory:/gone", {"memory/memory.limit_in_bytes": f"{2 << 30}"}, 2 << 30),
    ],
)
def test_memory_of_a_container_or_unit_bounds_that_of_jobs(
    group: str, limits: dict[str, str], expected: int, tmp_path: Path
) -> None:
    for name, content in {"proc/self/cgroup": group, **{f"sys/fs/cgroup/{n}": c for n, c in limits.items()}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content + "\n")
    assert default_memory(1, tmp_path) == int(0.8 * expected)


def test_memory_has_a_bound_by_default() -> None:
    assert 1 << 30 <= default_memory(4) <= default_memory(1)
    assert default_memory(10**6) == 1 << 30
