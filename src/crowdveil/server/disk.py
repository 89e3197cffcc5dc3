"""Room on the disk: a reserve that is released when the disk is full, so that jobs can still be deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from crowdveil.server.database import AwayError

RESERVE = "reserve"
RESERVE_BYTES = 8 << 20
Answer = TypeVar("Answer")


class Disk:
    """The disk of a data directory.

    Attributes
    ----------
    min_free
        Bytes that must be free for the service to accept uploads.
    """

    def __init__(self, root: Path, min_free: int) -> None:
        self.root, self.min_free = root, min_free
        self.reserve = root / RESERVE

    def free(self) -> int:
        """Return the free bytes."""
        return shutil.disk_usage(self.root).free

    def size(self) -> int:
        """Return the size of the disk in bytes."""
        return shutil.disk_usage(self.root).total

    def is_low(self) -> bool:
        """Return whether there is too little room to accept uploads."""
        return self.free() < self.min_free

    def is_full(self) -> bool:
        """Return whether there is too little room for the database to write."""
        return self.free() < RESERVE_BYTES

    def keep_reserve(self) -> None:
        """Allocate the reserve where it is missing and there is room for it."""
        if self.reserve.exists() or self.free() < 3 * RESERVE_BYTES:
            return
        with suppress(OSError):
            handle = os.open(self.reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(handle, 0, RESERVE_BYTES)
            finally:
                os.close(handle)

    def release(self) -> bool:
        """Give the reserve up; whether there was one."""
        try:
            self.reserve.unlink()
        except OSError:
            return False
        return True

    def writing(self, write: Callable[[], Answer]) -> Answer:
        """Write to the database; where the disk is full, with the reserve."""
        try:
            return write()
        except AwayError:
            if not self.is_full() or not self.release():
                raise
            return write()
