"""The sandbox alone: readers that trust their libraries, in processes that are confined, give nothing away."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import SECRET, Hostile, Listener, make_secret

from crowdveil.cli.demo import make_city
from crowdveil.errors import InputError, Name, ParameterError, Text, parts_of
from crowdveil.server.service import default_memory
from crowdveil.server.workers import sandbox
from crowdveil.server.workers.inspect_upload import check_rows
from crowdveil.server.workers.sandbox import BUBBLEWRAP, LANDLOCK, Bounds, clean_environment, confinement, run_sandboxed
from crowdveil.server.workers.worker import SENTENCE_MOST, checked_answer, checked_progress
from crowdveil.verbs.table import VERBS

TESTS = Path(__file__).parents[1]
NOTHING = "nothing"
OFFERED = {BUBBLEWRAP: confinement() == BUBBLEWRAP, LANDLOCK: sandbox.landlock.is_offered()}
each_way = pytest.mark.parametrize(
    "how", [pytest.param(n, marks=pytest.mark.skipif(not there, reason=f"no {n} here")) for n, there in OFFERED.items()]
)


@pytest.fixture(autouse=True)
def path_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [str(TESTS / part) for part in ("support", "reference")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*found, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def attack(tmp_path: Path) -> Iterator[tuple[Path, Listener]]:
    own = tmp_path / "own"
    own.mkdir()
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


def run(own: Path, how: str, request: dict[str, Any] | None = None, bounds: Bounds | None = None) -> dict[str, Any]:
    answer = run_sandboxed("confined", request or {}, own, bounds or Bounds(1 << 30, 1 << 20), 300, how=how)
    assert answer is not None and "result" in answer, answer
    seen: dict[str, Any] = answer["result"]
    return seen


@each_way
def test_trusting_readers_give_nothing_away_once_they_are_confined(attack: tuple[Path, Listener], how: str) -> None:
    own, listener = attack
    free = run(own, NOTHING)
    stolen = [name for name, text in free.items() if SECRET[:8] in text]
    assert len(stolen) >= 4, free  # older versions of GDAL know fewer formats
    listener.asked = 0
    confined = run(own, how)
    assert set(free) <= set(confined)
    assert not [name for name, text in confined.items() if SECRET[:8] in text], confined
    assert listener.asked == 0


@pytest.mark.slow
@each_way
def test_a_table_that_grows_without_end_meets_the_bound_of_memory(tmp_path: Path, how: str) -> None:
    bomb = Hostile(tmp_path / "secret.csv", "").tables(40_000_000)["bomb.parquet"]
    assert len(bomb) < 3000
    (tmp_path / "bomb.parquet").write_bytes(bomb)
    assert run(tmp_path, how)["bomb.parquet"] in ("ArrowMemoryError", "MemoryError")


def test_a_table_that_grows_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "bomb.parquet").write_bytes(Hostile(tmp_path / "secret.csv", "").tables()["bomb.parquet"])
    with pytest.raises(InputError, match="far more rows than its size"):
        check_rows(tmp_path / "bomb.parquet", {"upload_bytes": 1 << 31})


def tried(tmp_path: Path, how: str) -> tuple[dict[str, bool], int, int]:
    """What was refused, and how many connections and datagrams arrived outside."""
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
    (other / "secret").write_text("secret")
    (own / "link").symlink_to(other / "secret")
    with Listener() as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        request = {
            "other": str(other), "port": int(listener.url.rpartition(":")[2]), "server": os.getpid(),
            "file_bytes": 1 << 20, "datagrams": datagrams.getsockname()[1], "confined": how != NOTHING,
        }  # fmt: skip
        refused = run(own, how, request)
        try:
            arrived = len(datagrams.recv(10))
        except BlockingIOError:
            arrived = 0
        return refused, listener.asked, arrived


@each_way
def test_all_that_is_tried_is_refused(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROWDVEIL_DATABASE_URL", SECRET)
    refused, asked, arrived = tried(tmp_path, how)
    open_ = {name for name, closed in refused.items() if not closed}
    assert (asked, arrived) == (0, 0) and len(refused) > 15
    if how == LANDLOCK:  # what `LEFT_OPEN` names
        assert {"change the mode of a file outside", "change its times", "change its owner"} <= open_
        assert open_ <= {*open_, "see that it is there", "signal the server"} and not {n for n in open_ if "read" in n}
        open_ -= {"change the mode of a file outside", "change its times", "change its owner"}
        open_ -= {"see that it is there", "signal the server"}
    assert not open_, refused
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["answer.json", "large", "link"]


def test_attempts_succeed_where_nothing_is_enforced(tmp_path: Path) -> None:
    """So that their refusal says something."""
    refused, asked, arrived = tried(tmp_path, NOTHING)
    closed = {name for name, was in refused.items() if was}
    assert closed <= {"read the memory of the server", "see the address of the database"} and asked and arrived


def test_a_service_for_other_machines_does_not_start_without_confinement(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, local, other in ((BUBBLEWRAP, None, None), (LANDLOCK, "Landlock alone leaves gaps", "Landlock alone")):
        monkeypatch.setattr(sandbox, "confinement", lambda found=found: found)
        for warning, text in (
            (sandbox.check_confinement(local=True), local),
            (sandbox.check_confinement(local=False), other),
        ):
            assert warning is None if text is None else text in (warning or "")
    monkeypatch.setattr(sandbox, "confinement", lambda: None)
    assert "Install bubblewrap" in (sandbox.check_confinement(local=True) or "")
    with pytest.raises(ParameterError, match=r"host.*neither bubblewrap nor Landlock.*Install bubblewrap"):
        sandbox.check_confinement(local=False)


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


@each_way
def test_no_token_is_in_the_process_of_a_job(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service holds tokens in its memory, and its operator may have one in the environment."""
    token = f"cv_{secrets.token_urlsafe(32)}"
    for name in ("CROWDVEIL_TOKEN", "CROWDVEIL_DATABASE_URL", "AUTHORIZATION"):
        monkeypatch.setenv(name, f"Bearer {token}")
    assert run(tmp_path, how, {"secrets": True}) == {"found": []}
    monkeypatch.setattr(sandbox, "clean_environment", lambda given, temporary: dict(given))
    (tmp_path / "free").mkdir()
    assert "environment" in run(tmp_path / "free", NOTHING, {"secrets": True})["found"], (
        "otherwise nothing is looked for"
    )


