"""The service as its users see it: what is refused at once, uploads, and a table of jobs from upload to result."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import os
import re
import struct
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from manifests import manifest_of
from serving import BARE, ERROR_KEYS, Running, Within, asking, cabs, ended, post, put, until

from crowdveil.errors import OutputError, as_field, from_json, render
from crowdveil.io.atomic import new_file
from crowdveil.registry import METHODS
from crowdveil.server.queue.files import Files, safe_name
from crowdveil.server.queue.schema import jobs
from crowdveil.server.queue.store import NewJob, Store, new_id
from crowdveil.server.routes.uploads import UPLOADS_MOST
from crowdveil.server.service import Service
from crowdveil.server.workers import sandboxed
from crowdveil.server.workers.worker import Worker, checked_answer
from crowdveil.verbs.base import Outcome, Task
from crowdveil.verbs.table import VERBS

CABS = {"data": ("cabs.csv", cabs())}
GENERALIZE = "/methods/simple-generalization/jobs"
MEASURE = "/measures/all/jobs"
SECRET = "secret_name"


def message(answer: httpx.Response) -> str:
    """The sentence of an error; fails where the answer has another shape."""
    error = answer.json()["error"]
    assert set(error) == ERROR_KEYS and error["message"].endswith(".")
    assert render(from_json(error).text, as_field) == error["message"], error
    assert "Traceback" not in answer.text and "/inputs" not in answer.text
    return str(error["message"])


def zipped(**entries: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/"), content)
    return held.getvalue()


# What is refused at once


@pytest.fixture
def anna(service: Service) -> Within:
    return asking(service, "anna", max_upload_mib=8, scopes=("submit", "read", "review"))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"k": 1}, "k: Expected a number of at least 2, got 1."),
        ({"no": 1}, "no: there is no such parameter. Known are "),
        ({"zones": "/etc/passwd"}, "zones: Expected a file in the field zones of the form, or a plain word."),
        ({"zones": "../x"}, "zones: Expected a file in the field zones"),
        ({"zones": ["a"]}, "zones: Expected a file in the field zones"),
        ({"seed": -1}, "seed: Expected a number of at least 0"),
        ({"format": "exe"}, "format: Expected 'parquet' or 'csv', got 'exe'."),
        ({"data_name": "../../x.csv"}, "data_name: Expected"),
        ({"resume": "kept"}, "resume: there is no such parameter"),
    ],
)
def test_parameters_are_checked_before_anything_runs(anna: Within, parameters: dict[str, Any], sentence: str) -> None:
    answer = post(anna, "/methods/microaggregation/jobs", CABS, parameters)
    assert answer.status_code == 422 and message(answer).startswith(sentence)


MANY = zipped(**{f"f{i}": b"" for i in range(4097)})
RELEASES = [b"PK no", zipped(a__b=b"1"), zipped(**{"..__x": b"1"}), zipped(a=bytes(9 << 20)), MANY]


@pytest.mark.parametrize(
    ("path", "files", "status"),
    [
        (GENERALIZE, {"data": ("cabs.exe", "x")}, 415),
        (GENERALIZE, {"data": ("cabs.csv.gz", "x")}, 415),
        (GENERALIZE, {"other": ("cabs.csv", "x")}, 422),
        (GENERALIZE, {}, 415),
        (GENERALIZE, {"data": ("cabs.csv", b"x" * (9 << 20))}, 413),  # larger than allowed
        (GENERALIZE, {**CABS, "zones": ("z.geojson", "<OGRVRTDataSource></OGRVRTDataSource>")}, 422),
        (GENERALIZE, {**CABS, "zones": ("z.gpkg", "<OGRVRTDataSource></OGRVRTDataSource>")}, 422),
        *((MEASURE, {"original": ("a.csv", "x"), "release": ("r.zip", content)}, 422) for content in RELEASES),
        (MEASURE, {"original": ("a.csv", "x")}, 422),
        *((f"/{kind}/nothing/jobs", CABS, 404) for kind in ("methods", "measures", "analyses")),
    ],
)  # fmt: skip
def test_bombs_and_slips_end_in_a_clean_answer(
    anna: Within, service: Service, path: str, files: dict[str, Any], status: int
) -> None:
    answer = post(anna, path, files)
    assert answer.status_code == status, answer.text
    assert message(answer) and list(service.files.incoming.iterdir()) == []


def test_json_bombs_end_in_a_clean_answer(anna: Within) -> None:
    numbers = ['{"k": 1e999}', '{"k": NaN}', '{"k": ' + "9" * 6000 + "}"]
    for text in ("[" * 200_000, '{"k":' * 50_000, "[1]", "{", *numbers, "\ud800"):
        files: dict[str, Any] = {**CABS, "parameters": (None, text.encode("utf-8", "surrogatepass"))}
        answer = anna.post("/methods/microaggregation/jobs", files=files)
        assert answer.status_code == 422 and message(answer)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Starlette leaves its file to the collector
def test_a_form_that_breaks_off_leaves_nothing(anna: Within, service: Service) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="data"; filename="a.csv"\r\n\r\nlat,lon\n1,2'
    for content in (body, body[:30], b"", b"nonsense"):
        answer = anna.post(GENERALIZE, content=content, headers={"Content-Type": "multipart/form-data; boundary=x"})
        assert answer.status_code in (400, 422) and message(answer)
    assert list(service.files.incoming.iterdir()) == []


@pytest.mark.parametrize("bad", ["a\\u0000b", "\\ud800"])
def test_text_that_cannot_be_stored_is_refused(service: Service, anna: Within, bad: str) -> None:
    run = f'{{"method": "SimpleGeneralization", "input_file": "{bad}"}}'
    decision = f'{{"decision": "approve", "comment": "{bad}"}}'
    for answer in (
        anna.post(GENERALIZE, files=CABS, data={"parameters": f'{{"user": {{"inner": ["{bad}"]}}}}'}),
        anna.post(GENERALIZE, files=CABS, data={"parameters": f'{{"{bad}": 1}}'}),
        anna.post("/preview", files=CABS, data={"parameters": f'{{"time_format": "{bad}"}}'}),
        anna.post("/anonymize/", files={"input_dataset": CABS["data"], "config_file": ("p.json", run)}),
        anna.post(f"/reviews/{new_id()}", content=decision, headers={"Content-Type": "application/json"}),
    ):
        assert answer.status_code == 422 and "NUL character" in message(answer)
    assert anna.get("/jobs").json() == {"jobs": []} and list(service.files.incoming.iterdir()) == []


def test_errors_have_one_shape(anna: Within) -> None:
    for method, path, status in (
        ("GET", "/no", 404), ("PUT", "/jobs", 405), ("GET", "/jobs/x", 422), ("GET", "/jobs?limit=0", 422),
        ("GET", "/jobs?before=nan", 422), ("GET", "/task/", 422), ("GET", f"/jobs/{'0' * 32}", 404), ("POST", GENERALIZE, 415),
    ):  # fmt: skip
        answer = anna.request(method, path)
        assert answer.status_code == status and message(answer), (method, path, answer.text)
    assert anna.request("PATCH", f"/jobs/{'0' * 32}").headers["allow"] == "GET"


def test_a_token_has_as_many_jobs_as_it_may(service: Service) -> None:
    few = asking(service, "few", max_waiting=2)
    for _ in range(2):
        put(few, GENERALIZE, CABS)
    answer = post(few, GENERALIZE, CABS)
    assert answer.status_code == 429 and answer.headers["retry-after"] == "5"
    assert message(answer) == "Too many jobs at once (limit 2). Wait for some to finish."
    assert len(list(service.files.jobs.iterdir())) == 2
    service.tokens.revoke("few")
    assert few.get("/jobs").status_code == 401


def test_the_schemas_are_those_of_the_registry(anna: Within) -> None:
    listed = {m["name"]: m for m in anna.get("/methods").json()["methods"]}
    assert list(listed) == list(METHODS)
    joint, files = listed["joint"]["parameters"]["properties"], listed["joint"]["files"]
    assert joint["k"]["minimum"] == 2 and joint["tz"]["default"] == "UTC" and "secret" in joint["seed"]["description"]
    assert files["zones"]["required"] is False and files["data"]["required"]
    assert anna.get("/methods/SwapMob").json()["name"] == "swapmob"
    for verb in VERBS.values():
        for name in verb.names():
            fields = [field for model in verb.models(name) for field in model.model_fields]
            assert len(fields) == len(set(fields)), f"a parameter of {verb.verb} {name} means two things"


# Names


def test_uploaded_names_are_kept_only_if_plain(service: Service, anna: Within) -> None:
    plain = ("cabs.csv", "Fahrten 2026-03.csv", "trajets_été.CSV", "a, b=c+d.csv")
    odd = (
        "../a.csv",
        "/etc/a.csv",
        "C:\\a.csv",
        "a\tb.csv",
        ".a.csv",
        "-a.csv",
        "a..b.csv",
        "a/b.csv",
        "$(x).csv",
        "a'b.csv",
    )
    assert [safe_name(name, "data", (".csv",)) for name in plain] == list(plain)
    names = {name: safe_name(name, "data", (".csv",)) for name in odd}
    for name, kept in names.items():
        assert kept == "data.csv" or (kept == "a.csv" and name.replace("\\", "/").endswith("/a.csv")) or kept == "b.csv"
    assert safe_name("a.exe", "data", (".csv",)) is None and safe_name("csv", "data", (".csv",)) is None
    taken: list[str] = []
    for given in ("a.csv", "a.csv", "data.csv", "A.CSV", "ä/../b.csv", "b.csv"):
        kept = safe_name(given, "data", (".csv",), tuple(taken))
        assert kept is not None and kept.lower() not in [other.lower() for other in taken]
        taken.append(kept)
    files = {"data": ("zones.csv", "origin,destination\na,a\n"), "zones": ("zones.csv", "id,lon,lat\na,1,1\n")}
    job = put(anna, "/methods/joint/jobs", files, {"k": 2})
    stored = anna.get(f"/jobs/{job}").json()["files"]
    assert stored["data"] == "zones.csv" and stored["zones"] != "zones.csv"
    assert {field: (service.files.inputs(job) / name).read_text() for field, name in stored.items()} == {
        field: content for field, (_, content) in files.items()
    }


def test_a_job_that_cannot_write_reveals_no_path(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's folder, with its lease, host and process, stands in the error of whatever writes there."""

    def full(task: Task) -> Outcome:
        with new_file(Path(str(task.output)).with_name("x.csv"), overwrite=False) as file:
            raise OSError(28, "No space left on device", str(file))

    store, files = service.store, service.files
    id_ = queued(store)
    files.receive(id_)
    files.accept(id_)
    job = store.claim("host:1", 60)
    assert job is not None and job.lease is not None
    files.run(id_, job.lease).mkdir()
    monkeypatch.setitem(VERBS, "filter", dataclasses.replace(VERBS["filter"], run=full))
    asked = {"kind": "filter", "name": "trajectories", "parameters": {}, "files": {}, "limits": {}, "ledger": None}
    asked |= {"inputs": str(files.inputs(id_)), "run": str(files.run(id_, job.lease))}
    monkeypatch.chdir(tmp_path)
    answer = sandboxed._answer("crowdveil.server.workers.job", asked)
    assert str(tmp_path) not in json.dumps(answer)
    Worker(store, files)._ended(job, checked_answer(answer), None, 0)
    found, sentence = store.get(id_), "the disk is full, so nothing was written. Free some space and run again."
    assert found is not None and found.error == OutputError("x.csv", sentence).text


