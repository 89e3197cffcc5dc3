"""The data directory: whose it is, what is refused, and that nothing is removed that a row might still name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from serving import opened

from crowdveil.cli.main import cli
from crowdveil.errors import ParameterError
from crowdveil.server.queue.files import Files

JOB = "ab" * 16


def made(folder: Path) -> Path:
    """A data directory with a token."""
    ran = CliRunner().invoke(
        cli, ["server", "token", "create", "anna", "--data-dir", str(folder)], catch_exceptions=False
    )
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
        ran = CliRunner().invoke(cli, ["server", *command, "--data-dir", str(folder)], catch_exceptions=False)
        assert ran.exit_code == 0 and ran.output
        assert state(folder) == before, command
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    for place in (other, tmp_path / "missing"):
        with pytest.raises(ParameterError, match="Expected the data directory of a service"):
            CliRunner().invoke(cli, ["server", "token", "list", "--data-dir", str(place)], catch_exceptions=False)
    assert list(other.iterdir()) == [] and other.stat().st_mode & 0o777 == 0o755 and not (tmp_path / "missing").exists()


def test_a_lost_database_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    results = kept(folder)
    for path in folder.glob("jobs.sqlite*"):
        path.unlink()
    with pytest.raises(ParameterError, match="or restore it from a backup"):
        opened(folder)
    (folder / "jobs.sqlite").write_text("no database, but a text that is longer than the header of one")
    with pytest.raises(ParameterError, match="is no database"):
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
