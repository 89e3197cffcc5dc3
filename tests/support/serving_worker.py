"""A worker whose jobs do bad things (see `bad_jobs`): `python serving_worker.py URL FOLDER LEASE MEMORY`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from crowdveil.server.queue.database import open_database
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.store import Store
from crowdveil.server.workers.worker import Worker


def main(url: str, folder: str, lease: str, memory: str) -> None:
    """Work until killed."""
    worker = Worker(
        Store(open_database(url)),
        Files(Path(folder)),
        float(lease),
        int(memory) << 20 if int(memory) else None,
        module="bad_jobs",
    )
    signal.signal(signal.SIGTERM, lambda *_: worker.stopping.set())
    worker.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