def queued(store: Store) -> str:
    files = {"data": f"{SECRET}.csv"}
    new = NewJob(new_id(), "anna", "filter", "trajectories", {"data_name": SECRET}, files, keep_s=0.0)
    assert store.add(new, 10)
    return new.id


def row_of(store: Store, job: str) -> str:
    return json.dumps(store.db.do(sa.select(jobs).where(jobs.c.id == job)))


@pytest.mark.parametrize("end", ["deleted", "deleted after", "expired", "failed and deleted", "failed and expired"])
def test_names_and_messages_are_removed_with_the_job(store: Store, end: str) -> None:
    id_ = queued(store)
    assert SECRET in row_of(store, id_)
    job = None if end == "deleted" else store.claim("host:1", 60)
    if job is not None and end.startswith("failed"):
        assert store.fail(job, "bad_input", f"{SECRET}.csv: Expected rows.")
    elif job is not None:
        assert store.finish(job, {"lease": job.lease, "name": f"{SECRET}.zip"})
    if "deleted" in end:
        assert store.cancel(id_, "anna") is not None
    else:
        store.expire()
    assert SECRET not in row_of(store, id_) and SECRET not in json.dumps(store.log())
    found = store.get(id_)
    assert found is not None and found.files == {} and found.parameters == {} and found.result is None
    if end.startswith("failed"):
        assert (found.state, found.error_code) == ("failed", "bad_input")
        assert str(found.error) == "the message was removed with the files of the job."


