"""One token's jobs are nothing to another's: every route of the description, for jobs in every state, on both databases."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Within, opened

from crowdveil.compat.mobidatalab.routes import add_routes
from crowdveil.server.app import ROUTES, make_app
from crowdveil.server.queue.store import NewJob, new_id
from crowdveil.server.service import Service
from crowdveil.server.tokens import SCOPES, USUAL

MARK = "annas-own"
SECRET = f"lat,lon,{MARK}\n"
UNKNOWN = "0" * 32


@dataclass(frozen=True)
class TwoUsers:
    """A service with two users."""

    service: Service
    app: Any
    anna: Within
    bert: Within
    owner: str
    other: str

    def job(self, state: str, owner: str = "") -> str:
        """A job of Anna, or of another owner, in a state."""
        store, files, job = self.service.store, self.service.files, new_id()
        folder = files.receive(job)
        (folder / "inputs" / "a.csv").write_text(SECRET)
        files.accept(job)
        new = NewJob(job, owner or self.owner, "anonymize", "swapmob", {"seed": 77}, {"data": "a.csv"}, {}, 1000)
        assert store.add(new, 1000)
        self._add_upload(owner or self.owner, job)
        if state == "queued":
            return job
        held = store.claim("w", 600)
        assert held is not None and held.id == job
        if state == "failed":
            assert store.fail(held, "bad_input", f"{MARK}.csv: there is nothing in it.")
        elif state == "done":
            run = files.run(job, held.lease or "")
            run.mkdir()
            with zipfile.ZipFile(run / "release.zip", "w") as archive:
                archive.writestr("manifest.json", json.dumps({"files": {"data": {"name": "t.csv"}}, MARK: 1}))
                archive.writestr("t.csv", SECRET)
            size = (run / "release.zip").stat().st_size
            about = {"name": "release.zip", "bytes": size, "sha256": "00", "media_type": "application/zip"}
            assert store.finish(held, about | {"lease": held.lease})
        return job

    def _add_upload(self, owner: str, upload: str) -> None:
        """An upload with the id of a job."""
        received = self.service.files.receive(upload) / "inputs"
        (received / f"{MARK}.csv").write_text(SECRET)
        self.service.uploads.keep(owner, upload, received)
        self.service.files.discard(upload)

    def held(self, job: str) -> tuple[Any, list[str], list[bytes]]:
        """All that is known of a job, its files, and the upload of the same id."""
        folder = self.service.files.job(job)
        upload = [p.read_bytes() for p in sorted(self.service.uploads.root.glob(f"*/{job}/*"))]
        return self.service.store.get(job), sorted(str(p) for p in folder.rglob("*")), upload


@pytest.fixture
def setup(database_url: str, tmp_path: Path) -> Iterator[TwoUsers]:
    """A service that runs nothing, so that jobs stay as they are put."""
    yield from _setup(database_url, tmp_path)


def _setup(database_url: str | None, tmp_path: Path) -> Iterator[TwoUsers]:
    with opened(tmp_path / "data", database_url, no_auth=False) as service:
        tokens = [service.tokens.create(name) for name in ("anna", "bert")]
        app = make_app(service, [add_routes])
        anna, bert = (Within(app, Authorization=f"Bearer {token}") for token in tokens)
        ids = {row["name"]: str(row["id"]) for row in service.tokens.all()}
        yield TwoUsers(service, app, anna, bert, ids["anna"], ids["bert"])


_OPERATIONS: list[tuple[str, str, list[dict[str, Any]]]] = []


def operations(app: Any) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Every operation of the description: method, path, and parameters that an id fits into; the same for all services."""
    _OPERATIONS[:] = _OPERATIONS or [
        (method.upper(), path, [p for p in operation.get("parameters", []) if takes_an_id(p)])
        for path, there in app.openapi()["paths"].items()
        for method, operation in there.items()
    ]
    return _OPERATIONS


