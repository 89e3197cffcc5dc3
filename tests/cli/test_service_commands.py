"""Commands of the operator of a service: serve, worker, token; on both databases."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from examples import slow_param
from serving import BARE, Running, cabs, ended, put

from conftest import COMMAND, Ran
from crowdveil.server.settings import Settings

Command = Callable[..., Ran]


def test_tokens_are_made_listed_and_revoked(command: Command, tmp_path: Path, database_url: str) -> None:
    at = ["--data-dir", tmp_path / "data", "--database-url", database_url]
    made = command("server", "token", "create", "anna", "--max-running", "1", *at)
    assert made.code == 0 and made.out.startswith("cv_") and "not shown again" in made.err
    listed = command("server", "token", "list", *at).out
    assert (
        listed.startswith("anna: may submit and read, made 20")
        and listed.endswith(", never used, max running 1\n")
        and made.out.strip() not in listed
    )
    assert "there is a token of that name" in command("server", "token", "create", "anna", *at).sentence
    assert command("server", "token", "revoke", "anna", *at).out == "anna: revoked\n"
    assert "no such token" in command("server", "token", "revoke", "anna", *at).sentence
    assert ", revoked 20" in command("server", "token", "list", *at).out
    log = [json.loads(line) for line in command("server", "audit", *at).out.splitlines()]
    assert [(line["who"], line["what"]) for line in log] == [
        ("operator", "made the token anna"),
        ("operator", "revoked the token anna"),
    ]


def test_tokens_have_scopes_and_an_end(command: Command, tmp_path: Path) -> None:
    at = ["--data-dir", tmp_path / "data"]
    assert command("server", "token", "create", "anna", "--expires", "90d", *at).code == 0
    assert command("server", "token", "create", "rita", "--scope", "review", *at).code == 0
    assert command("server", "token", "create", "board", "--scope", "read", "--jobs-of", "anna", *at).code == 0
    anna, rita, board = command("server", "token", "list", *at).out.splitlines()
    assert ", expires 20" in anna and rita.startswith("rita: may review, ") and board.endswith(", jobs of anna")
    for wrong in ("soon", "-1d", "5", "999999w"):
        ran = command("server", "token", "create", "dora", f"--expires={wrong}", *at)
        assert ran.code == 2 and "expires: Expected a duration such as 90d" in ran.sentence
    assert (
        "jobs-of: there is no such token"
        in command("server", "token", "create", "x", "--jobs-of", "nobody", *at).sentence
    )


def test_settings_that_do_not_fit_are_refused(command: Command, tmp_path: Path) -> None:
    for more in (("--four-eyes",), ("--host", "0.0.0.0")):
        ran = command("server", "start", "--no-auth", *more, "--data-dir", tmp_path / "data", "--port", "0")
        assert ran.code == 2 and "--no-auth" in ran.sentence and not (tmp_path / "data").exists()


def test_variables_of_kubernetes_are_no_settings(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Service named crowdveil sets these in each container of its namespace."""
    for name in ("PORT", "PORT_8000_TCP", "SERVICE_HOST", "SERVICE_PORT"):
        monkeypatch.setenv(f"CROWDVEIL_{name}", "tcp://10.0.0.7:8000")
    started: list[Settings] = []
    monkeypatch.setattr("crowdveil.server.serve.serve", lambda settings, *_: started.append(settings))
    assert command("server", "start", "--data-dir", tmp_path).code == 0
    monkeypatch.setenv("CROWDVEIL_LISTEN_PORT", "8123")
    assert command("server", "start", "--data-dir", tmp_path).code == 0
    assert [settings.port for settings in started] == [8000, 8123]
    assert len(Settings.model_fields) <= 16


def test_a_newer_schema_is_refused_by_every_command(command: Command, tmp_path: Path) -> None:
    at = ["--data-dir", tmp_path / "data"]
    command("server", "token", "create", "anna", *at)
    held = sqlite3.connect(tmp_path / "data" / "jobs.sqlite")
    held.execute("UPDATE alembic_version SET version_num = '9999'")
    held.commit()
    held.close()
    for name in (["server", "start", "--port", "0"], ["server", "token", "list"]):
        ran = command(*name, *at)
        assert ran.code == 2 and "Upgrade crowdveil, or restore the backup" in ran.sentence


def test_addresses_that_cannot_be_used(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "data directory" in command("server", "token", "list", "--data-dir", tmp_path / "file").sentence
    made = ("server", "token", "create", "anna", "--data-dir", tmp_path / "new", "--database-url")
    assert "Expected postgresql://" in command(*made, "mysql://x").sentence
    assert "database is unavailable" in command(*made, "postgresql://127.0.0.1:9/x").sentence


@pytest.mark.parametrize("database_url", ["sqlite", slow_param("postgres")], indirect=True)
@pytest.mark.slow
def test_workers_of_their_own_on_a_data_base_that_is_shared(tmp_path: Path, database_url: str) -> None:
    service = Running(tmp_path / "data", "--no-auth", workers=0, database_url=database_url)
    service.start()
    place = ["--data-dir", str(tmp_path / "data"), "--database-url", database_url]
    worker = subprocess.Popen(
        [*COMMAND, "server", "worker", "--workers", "2", *place], env=dict(os.environ), stdout=sys.stderr
    )
    try:
        with service.client(None) as local:
            jobs = [
                put(local, "/methods/simple-generalization/jobs", {"data": ("a.csv", cabs())}, BARE) for _ in range(3)
            ]
            assert [ended(local, job)["state"] for job in jobs] == ["done"] * 3
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
        service.stop()