# Broken rows


@pytest.fixture
def queue(service_on_each: Service) -> tuple[Service, Within, list[str]]:
    """A service with five queued jobs of a token, on each database."""
    anna = asking(service_on_each, "anna", scopes=("submit", "read", "review"))
    return service_on_each, anna, [put(anna, GENERALIZE, CABS) for _ in range(5)]


def spoil(service: Service, job: str, **values: str) -> None:
    service.store.db.do(sa.update(jobs).where(jobs.c.id == job).values({n: sa.literal(v) for n, v in values.items()}))


def test_a_row_with_odd_text_is_listed(queue: tuple[Service, Within, list[str]]) -> None:
    service, anna, ids = queue
    spoil(service, ids[0], parameters=json.dumps({"user": "\ud800", "a\0": "\0"}))
    spoil(service, ids[1], parameters="no JSON", files="[1]", limits="")
    spoil(service, ids[2], kind="of old")
    seen = {job["id"]: job for job in anna.get("/jobs").json()["jobs"]}
    assert set(seen) == set(ids) and seen[ids[0]]["parameters"] == {"user": "�", "a�": "�"}
    assert service.store.claim("w", 60) is not None  # nor does it stop the queue


def test_rows_that_cannot_be_shown_are_left_out_of_lists(queue: tuple[Service, Within, list[str]]) -> None:
    """Neither their owner's list is lost to them, nor that of reviewers."""
    service, anna, (good, *odd) = queue
    spoil(service, odd[0], files='{"data": 5}')
    spoil(service, odd[1], state="of old")
    spoil(service, odd[2], state="done", result='{"name": 1}')
    if service.store.db.is_sqlite:
        spoil(service, odd[3], created="soon")
    seen = [job["id"] for job in anna.get("/jobs").json()["jobs"]]
    assert good in seen and not {*odd[:3]} & {*seen}
    service.store.db.do(sa.update(jobs).values(owner="another", review="awaiting"))
    assert anna.get("/reviews").json() == {"reviews": []}