def takes_an_id(parameter: dict[str, Any]) -> bool:
    if parameter["in"] == "query" and parameter["name"] == "name":  # of a file that is uploaded
        return False
    kinds = [parameter["schema"], *parameter["schema"].get("anyOf", [])]
    return any(kind.get("type") == "string" and "enum" not in kind for kind in kinds)


def ask(who: Within, method: str, path: str, parameters: list[dict[str, Any]], job: str) -> httpx.Response:
    """An operation with an id wherever one fits."""
    for parameter in parameters:
        path = path.replace(f"{{{parameter['name']}}}", job)
    query = {p["name"]: job for p in parameters if p["in"] == "query"}
    return who.request(method, path.replace("{name}", "swapmob"), params=query)


def visible(answer: httpx.Response, job: str) -> tuple[Any, ...]:
    """All that an answer reveals, except for the id that was asked for."""
    return (
        answer.status_code,
        answer.text.replace(job, "…"),
        {**answer.headers, "content-length": "", "x-request-id": ""},
    )


def test_the_description_has_every_route(local_setup: TwoUsers) -> None:
    """Otherwise walking it would leave one out."""
    setup = local_setup
    described = set(setup.app.openapi()["paths"])
    # What is not in it is the same for everybody: the description, the page with its parts, and what operators ask.
    same = {"/openapi.json", "/", "/auth", "/page/{name}", "/health", "/ready", "/metrics"}
    declared = {route.path for module in ROUTES for route in module.router.routes}
    assert (declared | {route.path for route in setup.app.routes if hasattr(route, "path")}) - described == same
    taking = {path for _, path, parameters in operations(setup.app) if parameters}
    assert {
        "/uploads/{upload_id}",
        "/jobs",
        "/jobs/{job_id}",
        "/jobs/{job_id}/result",
        "/jobs/{job_id}/report",
        "/task/",
    } <= taking


@pytest.mark.parametrize("state", ["queued", "running", "failed", "done"])
def test_no_token_reaches_anothers_job_by_any_route(setup: TwoUsers, state: str) -> None:
    own = setup.job("done", setup.other)
    setup.job("done")  # older ones, for lists of those before another
    job = setup.job(state)
    before = setup.held(job)
    for method, path, parameters in operations(setup.app):
        if not parameters and state != "done":
            continue  # no job can be asked for by it, so that one state is enough
        if setup.held(job) != before:  # by a request of its owner
            setup.service.store.cancel(job, setup.owner)
            job = setup.job(state)
            before = setup.held(job)
        theirs = ask(setup.bert, method, path, parameters, job)
        assert job not in theirs.text and MARK not in theirs.text and setup.owner not in theirs.text
        assert setup.held(job) == before, (method, path)
        if parameters:  # its owner gets another answer, so that there was something to find
            unknown = ask(setup.bert, method, path, parameters, UNKNOWN)
            assert visible(theirs, job) == visible(unknown, UNKNOWN), (method, path)
            if path.startswith(("/reviews", "/tokens")):  # which neither of them may ask
                assert theirs.status_code == 403, (method, path)
                continue
            mine = ask(setup.anna, method, path, parameters, job)
            assert visible(mine, job) != visible(ask(setup.anna, method, path, parameters, UNKNOWN), UNKNOWN), (
                method,
                path,
            )
    assert [job["id"] for job in setup.bert.get("/jobs").json()["jobs"]] == [own]


