"""Figures for Prometheus at `/metrics`: jobs, requests, refusals, workers and the disk. No label holds anything of a user."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from crowdveil.server.kinds import KINDS
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.job import STATES
from crowdveil.server.service import Service
from crowdveil.server.workers.heartbeat import live_workers

disable_created_metrics()  # type: ignore[no-untyped-call]
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)


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
        self.registry.register(_Now(service))

    def text(self) -> bytes:
        """Return all figures as Prometheus text."""
        return generate_latest(self.registry)

    def refuse(self, status: int, code: str) -> None:
        """Count a refused request."""
        self.refused.labels(str(status), code).inc()


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
            counts, age = self.service.store.counts(), self.service.store.queue_age()
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
