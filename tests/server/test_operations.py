"""What operators ask of the service: readiness, figures, logs, the audit log, and the data directory."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families
from serving import Within, asking, cabs, job_in, opened, post, put, token_id

from crowdveil.cli.main import cli
from crowdveil.errors import ParameterError
from crowdveil.server import logs
from crowdveil.server.app import make_app
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.schema import jobs
from crowdveil.server.queue.store import new_id
from crowdveil.server.service import Service
from crowdveil.server.workers.supervisor import FOLDER

SECRET = "secret_name"
JOB = "ab" * 16
GENERALIZE = "/methods/simple-generalization/jobs"


def figures(client: Within, **headers: str) -> dict[tuple[str, ...], float]:
    """All figures by name and labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4"), (
        answer.text
    )
    families = text_string_to_metric_families(answer.text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_ready_names_what_is_missing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Within(make_app(service))
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "checks": {"database": "ok", "workers": "none alive", "disk": "ok"}}
    alive = service.files.root / FOLDER / "host-1-worker-0"
    alive.parent.mkdir()
    alive.touch()
    assert client.get("/ready").status_code == 200
    monkeypatch.setattr(service, "settings", service.settings.model_copy(update={"min_free_mib": 1 << 40}))
    assert client.get("/ready").json()["checks"]["disk"] == "too little space"
    upload = post(client, GENERALIZE, {"data": ("a.csv", cabs())})
    assert upload.status_code == 507 and upload.json()["error"]["code"] == "no_space"
    assert list(service.files.incoming.iterdir()) == []

    def away() -> Any:
        raise DatabaseUnavailableError

    monkeypatch.setattr(service.store, "counts", away)
    assert client.get("/ready").json()["checks"]["database"] == "does not answer"
    os.utime(alive, (time.time() - 31,) * 2)
    assert client.get("/ready").json()["checks"]["workers"] == "none alive"


def test_figures_of_jobs_and_requests(service: Service) -> None:
    client = Within(make_app(service))
    put(client, GENERALIZE, {"data": (f"{SECRET}.csv", cabs())})
    done = put(client, GENERALIZE, {"data": ("a.csv", cabs())})
    for job in [service.store.claim("host:1", 60) for _ in range(2)]:
        assert job is not None
        if job.id == done:
            service.store.finish(job, {"lease": job.lease, "name": "x.zip"})
        else:
            service.store.give_back(job)
            older = sa.update(jobs).where(jobs.c.id == job.id).values(created=jobs.c.created - 100)
            service.store.db.do(older)
    assert client.get(f"/jobs/{'0' * 32}").status_code == 404
    assert client.get(f"/{SECRET}").status_code == 404
    assert client.request(SECRET.upper(), "/jobs").status_code == 405
    seen = figures(client)
    assert seen["crowdveil_jobs", "anonymize", "queued"] == 1 and seen["crowdveil_jobs", "anonymize", "done"] == 1
    assert seen["crowdveil_queue_age_seconds",] >= 100
    assert seen["crowdveil_requests_total", "GET", "/jobs/{job_id}", "404"] == 1
    assert seen["crowdveil_database_up",] == 1 and seen["crowdveil_disk_free_bytes",] > 0
    metrics = client.get("/metrics").text
    assert SECRET not in metrics.lower() and done not in metrics


def test_figures_need_a_scope(service: Service) -> None:
    for scopes, status in ((("metrics",), 200), (("submit", "read"), 403)):
        assert asking(service, scopes[0], scopes=scopes).get("/metrics").status_code == status


def test_every_request_has_an_id_and_a_line(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    token = service.tokens.create("anna")
    logs.configure("json")
    try:
        client = Within(make_app(service), Authorization=f"Bearer {token}")
        job = put(client, GENERALIZE, {"data": (f"{SECRET}.csv", cabs())}, {"data_name": f"{SECRET}.csv"})
        answer = client.get(f"/jobs/{job}?limit={SECRET}")
        wrong = client.get(f"/{SECRET}", headers={"Authorization": f"Bearer {SECRET}"})
        logs.say_fault(KeyError(SECRET))
    finally:
        logs.configure("text")
    text = capsys.readouterr().err
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["event"] for line in lines] == ["request", "request", "request", "fault"]
    assert lines[1]["request"] == answer.headers["x-request-id"] != wrong.headers["x-request-id"]
    assert (
        lines[1] | {"method": "GET", "route": "/jobs/{job_id}", "status": 200, "job": job, "level": "info"} == lines[1]
    )
    assert lines[1]["caller"] == service.tokens.all()[0]["id"] and lines[2]["route"] == "unknown"
    assert SECRET not in text and token not in text and "cabs" not in text


