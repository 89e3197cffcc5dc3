"""Text that cannot be stored is refused, and one bad row spoils nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from serving import Within, cabs, opened, put

from crowdveil.compat.mobidatalab.routes import add_routes
from crowdveil.server.app import make_app
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.schema import jobs
from crowdveil.server.queue.store import CRASHES_MOST, NewJob, QueuedJob, Store, new_id
from crowdveil.server.service import Service
from crowdveil.server.workers.worker import Worker

GENERALIZE = "/methods/simple-generalization/jobs"
CABS = ("a.csv", cabs())


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Iterator[Service]:
    with opened(tmp_path / "data", database_url) as service:
        yield service


@pytest.fixture
def anna(service: Service) -> Within:
    token = service.tokens.create("anna", scopes=("submit", "read", "review", "admin"))
    return Within(make_app(service, [add_routes]), Authorization=f"Bearer {token}")


@pytest.mark.parametrize("bad", ["a\\u0000b", "\\ud800"])
def test_text_that_cannot_be_stored_is_refused(service: Service, anna: Within, bad: str) -> None:
    files = {
        "input_dataset": CABS,
        "config_file": ("p.json", f'{{"method": "SimpleGeneralization", "input_file": "{bad}"}}'),
    }
    decision = f'{{"decision": "approve", "comment": "{bad}"}}'
    for answer in (
        anna.post(GENERALIZE, files={"data": CABS}, data={"parameters": f'{{"user": {{"inner": ["{bad}"]}}}}'}),
        anna.post(GENERALIZE, files={"data": CABS}, data={"parameters": f'{{"{bad}": 1}}'}),
        anna.post("/preview", files={"data": CABS}, data={"parameters": f'{{"time_format": "{bad}"}}'}),
        anna.post("/anonymize/", files=files),
        anna.post(f"/reviews/{new_id()}", content=decision, headers={"Content-Type": "application/json"}),
    ):
        assert answer.status_code == 422 and "NUL character" in answer.json()["error"]["message"], answer.text
    assert anna.get("/jobs").json() == {"jobs": []} and list(service.files.incoming.iterdir()) == []


def test_odd_addresses_are_no_faults(anna: Within) -> None:
    for method, path in [(m, path) for path, operations in anna.app.openapi()["paths"].items() for m in operations]:
        for odd in ("%00", "%ED%A0%80"):
            answer = anna.request(method.upper(), f"{re.sub(r'{[a-z_]+}', odd, path)}?before={odd}&limit={odd}")
            assert answer.status_code < 500, (path, answer.text)


def test_one_bad_row_does_not_break_the_list(service: Service, anna: Within) -> None:
    ids = [put(anna, GENERALIZE, {"data": CABS}) for _ in range(3)]
    for job, values in zip(
        ids,
        (
            {"parameters": json.dumps({"user": "\ud800", "a\0": "\0"})},
            {"parameters": "no JSON", "files": "[1]", "limits": ""},
            {"kind": "of old"},
        ),
        strict=True,
    ):
        service.store.db.do(sa.update(jobs).where(jobs.c.id == job).values(**values))
    answer = anna.get("/jobs")
    assert answer.status_code == 200
    seen = {job["id"]: job for job in answer.json()["jobs"]}
    assert set(seen) == set(ids) and seen[ids[0]]["parameters"] == {"user": "�", "a�": "�"}
    assert service.store.claim("w", 60) is not None  # nor the queue


def test_rows_that_cannot_be_shown_are_left_out_of_lists(service: Service, anna: Within) -> None:
    """Not even their owner's list is lost to them, nor that of reviewers."""
    good, *odd = [put(anna, GENERALIZE, {"data": CABS}) for _ in range(5)]
    for job, values in zip(
        odd,
        (
            {"files": '{"data": 5}'},
            {"state": "of old"},
            {"state": "done", "result": '{"name": 1}'},
            {"created": "soon"},
        ),
        strict=True,
    ):
        if service.store.db.is_sqlite or "created" not in values:
            service.store.db.do(
                sa.update(jobs).where(jobs.c.id == job).values({n: sa.literal(v) for n, v in values.items()})
            )
    seen = [job["id"] for job in anna.get("/jobs").json()["jobs"]]
    assert good in seen and not {*odd[:3]} & {*seen}
    service.store.db.do(sa.update(jobs).values(owner="another", review="awaiting"))
    assert anna.get("/reviews").json() == {"reviews": []}


def suspects(store: Store, files: Files) -> str:
    job = new_id()
    (files.receive(job) / "inputs" / "a.csv").write_text("x\n1\n")
    files.accept(job)
    assert store.add(NewJob(job, "anna", "filter", "trajectories", {}, {"data": "a.csv"}), 100)
    return job


def test_a_job_that_breaks_its_worker_twice_is_failed_and_the_worker_goes_on(
    store: Store, files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job, worker, runs = suspects(store, files), Worker(store, files), []

    def broken(_self: Worker, job: QueuedJob) -> None:
        runs.append(job.id)
        "\ud800".encode()

    monkeypatch.setattr(Worker, "run", broken)
    worker.work(once=True)
    found = store.get(job)
    assert (
        runs == [job] * CRASHES_MOST and found is not None and (found.state, found.error_code) == ("failed", "crashed")
    )
    assert found.error is not None and "twice (UnicodeEncodeError in its worker)" in found.error
    assert not files.job(job).exists() and "ud800" not in capsys.readouterr().err


def test_messages_with_bad_text_can_be_stored(store: Store, files: Files) -> None:
    job = suspects(store, files)
    held = store.claim("w", 60)
    assert held is not None and store.fail(held, "bad_input", "a\0b\ud800: wanted rows.")
    found = store.get(job)
    assert found is not None and found.error == "a�b�: wanted rows."
