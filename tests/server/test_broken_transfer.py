"""A download that breaks off goes on where it ended; the form of a job is never sent twice."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crowdveil import remote
from crowdveil.remote import Remote, ServerError

CONTENT = bytes(range(256)) * 4096
JOB: dict[str, Any] = {
    "id": "0" * 32,
    "result": {"bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest(), "name": "a.zip"},
}


class Breaking(BaseHTTPRequestHandler):
    """Sends a part of what is left, and closes the connection."""

    protocol_version = "HTTP/1.1"
    asked: list[str | None]
    posts: int
    ranges = True

    def do_GET(self) -> None:
        given = self.headers.get("Range")
        type(self).asked.append(given)
        first = int(given[6:-1]) if given and self.ranges else 0
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(CONTENT) - first))
        self.end_headers()
        most = len(CONTENT) if len(self.asked) > 3 else 300_000
        self.wfile.write(CONTENT[first : first + most])
        self.close_connection = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).posts += 1
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(remote, "AGAIN_S", 0.01)
    Breaking.asked, Breaking.posts, Breaking.ranges = [], 0, True
    with ThreadingHTTPServer(("127.0.0.1", 0), Breaking) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_download_goes_on_where_it_broke(breaking: str, tmp_path: Path) -> None:
    seen: list[int] = []
    Remote(breaking).fetch(JOB, tmp_path / "a.zip", lambda done, total: seen.append(done))
    assert (tmp_path / "a.zip").read_bytes() == CONTENT
    assert Breaking.asked[0] is None and len(Breaking.asked) >= 3
    assert all(asked is not None and asked.startswith("bytes=") for asked in Breaking.asked[1:])
    assert seen == sorted(seen) and seen[-1] == len(CONTENT)


def test_a_server_without_ranges_sends_all_of_it_again(breaking: str, tmp_path: Path) -> None:
    Breaking.ranges = False
    Remote(breaking).fetch(JOB, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_a_result_with_another_hash_is_refused(breaking: str, tmp_path: Path) -> None:
    forged = JOB | {"result": JOB["result"] | {"sha256": "0" * 64}}
    with pytest.raises(ServerError, match="SHA-256 differs"):
        Remote(breaking).fetch(forged, tmp_path / "a.zip")


def test_a_server_that_stays_away_ends_the_transfer(
    breaking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", 0.05)
    with pytest.raises(ServerError, match="does not answer"):
        Remote("http://127.0.0.1:9").fetch(JOB, tmp_path / "a.zip")


def test_a_form_is_sent_once(breaking: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(CONTENT)
    with pytest.raises(ServerError, match="does not answer"):
        Remote(breaking).start("methods", "joint", {}, {"data": tmp_path / "data.csv"})
    assert Breaking.posts == 1
