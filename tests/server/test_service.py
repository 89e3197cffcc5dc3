"""The service as its users see it: jobs, access, uploads, the document's routes."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from manifests import manifest_of
from serving import BARE, ERROR_KEYS, Running, Within, cabs, ended, opened, post, put, until

from crowdveil.errors import as_field, from_json, render

CABS = {"data": ("cabs.csv", cabs())}
GENERALIZE = "/methods/simple-generalization/jobs"


def message(answer: httpx.Response) -> str:
    """The sentence of an error; fails where the answer has another shape."""
    error = answer.json()["error"]
    assert set(error) == ERROR_KEYS and error["message"].endswith(".")
    assert render(from_json(error).text, as_field) == error["message"], error
    assert "Traceback" not in answer.text and "/inputs" not in answer.text
    return str(error["message"])


def held(service: Running, job: str) -> list[str]:
    try:
        return sorted(p.name for p in (service.folder / "jobs" / job).rglob("*") if p.is_file())
    except FileNotFoundError:  # it is just being removed
        return ["…"]


def test_a_job_from_upload_to_result(running: Running) -> None:
    with running.client() as anna:
        job = put(anna, GENERALIZE, CABS, {"seed": 3, "format": "csv"})
        done = ended(anna, job)
        assert done["state"] == "done" and done["error"] is None and done["runs"] == 1
        assert done["parameters"] == {"format": "csv"}, "a seed is not shown again"
        assert done["summary"]["lines"][0].startswith("  holds")
        result = anna.get(f"/jobs/{job}/result")
        names = zipfile.ZipFile(io.BytesIO(result.content)).namelist()
        assert names == sorted(names) and {"manifest.json", "trajectories.csv"} <= set(names)
        assert result.headers["x-content-type-options"] == "nosniff" and result.headers["cache-control"] == "no-store"
        report = anna.get(f"/jobs/{job}/report")
        assert report.headers["content-type"].startswith("text/html") and report.text.startswith("<!doctype html>")
        assert_one_script_may_run(report.headers["content-security-policy"], report.text)
        plain = put(anna, GENERALIZE, CABS, {"seed": 3, **BARE})
        assert ended(anna, plain)["state"] == "done"
        assert anna.get(f"/jobs/{plain}/report").json()["method"]["seed_given"] is True
        anna.delete(f"/jobs/{plain}")
        assert job in [j["id"] for j in anna.get("/jobs").json()["jobs"]]
        # The upload is gone as soon as the job ended, and the result when it is given up.
        until(lambda: held(running, job) == ["release.zip", "summary.json"])
        assert anna.delete(f"/jobs/{job}").json()["state"] == "expired" and held(running, job) == []
        assert anna.get(f"/jobs/{job}/result").status_code == 410


def assert_one_script_may_run(policy: str, page: str) -> None:
    """By the header as by the page's own policy: browsers obey both."""
    script = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and rules["script-src"] == f"'sha256-{digest}'"
    assert rules["frame-ancestors"] == "'none'" and rules["sandbox"] == "allow-scripts" and "unsafe" not in policy


def test_what_is_wrong_with_the_data_is_reported_by_the_job(running: Running) -> None:
    with running.client() as anna:
        job = put(anna, GENERALIZE, {"data": ("cabs.csv", "lat,lon\n1,2\n")})
        failed = ended(anna, job)
        assert failed["state"] == "failed" and failed["error"]["code"] == "bad_input"
        assert failed["error"]["message"].startswith("cabs.csv: ")
        answer = anna.get(f"/jobs/{job}/result")
        assert answer.status_code == 422 and message(answer) == failed["error"]["message"]
        until(lambda: held(running, job) == [])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"k": 1}, "k: Expected a number of at least 2, got 1."),
        ({"no": 1}, "no: there is no such parameter; known are "),
        (
            {"zones": "/etc/passwd"},
            "zones: Expected a file in the field zones of the form, or a plain word. Upload the file.",
        ),
        ({"zones": "../x"}, "zones: Expected a file in the field zones"),
        ({"zones": ["a"]}, "zones: Expected a file in the field zones"),
        ({"seed": -1}, "seed: Expected a number of at least 0"),
        ({"format": "exe"}, "format: Expected 'parquet' or 'csv', got 'exe'."),
        ({"data_name": "../../x.csv"}, "data_name: wanted"),
        ({"resume": "kept"}, "resume: there is no such parameter"),
    ],
)
def test_parameters_are_checked_before_anything_runs(
    running: Running, parameters: dict[str, Any], sentence: str
) -> None:
    with running.client() as anna:
        answer = post(anna, "/methods/microaggregation/jobs", CABS, parameters)
        assert answer.status_code == 422 and message(answer).startswith(sentence)