# Files that are sent once


def upload(client: Any, content: Any, name: str = "cabs.csv") -> httpx.Response:
    answer: httpx.Response = client.post("/uploads", params={"name": name}, content=content)
    return answer


def uploaded(client: Any) -> str:
    answer = upload(client, cabs().encode())
    assert answer.status_code == 201 and (answer.json()["bytes"], answer.json()["name"]) == (len(cabs()), "cabs.csv")
    return str(answer.json()["id"])


def used(client: Any, path: str, uploads: dict[str, Any], **texts: str) -> httpx.Response:
    """Ask for a preview or a job of files that were uploaded before."""
    fields = {"uploads": json.dumps(uploads), **texts}
    found: httpx.Response = client.post(path, files={n: (None, t) for n, t in fields.items()})
    return found


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.usefixtures("inspected_here")
def test_one_upload_serves_a_preview_and_two_jobs(service: Service, anna: Within) -> None:
    sent = uploaded(anna)
    seen = used(anna, "/preview", {"data": sent}).json()
    assert seen["counts"]["trajectories"] == 12 and seen["error"] is None
    found = [used(anna, GENERALIZE, {"data": sent}, parameters=json.dumps(BARE)).json() for _ in range(2)]
    for job in found:
        assert job["files"] == {"data": "cabs.csv"}
        assert (service.files.inputs(job["id"]) / "cabs.csv").read_text() == cabs()
    assert list(service.files.incoming.iterdir()) == []
    assert anna.request("DELETE", f"/uploads/{sent}").status_code == 204
    assert (service.files.inputs(found[0]["id"]) / "cabs.csv").exists(), "a job keeps its file"


