"""A file is sent once, and previews and jobs of its owner share it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import BARE, Running, Within, cabs, ended, opened

from crowdveil.server.app import make_app
from crowdveil.server.routes import preview
from crowdveil.server.routes.uploads import UPLOADS_MOST
from crowdveil.server.service import Service
from crowdveil.server.workers.inspect_upload import work

GENERALIZE = "/methods/simple-generalization/jobs"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with opened(tmp_path) as service:
        yield service


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect files in this process, which is quicker."""

    def here(request: dict[str, Any], folder: Path, *_: Any) -> dict[str, Any]:
        monkeypatch.chdir(folder)
        return work(json.loads(json.dumps(request)))

    monkeypatch.setattr(preview, "_inspected", here)


def asking(service: Service, name: str, **how: Any) -> Within:
    return Within(make_app(service), Authorization=f"Bearer {service.tokens.create(name, **how)}")


def upload(client: Any, content: bytes, name: str = "cabs.csv", **how: Any) -> httpx.Response:
    answer: httpx.Response = client.post("/uploads", params={"name": name}, content=content, **how)
    return answer


def uploaded(client: Any) -> str:
    answer = upload(client, cabs().encode())
    assert answer.status_code == 201, answer.text
    assert answer.json()["bytes"] == len(cabs()) and answer.json()["name"] == "cabs.csv"
    return str(answer.json()["id"])


def used(client: Any, path: str, uploads: dict[str, Any], **texts: str) -> httpx.Response:
    """Ask for a preview or a job of files that were uploaded before."""
    fields = {"uploads": json.dumps(uploads), **texts}
    found: httpx.Response = client.post(path, files={n: (None, t) for n, t in fields.items()})
    return found


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_one_upload_serves_a_preview_and_two_jobs(service: Service) -> None:
    anna = asking(service, "anna")
    sent = uploaded(anna)
    seen = used(anna, "/preview", {"data": sent}).json()
    assert seen["counts"]["trajectories"] == 12 and seen["error"] is None
    jobs = [used(anna, GENERALIZE, {"data": sent}, parameters=json.dumps(BARE)).json() for _ in range(2)]
    for job in jobs:
        assert job["files"] == {"data": "cabs.csv"}
        assert (service.files.inputs(job["id"]) / "cabs.csv").read_text() == cabs()
    assert list(service.files.incoming.iterdir()) == []
    assert anna.request("DELETE", f"/uploads/{sent}").status_code == 204
    assert (service.files.inputs(jobs[0]["id"]) / "cabs.csv").exists(), "a job keeps its file"


def test_another_token_gets_404_for_everything(service: Service) -> None:
    anna, bert = asking(service, "anna"), asking(service, "bert")
    sent = uploaded(anna)
    for asked in (sent, "0" * 32):
        answers = [
            bert.request("DELETE", f"/uploads/{asked}"),
            used(bert, "/preview", {"data": asked}),
            used(bert, GENERALIZE, {"data": asked}),
        ]
        assert {error_of(answer) for answer in answers} == {(404, "not_found")}
        assert len({answer.json()["error"]["message"] for answer in answers}) == 1, "no answer reveals that it exists"
    for bad in ("../" + sent, "x", 7, None, [sent]):
        assert error_of(used(bert, GENERALIZE, {"data": bad}))[0] == 404
    assert error_of(upload(asking(service, "r", scopes=("read",)), b"x")) == (403, "no_scope")


def test_limits_of_an_upload(service: Service) -> None:
    anna = asking(service, "anna", max_upload_mib=1)

    async def unmeasured() -> AsyncIterator[bytes]:
        yield b"x"

    assert error_of(upload(anna, b"x" * ((1 << 20) + 1))) == (413, "too_large")
    assert error_of(upload(anna, b"x", "a.exe")) == (415, "bad_type")
    assert error_of(upload(anna, unmeasured())) == (411, "no_length")  # type: ignore[arg-type]
    for _ in range(UPLOADS_MOST):
        uploaded(anna)
    assert error_of(upload(anna, b"x")) == (429, "too_many")
    assert list(service.files.incoming.iterdir()) == []


def test_an_upload_expires_and_the_log_has_it(service: Service) -> None:
    anna = asking(service, "anna")
    old, fresh = uploaded(anna), uploaded(anna)
    folder, hour_ago = next(service.uploads.root.glob(f"*/{old}")), time.time() - 3601
    os.utime(folder, (hour_ago, hour_ago))
    assert error_of(used(anna, GENERALIZE, {"data": old})) == (404, "not_found"), "before anything is tidied"
    service.tidy()
    assert not folder.exists() and used(anna, "/preview", {"data": fresh}).status_code == 200
    lines = [(row["what"], row["job"]) for row in service.store.log()]
    assert ("uploaded a file", old) in lines and ("removed an upload whose time was over", old) in lines
    assert "cabs" not in str(lines)


def test_a_job_of_an_upload_runs_confined_as_any_other(running: Running) -> None:
    with running.client() as anna:
        sent = uploaded(anna)
        for _ in range(2):
            job = used(anna, GENERALIZE, {"data": sent}, parameters=json.dumps(BARE)).json()["id"]
            assert ended(anna, job)["state"] == "done"
        assert anna.request("DELETE", f"/uploads/{sent}").status_code == 204
