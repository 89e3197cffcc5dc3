"""The workers of one machine: threads of one supervisor, each with one job at a time in a process of its own."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from crowdveil.kernels._jit import compiled_before
from crowdveil.server import logs
from crowdveil.server.service import Service
from crowdveil.server.workers.worker import Worker

NOT_COMPILED = (
    "the kernels are not compiled, so each job compiles its own; run crowdveil server warmup as the service's user"
)


class Supervisor:
    """Run the jobs of a service, several at once, until stopped."""

    def __init__(self, service: Service) -> None:
        settings, self.stopping = service.settings, threading.Event()
        self.store, self.heartbeat = service.store, Heartbeat(service.files.root)
        worker = Worker(
            service.store,
            service.files,
            memory_bytes=service.memory_bytes,
            processes=settings.jobs_at_once,
            stopping=self.stopping,
        )
        self.workers = [threading.Thread(target=worker.work, name=f"worker-{n}") for n in range(settings.jobs_at_once)]
        self._beating = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start the workers."""
        if self.workers and not compiled_before():
            logs.say("worker", NOT_COMPILED, logging.WARNING)
        for thread in (*self.workers, self._beating):
            thread.start()

    def stop(self) -> None:
        """Stop all workers; their jobs return to the queue."""
        self.stopping.set()
        for worker in self.workers:
            worker.join()
        self._beating.join()

    def _beat(self) -> None:
        while True:
            self.heartbeat.beat(sum(worker.is_alive() for worker in self.workers))
            if self.stopping.wait(EVERY_S):
                self.heartbeat.end()
                return


FOLDER = "workers"
EVERY_S = 5.0
DEAD_AFTER_S = 30.0
_FORGET_AFTER_S = 86_400.0


class Heartbeat:
    """The heartbeat file of one supervisor."""

    def __init__(self, root: Path) -> None:
        self.file = root / FOLDER / f"{socket.gethostname()}-{os.getpid()}.json"

    def beat(self, workers: int) -> None:
        """Write the number of live workers. A full disk must not end them."""
        with suppress(OSError):
            self.file.parent.mkdir(mode=0o700, exist_ok=True)
            made = self.file.with_suffix(".new")
            made.write_text(json.dumps({"workers": workers}), encoding="utf-8")
            made.replace(self.file)
            return
        with suppress(OSError):
            os.utime(self.file)

    def end(self) -> None:
        """Remove the file when they end."""
        with suppress(OSError):
            self.file.unlink()


def live_workers(root: Path) -> int:
    """Return the number of workers that reported lately, and remove old files."""
    alive, now = 0, time.time()
    for file in (root / FOLDER).glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            age = now - file.stat().st_mtime
            if age < DEAD_AFTER_S:
                alive += int(json.loads(file.read_text(encoding="utf-8"))["workers"])
            elif age > _FORGET_AFTER_S:
                file.unlink()
    return alive
