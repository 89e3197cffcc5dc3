"""A backup of a running service brings tokens, jobs and results back on another machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from serving import BARE, Running, cabs, ended, opened, put

DEPLOY = Path(__file__).parents[2] / "deploy"


def script(name: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [str(DEPLOY / name), *map(str, arguments)], capture_output=True, text=True,
        env={**os.environ, "PATH": path, **environment},
    )  # fmt: skip


@pytest.mark.slow
def test_a_running_service_is_backed_up_and_restored(tmp_path: Path) -> None:
    service = Running(tmp_path / "live", workers=1)
    token = service.make_token("anna")
    service.start()
    try:
        with service.client() as anna:
            job = put(anna, "/methods/simple-generalization/jobs", {"data": ("cabs.csv", cabs())}, BARE)
            assert ended(anna, job)["state"] == "done"
            result = anna.get(f"/jobs/{job}/result").content
        made = script("backup.sh", tmp_path / "live", tmp_path / "backups")
    finally:
        service.stop()
    archive = Path(made.stdout.strip())
    assert made.returncode == 0 and archive.stat().st_mode & 0o777 == 0o600, made.stderr
    assert [p.name for p in (tmp_path / "backups").iterdir()] == [archive.name]
    shutil.rmtree(tmp_path / "live")
    back = script("restore.sh", archive, tmp_path / "again")
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "again").stat().st_mode & 0o777 == 0o700
    restored = Running(tmp_path / "again", workers=1)
    restored.tokens["anna"] = token
    restored.start()
    try:
        with restored.client() as anna:
            assert anna.get(f"/jobs/{job}/result").content == result
            assert ended(anna, put(anna, "/methods/simple-generalization/jobs", {"data": ("c.csv", cabs())}, BARE))
        with restored.client(None) as nobody:
            assert nobody.get("/jobs").status_code == 401
    finally:
        restored.stop()


def test_old_backups_go_and_others_stay(tmp_path: Path) -> None:

    opened(tmp_path / "data").store.db.close()
    (tmp_path / "backups").mkdir()
    for name in ("crowdveil-20200101T000000Z.tar", "crowdveil-20210101T000000Z.tar", "ours.tar"):
        (tmp_path / "backups" / name).write_text("x")
    made = script("backup.sh", tmp_path / "data", tmp_path / "backups", 2)
    assert made.returncode == 0, made.stderr
    left = sorted(p.name for p in (tmp_path / "backups").iterdir())
    assert left == ["crowdveil-20210101T000000Z.tar", Path(made.stdout.strip()).name, "ours.tar"]


def test_what_cannot_be_backed_up_or_restored(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    (tmp_path / "broken.tar").write_bytes(b"no archive")
    for ran in (
        script("backup.sh", tmp_path / "full", tmp_path / "backups"),
        script("backup.sh"),
        script("restore.sh", tmp_path / "none.tar", tmp_path / "new"),
        script("restore.sh", tmp_path / "broken.tar", tmp_path / "full"),
        script("restore.sh", tmp_path / "broken.tar", tmp_path / "new"),
    ):
        assert ran.returncode == 2 and ran.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.tar", "full"]
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["thesis.txt"]
