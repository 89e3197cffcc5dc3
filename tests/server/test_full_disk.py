"""A full disk: jobs can still be deleted and expire, uploads are refused, and all goes on once there is room."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from serving import Within, cabs, post

from crowdveil.server.app import make_app
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.disk import PIECES, RESERVE_BYTES, DiskSpace
from crowdveil.server.queue.job import NewJob, new_id
from crowdveil.server.settings import Service, Settings


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def filled(root: Path, name: str = "other") -> Path:
    """Take all the room there is, as another program would."""
    file = root.parent / name
    with file.open("wb", buffering=0) as out:
        for size in (1 << 20, 4096, 1):
            try:
                while out.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return file


def reserved(service: Service) -> int:
    """Bytes that the reserve takes on the disk."""
    return sum(piece.stat().st_blocks * 512 for piece in service.space.reserve.iterdir())


def done(service: Service, keep_s: float = 3600.0, size: int = 1 << 20) -> str:
    """A job with a result."""
    new = NewJob(new_id(), "local", "filter", "trajectories", {}, {"data": "a.csv"}, keep_s=keep_s)
    service.files.receive(new.id)
    service.files.accept(new.id)
    service.store.add(new, 100)
    job = service.store.claim("host:1", 60)
    assert job is not None and job.lease is not None
    run = service.files.run(job.id, job.lease)
    run.mkdir()
    (run / "x.csv").write_bytes(bytes(size))
    about = {"lease": job.lease, "name": "x.csv", "bytes": size, "sha256": "00", "media_type": "text/csv"}
    assert service.store.finish(job, about)
    return job.id


def test_delete_and_expiry_on_a_full_disk(small: Path) -> None:
    with Settings(small / "data", min_free_bytes=RESERVE_BYTES).open() as service:
        service.tidy()
        assert reserved(service) >= RESERVE_BYTES
        client = Within(make_app(service))
        jobs, old = [done(service) for _ in range(3)], done(service, keep_s=0.0)
        other = filled(service.files.root)
        assert service.space.free() == 0
        with ThreadPoolExecutor(1) as pool, pytest.raises(DatabaseUnavailableError):  # a database that cannot write
            pool.submit(service.store.say, "anna", "x" * (1 << 20)).result()
        answer = post(client, "/filter/trajectories/jobs", {"data": ("a.csv", cabs())})
        assert answer.status_code == 507 and answer.json()["error"]["code"] == "no_space"
        assert client.request("DELETE", f"/jobs/{jobs[0]}").json()["state"] == "expired"
        assert not service.files.job(jobs[0]).exists() and reserved(service) < RESERVE_BYTES
        filled(service.files.root, "more")  # the reserve and the job's room are gone, too
        answer = client.request("DELETE", f"/jobs/{jobs[1]}")
        assert answer.status_code == 200 and answer.json()["state"] == "expired", answer.text
        service.tidy()
        found = service.store.get(old)
        assert found is not None and found.state == "expired" and not service.files.job(old).exists()
        assert client.get(f"/jobs/{jobs[2]}/result").status_code == 200
        other.unlink()
        (small / "more").unlink()
        service.tidy()
        assert reserved(service) >= RESERVE_BYTES and post(
            client, "/filter/trajectories/jobs", {"data": ("a.csv", cabs())}
        ).status_code in (202, 422)


def test_no_room_for_the_folder_of_an_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Settings(tmp_path).open() as service:

        def full(_job: str) -> Path:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(service.files, "receive", full)
        client = Within(make_app(service))
        for path in ("/filter/trajectories/jobs", "/preview"):
            answer = post(client, path, {"data": ("a.csv", cabs())})
            assert answer.status_code == 507 and answer.json()["error"]["code"] == "no_space", answer.text


def test_a_step_of_tidying_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Settings(tmp_path).open() as service:
        old = done(service, keep_s=0.0, size=10)

        def away() -> int:
            raise DatabaseUnavailableError

        monkeypatch.setattr(service.store, "take_back", away)
        with pytest.raises(DatabaseUnavailableError):
            service.tidy()
        found = service.store.get(old)
        assert found is not None and found.state == "expired" and reserved(service) >= RESERVE_BYTES


def test_the_reserve_is_used_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, calls = DiskSpace(tmp_path, 0), list[float]()
    disk.keep_reserve()
    monkeypatch.setattr(DiskSpace, "is_full", lambda self: True)

    def write() -> None:
        calls.append(time.monotonic())
        raise DatabaseUnavailableError

    for pieces in reversed(range(PIECES)):
        calls.clear()
        with pytest.raises(DatabaseUnavailableError):
            disk.writing(write)
        assert len(calls) == 2 and len(list(disk.reserve.iterdir())) == pieces
    calls.clear()
    with pytest.raises(DatabaseUnavailableError):
        disk.writing(write)
    assert len(calls) == 1