def test_another_token_gets_404_for_every_upload(service: Service, anna: Within) -> None:
    bert, sent = asking(service, "bert"), uploaded(anna)
    for asked in (sent, "0" * 32):
        paths = ("/preview", GENERALIZE)
        answers = [bert.request("DELETE", f"/uploads/{asked}"), *(used(bert, path, {"data": asked}) for path in paths)]
        assert {error_of(answer) for answer in answers} == {(404, "not_found")}
        assert len({answer.json()["error"]["message"] for answer in answers}) == 1, "no answer reveals that it exists"
    for bad in ("../" + sent, "x", 7, None, [sent]):
        assert error_of(used(bert, GENERALIZE, {"data": bad}))[0] == 404
    assert error_of(upload(asking(service, "r", scopes=("read",)), b"x")) == (403, "no_scope")


def test_limits_of_an_upload(service: Service, anna: Within) -> None:
    async def unmeasured() -> AsyncIterator[bytes]:
        yield b"x"

    assert error_of(upload(anna, b"x" * ((8 << 20) + 1))) == (413, "too_large")
    assert error_of(upload(anna, b"x", "a.exe")) == (415, "bad_type")
    assert error_of(upload(anna, unmeasured())) == (411, "no_length")
    false = {"Content-Length": "1", "Transfer-Encoding": "chunked"}  # the server receives chunks, however long they are
    assert error_of(anna.post("/uploads", params={"name": "a.csv"}, content=unmeasured(), headers=false)) == (
        411,
        "no_length",
    )
    for _ in range(UPLOADS_MOST):
        uploaded(anna)
    assert error_of(upload(anna, b"x")) == (429, "too_many") and list(service.files.incoming.iterdir()) == []


def test_an_upload_expires_and_the_log_has_it(service: Service, anna: Within) -> None:
    old, fresh = uploaded(anna), uploaded(anna)
    folder, hour_ago = next(service.uploads.root.glob(f"*/{old}")), time.time() - 3601
    os.utime(folder, (hour_ago, hour_ago))
    assert error_of(used(anna, GENERALIZE, {"data": old})) == (404, "not_found"), "before anything is tidied"
    service.tidy()
    assert not folder.exists() and used(anna, GENERALIZE, {"data": fresh}).status_code == 202
    lines = [(row["what"], row["job"]) for row in service.store.log()]
    assert ("uploaded a file", old) in lines and ("removed an expired upload", old) in lines
    assert "cabs" not in str(lines)


# Jobs, from upload to result