def test_no_folder_above_the_jobs_own_is_readable(tmp_path: Path) -> None:
    readable = sandbox._readable([tmp_path])
    assert not {Path("/"), Path("/etc"), Path("/proc"), tmp_path, *tmp_path.parents} & set(readable)


def test_the_folder_that_the_service_is_started_in_is_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert tmp_path not in sandbox._readable([])


@pytest.mark.parametrize(
    "result",
    [
        {"name": "../../x", "bytes": 1, "sha256": "0" * 64, "media_type": "a/b"},
        {"name": "a\r\nb", "bytes": 1, "sha256": "0" * 64, "media_type": "a/b"},
        {"name": "a", "bytes": 1, "sha256": "0" * 64, "media_type": "a/b\r\nX: y"},
        {"name": "a", "bytes": "x", "sha256": "0" * 64, "media_type": "a/b"},
        {"name": 7},
        [],
        None,
    ],
)
def test_what_a_job_answers_is_not_believed(result: Any) -> None:
    assert checked_answer({"result": result}) is None and checked_answer({"error": result}) is None
    assert checked_answer(None) is None


@pytest.mark.parametrize("found", [None, {}, {"stage": [7], "done": "x"}, {"done": -1, "total": 10**30}, {"done": 1.5}])
def test_progress_of_any_form_is_progress(found: Any) -> None:
    stage, done, total = checked_progress(found)
    assert isinstance(stage, str) and (done, total) == (0, 0)


def test_a_long_sentence_is_shortened_between_references() -> None:
    for length in range(SENTENCE_MOST - 12, SENTENCE_MOST + 2):
        text = Text("{words}{suppress}, or {file}.", words="x" * length, file=Name("a.csv"))
        answer = checked_answer({"error": {"code": "bad_input", "parts": parts_of(text)}})
        assert answer is not None and answer["error"]["text"] == text.shortened(SENTENCE_MOST)


@pytest.mark.parametrize("error", [{"code": "x"}, {"code": "x", "parts": [7]}, {"parts": []}, {"code": "x", "parts": 7},
                                   {"code": "x", "parts": [{"kind": "option"}]}])  # fmt: skip
def test_an_odd_error_of_a_job_is_none(error: Any) -> None:
    assert checked_answer({"error": error}) is None


def test_a_large_or_odd_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "ANSWER_MOST", 1000)
    for name, content in {
        "large": '{"a": "' + "x" * 1000 + '"}',
        "deep": "[" * 900,
        "list": "[1]",
        "text": "{",
    }.items():
        (tmp_path / name).write_text(content)
        assert sandbox.read_object(tmp_path / name) is None
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert sandbox.read_object(tmp_path / "real") == {}
    assert sandbox.read_object(tmp_path / "pipe") is sandbox.read_object(tmp_path / "link") is None


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


@pytest.mark.slow
@each_way
def test_every_job_runs_confined(how: str, tmp_path: Path) -> None:
    """No library opens what the sandbox forbids, in any registered kind and name."""
    make_city(tmp_path, 0, 36, 300, 3_000, 120, 1)
    answer = run_sandboxed("every_job", {}, tmp_path, Bounds(4 << 30, 1 << 33), 1200, how=how)
    assert answer is not None and "result" in answer, answer
    ends = answer["result"]
    faults = {job: end for job, end in ends.items() if end != "done" and not end.startswith("refused")}
    assert not faults, json.dumps(faults, indent=1)
    refused = [job for job, end in ends.items() if end != "done"]
    every = {f"{kind.verb} {name}" for kind in VERBS.values() for name in kind.names()}
    assert every <= {" ".join(job.split()[:2]) for job in ends}
    assert len(refused) < len(ends) / 4, json.dumps({job: ends[job] for job in refused}, indent=1)
    done = set(ends) - set(refused)
    assert {"measure all csv", "measure propensity-score", "analyze land-use"} <= done, ends
