"""A worker whose jobs do bad things, to see what becomes of them: `python serving_worker.py URL FOLDER LEASE MEMORY`."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
import sys
import time
from pathlib import Path

from serving import starter_here

from crowdveil.errors import InputError
from crowdveil.server.kinds import KINDS
from crowdveil.server.kinds.base import JobRequest, Task
from crowdveil.server.queue.database import open_database
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.store import Store
from crowdveil.server.workers.worker import Worker


def _do(task: Task) -> JobRequest:
    what = task.values.get("do")
    (task.out / "half.txt").write_text("half of it")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "break":  # as a library does that reads where it must not
        ctypes.string_at(0)
    elif what == "leave":
        os._exit(3)
    elif what == "sleep":
        task.stage("sleeping")
        task.progress(1, 4)
        if os.fork() == 0:  # a process of the job's own goes with it
            Path(task.values["file"]).write_text(str(os.getpid()))
            time.sleep(600)
        time.sleep(600)
    elif what == "eat":
        held = [bytearray(os.urandom(1 << 20)) for _ in range(2000)]
        time.sleep(len(held))
    elif what == "refuse":
        raise InputError("a.csv: wanted something else; give it.")
    elif what == "fault":
        raise KeyError("secret value")
    elif what == "hang once" and not Path(task.values["file"]).exists():
        Path(task.values["file"]).touch()
        time.sleep(600)
    elif what == "slow":
        time.sleep(float(task.values["s"]))
    (task.out / "half.txt").rename(task.out / "whole.txt")
    (task.out / "whole.txt").write_text(task.values.get("text", "whole"))
    return JobRequest(["a note."], ["a line"])


def main(url: str, folder: str, lease: str, memory: str) -> None:
    """Work until killed."""
    KINDS["filter"] = dataclasses.replace(KINDS["filter"], run=_do)
    worker = Worker(
        Store(open_database(url)),
        Files(Path(folder)),
        starter_here(confined=False),  # these jobs write where the test looks, and start processes
        float(lease),
        int(memory) << 20 if int(memory) else None,
    )
    signal.signal(signal.SIGTERM, worker.stop)
    worker.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
