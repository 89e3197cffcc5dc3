"""Jobs survive crashes of workers, processes and machines; on both databases."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import descendants, until

from crowdveil.server.queue.files import ORPHAN_S, Files, UploadFiles
from crowdveil.server.queue.store import CRASHES_MOST, NewJob, QueuedJob, Store, new_id
from crowdveil.server.workers.worker import Worker

pytestmark = pytest.mark.slow

Start = Callable[..., "subprocess.Popen[bytes]"]
SCRIPT = Path(__file__).parents[1] / "support" / "serving_worker.py"


@pytest.fixture
def start(database_url: str, files: Files, store: Store) -> Iterator[Start]:
    """Start a worker."""
    begun: list[subprocess.Popen[bytes]] = []

    def one(lease_s: float = 1.0, memory_mib: int = 0) -> subprocess.Popen[bytes]:
        arguments = [database_url, str(files.root), str(lease_s), str(memory_mib)]
        path = os.pathsep.join([str(SCRIPT.parent), os.environ.get("PYTHONPATH", "")])
        begun.append(
            subprocess.Popen([sys.executable, str(SCRIPT), *arguments], env={**os.environ, "PYTHONPATH": path})
        )
        return begun[-1]

    yield one
    for process in begun:
        process.kill()
        process.wait()


def put(store: Store, files: Files, limits: dict[str, Any] | None = None, **values: Any) -> str:
    job = new_id()
    folder = files.receive(job)
    (folder / "inputs" / "a.csv").write_text("x\n1\n")
    files.accept(job)
    assert store.add(NewJob(job, "anna", "filter", "trajectories", values, {"data": "a.csv"}, limits or {}), 100)
    return job


def ended(store: Store, job: str) -> QueuedJob:
    def look() -> QueuedJob | None:
        found = store.get(job)
        assert found is not None
        return None if found.state in ("queued", "running") else found

    found: QueuedJob = until(look)
    return found


def left(files: Files, job: str) -> list[str]:
    try:
        return sorted(p.name for p in files.job(job).rglob("*") if p.is_file())
    except FileNotFoundError:  # it is just being removed
        return ["…"]


def nothing_left(files: Files, job: str) -> bool:
    """Files are removed right after the state is written, and not before: until then they may be needed again."""
    return bool(until(lambda: not files.job(job).exists()))


def alive(process: int) -> bool:
    """Whether a process runs; one that only waits to be counted does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_by(worker: subprocess.Popen[bytes]) -> list[int]:
    """Processes of a worker's jobs."""
    return descendants(worker.pid)


def whole(files: Files, job: QueuedJob) -> bool:
    """Whether the result that the row speaks of is there as it was made."""
    assert job.result is not None
    path = files.run(job.id, job.result["lease"]) / job.result["name"]
    return hashlib.sha256(path.read_bytes()).hexdigest() == job.result["sha256"]


def test_jobs_end_as_they_should(store: Store, files: Files, start: Start) -> None:
    good, refused, fault = put(store, files), put(store, files, do="refuse"), put(store, files, do="fault")
    long = put(store, files, {"max_seconds": 1}, do="slow", s=60)
    start()
    done = ended(store, good)
    assert done.state == "done" and whole(files, done)
    until(lambda: left(files, good) == ["summary.json", "whole.txt"])
    assert str(ended(store, refused).error) == "a.csv: Expected something else. Give it." and nothing_left(
        files, refused
    )
    wrong = ended(store, fault)
    assert (wrong.error_code, str(wrong.error)) == (
        "fault",
        "internal error (KeyError); please report it to the operator of the server.",
    )
    late = ended(store, long)
    assert late.error_code == "too_long" and nothing_left(files, long)


def test_a_job_that_ends_its_process_is_run_twice_and_failed(store: Store, files: Files, start: Start) -> None:
    killed, gone, broken = put(store, files, do="kill"), put(store, files, do="leave"), put(store, files, do="break")
    start()
    for job, why in ((killed, " (signal 9)"), (gone, ""), (broken, " (signal 11)")):
        failed = ended(store, job)
        assert failed.state == "failed" and failed.runs == 2 and failed.error_code == "crashed"
        assert nothing_left(files, job)
        assert str(failed.error) == f"the job crashed its process twice{why}. Give it less data, or other parameters."


def test_a_job_that_takes_too_much_memory_is_failed(store: Store, files: Files, start: Start) -> None:
    job = put(store, files, do="eat")
    start(memory_mib=300)
    assert ended(store, job).error_code == "no_memory" and nothing_left(files, job)


def test_cancelling_ends_a_running_job_and_all_that_it_started(store: Store, files: Files, start: Start) -> None:
    job = put(store, files, do="sleep")
    worker = start(lease_s=10.0)
    until((files.inputs(job) / "begun").exists)
    until(lambda: (found := store.get(job)) and (found.stage, found.done, found.total) == ("sleeping", 1, 4))
    processes = run_by(worker)
    assert len(processes) >= 2
    store.cancel(job, "anna")
    until(lambda: not any(alive(process) for process in processes), 5)
    until(lambda: not files.job(job).exists())
    other = put(store, files)
    assert ended(store, other).state == "done"  # the worker goes on