MOBIDATALAB = [
    f"{name}{slash}" for name in ("anonymize", "analyze", "compute_measures", "filter") for slash in ("/", "")
]
VERBS = ("methods", "measures", "analyses", "attacks", "filter")
NEEDS = {
    **{f"POST /{route}": "submit" for route in ("preview", "uploads", *MOBIDATALAB)},
    "DELETE /uploads/{upload_id}": "submit",
    **{f"POST /{kind}/{{name}}/jobs": "submit" for kind in VERBS},
    **dict.fromkeys(["GET /jobs", "GET /jobs/{job_id}"], "submit read"),
    "DELETE /jobs/{job_id}": "submit",
    **{f"GET /jobs/{{job_id}}/{part}": "read" for part in ("result", "report", "files", "files/{name}")},
    **dict.fromkeys(["GET /task/", "GET /task"], "read"),
    **{f"GET /reviews{part}": "review" for part in ("", "/{job_id}", "/{job_id}/report")},
    "POST /reviews/{job_id}": "review",
    **dict.fromkeys(["GET /tokens", "DELETE /tokens/{name}"], "admin"),
    # What is the same for everybody with a token.
    **{f"GET /{kind}": "" for kind in (*VERBS, "session", "form")},
    **{f"GET /{kind}/{{name}}": "" for kind in VERBS},
}  # fmt: skip
"""The scopes of which each route needs one; "" where any token does."""


@pytest.fixture
def local_setup(tmp_path: Path) -> Iterator[TwoUsers]:
    """A service on SQLite: what a route asks for has nothing to do with the database."""
    yield from _setup(None, tmp_path)


@pytest.mark.parametrize("scope", SCOPES)
def test_every_route_asks_for_its_scope(local_setup: TwoUsers, scope: str) -> None:
    setup = local_setup
    assert {f"{method} {path}" for method, path, _ in operations(setup.app)} == set(NEEDS)
    token = setup.service.tokens.create(scope, scopes=(scope,), jobs_of="anna" if scope in USUAL else None)
    holder, job = Within(setup.app, Authorization=f"Bearer {token}"), setup.job("done")
    before = setup.held(job)
    asked = list(operations(setup.app))
    for method, path, parameters in sorted(asked, key=lambda route: route[0] == "DELETE"):
        answer = ask(holder, method, path, parameters, job)
        lacks = answer.status_code == 403 and answer.json()["error"]["code"] == "no_scope"
        needed = NEEDS[f"{method} {path}"].split()
        assert lacks == (bool(needed) and scope not in needed), (method, path, answer.text)
        if lacks and (scope, method) != ("submit", "DELETE"):  # who may delete has done so
            assert setup.held(job) == before and MARK not in answer.text


def test_no_route_answers_without_a_token(local_setup: TwoUsers) -> None:
    nobody, job = Within(local_setup.app), local_setup.job("done")
    for method, path, parameters in operations(local_setup.app):
        assert ask(nobody, method, path, parameters, job).status_code == 401, (method, path)


def test_a_token_for_the_jobs_of_another_sees_these_alone(setup: TwoUsers) -> None:
    mine, theirs = setup.job("done"), setup.job("done", setup.other)
    token = setup.service.tokens.create("board", scopes=("read",), jobs_of="anna")
    board = Within(setup.app, Authorization=f"Bearer {token}")
    assert [job["id"] for job in board.get("/jobs").json()["jobs"]] == [mine]
    assert board.get(f"/jobs/{mine}/result").status_code == 200 and board.get(f"/jobs/{theirs}").status_code == 404
    (line,) = [line for line in setup.service.store.log() if line["what"] == "fetched a result"]
    assert setup.service.tokens.name_of(line["who"]) == "board"  # the log has who it was


ODD_IDS = ("\0", "%", "' OR 1=1", "é" * 200, "../" * 10, "A" * 32, "", UNKNOWN + "\n")


def test_odd_ids_are_unknown_ones(setup: TwoUsers) -> None:
    setup.job("done")
    for method, path, parameters in operations(setup.app):
        for odd in ODD_IDS:
            asked = {p["name"]: odd for p in parameters if p["in"] == "query"}
            if asked:
                answer = setup.bert.request(method, path, params=asked)
                assert answer.status_code == 422 or answer.json().get("status") == "NOT_AVAILABLE", (
                    path,
                    odd,
                    answer.text,
                )
