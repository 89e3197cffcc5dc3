"""Resumable uploads: a file is sent once; it is its owner's alone, is confined as any other, and expires."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from examples import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import BARE, Running, Within, cabs, ended

from crowdveil.server.app import make_app
from crowdveil.server.queue.upload_files import CONTENT
from crowdveil.server.routes import preview
from crowdveil.server.routes.attached import PART_BYTES
from crowdveil.server.routes.resumable import UPLOADS_MOST
from crowdveil.server.settings import Service, Settings
from crowdveil.server.workers.inspect_upload import work

GENERALIZE = "/methods/simple-generalization/jobs"
MIB = 1 << 20


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Settings(tmp_path).open() as opened:
        yield opened


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect files in this process, which is quicker."""

    def here(request: dict[str, Any], folder: Path, *_: Any) -> dict[str, Any]:
        monkeypatch.chdir(folder)
        return work(json.loads(json.dumps(request)))

    monkeypatch.setattr(preview, "_inspected", here)


def asking(service: Service, name: str, **limits: Any) -> Within:
    return Within(make_app(service), Authorization=f"Bearer {service.tokens.create(name, **limits)}")


def begun(client: Any, name: str = "cabs.csv", size: int = 10) -> str:
    answer = client.request("POST", "/uploads", json={"name": name, "bytes": size})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def sent(client: Any, upload: str, chunk: bytes, offset: int = 0) -> httpx.Response:
    found: httpx.Response = client.request(
        "PATCH", f"/uploads/{upload}", content=chunk, headers={"Upload-Offset": str(offset)}
    )
    return found


def whole(client: Any, name: str, content: bytes) -> str:
    upload = begun(client, name, len(content))
    assert sent(client, upload, content).json()["received"] == len(content)
    return upload


def used(client: Any, path: str, uploads: dict[str, Any], **texts: str) -> httpx.Response:
    """Ask for a preview or a job of files that were uploaded before."""
    fields = {"uploads": json.dumps(uploads), **texts}
    found: httpx.Response = client.request("POST", path, files={n: (None, t) for n, t in fields.items()})
    return found


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_one_upload_serves_a_preview_and_two_jobs(service: Service) -> None:
    anna = asking(service, "anna")
    upload = whole(anna, "cabs.csv", cabs().encode())
    seen = used(anna, "/preview", {"data": upload}).json()
    assert seen["counts"]["trajectories"] == 12 and seen["error"] is None
    jobs = [used(anna, GENERALIZE, {"data": upload}, parameters=json.dumps(BARE)).json() for _ in range(2)]
    for job in jobs:
        assert job["files"] == {"data": "cabs.csv"}
        assert (service.files.inputs(job["id"]) / "cabs.csv").read_text() == cabs()
    assert list(service.files.incoming.iterdir()) == []
    assert anna.request("DELETE", f"/uploads/{upload}").status_code == 204
    assert (service.files.inputs(jobs[0]["id"]) / "cabs.csv").exists(), "a job keeps its file"


