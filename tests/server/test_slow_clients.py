"""Slow clients and many connections, by raw sockets on this machine and with short limits."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from serving import ERROR_KEYS, until

from crowdveil.server.limits import ClientLimits
from crowdveil.server.settings import Settings

SHORT = ClientLimits(
    header_seconds=0.4, upload_seconds=2.0, min_upload_rate=1000, stall_seconds=0.4, max_connections=12,
    max_connections_per_address=6,
)  # fmt: skip
LARGE = 32 << 20


class Served:
    """A small app behind the protocol of the service, in a thread."""

    def __init__(self, tmp_path: Any) -> None:
        import uvicorn

        from crowdveil.server.connections import limited_protocol
        from crowdveil.server.serve import listen

        self.refused, self.got, self.broken = Counter[str](), list[int](), 0
        self.listening = listen(Settings(tmp_path, port=0))
        protocol = limited_protocol(SHORT, lambda status, code: self.refused.update([f"{status} {code}"]))
        protocol.window_s = 0.4
        config = uvicorn.Config(
            self.app, interface="asgi3", http=protocol, log_config=None, lifespan="off", ws="none", timeout_keep_alive=1
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listening]})

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.broken += 1
                return
            size, more = size + len(message["body"]), message["more_body"]
        self.got.append(size)
        if scope["path"] == "/wait":
            await asyncio.sleep(1)
        answer = bytes(LARGE) if scope["path"] == "/large" else b"ok"
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": answer})

    def connect(self, request: bytes = b"") -> socket.socket:
        made = socket.create_connection(self.listening.getsockname(), timeout=10)
        made.sendall(request)
        return made


@pytest.fixture
def served(tmp_path: Any) -> Iterator[Served]:
    made = Served(tmp_path)
    made.thread.start()
    until(lambda: made.server.started)
    yield made
    made.server.should_exit = True
    made.thread.join()
    made.listening.close()


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """All that comes until the server closes."""
    came = b""
    try:
        while piece := connection.recv(1 << 16):
            came += piece
    except ConnectionResetError:
        pass
    head, _, body = came.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head else 0
    return status, json.loads(body) if body.startswith(b"{") else {}


def refused(connection: socket.socket, status: int, words: str) -> None:
    with connection:
        got, body = answer(connection)
        assert (got, set(body["error"])) == (status, ERROR_KEYS), body
        assert words in body["error"]["message"] and body["error"]["message"].endswith(".")


def test_headers_that_never_end(served: Served) -> None:
    silent, slow = served.connect(), served.connect(b"GET / HTTP/1.1\r\nHost: x\r\n")
    stop = threading.Event()

    def drip() -> None:
        try:
            while not stop.wait(0.05):
                slow.sendall(b"X: y\r\n")
        except OSError:
            return

    dripping = threading.Thread(target=drip)
    dripping.start()
    refused(silent, 408, "headers of the request took too long")
    refused(slow, 408, "headers of the request took too long")
    stop.set()
    dripping.join()
    assert served.refused["408 too_slow"] == 2


def test_a_second_request_is_timed_as_well(served: Served) -> None:
    with served.connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
        assert b"200 OK" in connection.recv(1 << 16)
        connection.sendall(b"GET / HT")
        refused(connection, 408, "headers of the request took too long")


def test_a_body_that_comes_too_slowly(served: Served) -> None:
    refused(
        served.connect(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc"),
        408,
        "slower than 1,000 bytes",
    )
    until(lambda: served.broken == 1)


def test_a_body_that_comes_too_long(served: Served) -> None:
    connection = served.connect(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
    stop = threading.Event()

    def drip() -> None:
        try:
            while not stop.wait(0.02):
                connection.sendall(bytes(500))
        except OSError:
            return

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        refused(connection, 408, "the upload took longer than 2 seconds")
    finally:
        stop.set()
        dripping.join()


def test_a_fast_upload_and_a_slow_answer_are_fine(served: Served) -> None:
    with served.connect(
        b"POST /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n"
    ) as connection:
        connection.sendall(bytes(3_000_000))
        assert answer(connection)[0] == 200 and served.got == [3_000_000]


def test_an_answer_that_is_never_read(served: Served) -> None:
    connection = served.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: served.refused["408 too_slow"] == 1)
    came = 0
    with connection, suppress(ConnectionResetError):
        while piece := connection.recv(1 << 20):
            came += len(piece)
    assert came < LARGE


def test_connections_of_one_address_are_limited(served: Served) -> None:
    held = [served.connect() for _ in range(SHORT.max_connections_per_address)]
    refused(served.connect(), 429, "too many connections open")
    for connection in held:
        connection.close()
    until(lambda: not served.server.server_state.connections)
    with served.connect(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") as connection:
        assert answer(connection)[0] == 200


def test_what_is_no_http_is_refused_in_the_one_shape(served: Served) -> None:
    refused(served.connect(b"\x16\x03\x01 nonsense\r\n\r\n"), 400, "not valid HTTP")
    refused(served.connect(b"GET / HTTP/1.1\r\nX: " + b"y" * (1 << 17)), 400, "headers are too large")


def test_small_answers_are_sent_at_once(served: Served) -> None:
    with served.connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
        connection.recv(100)
        (protocol,) = served.server.server_state.connections
        theirs = protocol.transport.get_extra_info("socket")
        assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_process_may_hold_as_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    from crowdveil.server.serve import allow_connections

    asked = list[tuple[int, int]]()
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: asked.append(limits))
    for limits in ((1024, 4096), (1024, 1500), (1 << 20, 1 << 20)):
        monkeypatch.setattr(resource, "getrlimit", lambda _which, limits=limits: limits)
        allow_connections(1000)
    assert asked == [(2256, 4096), (1500, 1500)]


def test_addresses_are_counted_by_network() -> None:
    from crowdveil.server.connections import peer_of

    assert peer_of(("192.0.2.7", 1)) == peer_of(("::ffff:192.0.2.7", 1)) == "192.0.2.7"
    assert peer_of(("2001:db8::1", 1)) == peer_of(("2001:db8::2", 1)) != peer_of(("2001:db8:0:1::1", 1))
    assert peer_of(None) == ""
