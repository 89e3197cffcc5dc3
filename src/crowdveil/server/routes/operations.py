"""Routes for those who operate the service: whether it lives, whether it is ready, and its figures."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from crowdveil.server.access import Collector, TheService
from crowdveil.server.metrics import Metrics
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.service import Service
from crowdveil.server.workers.heartbeat import live_workers

HEALTH, READY = "/health", "/ready"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def add_operations(app: FastAPI, metrics: Metrics) -> None:
    """Add the routes. All but figures need no token, and none reveals anything about users."""

    @app.get(HEALTH, include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get(READY, include_in_schema=False)
    def ready(service: TheService) -> JSONResponse:
        checks = readiness(service)
        good = all(state == "ok" for state in checks.values())
        return JSONResponse({"ready": good, "checks": checks}, 200 if good else 503)

    @app.get("/metrics", include_in_schema=False)
    def figures(_who: Collector) -> Response:
        return Response(metrics.text(), headers={"Content-Type": _METRICS})


def readiness(service: Service) -> dict[str, str]:
    """Return the state of all that a job needs: "ok", or what is wrong in a few words."""
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
