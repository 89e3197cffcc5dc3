"""Access: tokens, their scopes and their ends; one token's jobs are nothing to another's; the proxies in deploy/."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa
from serving import Running, Within, asking, cabs, ended, free_port, job_in, opened, put, token_id, until

from crowdveil.compat.mobidatalab.routes import add_routes
from crowdveil.errors import ParameterError
from crowdveil.server import tokens as module
from crowdveil.server.app import ROUTES, make_app
from crowdveil.server.queue.schema import now, tokens
from crowdveil.server.queue.store import Store
from crowdveil.server.serve import first_token
from crowdveil.server.service import Service
from crowdveil.server.settings import Settings
from crowdveil.server.tokens import SCOPES, USUAL, ExpiredError, Limits, Tokens, length_s

DEPLOY = Path(__file__).parents[2] / "deploy"
MARK = "annas-own"
SECRET = f"lat,lon,{MARK}\n"
UNKNOWN = "0" * 32


# Tokens


def row(known: Tokens, name: str) -> dict[str, Any]:
    (found,) = [row for row in known.all() if row["name"] == name]
    return found


def later(store: Store, **columns: float) -> None:
    """As if the clock had gone on: times of all tokens go back."""
    store.db.do(sa.update(tokens).values({name: tokens.c[name] - seconds for name, seconds in columns.items()}))


def test_tokens_are_shown_once_and_kept_hashed(store: Store) -> None:
    known = Tokens(store, Limits(max_seconds=5))
    assert not known.any()
    secret = known.create("anna", max_running=2)
    assert secret not in str(known.all()) and secret not in str(store.db.do(sa.text("SELECT * FROM tokens")))
    caller = known.caller(secret)
    assert caller is not None and caller.name == "anna" and caller.limits == Limits(max_seconds=5, max_running=2)
    assert known.caller(secret + "x") is None and known.caller("") is None
    for name, wrong, message in (
        ("anna", {}, "there is a token of that name"),
        ("b", {"max_seconds": 0}, "max_seconds"),
    ):
        with pytest.raises(ParameterError, match=message):
            known.create(name, **wrong)
    known.revoke("anna")
    assert known.caller(secret) is None and known.any()
    with pytest.raises(ParameterError, match="no such token"):
        known.revoke("anna")


def test_a_token_ends(store: Store) -> None:
    known = Tokens(store)
    secret = known.create("anna", expires_s=3600.0)
    assert known.caller(secret) is not None
    later(store, expires=3601)
    with pytest.raises(ExpiredError, match="the token has expired"):
        known.caller(secret)
    assert known.any()  # nobody comes in without one, all the same


def test_the_last_use_is_noted_at_most_once_a_minute(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Tokens(store)
    secret = known.create("anna")
    assert row(known, "anna")["last_used"] is None
    known.caller(secret)
    first = row(known, "anna")["last_used"]
    assert first is not None and abs(store.db.do(sa.select(now().label("n")))[0]["n"] - first) < 60
    known.caller(secret)
    Tokens(store).caller(secret)  # another process, which does not know of it
    assert row(known, "anna")["last_used"] == first
    later(store, last_used=100)
    monkeypatch.setattr(module, "SEEN_EVERY_S", -1.0)
    known.caller(secret)
    assert row(known, "anna")["last_used"] >= first


def test_lengths_of_time() -> None:
    lengths = {"90d": 7_776_000.0, "12h": 43_200.0, "4w": 2_419_200.0, "30min": 1800.0, "0h": 0.0}
    assert {text: length_s(text, "x") for text in lengths} == lengths
    for wrong in ("", "d", "1", "1y", "-1d", "1.5d", "1e3d", "9999999d"):
        with pytest.raises(ParameterError, match="x: Expected a duration"):
            length_s(wrong, "x")


def test_without_a_token_only_what_is_the_same_for_all_is_answered(tmp_path: Path) -> None:
    with opened(tmp_path, no_auth=False) as service:
        app = make_app(service)
        for path in ("/", "/auth", "/openapi.json", "/page/app.js", "/health"):
            assert Within(app).get(path).status_code == 200, path
        for path in ("/jobs", "/methods", "/session", "/form", "/metrics", "/reviews", "/tokens"):
            assert Within(app).get(path).status_code == 401, path
        assert Within(app, Authorization="Basic YTpi").get("/jobs").status_code == 401
        token = first_token(service)
        assert token is not None and first_token(service) is None
        assert Within(app, Authorization=f"Bearer {token}", Host="a.example").get("/jobs").status_code == 200
        service.store.db.do(sa.text("DELETE FROM tokens"))
        assert Within(app).get("/jobs").status_code == 401, "tokens that are lost open nothing"


def test_no_auth_is_for_this_machine_alone(service: Service) -> None:
    for wrong in ({"host": "0.0.0.0"}, {"four_eyes": True}):
        with pytest.raises(ParameterError, match=r"no_auth|four_eyes"):
            Settings.checked({"no_auth": True, **wrong})
    client = Within(make_app(service))
    assert client.get("/jobs").status_code == 200
    odd = (
        ("Host", "evil.example"),
        ("Host", "["),
        ("Origin", "http://["),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    )
    for name, value in odd:
        answer = client.get("/jobs", headers={name: value})
        assert answer.status_code == 403 and answer.json()["error"]["code"] == "foreign"


def test_services_of_one_process_have_their_own_tokens(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as first, opened(tmp_path / "b") as second:
        secrets = first.tokens.create("anna"), second.tokens.create("anna")
        for service, answers in ((first, [200, 401]), (second, [401, 200])):
            app = make_app(service)
            clients = [Within(app, Authorization=f"Bearer {secret}") for secret in secrets]
            assert [client.get("/jobs").status_code for client in clients] == answers


# Two users, and every route


@dataclass(frozen=True)
class TwoUsers:
    """A service with two users, which runs nothing, so that jobs stay as they are put."""

    service: Service
    app: Any
    anna: Within
    bert: Within
    owner: str
    other: str

    def job(self, state: str, owner: str = "") -> str:
        """A job of Anna, or of another owner, in a state, and an upload of the same id."""
        job = job_in(self.service, owner or self.owner, state, SECRET, name=f"{MARK}.csv")
        received = self.service.files.receive(job) / "inputs"
        (received / f"{MARK}.csv").write_text(SECRET)
        self.service.uploads.keep(owner or self.owner, job, received)
        self.service.files.discard(job)
        return job

    def held(self, job: str) -> tuple[Any, list[str], list[bytes]]:
        """All that is known of a job, its files, and the upload of the same id."""
        folder = self.service.files.job(job)
        upload = [p.read_bytes() for p in sorted(self.service.uploads.root.glob(f"*/{job}/*"))]
        return self.service.store.get(job), sorted(str(p) for p in folder.rglob("*")), upload


def two_users(service: Service) -> TwoUsers:
    anna, bert = asking(service, "anna"), asking(service, "bert")
    app = make_app(service, [add_routes])
    return TwoUsers(service, app, anna, bert, token_id(service, "anna"), token_id(service, "bert"))


@pytest.fixture
def setup(service_on_each: Service) -> TwoUsers:
    return two_users(service_on_each)


@pytest.fixture
def local_setup(tmp_path: Path) -> Iterator[TwoUsers]:
    """On SQLite: what a route asks for has nothing to do with the database."""
    with opened(tmp_path / "data", no_auth=False) as service:
        yield two_users(service)


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
    headers = {**answer.headers, "content-length": "", "x-request-id": ""}
    return answer.status_code, answer.text.replace(job, "…"), headers


def test_the_description_has_every_route(local_setup: TwoUsers) -> None:
    """Otherwise walking it would leave one out."""
    app = local_setup.app
    # What is not in it is the same for everybody: the description, the page with its parts, and what operators ask.
    same = {"/openapi.json", "/", "/auth", "/page/{name}", "/health", "/ready", "/metrics"}
    declared = {route.path for module in ROUTES for route in module.router.routes}
    declared |= {route.path for route in app.routes if hasattr(route, "path")}
    assert declared - set(app.openapi()["paths"]) == same
    taking = {path for _, path, parameters in operations(app) if parameters}
    assert {"/uploads/{upload_id}", "/jobs", "/jobs/{job_id}/result", "/jobs/{job_id}/report", "/task/"} <= taking


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
            nothing = ask(setup.anna, method, path, parameters, UNKNOWN)
            assert visible(mine, job) != visible(nothing, UNKNOWN), (method, path)
    assert [job["id"] for job in setup.bert.get("/jobs").json()["jobs"]] == [own]


MOBIDATALAB = [
    f"{name}{slash}" for name in ("anonymize", "analyze", "compute_measures", "filter") for slash in ("/", "")
]
KINDS = ("methods", "measures", "analyses", "attacks", "filter")
NEEDS = {
    **{f"POST /{route}": "submit" for route in ("preview", "uploads", *MOBIDATALAB)},
    "DELETE /uploads/{upload_id}": "submit",
    **{f"POST /{kind}/{{name}}/jobs": "submit" for kind in KINDS},
    **dict.fromkeys(["GET /jobs", "GET /jobs/{job_id}"], "submit read"),
    "DELETE /jobs/{job_id}": "submit",
    **{f"GET /jobs/{{job_id}}/{part}": "read" for part in ("result", "report", "files", "files/{name}")},
    **dict.fromkeys(["GET /task/", "GET /task"], "read"),
    **{f"GET /reviews{part}": "review" for part in ("", "/{job_id}", "/{job_id}/report")},
    "POST /reviews/{job_id}": "review",
    **dict.fromkeys(["GET /tokens", "DELETE /tokens/{name}"], "admin"),
    # What is the same for everybody with a token.
    **{f"GET /{kind}": "" for kind in (*KINDS, "session", "form")},
    **{f"GET /{kind}/{{name}}": "" for kind in KINDS},
}  # fmt: skip
"""The scopes of which each route needs one; "" where any token does."""


@pytest.mark.parametrize("scope", SCOPES)
def test_every_route_asks_for_its_scope(local_setup: TwoUsers, scope: str) -> None:
    setup = local_setup
    assert {f"{method} {path}" for method, path, _ in operations(setup.app)} == set(NEEDS)
    token = setup.service.tokens.create(scope, scopes=(scope,), jobs_of="anna" if scope in USUAL else None)
    holder, job = Within(setup.app, Authorization=f"Bearer {token}"), setup.job("done")
    before = setup.held(job)
    for method, path, parameters in sorted(operations(setup.app), key=lambda route: route[0] == "DELETE"):
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
    board = asking(setup.service, "board", scopes=("read",), jobs_of="anna")
    assert [job["id"] for job in board.get("/jobs").json()["jobs"]] == [mine]
    assert board.get(f"/jobs/{mine}/result").status_code == 200 and board.get(f"/jobs/{theirs}").status_code == 404
    (line,) = [line for line in setup.service.store.log() if line["what"] == "fetched a result"]
    assert setup.service.tokens.name_of(line["who"]) == "board"  # the log has who it was


ODD_IDS = ("\0", "%", "' OR 1=1", "é" * 200, "../" * 10, "A" * 32, "", UNKNOWN + "\n", "%ED%A0%80")


def test_odd_ids_are_unknown_ones(setup: TwoUsers) -> None:
    setup.job("done")
    for method, path, parameters in operations(setup.app):
        for odd in ODD_IDS:
            address = re.sub(r"{[a-z_]+}", quote(odd, safe="%"), path)
            assert setup.bert.request(method, address).status_code < 500, (path, odd)
            asked = {p["name"]: odd for p in parameters if p["in"] == "query"}
            if asked:
                answer = setup.bert.request(method, path, params=asked)
                refused = answer.status_code == 422 or answer.json().get("status") == "NOT_AVAILABLE"
                assert refused, (path, odd, answer.text)


# The proxies in deploy/


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Running]:
    """A service to put a proxy before."""
    service = Running(tmp_path / "data", workers=1)
    service.make_token("anna")
    service.start()
    yield service
    service.stop()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of our own."""
    made, key = folder / "c.pem", folder / "c.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(made), "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


