"""Jobs that do bad things, for a worker whose module this is: `do` among the parameters says what."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
import time
from pathlib import Path
from typing import Any

from crowdveil.errors import InputError
from crowdveil.server.workers import job
from crowdveil.server.workers.sandboxed import write_object
from crowdveil.verbs.base import Outcome, Task
from crowdveil.verbs.table import VERBS


def _do(task: Task) -> Outcome:
    out = Path(str(task.output)).parent
    what, begun = task.values.get("do"), Path("begun")  # in the folder of the inputs, which all runs share
    (out / "half.txt").write_text("half of it")
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
            begun.touch()
            time.sleep(600)
        time.sleep(600)
    elif what == "eat":
        held = [bytearray(os.urandom(1 << 20)) for _ in range(2000)]
        time.sleep(len(held))
    elif what == "refuse":
        raise InputError("a.csv: Expected something else. Give it.")
    elif what == "fault":
        raise KeyError("secret value")
    elif what == "hang once" and not begun.exists():
        begun.touch()
        time.sleep(600)
    elif what == "slow":
        time.sleep(float(task.values["s"]))
    elif what == "link":  # a result that names another's file
        (out.parent / job.SUMMARY).symlink_to("/etc/passwd")
    elif what == "pipe":  # a report that no reader would get to the end of
        os.mkfifo(out.parent / job.PROGRESS)
        time.sleep(600)
    elif what == "spill":
        Path(os.environ["TMPDIR"], "spill").write_text("half")
        os._exit(3)
    elif what == "lie":
        write_object(out.parent / "answer.json", {"result": {"name": "../../x"}})
        os._exit(0)
    (out / "half.txt").rename(out / "whole.txt")
    (out / "whole.txt").write_text(task.values.get("text", "whole"))
    task.notes.add("a note.")
    return Outcome(task.notes, ["a line"])


VERBS["filter"] = dataclasses.replace(VERBS["filter"], run=_do)


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Run such a job."""
    return job.work(request)