@settings(max_examples=tries(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=200), st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_chunks_of_any_size_make_the_file(tmp_path: Path, content: bytes, sizes: list[int]) -> None:
    with Settings(tmp_path).open() as service:
        uploads = service.uploads
        state = uploads.create("a1", "x.parquet", len(content))
        for size in [*sizes, len(content)]:
            state = uploads.get("a1", state.id) or state
            with uploads.appending("a1", state) as file:
                piece = content[state.received : state.received + size]
                file.write(piece)
                state.received += len(piece)
        assert state.complete and (uploads.root / "a1" / state.id / CONTENT).read_bytes() == content


def test_an_upload_goes_on_where_it_broke_off(service: Service) -> None:
    anna, text = asking(service, "anna"), cabs().encode()
    upload = begun(anna, size=len(text))

    async def broken() -> Any:
        yield text[:100]
        raise ConnectionError

    answer = anna.request("PATCH", f"/uploads/{upload}", content=broken(), headers={"Upload-Offset": "0"})
    assert answer.status_code >= 400
    folder = next(service.uploads.root.glob(f"*/{upload}"))
    with (folder / CONTENT).open("ab") as file:  # bytes of a process that was killed, which no count has seen
        file.write(b"lost")
    state = anna.get(f"/uploads/{upload}").json()
    at = state["received"]
    assert at == 100
    assert used(anna, GENERALIZE, {"data": upload}).json()["error"]["code"] == "incomplete"
    refused = sent(anna, upload, text[7:], 7)
    assert error_of(refused) == (409, "wrong_offset") and refused.headers["upload-offset"] == str(at)
    assert sent(anna, upload, text[at:], at).json()["received"] == len(text)
    assert (folder / CONTENT).read_bytes() == text


def test_another_token_gets_404_for_everything(service: Service) -> None:
    anna, bert = asking(service, "anna"), asking(service, "bert")
    upload = whole(anna, "cabs.csv", cabs().encode())
    missing = "0" * 32
    for asked in (upload, missing):
        answers = [
            bert.get(f"/uploads/{asked}"), sent(bert, asked, b"x"), bert.request("DELETE", f"/uploads/{asked}"),
            used(bert, "/preview", {"data": asked}), used(bert, GENERALIZE, {"data": asked}),
        ]  # fmt: skip
        assert {error_of(answer) for answer in answers} == {(404, "not_found")}
        assert len({answer.json()["error"]["message"] for answer in answers}) == 1, "no answer reveals that it exists"
    assert anna.get(f"/uploads/{upload}").json()["received"] == len(cabs())
    for bad in ("../" + upload, "x", 7, None, [upload]):
        assert error_of(used(bert, GENERALIZE, {"data": bad}))[0] == 404
    reader = Within(make_app(service), Authorization=f"Bearer {service.tokens.create('r', scopes=('read',))}")
    assert error_of(reader.request("POST", "/uploads", json={"name": "a.csv", "bytes": 3})) == (403, "no_scope")
    assert len(upload) == 32 and upload != whole(anna, "cabs.csv", cabs().encode()), "an id has 128 random bits"


def test_limits_hold_while_an_upload_arrives(service: Service) -> None:
    anna = asking(service, "anna", max_upload_mib=1, max_rows=3)
    new = {"name": "a.csv", "bytes": MIB + 1}
    assert error_of(anna.request("POST", "/uploads", json=new)) == (413, "too_large")
    assert error_of(anna.request("POST", "/uploads", json={"name": "a.exe", "bytes": 1})) == (415, "bad_type")
    for name, content, code in (
        ("a.csv", b"a,b\n" + b"1,2\n" * 9, (413, "too_large")),
        ("a.csv", b"x" * 70_000, (422, "bad_input")),
        ("a.pq", b"x" * 11, (413, "too_large")),
    ):
        upload = begun(anna, name, 10 if name == "a.pq" else len(content))
        first = sent(anna, upload, content[:9])
        assert first.status_code == 200 and error_of(sent(anna, upload, content[9:], 9)) == code
        assert anna.get(f"/uploads/{upload}").status_code == 404, "what is refused is removed"
    for _ in range(UPLOADS_MOST):
        begun(anna)
    assert error_of(anna.request("POST", "/uploads", json={"name": "a.csv", "bytes": 1})) == (429, "too_many")


def test_an_upload_expires_and_the_log_has_it(service: Service) -> None:
    anna = asking(service, "anna")
    old, fresh = whole(anna, "cabs.csv", cabs().encode()), whole(anna, "cabs.csv", cabs().encode())
    about = next(service.uploads.root.glob(f"*/{old}/about.json"))
    hour_ago = time.time() - 3601
    os.utime(about, (hour_ago, hour_ago))
    assert anna.get(f"/uploads/{old}").status_code == 404, "before anything is tidied"
    assert error_of(used(anna, GENERALIZE, {"data": old})) == (404, "not_found")
    service.tidy()
    assert not about.parent.exists() and anna.get(f"/uploads/{fresh}").status_code == 200
    lines = [(row["what"], row["job"]) for row in service.store.log()]
    assert ("began an upload", old) in lines and ("removed an upload whose time was over", old) in lines
    assert "cabs" not in str(lines)


def test_files_and_folders_are_closed_to_others(service: Service) -> None:
    whole(asking(service, "anna"), "cabs.csv", cabs().encode())
    paths = [service.uploads.root, *service.uploads.root.rglob("*")]
    assert {path.stat().st_mode & 0o077 for path in paths} == {0} and len(paths) == 5


def test_of_a_large_table_the_beginning_is_read_before_the_rest_arrives(service: Service) -> None:
    anna = asking(service, "anna")
    row = b"a1,b2,2026-03-02 08:10:00\n"
    text = b"origin,destination,time\n" + row * (PART_BYTES // len(row) + 50_000)
    upload = begun(anna, "large.csv", len(text))
    assert error_of(used(anna, "/preview", {"data": upload}, part="true")) == (409, "incomplete")
    sent(anna, upload, text[: PART_BYTES + 7])
    seen = used(anna, "/preview", {"data": upload}, part="true").json()
    assert seen["part"] and seen["counts"]["trips"] == (PART_BYTES - 24) // len(row)
    assert error_of(used(anna, "/preview", {"data": upload})) == (409, "incomplete")
    assert anna.get(f"/uploads/{upload}").json()["received"] == PART_BYTES + 7, "the preview changed nothing of it"


def test_a_job_of_an_upload_runs_confined_as_any_other(running: Running) -> None:
    with running.client() as anna:
        upload = whole(anna, "cabs.csv", cabs().encode())
        for _ in range(2):
            job = used(anna, GENERALIZE, {"data": upload}, parameters=json.dumps(BARE)).json()["id"]
            assert ended(anna, job)["state"] == "done"
        assert anna.request("DELETE", f"/uploads/{upload}").status_code == 204