def test_an_internal_error_is_logged_without_its_message(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app(service)

    @app.get("/broken")
    def broken() -> None:
        raise KeyError(SECRET)

    logs.configure("text")
    answer = Within(app).get("/broken")
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "fault" and SECRET not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    logged = capsys.readouterr().err
    assert (
        "internal error" in logged
        and "error KeyError" in logged
        and "test_operations.py:" in logged
        and SECRET not in logged
    )
    assert answer.headers["x-request-id"] in logged and "Traceback" not in logged


# The audit log


def log_of(service: Service) -> list[str]:
    return [line["what"] for line in service.store.log()]


def test_what_the_audit_log_covers(service: Service) -> None:
    client = asking(service, "anna")
    seen = client.post("/preview", files={"data": (f"{SECRET}.csv", cabs())})
    assert seen.status_code == 200
    job = job_in(service, token_id(service, "anna"), name=f"{SECRET}.csv")
    assert client.get(f"/jobs/{job}/result").status_code == 200
    for _ in range(2):
        assert client.get("/jobs", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 401
    assert log_of(service) == [
        "made the token anna", "previewed a file", "put a job to anonymize into the queue", "finished a job",
        "fetched a result",
    ]  # fmt: skip
    assert SECRET not in json.dumps(service.store.log())


def run(*arguments: str) -> str:
    return CliRunner().invoke(cli, [*arguments], catch_exceptions=False).output


def test_the_audit_log_is_exported(service: Service, tmp_path: Path) -> None:
    place = ("--data-dir", str(service.files.root))
    for i in range(5):
        service.store.say("anna", f"did {i}", new_id())
    run("server", "audit", *place, "-o", str(tmp_path / "a.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line["what"] for line in lines] == [f"did {i}" for i in range(5)]
    assert set(lines[0]) == {"time", "who", "name", "what", "job"}
    assert run("server", "audit", *place, "--since", "2999-01-01") == ""


def test_old_lines_are_removed(service: Service) -> None:
    service.store.say("anna", "did something")
    service.store.forget(60.0)
    assert log_of(service) == ["did something"]
    service.store.forget(-1.0)
    assert log_of(service) == []


# The data directory


def made(folder: Path) -> Path:
    """A data directory with a token."""
    assert run("server", "token", "create", "anna", "--data-dir", str(folder))
    return folder


def kept(folder: Path, days: float = 1.0) -> Path:
    """The folder of a job that ended a while ago."""
    run = folder / "jobs" / JOB / f"run-{'cd' * 16}"
    run.mkdir(parents=True)
    (run / "release.zip").write_bytes(b"good")
    for path in (run / "release.zip", run, run.parent):
        os.utime(path, (time.time() - days * 86_400,) * 2)
    return run.parent


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Names, modes and contents of all there is."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {str(p): (p.stat().st_mode, p.read_bytes() if p.is_file() else b"") for p in paths}


@pytest.mark.parametrize("contents", ["incoming/2024/report.pdf", "notes.txt"])
def test_a_folder_with_other_contents_is_refused(tmp_path: Path, contents: str) -> None:
    (tmp_path / contents).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / contents).write_text("theirs")
    tmp_path.chmod(0o755)
    before = state(tmp_path)
    for url in (None, "postgresql://nobody@127.0.0.1:1/x"):
        with pytest.raises(ParameterError, match="Expected an empty folder or a data directory"):
            opened(tmp_path, url)
    assert state(tmp_path) == before


def test_an_empty_mount_point_is_taken(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    opened(tmp_path).store.db.close()
    assert (tmp_path / "jobs").exists()


def test_commands_that_read_change_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    for path in (folder, folder / "jobs"):
        path.chmod(path.stat().st_mode | 0o055)
    before = state(folder)
    for command in (["token", "list"], ["audit"]):
        assert run("server", *command, "--data-dir", str(folder)) and state(folder) == before, command
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    for place in (other, tmp_path / "missing"):
        with pytest.raises(ParameterError, match="Expected the data directory of a service"):
            run("server", "token", "list", "--data-dir", str(place))
    assert list(other.iterdir()) == [] and other.stat().st_mode & 0o777 == 0o755 and not (tmp_path / "missing").exists()


def test_a_lost_database_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    results = kept(folder)
    for path in folder.glob("jobs.sqlite*"):
        path.unlink()
    with pytest.raises(ParameterError, match="or restore it from a backup"):
        opened(folder)
    (folder / "jobs.sqlite").write_text("no database, but a text that is longer than the header of one")
    with pytest.raises(ParameterError, match="is not a database"):
        opened(folder)
    assert results.exists()


def test_folders_of_no_job_are_removed_after_a_while(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    old, strange = kept(folder), folder / "jobs" / "not-an-id"
    strange.mkdir()
    os.utime(strange, (0, 0))
    files = Files(folder)
    files.receive("ef" * 16)
    files.accept("ef" * 16)
    with opened(folder) as service:
        service.tidy()
    assert not old.exists() and strange.exists()
    assert files.job("ef" * 16).exists(), "a job that is just being added"
