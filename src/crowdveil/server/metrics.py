"""Figures for Prometheus at `/metrics`: jobs, requests, refusals, workers and the disk. No label holds anything of a user."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from crowdveil.server.kinds import KINDS
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.job import STATES
from crowdveil.server.settings import Service
from crowdveil.server.workers.heartbeat import live_workers

disable_created_metrics()  # type: ignore[no-untyped-call]
_SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400)
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)
_OVERLAP_S = 60.0
"""Jobs that ended this long before the last look are looked at again: a row may be seen later than others that ended after it."""


class Metrics:
    """The figures of one server process."""

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
        self.job_seconds = Histogram(
            "crowdveil_job_seconds", "Time from the start of a job to its end, of jobs that ended since this server started.",
            ["kind", "state"], buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.registry.register(_Now(service))
        self._lock = threading.Lock()
        self._ended_at: float | None = None
        self._seen: dict[str, float] = {}
        self.observe_jobs()

    def text(self) -> bytes:
        """Return all figures as Prometheus text."""
        self.observe_jobs()
        return generate_latest(self.registry)

    def refuse(self, status: int, code: str) -> None:
        """Count a refused request."""
        self.refused.labels(str(status), code).inc()

    def observe_jobs(self) -> None:
        """Take in the jobs that ended since the last look; at the first one, only when the last of them ended."""
        with self._lock:
            try:
                if self._ended_at is None:
                    self._ended_at = self.service.store.last_end()
                    self._seen = {job["id"]: job["ended"] for job in self._ended_jobs()}
                    return
                for job in self._ended_jobs():
                    if job["id"] not in self._seen:
                        self._seen[job["id"]] = job["ended"]
                        self.job_seconds.labels(job["kind"], job["state"]).observe(
                            max(0.0, job["ended"] - job["started"])
                        )
                        self._ended_at = max(self._ended_at, job["ended"])
            except DatabaseUnavailableError:
                return  # crowdveil_database_up reports it
            since = self._ended_at - _OVERLAP_S
            self._seen = {name: ended for name, ended in self._seen.items() if ended >= since}

    def _ended_jobs(self) -> list[dict[str, Any]]:
        return self.service.store.ended_since((self._ended_at or 0.0) - _OVERLAP_S)


class _Now:
    """What is read at each look: the database, workers and the disk."""

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
            counts, age = self.service.store.counts_by_kind(), self.service.store.queue_age()
            for kind in KINDS:
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
