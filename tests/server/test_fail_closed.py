"""Without tokens nobody but this machine is let in, whatever stands in front of the service."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import Running, Within, cabs, ended, free_port, put, until

from crowdveil.errors import OutputError, ParameterError
from crowdveil.server.app import make_app
from crowdveil.server.serve import check_address, listen
from crowdveil.server.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
OPEN = ("/jobs", "/methods", "/", "/auth", "/openapi.json", "/page/app.js", "/session", "/ready")


FOREIGN: tuple[dict[str, str], ...] = (
    {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-Host": "a.example"}, {"X-Forwarded-Proto": "https"},
    {"Forwarded": "for=192.0.2.1"}, {"X-Real-IP": "192.0.2.1"}, {"Via": "1.1 proxy"}, {"Host": "a.example"},
    {"Host": "127.0.0.1.a.example"}, {"Host": ""}, {"Origin": "https://a.example"},
)  # fmt: skip


def test_without_tokens_what_is_forwarded_is_refused(tmp_path: Path) -> None:
    with Settings(tmp_path).open() as service:
        client = Within(make_app(service))
        for path in OPEN:
            assert client.get(path).status_code in (200, 503), path
            for headers in FOREIGN:
                answer = client.get(path, headers=headers)
                assert answer.status_code == 403 and answer.json()["error"]["code"] == "foreign", (path, headers)
        token = service.tokens.create("anna")
        service.needs_tokens()
        app = make_app(service)
        for headers in FOREIGN:
            assert Within(app, Authorization=f"Bearer {token}", **headers).get("/jobs").status_code == 200, headers
        assert Within(app).get("/jobs").status_code == 401


def test_services_of_one_process_have_their_own_tokens(tmp_path: Path) -> None:
    with Settings(tmp_path / "a").open() as first, Settings(tmp_path / "b").open() as second:
        tokens = first.tokens.create("anna"), second.tokens.create("anna")
        for service, answers in ((first, [200, 401]), (second, [401, 200])):
            app = make_app(service)
            for path in ("/jobs", "/methods"):
                clients = [Within(app, Authorization=f"Bearer {token}") for token in tokens]
                assert [client.get(path).status_code for client in clients] == answers


def test_tokens_that_are_lost_open_nothing(tmp_path: Path) -> None:
    with Settings(tmp_path).open() as service:
        service.tokens.create("anna")
        client = Within(make_app(service))
        assert client.get("/jobs").status_code == 401
        service.store.db.do("DELETE FROM tokens")
        assert client.get("/jobs").status_code == 401
    with Settings(tmp_path).open() as again:  # and after the next start
        assert Within(make_app(again)).get("/jobs").status_code == 401
        with pytest.raises(ParameterError, match="the service had tokens, and its database has none"):
            check_address(again)
        again.tokens.create("bert")
        check_address(again)


@pytest.fixture
def socketed(tmp_path: Path) -> Iterator[Running]:
    """A service on a Unix socket, of a short path."""
    service = Running(tmp_path / "data", "--socket", str(tmp_path / "s"), "--socket-mode", "666", workers=1)
    yield service
    service.stop()


def asking(service: Running, path: Path, **headers: str) -> httpx.Client:
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", headers=headers, timeout=60
    )


def begin(service: Running, path: Path) -> None:
    """Start a service that listens on a socket."""
    service.start(waits=False)

    def accepts() -> bool:
        with socket.socket(socket.AF_UNIX) as asked:
            return asked.connect_ex(str(path)) == 0

    until(accepts, 60)


@pytest.mark.slow
def test_a_socket_without_tokens(socketed: Running, tmp_path: Path) -> None:
    path = tmp_path / "s"
    begin(socketed, path)
    assert path.stat().st_mode & 0o777 == 0o666
    with asking(socketed, path) as client:
        assert client.get("/jobs").status_code == 200
        assert client.get("/jobs", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 403
        assert client.get("/jobs", headers={"Host": "crowdveil.example.org"}).status_code == 403
    with pytest.raises(OutputError, match="in use by another server"):
        listen(Settings(tmp_path, socket=path))


def test_a_socket_that_was_left_behind_is_replaced_and_a_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listen(Settings(tmp_path, socket=path)).close()
    listen(Settings(tmp_path, socket=path)).close()
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("theirs")
    with pytest.raises(OutputError, match="is a file, and no socket"):
        listen(Settings(tmp_path, socket=tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "theirs"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of our own."""
    made, key = folder / "c.pem", folder / "c.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(made), "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


def check_from_outside(service: Running, port: int, certificate: Path) -> None:
    """What a client behind the proxy sees of a service without tokens, and then with one."""
    trust = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(base_url=f"https://localhost:{port}", verify=trust, timeout=60) as outside:
        assert outside.get("/jobs").status_code == 403  # no tokens: nobody behind the proxy is let in
        assert outside.get("/health").status_code == 200
        assert outside.get("/metrics").status_code == outside.get("/ready").status_code == 404
        service.make_token("anna")
        assert outside.get("/jobs").status_code == 401
        outside.headers["Authorization"] = f"Bearer {service.tokens['anna']}"
        job = put(
            outside, "/filter/trajectories/jobs", {"data": ("a.csv", cabs())}, {"filters": [{"min_locations": 2}]}
        )
        assert ended(outside, job)["state"] == "done"
        assert outside.get(f"/jobs/{job}/result").text.startswith("lat,lon")
        assert outside.get("/jobs").headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("nginx") or not shutil.which("openssl"), reason="nginx or openssl is not installed"
)
def test_the_proxy_of_the_docs(socketed: Running, tmp_path: Path) -> None:
    """The file in deploy/ as it is, but for names, paths and the port."""
    port, (made, key) = free_port(), certificate(tmp_path)
    site = (DEPLOY / "nginx.conf").read_text()
    for ours, here in (
        ("/run/crowdveil/http.sock", str(tmp_path / "s")), ("443 ssl", f"127.0.0.1:{port} ssl"),
        ("/etc/ssl/crowdveil.pem", str(made)), ("/etc/ssl/private/crowdveil.key", str(key)),
    ):  # fmt: skip
        assert ours in site
        site = site.replace(ours, here)
    (tmp_path / "site.conf").write_text(site)
    folders = " ".join(f"{n}_temp_path {tmp_path}/{n};" for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    main = f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; {user} events {{}}"
    (tmp_path / "nginx.conf").write_text(f"{main} http {{ access_log off; {folders} include {tmp_path}/site.conf; }}")
    begin(socketed, tmp_path / "s")
    nginx = subprocess.Popen(
        ["nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: _accepts(port))
        check_from_outside(socketed, port, made)
    finally:
        nginx.terminate()
        nginx.wait()


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("caddy") or not shutil.which("openssl"), reason="caddy or openssl is not installed"
)
def test_the_other_proxy_of_the_docs(socketed: Running, tmp_path: Path) -> None:
    """The file in deploy/ as it is, but for names and addresses."""
    port, (made, key) = free_port(), certificate(tmp_path)
    site = (DEPLOY / "Caddyfile").read_text()
    for ours, here in (
        ("crowdveil.example.org {", f"https://localhost:{port} {{\n\ttls {made} {key}"),
        ("/run/crowdveil/http.sock", str(tmp_path / "s")),
    ):
        assert ours in site
        site = site.replace(ours, here)
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    begin(socketed, tmp_path / "s")
    caddy = subprocess.Popen(
        ["caddy", "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")],
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: _accepts(port))
        check_from_outside(socketed, port, made)
    finally:
        caddy.terminate()
        caddy.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
