"""The workers of one machine: threads of one supervisor, each runs one job at a time in its own process."""

from __future__ import annotations

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

FOLDER = "workers"
"""The folder with one file for each worker, which its supervisor touches while the worker lives."""
TOUCH_EVERY_S = 5.0
DEAD_AFTER_S = 30.0
FORGET_AFTER_S = 86_400.0
NOT_COMPILED = (
    "the kernels are not compiled, so each job compiles them; run crowdveil server warmup as the service's user"
)


class Supervisor:
    """Run the jobs of a service, several at once, until stopped."""

    def __init__(self, service: Service) -> None:
        count, self.stopping = service.settings.jobs_at_once, threading.Event()
        worker = Worker(
            service.store, service.files, memory_bytes=service.memory_bytes, processes=count, stopping=self.stopping
        )
        self.workers = [threading.Thread(target=worker.work, name=f"worker-{n}") for n in range(count)]
        self._watching = threading.Thread(target=self._watch, args=(service.files.root / FOLDER,), daemon=True)

    def start(self) -> None:
        """Start the workers."""
        if self.workers and not compiled_before():
            logs.say("worker", NOT_COMPILED, logging.WARNING)
        for thread in (*self.workers, self._watching):
            thread.start()

    def stop(self) -> None:
        """Stop all workers; their jobs return to the queue."""
        self.stopping.set()
        for thread in (*self.workers, self._watching):
            thread.join()

    def _watch(self, folder: Path) -> None:
        """Touch the files of live workers, and remove them when stopped. A full disk must not stop the workers."""
        files = [folder / f"{socket.gethostname()}-{os.getpid()}-{worker.name}" for worker in self.workers]
        while True:
            with suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
                for worker, file in zip(self.workers, files, strict=True):
                    if worker.is_alive():
                        file.touch()
            if self.stopping.wait(TOUCH_EVERY_S):
                break
        for file in files:
            with suppress(OSError):
                file.unlink()


def live_workers(root: Path) -> int:
    """Return the number of workers that live, on all machines, and remove old files."""
    alive, now = 0, time.time()
    for file in (root / FOLDER).glob("*"):
        with suppress(OSError):
            age = now - file.stat().st_mtime
            alive += age < DEAD_AFTER_S
            if age > FORGET_AFTER_S:
                file.unlink()
    return alive
