"""Wrap every request: give it an id and headers, log and count it, and answer unexpected errors."""

from __future__ import annotations

import secrets
import time
from typing import Any

from crowdveil.errors import internal_error
from crowdveil.server import logs
from crowdveil.server.access import HEADERS
from crowdveil.server.responses import answer
from crowdveil.server.routes.operations import READY, Metrics
from crowdveil.server.service import Service


class Observe:
    """A plain ASGI middleware, so that requests and responses are streamed."""

    def __init__(self, app: Any, service: Service, metrics: Metrics) -> None:
        self.app, self.service, self.metrics = app, service, metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request and log its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, begun, status = secrets.token_hex(8), time.perf_counter(), 0

        async def noted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name.lower() for name, _ in message["headers"]}
                more = [(b"x-request-id", request_id.encode())]
                more += [(n.lower().encode(), v.encode()) for n, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in there)]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            logs.say_fault(error, request=request_id, route=_route(scope))
            if not status:
                scope["crowdveil.code"] = "fault"
                await answer(500, "fault", internal_error(error))(scope, receive, noted)
        finally:
            await self._note(scope, request_id, status, time.perf_counter() - begun)

    async def _note(self, scope: Any, request_id: str, status: int, seconds: float) -> None:
        route, method, code = _route(scope), scope["method"], scope.get("crowdveil.code", "")
        method = method if method in _METHODS else "other"
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(route).observe(seconds)
        if status >= 400 and route != READY:
            self.metrics.refuse(status, code)
        caller, job = scope.get("crowdveil.caller"), scope.get("path_params", {}).get("job_id")
        logs.say(
            "request", f"{method} {route} {status}", request=request_id, method=method, route=route, status=status,
            ms=round(seconds * 1000, 1), **{n: v for n, v in (("code", code), ("caller", caller), ("job", job)) if v},
        )  # fmt: skip


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _route(scope: Any) -> str:
    """Return the declared route, never the requested path, which may hold anything."""
    return getattr(scope.get("route"), "path", "unknown")
