"""Routes for operators: /health, /ready and /metrics."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from crowdveil.server.access import Collector, OpenService
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.store import STATES
from crowdveil.server.service import Service
from crowdveil.server.workers.supervisor import live_workers
from crowdveil.verbs.table import VERBS

disable_created_metrics()  # type: ignore[no-untyped-call]
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)


class Metrics:
    """The metrics of one server process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "crowdveil_requests", "Requests by route and status.", ["method", "route", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "crowdveil_request_seconds", "Time until an answer is sent.", ["route"], buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self.refused = Counter(
            "crowdveil_refused_requests",
            "Refused requests by status and reason.",
            ["status", "code"],
            registry=self.registry,
        )
        self.registry.register(_Now(service))

    def text(self) -> bytes:
        """Return all metrics as Prometheus text."""
        return generate_latest(self.registry)

    def refuse(self, status: int, code: str) -> None:
        """Count a rejected request."""
        self.refused.labels(str(status), code).inc()


class _Now:
    """Gauges that are read at each scrape: the database, workers and the disk."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("crowdveil_database_up", "Whether the database answers.")
        jobs = GaugeMetricFamily(
            "crowdveil_jobs", "Jobs that the database holds, by kind and state.", labels=["kind", "state"]
        )
        oldest = GaugeMetricFamily("crowdveil_queue_age_seconds", "How long the job that waits longest has waited.")
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


HEALTH, READY = "/health", "/ready"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def add_operations(app: FastAPI, metrics: Metrics) -> None:
    """Add the routes. Only metrics need a token, and none reveals anything about users."""

    @app.get(HEALTH, include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get(READY, include_in_schema=False)
    def ready(service: OpenService) -> JSONResponse:
        checks = readiness(service)
        good = all(state == "ok" for state in checks.values())
        return JSONResponse({"ready": good, "checks": checks}, 200 if good else 503)

    @app.get("/metrics", include_in_schema=False)
    def figures(_who: Collector) -> Response:
        return Response(metrics.text(), headers={"Content-Type": _METRICS})


def readiness(service: Service) -> dict[str, str]:
    """Return the state of the database, the workers and the disk: "ok", or the problem."""
    checks: dict[str, Any] = {"database": "ok", "workers": "ok", "disk": "ok"}
    try:
        service.store.counts()
    except DatabaseUnavailableError:
        checks["database"] = "does not answer"
    if live_workers(service.files.root) == 0:
        checks["workers"] = "none alive"
    if not service.has_room():
        checks["disk"] = "too little space"
    return checks
