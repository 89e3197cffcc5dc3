"""The client of a server: nothing is sent twice, and what arrives is checked."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crowdveil.errors import ParameterError
from crowdveil.server import client
from crowdveil.server.client import Remote, ServerError

CONTENT = bytes(range(256)) * 4096
JOB: dict[str, Any] = {
    "id": "0" * 32,
    "result": {"bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest(), "name": "a.zip"},
}


class Handler(BaseHTTPRequestHandler):
    """Sends a result, and closes the connection on a form."""

    protocol_version = "HTTP/1.1"
    content = CONTENT
    posts = 0

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(self.content)
        self.close_connection = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).posts += 1
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    Handler.posts, Handler.content = 0, CONTENT
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_result_is_fetched_with_progress(address: str, tmp_path: Path) -> None:
    seen: list[int] = []
    Remote(address).fetch(JOB, tmp_path / "a.zip", lambda done, total: seen.append(done))
    assert (tmp_path / "a.zip").read_bytes() == CONTENT and seen == sorted(seen) and seen[-1] == len(CONTENT)


def test_a_result_that_is_cut_or_forged_is_refused(address: str, tmp_path: Path) -> None:
    Handler.content = bytes(len(CONTENT))
    with pytest.raises(ServerError, match="SHA-256"):
        Remote(address).fetch(JOB, tmp_path / "a.zip")
    Handler.content = CONTENT[:-1]
    with pytest.raises(ServerError, match="does not answer"):
        Remote(address).fetch(JOB, tmp_path / "a.zip")


@pytest.mark.parametrize(
    "odd", ["http://[", "http://127.0.0.1:port", "https://a.example:70000", "ftp://a.example", "a"]
)
def test_an_odd_address_is_refused(odd: str) -> None:
    with pytest.raises(ParameterError, match="Expected an address such as"):
        Remote(odd)


def test_a_form_is_sent_once(address: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(CONTENT)
    with pytest.raises(ServerError, match="does not answer"):
        Remote(address).start("methods", "joint", {}, {"data": tmp_path / "data.csv"})
    assert Handler.posts == 1


def test_a_server_that_stays_away_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PATIENCE_S", 0.05)
    monkeypatch.setattr(client, "AGAIN_S", 0.01)
    with pytest.raises(ServerError, match="does not answer"):
        Remote("http://127.0.0.1:9").follow(JOB["id"], lambda *_: None, lambda _: None)
