"""Commands of the operator of a service: serve, worker, token; on both databases."""

from __future__ import annotations

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

Command = Callable[..., Ran]


def test_tokens_are_made_listed_and_revoked(command: Command, tmp_path: Path, database_url: str) -> None:
    at = ["--data-dir", tmp_path / "data", "--database-url", database_url]
    made = command("token", "create", "anna", "--max-running", "1", *at)
    assert made.code == 0 and made.out.startswith("cv_") and "not shown again" in made.err
    listed = command("token", "list", *at).out
    assert (
        listed.startswith("anna: may submit and read, made 20")
        and listed.endswith(", never used, max running 1\n")
        and made.out.strip() not in listed
    )
    assert "there is a token of that name" in command("token", "create", "anna", *at).sentence
    assert command("token", "revoke", "anna", *at).out == "anna: revoked\n"
    assert "no such token" in command("token", "revoke", "anna", *at).sentence
    assert ", revoked 20" in command("token", "list", *at).out
    log = command("token", "log", *at).out.splitlines()
    assert [line.split("  ")[1] for line in log] == [
        "operator: made the token anna",
        "operator: revoked the token anna",
    ]


def test_tokens_have_scopes_and_an_end(command: Command, tmp_path: Path) -> None:
    at = ["--data-dir", tmp_path / "data"]
    assert command("token", "create", "anna", "--expires", "90d", *at).code == 0
    assert command("token", "create", "rita", "--scope", "review", *at).code == 0
    assert command("token", "create", "board", "--scope", "read", "--jobs-of", "anna", *at).code == 0
    anna, rita, board = command("token", "list", *at).out.splitlines()
    assert ", expires 20" in anna and rita.startswith("rita: may review, ") and board.endswith(", jobs of anna")
    for wrong in ("soon", "-1d", "5", "999999w"):
        ran = command("token", "create", "dora", f"--expires={wrong}", *at)
        assert ran.code == 2 and "expires: wanted a length of time such as 90d" in ran.sentence
    assert "jobs-of: there is no such token" in command("token", "create", "x", "--jobs-of", "nobody", *at).sentence


def test_four_eyes_need_tokens(command: Command, tmp_path: Path) -> None:
    ran = command("serve", "--four-eyes", "--data-dir", tmp_path / "data", "--port", "0")
    assert ran.code == 2 and "no result could be approved" in ran.sentence


def test_a_newer_schema_is_refused_by_every_command(command: Command, tmp_path: Path) -> None:
    at = ["--data-dir", tmp_path / "data"]
    command("token", "create", "anna", *at)
    held = sqlite3.connect(tmp_path / "data" / "jobs.sqlite")
    held.execute("UPDATE alembic_version SET version_num = '9999'")
    held.commit()
    held.close()
    for name in (["serve", "--port", "0"], ["token", "list"]):
        ran = command(*name, *at)
        assert ran.code == 2 and "Upgrade crowdveil, or restore the backup" in ran.sentence


def test_a_public_address_is_refused_without_tokens(command: Command, tmp_path: Path) -> None:
    ran = command("serve", "--host", "0.0.0.0", "--data-dir", tmp_path / "data", "--port", "0")
    assert ran.code == 2 and "make one with crowdveil token create NAME" in ran.sentence


def test_addresses_that_cannot_be_used(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is no data directory of Crowdveil" in command("token", "list", "--data-dir", tmp_path / "file").sentence
    made = ("token", "create", "anna", "--data-dir", tmp_path / "new", "--database-url")
    assert "wanted postgresql://" in command(*made, "mysql://x").sentence
    assert "database unavailable" in command(*made, "postgresql://127.0.0.1:9/x").sentence


@pytest.mark.parametrize("database_url", ["sqlite", slow_param("postgres")], indirect=True)
@pytest.mark.slow
def test_workers_of_their_own_on_a_data_base_that_is_shared(tmp_path: Path, database_url: str) -> None:
    service = Running(tmp_path / "data", workers=0, database_url=database_url)
    service.start()
    place = ["--data-dir", str(tmp_path / "data"), "--database-url", database_url]
    worker = subprocess.Popen([*COMMAND, "worker", "--number", "2", *place], env=dict(os.environ), stdout=sys.stderr)
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