_FOOTER = io.BytesIO()
pq.write_table(pa.table({"lat": [0.0] * 5}), _FOOTER)
FORGED_FOOTER = _FOOTER.getvalue()[:-8] + struct.pack("<I", 1 << 30) + b"PAR1"
FORGED_MANIFEST = manifest_of().plain() | {"files": {"data": {"name": "../../../../../../etc/passwd", "sha256": "0"}}}
FORGED = zipped(**{"manifest.json": json.dumps(FORGED_MANIFEST).encode()})
ZONES = ("zones.csv", "id,lon,lat\n" + "\n".join(f"{z},{2 + i / 100},48" for i, z in enumerate("abcd")))
DISTRICTS = "zone,group\na,west\nb,west\nc,east\nd,east"


def commuters(day: int, people: int) -> str:
    """Trips between four places on a line, at two hours of a day."""
    rows = [
        f"{'abcd'[(i + j) % 4]},{'abcd'[(i * j) % 4]},u{i},2020-03-0{day}T0{7 + j}:10:00"
        for i in range(people)
        for j in (0, 1)
    ]
    return "origin,destination,user,time\n" + "\n".join(rows) + "\n"


FLOWS = {"k": 5, "step": "1h", "format": "csv", **BARE}
DAY, NEXT = ({"data": (f"{n}.csv", commuters(n, 70 - 10 * n)), "zones": ZONES} for n in (1, 2))
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "whole": (GENERALIZE, CABS, {"seed": 3, "format": "csv"}, ""),
    "bare": (GENERALIZE, CABS, {"seed": 3, **BARE}, ""),
    "lacks columns": (GENERALIZE, {"data": ("cabs.csv", "lat,lon\n1,2\n")}, {}, "cabs.csv: "),
    "forged footer": (GENERALIZE, {"data": ("a.parquet", FORGED_FOOTER)}, {}, "a.parquet"),
    "forged manifest": (MEASURE, {"original": CABS["data"], "release": ("r.zip", FORGED)}, {}, "manifest is broken"),
    "flows": ("/methods/joint/jobs", DAY, {**FLOWS, "time_partition": "stable"}, ""),
    "areas of a table": ("/methods/fixed/jobs", {**NEXT, "partition": ("d.csv", DISTRICTS)}, FLOWS, ""),
    "areas lack a zone": ("/methods/fixed/jobs", {**NEXT, "partition": ("d.csv", DISTRICTS[:-7])}, FLOWS, "has no group"),
}  # fmt: skip
"""For each job its path, files, parameters, and words of the error that it ends with."""


@pytest.fixture(scope="module")
def ends(running: Running) -> dict[str, dict[str, Any]]:
    """Every job of the table once it ended, all put into the queue at once."""
    with running.client() as anna:
        found = {name: put(anna, *case[:3]) for name, case in CASES.items()}
        by_upload = used(anna, GENERALIZE, {"data": uploaded(anna)}, parameters=json.dumps(BARE)).json()["id"]
        return {name: ended(anna, job) for name, job in {**found, "by upload": by_upload}.items()}


def areas(anna: httpx.Client, job: str) -> set[str]:
    features = json.loads(anna.get(f"/jobs/{job}/files/areas.geojson").content)["features"]
    return {feature["properties"]["area"] for feature in features}


def held(service: Running, job: str) -> list[str]:
    try:
        return sorted(p.name for p in (service.folder / "jobs" / job).rglob("*") if p.is_file())
    except FileNotFoundError:  # it is just being removed
        return ["…"]


def test_every_job_of_the_table_ends_as_it_should(running: Running, ends: dict[str, dict[str, Any]]) -> None:
    for name, job in ends.items():
        words = CASES[name][3] if name in CASES else ""
        assert job["state"] == ("failed" if words else "done") and job["runs"] == 1, (name, job["error"])
        with running.client() as anna:
            answer = anna.get(f"/jobs/{job['id']}/result")
        if words:
            assert job["error"]["code"] == "bad_input" and words in job["error"]["message"]
            assert answer.status_code == 422 and message(answer) == job["error"]["message"]
            until(lambda job=job: held(running, job["id"]) == [])
        else:
            assert hashlib.sha256(answer.content).hexdigest() == job["result"]["sha256"]


