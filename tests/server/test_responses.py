"""What answers say, and what is left of a job once it is removed."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import sqlalchemy as sa

from crowdveil.errors import OutputError
from crowdveil.server.queue.schema import jobs
from crowdveil.server.queue.store import NewJob, Store, new_id
from crowdveil.server.sanitize import without_paths
from crowdveil.server.workers import sandboxed
from crowdveil.server.workers.worker import Worker
from crowdveil.verbs.base import Outcome, Task
from crowdveil.verbs.table import VERBS

SECRET = "secret_name"
GENERALIZE = "/methods/simple-generalization/jobs"


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("/srv/data/jobs/ab/run-cd/out: the disk is full.", "out: the disk is full."),
        (f"out: cannot write /a/.out.crowdveil-partial-{socket.gethostname()}-77 (x); y.", "out: cannot write out (x); y."),
        (f"run-{'ab' * 16}/x.csv: is broken.", "run/x.csv: is broken."),
        ("a.csv: wanted km/h or m/s, but got '/etc/passwd'; give it.", "a.csv: wanted km/h or m/s, but got 'passwd'; give it."),
        ("cabs.csv: wanted 2 columns and/or rows.", "cabs.csv: wanted 2 columns and/or rows."),
        (OutputError("/srv/run/.out.crowdveil-partial-host-77", "it is full.").text, OutputError("out", "it is full.").text),
    ],
)  # fmt: skip
def test_nothing_of_the_server_is_in_a_sentence(sentence: str, left: str) -> None:
    assert without_paths(sentence) == left


def test_a_job_that_cannot_write_reveals_no_path(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run's folder, with its lease, host and process, stands in the error of whatever writes there."""
    from crowdveil.io.atomic import new_file
    from crowdveil.server.queue.files import Files

    def full(task: Task) -> Outcome:
        with new_file(Path(str(task.output)).with_name("x.csv"), overwrite=False) as file:
            raise OSError(28, "No space left on device", str(file))

    files = Files(tmp_path / "data")
    job_id = _queued(store)
    files.receive(job_id)
    files.accept(job_id)
    job = store.claim("host:1", 60)
    assert job is not None and job.lease is not None
    run = files.run(job.id, job.lease)
    run.mkdir()
    import dataclasses

    monkeypatch.setitem(VERBS, "filter", dataclasses.replace(VERBS["filter"], run=full))
    asked = {"kind": "filter", "name": "trajectories", "parameters": {}, "files": {}, "limits": {}, "ledger": None}
    asked |= {"inputs": str(files.inputs(job.id)), "run": str(run)}
    monkeypatch.chdir(tmp_path)
    answer = sandboxed._answer("crowdveil.server.workers.job", asked)
    assert str(tmp_path) in answer["error"]["message"]  # the worker removes paths
    Worker(store, files)._ended(job, answer, None, 0)
    found = store.get(job.id)
    assert (
        found is not None
        and found.error
        == OutputError("x.csv", "the disk is full, so nothing was written; free some space and run again.").text
    )


def _queued(store: Store) -> str:
    new = NewJob(
        new_id(), "anna", "filter", "trajectories", {"data_name": SECRET}, {"data": f"{SECRET}.csv"}, keep_s=0.0
    )
    assert store.add(new, 10)
    return new.id


def _row(store: Store, job: str) -> str:
    return json.dumps(store.db.do(sa.select(jobs).where(jobs.c.id == job)))


@pytest.mark.parametrize("end", ["deleted", "deleted after", "expired", "failed and deleted", "failed and expired"])
def test_names_and_messages_are_removed_with_the_job(store: Store, end: str) -> None:
    job_id = _queued(store)
    assert SECRET in _row(store, job_id)
    if end != "deleted":
        job = store.claim("host:1", 60)
        assert job is not None
        if end.startswith("failed"):
            assert store.fail(job, "bad_input", f"{SECRET}.csv: wanted rows.")
            assert SECRET in _row(store, job_id)
        else:
            assert store.finish(job, {"lease": job.lease, "name": f"{SECRET}.zip"})
    if "deleted" in end:
        assert store.cancel(job_id, "anna") is not None
    else:
        store.expire()
    assert SECRET not in _row(store, job_id) and SECRET not in json.dumps(store.log())
    found = store.get(job_id)
    assert found is not None and found.files == {} and found.parameters == {} and found.result is None
    if end.startswith("failed"):
        assert (found.state, found.error_code) == ("failed", "bad_input")
        assert found.error == "the message was removed with the files of the job."
