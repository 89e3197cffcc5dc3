"""What the page of the service is made from: its files and policy, the form, a look at a file, the parts of a result."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Running, Within, cabs, opened

import crowdveil
from crowdveil.errors import CrowdveilError, from_json
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods
from crowdveil.report.html import asset
from crowdveil.server.app import make_app
from crowdveil.server.queue.store import STATES
from crowdveil.server.responses import ApiError
from crowdveil.server.routes import preview
from crowdveil.server.routes.pages import PRESETS
from crowdveil.server.views import JobView
from crowdveil.server.workers.inspect_upload import cut_last_line, near_time_zones
from crowdveil.server.workers.sandbox import Bounds
from crowdveil.verbs.anonymize import JobOptions
from crowdveil.verbs.table import VERBS

TRIPS = "who,when,from_zone,to_zone\n" + "".join(
    f"p{i},2026-03-02 0{i % 9}:10:00,a{i % 3},b{i % 2}\n" for i in range(24)
)
GENERALIZE = "/methods/simple-generalization/jobs"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Within]:
    """An app that everybody on this machine may use; looks leave nothing in it."""
    with opened(tmp_path_factory.mktemp("local") / "data") as service:
        yield Within(make_app(service))


@pytest.fixture
def near(local: Within, inspected_here: None) -> Within:
    """The same, but files are looked at in this process, which is quicker."""
    return local


def looked(client: Any, name: str, content: Any, files: dict[str, Any] | None = None, **texts: Any) -> Any:
    """The answer to a look; what it leaves behind is looked at too."""
    values = {n: json.dumps(v) if isinstance(v, dict) else v for n, v in texts.items()}
    answer = client.post("/preview", files={"data": (name, content), **(files or {})}, data=values)
    folder = client.app.state.service.files.incoming if isinstance(client, Within) else None
    assert folder is None or list(folder.iterdir()) == [], "the file was not removed"
    return answer


def test_the_page_and_its_policy(local: Within) -> None:
    page = local.get("/")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'" and policy["frame-src"] == "blob:" and "unsafe" not in str(policy)
    # Apart from our own files only the script and the style of a report may run, in the frame that a report is shown in.
    for kind, name in (("script-src", "report.js"), ("style-src", "report.css")):
        digest = base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()
        assert policy[kind] == f"'self' 'sha256-{digest}'"
    assert "<script>" not in page.text and "style=" not in page.text and not re.search(r"\son\w+=", page.text)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        answer = local.get(address)
        assert address.startswith("/page/") and answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
    for name in ("index.html", "__init__.py", "../pages.py", "%2e%2e/pages.py"):
        assert local.get(f"/page/{name}").status_code in (404, 422)


def test_nothing_in_the_built_page_names_another_host() -> None:
    folder = Path(__file__).parents[2] / "src" / "crowdveil" / "server" / "page"
    for path in folder.glob("*.*"):
        found = set(re.findall(r"https?://[^\s\"'`)<]+", path.read_text()))
        # Names of kinds of elements, which nobody asks for.
        assert {f for f in found if not f.startswith("http://www.w3.org/")} == set(), path.name


def test_the_door_says_whether_a_token_is_needed(local: Within, running: Running) -> None:
    assert local.get("/auth").json()["token_needed"] is False and local.get("/session").json()["name"] == "local"
    with running.client(None) as nobody, running.client() as anna:
        assert nobody.get("/auth").json()["token_needed"] is True
        assert nobody.get("/session").status_code == 401
        assert anna.get("/session").json()["name"] == "anna"


def test_the_form_is_drawn_from_what_is_declared(local: Within) -> None:
    form = local.get("/form").json()
    assert [m["name"] for m in form["methods"]] == list(all_methods())
    models = {m["name"]: (all_methods()[m["name"]].params, m["fields"]) for m in form["methods"]}
    models |= {takes: (READINGS[of], form["reading"][takes]) for takes, of in _takes().items()}
    models["run"] = (JobOptions, form["run"])
    for name, (model, fields) in models.items():
        assert [f["name"] for f in fields] == list(model.model_fields), name
        schema = model.model_json_schema()["properties"]
        for field in fields:
            assert field["help"] and (field["kind"] != "choice" or field["choices"]), (name, field)
            declared = json.dumps(schema[field["name"]])
            assert ("least" in field) == ("inimum" in declared) and ("most" in field) == ("aximum" in declared), (
                name,
                field,
            )
    assert [(p["name"], p["k"]) for p in form["presets"]] == [("CNIL", 10), ("INSEE", 11), ("MDS", 10), ("ACRO", 10)]
    assert all(source.endswith(".") for _, _, source in PRESETS) and set(form["files"]) >= {
        "data",
        "zones",
        "hierarchy",
    }


def _takes() -> dict[str, type]:
    from crowdveil.server.workers.inspect_upload import TAKES

    return TAKES


def test_a_look_at_trips(near: Within) -> None:
    seen = looked(near, "trips.csv", TRIPS).json()
    assert seen["looks_like"] == seen["takes"] == "flows"
    assert [(c["name"], c["type"]) for c in seen["columns"]] == [
        ("who", "text"), ("when", "time"), ("from_zone", "text"), ("to_zone", "text")
    ]  # fmt: skip
    assert seen["roles"] == {"origin": "from_zone", "destination": "to_zone"} and seen["crowd_of"] == "trips"
    assert len(seen["rows"]) == 5 and seen["rows"][0] == ["p0", "2026-03-02 00:10:00", "a0", "b0"]
    assert seen["error"] is None and seen["problems"] == [] and seen["counts"]["trips"] == 24
    named = looked(near, "trips.csv", TRIPS, takes="flows", parameters={"user": "who", "time": "when"}).json()
    assert named["crowd_of"] == "people" and named["counts"]["steps"] == 9 and named["roles"]["time"] == "when"


def test_what_a_method_would_refuse_is_known_before_the_job(near: Within) -> None:
    def unfit(method: str, values: dict[str, Any], **reading: Any) -> str | None:
        seen = looked(
            near, "trips.csv", TRIPS, takes="flows", parameters=reading, method=method, method_parameters=values
        ).json()
        assert seen["error"] is None and seen["counts"]["trips"] == 24
        return seen["unfit"] and str(seen["unfit"]["message"])

    for method in ("joint", "atg-dual", "oigh", "mondrian", "glove"):
        assert "need the positions of the zones" in str(unfit(method, {"k": 2}))
    assert "needs cells of a grid" in str(unfit("uniform", {"k": 2}))
    assert "areas that were made before" in str(unfit("fixed", {"k": 2}))
    assert unfit("suppression", {"k": 2}) is None
    assert "since laplace must not show which ones have trips" in str(unfit("laplace", {}))
    assert "at most the trips in the data, 24, got 25" in str(unfit("suppression", {"k": 25}))
    assert "k: Expected" in str(unfit("suppression", {"k": 1}))
    assert unfit("microaggregation", {}) is None, "a method for other data, which cannot be chosen"


def test_every_method_refuses_in_a_preview_what_it_refuses_in_a_run(near: Within, tmp_path: Path) -> None:
    """The sentence of a preview is the one that the run ends with, before anything is solved."""
    (tmp_path / "trips.csv").write_text(TRIPS)
    for method in ("joint", "uniform", "fixed", "glove", "laplace"):
        values = {} if method == "laplace" else {"k": 2}
        seen = looked(near, "trips.csv", TRIPS, takes="flows", method=method, method_parameters=values).json()
        with pytest.raises(CrowdveilError) as refused:
            crowdveil.anonymize(tmp_path / "trips.csv", tmp_path / "out", method=method, **values)
        assert refused.value.text == from_json(seen["unfit"]).text and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("cell", "form", "tz", "read"),
    [
        ("2026-03-02 08:05", None, "Europe/Paris", "Mon 2 Mar 2026, 08:05:00"),
        ("2026-03-02T08:05:00Z", None, "Europe/Paris", "Mon 2 Mar 2026, 09:05:00"),
        ("1772438700", None, "Europe/Paris", "Mon 2 Mar 2026, 09:05:00"),
        ("02/03/2026 08:05", "%d/%m/%Y %H:%M", "UTC", "Mon 2 Mar 2026, 08:05:00"),
        ("02/03/2026 08:05", "%m/%d/%Y %H:%M", "UTC", "Tue 3 Feb 2026, 08:05:00"),
        ("02/03/2026 08:05", None, "UTC", None),
        ("soon", None, "UTC", None),
    ],
)
def test_times_are_shown_as_they_are_read(near: Within, cell: str, form: str | None, tz: str, read: str | None) -> None:
    table = "origin,destination,time\n" + f"a,b,{cell}\n" * 7
    values = {"tz": tz} | ({} if form is None else {"time_format": form})
    seen = looked(near, "trips.csv", table, takes="flows", parameters=values).json()
    assert seen["times"] == [{"text": cell, "read": read}] * 5 and (seen["error"] is None) == (read is not None)


def test_time_zones_near_the_data(near: Within) -> None:
    assert looked(near, "cabs.csv", cabs()).json()["near"][0] == "America/Los_Angeles"
    assert looked(near, "trips.csv", TRIPS).json()["near"] == [], "zones without positions"
    for lon, lat, zone in ((2.35, 48.85, "Europe/Paris"), (-73.9, 40.7, "America/New_York"), (139.7, 35.7, "Asia/Tokyo"),
                           (-8.7, 42.2, "Europe/Madrid"), (174.8, -36.8, "Pacific/Auckland")):  # fmt: skip
        assert zone in near_time_zones(lon, lat), zone
    assert {*near_time_zones(180.0, -16.0)} & {*near_time_zones(-180.0, -16.0)}, "across the date line"


def test_problems_are_counted_and_the_sentence_is_the_readers(near: Within) -> None:
    bad = TRIPS.replace("2026-03-02 01", "soon", 2).replace(",a2,", ",,", 1)
    seen = looked(near, "trips.csv", bad, takes="flows", parameters={"time": "when"}).json()
    assert sum(p["rows"] for p in seen["problems"]) == 3 and seen["counts"]["trips"] == 21
    assert seen["error"]["message"].startswith("trips.csv: ") and "drop_invalid" in seen["error"]["message"]
    drop = {"kind": "option", "name": "drop_invalid", "value": "", "subject": False}
    assert drop in seen["error"]["parts"]
    strange = looked(near, "trips.csv", "a,b\n1,2\n").json()
    assert "Expected columns origin and destination" in strange["error"]["message"] and strange["roles"] == {}
    assert strange["looks_like"] is None and strange["columns"][0]["name"] == "a"


@pytest.mark.parametrize(
    ("name", "content", "status", "sentence"),
    [
        ("trips.csv", b"", 422, "the file is empty"),
        ("trips.csv", b"a,b\n", 422, "a header but no rows"),
        ("trips.parquet", b"PAR1 and no more", 422, "trips.parquet"),
        ("trips.csv", "größe,b\n1,2\n".encode("latin-1"), 422, "not UTF-8"),
        ("trips.exe", b"MZ", 415, "Expected a file whose name ends in"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(
    near: Within, name: str, content: bytes, status: int, sentence: str
) -> None:
    answer = looked(near, name, content)
    assert answer.status_code == status and sentence in answer.json()["error"]["message"]
    assert "incoming" not in answer.text and "inputs" not in answer.text


def test_a_look_opens_no_path_and_takes_no_unknown_option(near: Within) -> None:
    for values, status in (
        ({"zones": "/etc/passwd"}, 422),
        ({"zones": "../x"}, 422),
        ({"k": 3}, 200),
        ({"step": 0}, 200),
    ):
        answer = looked(near, "trips.csv", TRIPS, takes="flows", parameters=values)
        assert answer.status_code == status, answer.text
        assert status != 200 or answer.json()["error"], values
    assert looked(near, "trips.csv", TRIPS, takes="cats").status_code == 422
    assert looked(near, "trips.csv", TRIPS, parameters="[").status_code == 422
    assert near.post("/preview", files={"zones": ("z.csv", b"a")}).status_code == 422


def test_limits_hold_for_a_look(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        client = Within(make_app(service), Authorization=f"Bearer {service.tokens.create('anna', max_upload_mib=1)}")
        assert looked(client, "cabs.csv", cabs(5000, 9)).status_code == 413


def test_a_look_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "trips.csv"
    file.write_text(TRIPS)
    asked = {"data": "trips.csv", "files": {}, "takes": "", "values": {}, "part": False, "limits": {}}
    with pytest.raises(ApiError, match="takes too long"):
        preview._inspected(asked, tmp_path, Bounds(), 0.0)


@given(st.lists(st.text(alphabet='ab",\n', max_size=6), max_size=8), st.integers(0, 40))
def test_the_beginning_of_a_table_ends_behind_a_whole_row(tmp_path_factory: Any, cells: list[str], cut: int) -> None:
    """Plain twin: rows are written by csv's own writer, and those that fit whole are what is left."""
    import csv

    text, ends = io.StringIO(newline=""), []
    writer = csv.writer(text, lineterminator="\n")
    for cell in cells:
        writer.writerow(["x", cell])
        ends.append(text.tell())
    content = text.getvalue().encode()[:cut]
    path = tmp_path_factory.getbasetemp() / "part.csv"
    path.write_bytes(content)
    cut_last_line(path)
    whole = max([e for e in ends if e <= cut], default=0)
    assert path.read_bytes() == (content[:whole] if whole else content)


def test_the_beginning_of_a_table_is_looked_at(near: Within) -> None:
    seen = looked(near, "trips.csv", TRIPS[:-9], part="true").json()
    assert seen["part"] is True and seen["counts"]["trips"] == 23 and seen["error"] is None


def test_the_model_names_every_state_and_kind() -> None:
    fields = JobView.model_json_schema()["properties"]
    assert fields["state"]["enum"] == list(STATES)
    assert sorted(fields["kind"]["enum"]) == sorted(VERBS)