def test_a_job_outlives_its_worker(store: Store, files: Files, start: Start) -> None:
    job = put(store, files, do="hang once")
    first = start(lease_s=1.0)
    until((files.inputs(job) / "begun").exists)
    processes = run_by(first)
    assert processes
    first.kill()
    first.wait()
    until(lambda: not any(alive(process) for process in processes))  # what nobody watches does not run on
    start(lease_s=1.0)
    done = ended(store, job)
    assert done.state == "done" and done.runs == 2 and whole(files, done)
    until(lambda: left(files, job) == ["summary.json", "whole.txt"])  # of the first run nothing is left


def test_a_worker_that_is_stopped_gives_its_job_back(store: Store, files: Files, start: Start) -> None:
    job = put(store, files, do="slow", s=30)
    worker = start(lease_s=60.0)
    until(lambda: (found := store.get(job)) and found.state == "running" and run_by(worker))
    worker.terminate()
    worker.wait(10)
    found = store.get(job)
    assert found is not None and found.state == "queued" and found.runs == 0 and left(files, job) == ["a.csv"]
    assert (found.stage, found.done, found.total) == (None, 0, 0)


def test_a_worker_that_was_asleep_cannot_publish(store: Store, files: Files, start: Start) -> None:
    job = put(store, files, do="slow", s=1.0, text="first")
    sleeper = start(lease_s=0.5)
    until(lambda: (found := store.get(job)) and found.state == "running" and run_by(sleeper))
    processes = run_by(sleeper)
    os.kill(sleeper.pid, 19)  # SIGSTOP: alive, but silent
    start(lease_s=5.0)
    done = ended(store, job)
    os.kill(sleeper.pid, 18)
    until(lambda: not any(alive(process) for process in processes))
    time.sleep(0.5)
    assert store.get(job) == done and done.runs == 2 and whole(files, done)
    assert left(files, job) == ["summary.json", "whole.txt"]


@pytest.mark.parametrize("do", ["link", "spill", "lie"])
def test_a_process_that_reports_no_result_of_its_own_has_none(
    do: str, store: Store, files: Files, start: Start
) -> None:
    job = put(store, files, do=do)
    start()
    failed = ended(store, job)
    assert failed.state == "failed" and failed.result is None and nothing_left(files, job)


def test_progress_that_is_a_pipe_stops_no_worker(store: Store, files: Files, start: Start) -> None:
    job = put(store, files, {"max_seconds": 4}, do="pipe")
    start()
    assert ended(store, job).error_code == "too_long"


def test_sweeping_takes_what_no_job_needs(
    store: Store, files: Files, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, cancelled, waiting = put(store, files), put(store, files), put(store, files)
    store.cancel(cancelled, "anna")
    held = store.claim("w", 60)
    assert held is not None and held.id == done
    (files.run(done, held.lease or "")).mkdir()
    (files.run(done, held.lease or "") / "r.txt").write_text("r")
    assert store.finish(held, {"lease": held.lease, "name": "r.txt"})
    files.receive(new_id())
    (files.jobs / new_id()).mkdir()
    files.sweep(store)
    assert left(files, done) == ["r.txt"] and left(files, cancelled) == [] and left(files, waiting) == ["a.csv"]
    assert len(list(files.incoming.iterdir())) == 1 and len(list(files.jobs.iterdir())) == 3
    monkeypatch.setattr("crowdveil.server.queue.files.ORPHAN_S", -1.0)
    files.sweep(store)
    assert len(list(files.incoming.iterdir())) == 1 and len(list(files.jobs.iterdir())) == 2
    monkeypatch.setattr("crowdveil.server.queue.files.INCOMING_S", -1.0)
    files.sweep(store)
    assert list(files.incoming.iterdir()) == []


def test_the_folder_of_a_form_that_is_sent_for_hours_stays(store: Store, files: Files) -> None:
    folder = files.receive(new_id())
    for path in (folder, folder / "inputs"):
        os.utime(path, (time.time() - 3 * ORPHAN_S,) * 2)
    files.sweep(store)
    assert folder.exists()


def test_an_upload_that_took_hours_to_send_is_kept_from_its_end_on(files: Files) -> None:
    upload, uploads = new_id(), UploadFiles(files.root)
    received = files.receive(upload) / "inputs"
    (received / "a.csv").write_text("a")
    os.utime(received, (0, 0))
    uploads.keep("anna", upload, received)
    assert uploads.expire() == [] and uploads.get("anna", upload) is not None


def test_a_job_that_breaks_its_worker_twice_is_failed_and_the_worker_goes_on(
    store: Store, files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job, worker, runs = put(store, files), Worker(store, files), []

    def broken(_self: Worker, job: QueuedJob) -> None:
        runs.append(job.id)
        "\ud800".encode()

    monkeypatch.setattr(Worker, "run", broken)
    worker.work(once=True)
    found = store.get(job)
    assert (
        runs == [job] * CRASHES_MOST and found is not None and (found.state, found.error_code) == ("failed", "crashed")
    )
    assert found.error is not None and "twice (UnicodeEncodeError in its worker)" in str(found.error)
    assert not files.job(job).exists() and "ud800" not in capsys.readouterr().err
