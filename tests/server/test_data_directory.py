"""The data directory: whose it is, what is refused, and that nothing is removed that a row might still name."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.cli.main import cli
from crowdveil.errors import ParameterError
from crowdveil.server.queue.data_dir import MARKER
from crowdveil.server.queue.files import Files
from crowdveil.server.serve import check_address
from crowdveil.server.settings import Settings

JOB = "ab" * 16


def made(folder: Path) -> Path:
    """A data directory with a token."""
    ran = CliRunner().invoke(cli, ["token", "create", "anna", "--data-dir", str(folder)], catch_exceptions=False)
    assert ran.exit_code == 0
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


def test_a_new_folder_gets_a_marker(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    marker = json.loads((folder / MARKER).read_text())
    assert marker["format"] == 1 and len(marker["id"]) == 32 and marker["tokens"] is True
    assert (folder / MARKER).stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    with sqlite3.connect(folder / "jobs.sqlite") as database:
        assert database.execute("SELECT value FROM about").fetchall() == [(marker["id"],)]
    database.close()


@pytest.mark.parametrize("contents", ["jobs/2024/report.pdf", "notes.txt", "jobs.sqlite"])
def test_a_folder_with_other_contents_is_refused(tmp_path: Path, contents: str) -> None:
    (tmp_path / contents).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / contents).write_text("theirs")
    tmp_path.chmod(0o755)
    before = state(tmp_path)
    for url in (None, "postgresql://nobody@127.0.0.1:1/x"):
        with pytest.raises(ParameterError, match="is not empty, and it is no data directory"):
            Settings(tmp_path, url).open()
    assert state(tmp_path) == before


def test_an_empty_mount_point_is_taken(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    Settings(tmp_path).open().store.db.close()
    assert (tmp_path / MARKER).exists()


def test_commands_that_read_change_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    for path in (folder, folder / "jobs", folder / MARKER):
        path.chmod(path.stat().st_mode | 0o055)
    before = state(folder)
    for command in (["token", "list"], ["token", "log"], ["audit", "export"]):
        ran = CliRunner().invoke(cli, [*command, "--data-dir", str(folder)], catch_exceptions=False)
        assert ran.exit_code == 0 and ran.output
        assert state(folder) == before, command
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    for place in (other, tmp_path / "missing"):
        with pytest.raises(ParameterError, match="is no data directory"):
            CliRunner().invoke(cli, ["token", "list", "--data-dir", str(place)], catch_exceptions=False)
    assert list(other.iterdir()) == [] and other.stat().st_mode & 0o777 == 0o755 and not (tmp_path / "missing").exists()


@pytest.mark.parametrize("lost", ["missing", "empty", "another"])
def test_a_lost_database_is_refused(tmp_path: Path, lost: str) -> None:
    folder = made(tmp_path / "data")
    results = kept(folder)
    for path in folder.glob("jobs.sqlite*"):
        path.unlink()
    if lost == "empty":
        (folder / "jobs.sqlite").touch()
    elif lost == "another":
        (made(tmp_path / "second") / "jobs.sqlite").rename(folder / "jobs.sqlite")
    with pytest.raises(ParameterError, match="restore the database from a backup, or start once with"):
        Settings(folder).open()
    assert results.exists()
    with Settings(folder).open(accept_new_database=True) as service:
        service.tidy()
        (moved,) = (folder / "quarantine").glob(f"*/{JOB}")
        assert (moved / f"run-{'cd' * 16}" / "release.zip").read_bytes() == b"good" and not results.exists()
        if lost != "another":  # tokens are gone, and nobody is let in without
            with pytest.raises(ParameterError, match="the service had tokens, and its database has none"):
                check_address(service)
    Settings(folder).open().store.db.close()


def test_a_database_of_another_folder_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.sqlite'}"
    Settings(tmp_path / "one", url).open().store.db.close()
    with pytest.raises(ParameterError, match="the database belongs to another data directory"):
        Settings(tmp_path / "two", url).open()
    Settings(tmp_path / "one", url).open().store.db.close()


def test_the_quarantine_is_emptied_after_its_time_and_not_at_the_start(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    kept(folder)
    strange = folder / "jobs" / "not-an-id"
    strange.mkdir()
    os.utime(strange, (0, 0))
    with Settings(folder, quarantine_s=7 * 86_400.0).open() as service:
        service.tidy()
        (moved,) = (folder / "quarantine").glob(f"*/{JOB}")
        old = folder / "quarantine" / "2024-01-01"
        moved.parent.rename(old)
        (folder / "quarantine" / "theirs").mkdir()
        service.tidy()
        assert (old / JOB).exists()
        service.tidy(purge=True)
        assert not old.exists() and strange.exists() and (folder / "quarantine" / "theirs").exists()


def test_a_job_that_is_just_being_added_is_not_an_orphan(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.receive(JOB)
    files.accept(JOB)
    with Settings(tmp_path / "other").open() as service:
        files.sweep(service.store)
    assert (tmp_path / "jobs" / JOB).exists()