def test_a_result_with_its_report_and_files(running: Running, ends: dict[str, dict[str, Any]]) -> None:
    job = ends["whole"]["id"]
    assert ends["whole"]["parameters"] == {"format": "csv"}, "a seed is not shown again"
    assert ends["whole"]["summary"]["lines"][0].startswith("  holds")
    with running.client() as anna, running.client("bert") as bert:
        result = anna.get(f"/jobs/{job}/result")
        assert result.headers["x-content-type-options"] == "nosniff" and result.headers["cache-control"] == "no-store"
        rest = anna.get(f"/jobs/{job}/result", headers={"Range": "bytes=100-"})
        assert rest.status_code == 206 and rest.content == result.content[100:]
        whole = zipfile.ZipFile(io.BytesIO(result.content))
        assert whole.namelist() == sorted(whole.namelist()) and {"manifest.json", "trajectories.csv"} <= {
            *whole.namelist()
        }
        listed = anna.get(f"/jobs/{job}/files").json()["files"]
        assert [(f["name"], f["bytes"]) for f in listed] == [(e.filename, e.file_size) for e in whole.infolist()]
        for name in whole.namelist():
            one = anna.get(f"/jobs/{job}/files/{name}")
            assert one.content == whole.read(name) and one.headers["content-disposition"].startswith("attachment")
        assert anna.get(f"/jobs/{job}/files/private.html").status_code == 404
        for path in ("files", "files/manifest.json"):
            assert bert.get(f"/jobs/{job}/{path}").json()["error"]["code"] == "no_job"
        report = anna.get(f"/jobs/{job}/report")
        assert report.headers["content-type"].startswith("text/html") and report.text.startswith("<!doctype html>")
        # By the header as by the page's own policy, the one script of the report may run: browsers obey both.
        (script,) = re.findall(r"<script>(.*?)</script>", report.text, re.S)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules = dict(rule.strip().split(" ", 1) for rule in report.headers["content-security-policy"].split(";"))
        assert rules["default-src"] == "'none'" and rules["script-src"] == f"'sha256-{digest}'"
        assert (
            rules["frame-ancestors"] == "'none'" and rules["sandbox"] == "allow-scripts" and "unsafe" not in str(rules)
        )
        manifest = anna.get(f"/jobs/{ends['bare']['id']}/report").json()
        assert manifest["method"]["seed_given"] is True


def test_areas_that_were_made_before(running: Running, ends: dict[str, dict[str, Any]]) -> None:
    """A night of `fixed`: the areas of a result that was downloaded are uploaded with the new trips."""
    with running.client() as anna:
        first = areas(anna, ends["flows"]["id"])
        reference = anna.get(f"/jobs/{ends['flows']['id']}/result").content
        job = put(anna, "/methods/fixed/jobs", {**NEXT, "partition": ("reference.zip", reference)}, FLOWS)
        assert ended(anna, job)["state"] == "done" and areas(anna, job) <= first
        assert areas(anna, ends["areas of a table"]["id"]) <= {"west", "east"}


def test_the_upload_goes_with_the_job_and_the_result_when_it_is_given_up(
    running: Running, ends: dict[str, dict[str, Any]]
) -> None:
    job = ends["by upload"]["id"]
    with running.client() as anna:
        until(lambda: held(running, job) == ["release.zip", "summary.json"])
        assert job in [found["id"] for found in anna.get("/jobs").json()["jobs"]]
        assert anna.delete(f"/jobs/{job}").json()["state"] == "expired" and held(running, job) == []
        for path in ("result", "files"):
            assert anna.get(f"/jobs/{job}/{path}").status_code == 410
    with pytest.raises(ValueError, match="no id"):
        Files(running.folder).job("../x")