def zipped(**entries: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/"), content)
    return held.getvalue()


MANY = zipped(**{f"f{i}": b"" for i in range(70)})


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
        ("/measures/all/jobs", {"original": ("a.csv", "x"), "release": ("r.zip", b"PK no")}, 422),
        ("/measures/all/jobs", {"original": ("a.csv", "x"), "release": ("r.zip", zipped(a__b=b"1"))}, 422),
        ("/measures/all/jobs", {"original": ("a.csv", "x"), "release": ("r.zip", zipped(**{"..__x": b"1"}))}, 422),
        ("/measures/all/jobs", {"original": ("a.csv", "x"), "release": ("r.zip", zipped(a=bytes(9 << 20)))}, 422),
        ("/measures/all/jobs", {"original": ("a.csv", "x"), "release": ("r.zip", MANY)}, 422),
        ("/measures/all/jobs", {"original": ("a.csv", "x")}, 422),
        ("/methods/nothing/jobs", CABS, 404),
        ("/measures/nothing/jobs", CABS, 404),
        ("/analyses/nothing/jobs", CABS, 404),
    ],
)  # fmt: skip
def test_bombs_and_slips_end_in_a_clean_answer(running: Running, path: str, files: dict[str, Any], status: int) -> None:
    with running.client() as anna:
        answer = post(anna, path, files)
        assert answer.status_code == status, answer.text
        assert message(answer)
    assert list((running.folder / "incoming").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"k":' * 50_000, "[1]", "{", '{"k": 1e999}', '{"k": NaN}', '{"k": ' + "9" * 6000 + "}", "\ud800"],
)
def test_json_bombs_end_in_a_clean_answer(running: Running, text: str) -> None:
    with running.client() as anna:
        files: dict[str, Any] = {**CABS, "parameters": (None, text.encode("utf-8", "surrogatepass"))}
        answer = anna.post("/methods/microaggregation/jobs", files=files)
        assert answer.status_code == 422 and message(answer)


def test_a_form_that_breaks_off_leaves_nothing(running: Running) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="data"; filename="a.csv"\r\n\r\nlat,lon\n1,2'
    with running.client() as anna:
        for content in (body, body[:30], b"", b"nonsense"):
            headers = {"Content-Type": "multipart/form-data; boundary=x"}
            answer = anna.post(GENERALIZE, content=content, headers=headers)
            assert answer.status_code in (400, 422), answer.text
            assert message(answer)
    assert list((running.folder / "incoming").iterdir()) == []


def test_a_parquet_file_with_a_forged_footer_fails(running: Running) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = io.BytesIO()
    pq.write_table(pa.table({"lat": [0.0] * 5}), held)
    broken = held.getvalue()[:-8] + struct.pack("<I", 1 << 30) + b"PAR1"
    with running.client() as anna:
        assert ended(anna, put(anna, GENERALIZE, {"data": ("a.parquet", broken)}))["state"] == "failed"


def test_a_manifest_that_names_other_files_opens_none(running: Running) -> None:
    entry = {"name": "../../../../../../etc/passwd", "sha256": "0"}
    manifest = manifest_of().plain() | {"files": {"data": entry}}
    files = {
        "original": ("a.csv", cabs()),
        "release": ("r.zip", zipped(**{"manifest.json": json.dumps(manifest).encode()})),
    }
    with running.client() as anna:
        failed = ended(anna, put(anna, "/measures/all/jobs", files))
        assert failed["state"] == "failed" and "manifest is broken" in failed["error"]["message"]


def test_errors_have_one_shape(running: Running) -> None:
    with running.client() as anna:
        for method, path, status in (("GET", "/no", 404), ("PUT", "/jobs", 405), ("GET", "/jobs/x", 422),
                                     ("GET", "/jobs?limit=0", 422), ("GET", "/jobs?before=nan", 422), ("GET", "/task/", 422),
                                     ("GET", f"/jobs/{'0' * 32}", 404), ("POST", GENERALIZE, 415)):  # fmt: skip
            answer = anna.request(method, path)
            assert answer.status_code == status and message(answer), (method, path, answer.text)
        assert anna.request("PATCH", f"/jobs/{'0' * 32}").headers["allow"] == "GET"


def test_the_schemas_are_those_of_the_registry(running: Running) -> None:
    from crowdveil.registry import METHODS

    with running.client() as anna:
        listed = {m["name"]: m for m in anna.get("/methods").json()["methods"]}
        assert list(listed) == list(METHODS)
        joint = listed["joint"]["parameters"]["properties"]
        assert (
            joint["k"]["minimum"] == 2 and joint["tz"]["default"] == "UTC" and "secret" in joint["seed"]["description"]
        )
        assert listed["joint"]["files"]["zones"]["required"] is False and listed["joint"]["files"]["data"]["required"]
        assert anna.get("/methods/SwapMob").json()["name"] == "swapmob"


def test_no_parameter_of_a_job_means_two_things() -> None:
    from crowdveil.verbs.table import VERBS

    for kind in VERBS.values():
        for name in kind.names():
            fields = [field for model in kind.models(name) for field in model.model_fields]
            assert len(fields) == len(set(fields)), (kind.verb, name)
            assert set(kind.schema(name)["properties"]) == set(fields) and kind.about(name)["summary"]


def test_the_documents_routes_and_answers(running: Running) -> None:
    config = {"method": "SimpleGeneralization", "input_file": "/home/x/cabs.csv", "output_folder": "/out",
              "main_output_file": "anonymized.csv", "params": {"tile_size": 500}}  # fmt: skip
    with running.client() as anna:
        files = {"input_dataset": ("cabs.csv", cabs()), "config_file": ("parameters.json", json.dumps(config))}
        answer = anna.post("/anonymize/", files=files).json()
        assert answer["status"] == "OK" and len(answer["task_id"]) == 32
        assert answer["message"] == (
            "Your task is being processed. Use the 'GET /task/' endpoint to obtain the results later"
        )
        task = {"task_id": answer["task_id"]}
        while (got := anna.get("/task/", params=task)).headers["content-type"] == "application/json":
            assert got.json()["status"] == "NOT_AVAILABLE"
            time.sleep(0.1)
        assert (
            got.text.startswith("lat,lon,timestamp,published_id")
            and "anonymized.csv" in got.headers["content-disposition"]
        )
        wrong = {**files, "config_file": ("p.json", json.dumps(config | {"method": "Nothing"}))}
        refused = anna.post("/anonymize/", files=wrong)
        assert refused.status_code == 422 and refused.json()["status"] == "ERROR"
        assert refused.json()["message"].startswith("there is no method Nothing")
        assert message(refused) == refused.json()["message"]
        filtering = {"input_filename": "a", "methods": [{"min_locations": 5}, {"max_speed": 1}]}
        files["config_file"] = ("p.json", json.dumps(filtering))
        job = anna.post("/filter/", files=files).json()["task_id"]
        assert ended(anna, job)["summary"]["lines"][1] == "max_speed 1: removed 12 trajectories"
        files["config_file"] = ("p.json", json.dumps({"method": "QuadTree", "input_file": "a"}))
        assert anna.post("/analyze/", files=files).json()["status"] == "ERROR"
        measures = {"original_dataset": ("a.csv", cabs()), "anonymized_dataset": ("b.csv", cabs()),
                    "config_file": ("p.json", json.dumps({"measures": [{"name": "nothing", "params": {}}]}))}  # fmt: skip
        assert (
            anna.post("/compute_measures/", files=measures).json()["message"].startswith("there is no measure nothing")
        )


def test_with_no_auth_pages_of_other_sites_are_refused(tmp_path: Path) -> None:
    from crowdveil.server.app import make_app

    client = Within(make_app(opened(tmp_path)))
    assert client.get("/jobs").status_code == 200
    for headers in (
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
    ):
        answer = client.get("/jobs", headers=headers)
        assert answer.status_code == 403 and message(answer)


def test_what_a_token_may_do(tmp_path: Path) -> None:
    from crowdveil.server.app import make_app

    service = opened(tmp_path)
    token = service.tokens.create("anna", max_waiting=2)
    client = Within(make_app(service), Authorization=f"Bearer {token}")
    for _ in range(2):
        put(client, GENERALIZE, CABS)
    answer = post(client, GENERALIZE, CABS)
    assert answer.status_code == 429 and answer.headers["retry-after"] == "5"
    assert message(answer) == "Too many jobs at once (limit 2). Wait for some to finish."
    assert len(list((tmp_path / "jobs").iterdir())) == 2
    service.tokens.revoke("anna")
    assert client.get("/jobs").status_code == 401


def test_what_is_left_of_a_result(running: Running) -> None:
    with running.client() as anna:
        job = put(anna, GENERALIZE, CABS, BARE)
        assert ended(anna, job)["state"] == "done"
        path = f"/jobs/{job}/result"
        whole = anna.get(path)
        assert whole.status_code == 200 and whole.headers["accept-ranges"] == "bytes"
        size = len(whole.content)
        rest = anna.get(path, headers={"Range": "bytes=100-"})
        assert rest.status_code == 206 and rest.content == whole.content[100:]
        assert rest.headers["content-range"] == f"bytes 100-{size - 1}/{size}"
        assert anna.get(path, headers={"Range": f"bytes={size}-"}).status_code == 416


def _commuters(day: int, people: int) -> str:
    """Trips between four places on a line, at two hours of a day."""
    rows = [
        f"{'abcd'[(i + j) % 4]},{'abcd'[(i * j) % 4]},u{i},2020-03-0{day}T0{7 + j}:10:00"
        for i in range(people)
        for j in (0, 1)
    ]
    return "origin,destination,user,time\n" + "\n".join(rows) + "\n"


def test_areas_made_before(running: Running) -> None:
    """A night of `fixed`: the areas of a result that was downloaded, or of a table, are uploaded with the new trips."""
    zones = ("zones.csv", "id,lon,lat\n" + "\n".join(f"{z},{2 + i / 100},48" for i, z in enumerate("abcd")))
    first = {"data": ("day.csv", _commuters(2, 60)), "zones": zones}
    new = {"data": ("next.csv", _commuters(3, 50)), "zones": zones}
    plain = {"k": 5, "step": "1h", "format": "csv", **BARE}
    districts = "zone,group\n" + "\n".join(f"{z},{'west' if z in 'ab' else 'east'}" for z in "abcd")
    with running.client() as anna:

        def result(job: str) -> zipfile.ZipFile:
            done = ended(anna, job)
            assert done["state"] == "done", done["error"]
            return zipfile.ZipFile(io.BytesIO(anna.get(f"/jobs/{job}/result").content))

        job = put(anna, "/methods/joint/jobs", first, {**plain, "time_partition": "stable"})
        areas = {f["properties"]["area"] for f in json.loads(result(job).read("areas.geojson"))["features"]}
        reference = anna.get(f"/jobs/{job}/result")
        for partition, expected in (
            (("reference.zip", reference.content), areas),
            (("districts.csv", districts), {"west", "east"}),
        ):
            made = result(put(anna, "/methods/fixed/jobs", {**new, "partition": partition}, plain))
            named = {f["properties"]["area"] for f in json.loads(made.read("areas.geojson"))["features"]}
            assert named and named <= expected
        for partition, text in (
            (("districts.csv", districts.replace("\nd,east", "")), "1 zone of the data has no group"),
            (("broken.zip", b"PK no"), "zip"),
        ):
            answer = post(anna, "/methods/fixed/jobs", {**new, "partition": partition}, plain)
            if answer.status_code == 422:
                assert text in message(answer)
            else:
                failed = ended(anna, answer.json()["id"])
                assert failed["state"] == "failed" and text in failed["error"]["message"]
        nothing = post(anna, "/methods/fixed/jobs", new, plain)
        job = nothing.json().get("id", "") if nothing.status_code < 300 else ""
        text = ended(anna, job)["error"]["message"] if job else message(nothing)
        assert "areas that were made before" in text
