"""Whether workers are alive: each group of them writes a file in the data directory, which all machines share."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

FOLDER = "workers"
EVERY_S = 5.0
DEAD_AFTER_S = 30.0
_FORGET_AFTER_S = 86_400.0


class Heartbeat:
    """The file of one group of workers."""

    def __init__(self, root: Path) -> None:
        self.file = root / FOLDER / f"{socket.gethostname()}-{os.getpid()}.json"

    def beat(self, workers: int) -> None:
        """Write how many workers are alive. A full disk must not end them."""
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
    """Return how many workers reported lately; files of those that ended long ago are removed."""
    alive, now = 0, time.time()
    for file in (root / FOLDER).glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            age = now - file.stat().st_mtime
            if age < DEAD_AFTER_S:
                alive += int(json.loads(file.read_text(encoding="utf-8"))["workers"])
            elif age > _FORGET_AFTER_S:
                file.unlink()
    return alive
