"""Connections within limits: a client that is slow, or opens too many connections, is refused and holds nothing.

uvicorn limits requests, but neither the time that headers and bodies take, nor an answer that is never read, nor the connections
of one address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from crowdveil.errors import as_json
from crowdveil.server.limits import ClientLimits

RATE_WINDOW_S = 15.0
"""Time over which the rate of an upload is taken."""
_LOOK_EVERY_S = 1.0
Refusing = Callable[[int, str], None]
"""Called with the status and the code of each refusal."""


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn with time limits; `limited_protocol` sets the attributes of the class."""

    limits: ClientLimits
    peers: Counter[str]
    on_refusal: Refusing
    window_s = RATE_WINDOW_S

    def connection_made(self, transport: Any) -> None:
        """Count the connection, and start to watch it."""
        super().connection_made(transport)
        set_nodelay(transport.get_extra_info("socket"))
        self._headers_since: float | None = self.loop.time()
        self._body_since: float | None = None
        self._window_since, self._window_bytes = 0.0, 0
        self._watch: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._peer = peer_of(self.client)
        if self._peer:
            self.peers[self._peer] += 1
        if len(self.connections) > self.limits.max_connections:
            self._refuse(503, "too_many", "the server has too many connections; try again later.")
        elif self._peer and self.peers[self._peer] > self.limits.max_connections_per_address:
            self._refuse(429, "too_many", "your address has too many connections open; close some, and try again.")
        else:
            self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._peer:
            self.peers[self._peer] -= 1
            if self.peers[self._peer] <= 0:
                del self.peers[self._peer]
        for timer in (self._watch, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note when the headers of a request begin and end, and how much of a body comes."""
        if self._headers_since is None and self.conn.their_state is h11.IDLE:
            self._headers_since = self.loop.time()
        self._window_bytes += len(data)
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._headers_since = None

    def pause_writing(self) -> None:
        """The client does not read: give it a while."""
        self.flow.pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.limits.stall_seconds, self._stall)

    def resume_writing(self) -> None:
        """The client reads again."""
        self.flow.resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the shape of all errors."""
        self._refuse(400, "bad_request", "the request is not valid HTTP/1.1, or its headers are too large.")

    def _stall(self) -> None:
        self.on_refusal(408, "too_slow")
        self.transport.abort()

    def _look_again(self) -> None:
        least = min(self.limits.header_seconds, self.limits.upload_seconds, self.window_s)
        self._watch = self.loop.call_later(min(_LOOK_EVERY_S, least / 4), self._look)

    def _look(self) -> None:
        """Refuse a client that takes too long."""
        now, sentence = self.loop.time(), ""
        if self._headers_since is not None:
            if now - self._headers_since > self.limits.header_seconds:
                sentence = "the headers of the request took too long; send them faster."
        elif self.conn.their_state is h11.SEND_BODY:
            sentence = self._body_too_slow(now)
        else:
            self._body_since = None
        if sentence:
            self._refuse(408, "too_slow", sentence)
        else:
            self._look_again()

    def _body_too_slow(self, now: float) -> str:
        if self._body_since is None:
            self._body_since, self._window_since, self._window_bytes = now, now, 0
        if now - self._body_since > self.limits.upload_seconds:
            return f"the upload took longer than {self.limits.upload_seconds:g} seconds; send less data."
        if now - self._window_since < self.window_s:
            return ""
        enough = self._window_bytes >= self.limits.min_upload_rate * (now - self._window_since)
        # Where the server itself does not read, or has not asked for the body yet, the client cannot be faster.
        waiting = self.flow.read_paused or self.conn.they_are_waiting_for_100_continue
        self._window_since, self._window_bytes = now, 0
        if enough or waiting:
            return ""
        return f"the upload is slower than {self.limits.min_upload_rate:,} bytes a second; send it faster."

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer unless an answer has begun, and close."""
        self.on_refusal(status, code)
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            body = json.dumps({"error": as_json(code, message)}).encode()
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()


def limited_protocol(limits: ClientLimits, on_refusal: Refusing) -> type[LimitedProtocol]:
    """Make the protocol class of a server; connections are counted per class."""
    made = {"limits": limits, "peers": Counter[str](), "on_refusal": staticmethod(on_refusal)}
    return type("LimitedProtocolOfServer", (LimitedProtocol,), made)


def peer_of(client: tuple[str, int] | None) -> str:
    """Return the address that connections are counted by; empty for a Unix socket."""
    if client is None or not client[0]:
        return ""
    try:
        address = ipaddress.ip_address(client[0].split("%")[0])
    except ValueError:
        return client[0]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def set_nodelay(connection: Any) -> None:
    """Send small answers at once: headers and body are two writes, and the second would wait 40 ms for an acknowledgment."""
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
