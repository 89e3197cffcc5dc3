"""Routes and logs for operators: /health, /ready, /metrics, and a line of the log for every request."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from crowdveil.errors import internal_error
from crowdveil.server import logs
from crowdveil.server.access import HEADERS, Collector, OpenService
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.store import STATES
from crowdveil.server.responses import answer
from crowdveil.server.service import Service
from crowdveil.server.workers.supervisor import live_workers
from crowdveil.verbs.table import VERBS

disable_created_metrics()  # type: ignore[no-untyped-call]
router = APIRouter(include_in_schema=False)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)


@router.get("/health")
async def health() -> dict[str, str]:
    """Answer while the process lives."""
    return {"status": "ok"}


@router.get("/ready")
def ready(service: OpenService) -> JSONResponse:
    """Answer 503 with the reason unless jobs can be accepted and run."""
    checks = readiness(service)
    good = all(state == "ok" for state in checks.values())
    return JSONResponse({"ready": good, "checks": checks}, 200 if good else 503)


@router.get("/metrics")
def metrics(request: Request, _who: Collector) -> Response:
    """Answer with metrics as Prometheus text; no label holds anything of a user."""
    return Response(generate_latest(request.app.state.metrics.registry), headers={"Content-Type": _TEXT})


def readiness(service: Service) -> dict[str, str]:
    """Return the state of the database, the workers and the disk: "ok", or the problem."""
    checks = {"database": "ok", "workers": "ok", "disk": "ok"}
    try:
        service.store.counts()
    except DatabaseUnavailableError:
        checks["database"] = "does not answer"
    if live_workers(service.files.root) == 0:
        checks["workers"] = "none alive"
    if not service.has_room():
        checks["disk"] = "too little space"
    return checks


class Metrics:
    """The metrics of one server process: counts of requests, and gauges that are read at each scrape."""

    def __init__(self, service: Service) -> None:
        self.service, self.registry = service, CollectorRegistry()
        self.requests = Counter(
            "crowdveil_requests", "Requests by route and status.", ["method", "route", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "crowdveil_request_seconds", "Time until an answer is sent.", ["route"], buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self.registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the registry needs no names of gauges in advance."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield the gauges of the database, the workers and the disk."""
        up = GaugeMetricFamily("crowdveil_database_up", "Whether the database answers.")
        jobs = GaugeMetricFamily("crowdveil_jobs", "Jobs in the database, by kind and state.", labels=["kind", "state"])
        oldest = GaugeMetricFamily("crowdveil_queue_age_seconds", "Waiting time of the oldest queued job.")
        try:
            counts, age = self.service.store.counts(), self.service.store.queue_age()
            for kind in VERBS:
                for state in STATES:
                    jobs.add_metric([kind, state], counts.get((kind, state), 0))
            oldest.add_metric([], age)
            up.add_metric([], 1)
        except DatabaseUnavailableError:
            up.add_metric([], 0)
        yield from (up, jobs, oldest)
        root = self.service.files.root
        disk, least = shutil.disk_usage(root), self.service.settings.min_free_bytes
        yield GaugeMetricFamily("crowdveil_disk_free_bytes", "Free bytes of the data directory's disk.", disk.free)
        yield GaugeMetricFamily("crowdveil_disk_size_bytes", "Size of the data directory's disk.", disk.total)
        yield GaugeMetricFamily("crowdveil_disk_min_free_bytes", "Free bytes below which uploads are refused.", least)
        yield GaugeMetricFamily("crowdveil_workers", "Workers that are alive.", live_workers(root))


class Observe:
    """Give every request an id and headers, log and count it, and answer unexpected errors.

    A plain ASGI middleware, so that requests and responses are streamed.
    """

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

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
                present = {name.lower() for name, _ in message["headers"]}
                more = [(n.lower().encode(), v.encode()) for n, v in {**HEADERS, "X-Request-ID": request_id}.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in present)]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            logs.say_fault(error, request=request_id, route=_route(scope))
            if not status:
                scope["crowdveil.code"] = "fault"
                await answer(500, "fault", internal_error(error))(scope, receive, noted)
        finally:
            self._note(scope, request_id, status, time.perf_counter() - begun)

    def _note(self, scope: Any, request_id: str, status: int, seconds: float) -> None:
        route, method = _route(scope), scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(route).observe(seconds)
        fields = {
            "code": scope.get("crowdveil.code"),
            "caller": scope.get("crowdveil.caller"),
            "job": scope.get("path_params", {}).get("job_id"),
        }
        logs.say(
            "request", f"{method} {route} {status}", request=request_id, method=method, route=route, status=status,
            ms=round(seconds * 1000, 1), **{name: value for name, value in fields.items() if value},
        )  # fmt: skip


def _route(scope: Any) -> str:
    """Return the declared route, never the requested path, which may hold anything."""
    return getattr(scope.get("route"), "path", "unknown")