def nginx(port: int, behind: Running, folder: Path, made: Path, key: Path) -> list[str]:
    """The command of nginx with the file in deploy/, in which only names, paths and ports are replaced."""
    here = {
        "127.0.0.1:8000": f"127.0.0.1:{behind.port}", "443 ssl": f"127.0.0.1:{port} ssl",
        "/etc/ssl/crowdveil.pem": str(made), "/etc/ssl/private/crowdveil.key": str(key),
    }  # fmt: skip
    (folder / "site.conf").write_text(replaced("nginx.conf", here))
    folders = " ".join(f"{n}_temp_path {folder}/{n};" for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    main = f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}"
    (folder / "nginx.conf").write_text(f"{main} http {{ access_log off; {folders} include {folder}/site.conf; }}")
    return ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def caddy(port: int, behind: Running, folder: Path, made: Path, key: Path) -> list[str]:
    """The same of Caddy."""
    site = f"https://localhost:{port} {{\n\ttls {made} {key}"
    here = {
        "crowdveil.example.org {": site, "127.0.0.1:8000": f"127.0.0.1:{behind.port}",
        "{\n\tservers": "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers",
    }  # fmt: skip
    (folder / "Caddyfile").write_text(replaced("Caddyfile", here))
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def replaced(name: str, values: dict[str, str]) -> str:
    """A file of deploy/ with values of this machine."""
    text = (DEPLOY / name).read_text()
    for ours, here in values.items():
        assert ours in text
        text = text.replace(ours, here)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_the_proxies_of_the_docs(proxy: Any, behind: Running, tmp_path: Path) -> None:
    if not shutil.which(proxy.__name__) or not shutil.which("openssl"):
        pytest.skip(f"{proxy.__name__} or openssl is not installed")
    port, (made, key) = free_port(), certificate(tmp_path)
    places = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    command = proxy(port, behind, tmp_path, made, key)
    process = subprocess.Popen(command, env={**os.environ, **places}, stderr=subprocess.DEVNULL)
    trust = ssl.create_default_context(cafile=str(made))
    try:
        until(lambda: _accepts(port))
        with httpx.Client(base_url=f"https://localhost:{port}", verify=trust, timeout=60) as outside:
            assert outside.get("/health").status_code == 200
            assert outside.get("/ready").status_code == 404
            assert outside.get("/metrics").status_code == outside.get("/jobs").status_code == 401
            outside.headers["Authorization"] = f"Bearer {behind.tokens['anna']}"
            asked = {"filters": [{"min_locations": 2}]}
            job = put(outside, "/filter/trajectories/jobs", {"data": ("a.csv", cabs())}, asked)
            assert ended(outside, job)["state"] == "done"
            assert outside.get(f"/jobs/{job}/result").text.startswith("lat,lon")
            assert outside.get("/jobs").headers["strict-transport-security"] == "max-age=31536000"
    finally:
        process.terminate()
        process.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
