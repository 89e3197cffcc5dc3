"""Without a token nobody is let in, whatever stands in front of the service."""

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
from serving import Running, Within, cabs, ended, free_port, opened, put, until

from crowdveil.errors import ParameterError
from crowdveil.server.app import make_app
from crowdveil.server.serve import first_token
from crowdveil.server.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_without_a_token_only_what_is_the_same_for_all_is_answered(tmp_path: Path) -> None:
    with opened(tmp_path, no_auth=False) as service:
        app = make_app(service)
        for path in ("/", "/auth", "/openapi.json", "/page/app.js", "/health"):
            assert Within(app).get(path).status_code == 200, path
        for path in ("/jobs", "/methods", "/session", "/form", "/metrics", "/reviews", "/tokens"):
            assert Within(app).get(path).status_code == 401, path
        token = first_token(service)
        assert token is not None and first_token(service) is None
        assert Within(app, Authorization=f"Bearer {token}", Host="a.example").get("/jobs").status_code == 200
        service.store.db.do("DELETE FROM tokens")
        assert Within(app).get("/jobs").status_code == 401, "tokens that are lost open nothing"


def test_no_auth_is_for_this_machine_alone() -> None:
    for wrong in ({"host": "0.0.0.0"}, {"four_eyes": True}):
        with pytest.raises(ParameterError, match=r"no_auth|four_eyes"):
            Settings.checked({"no_auth": True, **wrong})


def test_services_of_one_process_have_their_own_tokens(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as first, opened(tmp_path / "b") as second:
        tokens = first.tokens.create("anna"), second.tokens.create("anna")
        for service, answers in ((first, [200, 401]), (second, [401, 200])):
            app = make_app(service)
            for path in ("/jobs", "/methods"):
                clients = [Within(app, Authorization=f"Bearer {token}") for token in tokens]
                assert [client.get(path).status_code for client in clients] == answers


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


def check_from_outside(service: Running, port: int, certificate: Path) -> None:
    """What a client behind the proxy sees of a service."""
    trust = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(base_url=f"https://localhost:{port}", verify=trust, timeout=60) as outside:
        assert outside.get("/health").status_code == 200
        assert outside.get("/metrics").status_code == outside.get("/ready").status_code == 404
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
def test_the_proxy_of_the_docs(behind: Running, tmp_path: Path) -> None:
    """The file in deploy/ as it is, but for names, paths and the port."""
    port, (made, key) = free_port(), certificate(tmp_path)
    site = (DEPLOY / "nginx.conf").read_text()
    for ours, here in (
        ("127.0.0.1:8000", f"127.0.0.1:{behind.port}"), ("443 ssl", f"127.0.0.1:{port} ssl"),
        ("/etc/ssl/crowdveil.pem", str(made)), ("/etc/ssl/private/crowdveil.key", str(key)),
    ):  # fmt: skip
        assert ours in site
        site = site.replace(ours, here)
    (tmp_path / "site.conf").write_text(site)
    folders = " ".join(f"{n}_temp_path {tmp_path}/{n};" for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    main = f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; {user} events {{}}"
    (tmp_path / "nginx.conf").write_text(f"{main} http {{ access_log off; {folders} include {tmp_path}/site.conf; }}")
    nginx = subprocess.Popen(
        ["nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: _accepts(port))
        check_from_outside(behind, port, made)
    finally:
        nginx.terminate()
        nginx.wait()


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("caddy") or not shutil.which("openssl"), reason="caddy or openssl is not installed"
)
def test_the_other_proxy_of_the_docs(behind: Running, tmp_path: Path) -> None:
    """The file in deploy/ as it is, but for names and addresses."""
    port, (made, key) = free_port(), certificate(tmp_path)
    site = (DEPLOY / "Caddyfile").read_text()
    for ours, here in (
        ("crowdveil.example.org {", f"https://localhost:{port} {{\n\ttls {made} {key}"),
        ("127.0.0.1:8000", f"127.0.0.1:{behind.port}"),
    ):
        assert ours in site
        site = site.replace(ours, here)
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    caddy = subprocess.Popen(
        ["caddy", "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")],
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: _accepts(port))
        check_from_outside(behind, port, made)
    finally:
        caddy.terminate()
        caddy.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
