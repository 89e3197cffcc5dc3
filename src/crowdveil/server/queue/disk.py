"""Confinement on the disk: a reserve that is released when the disk is full, so that jobs can still be deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from crowdveil.server.queue.database import DatabaseUnavailableError

RESERVE = "reserve"
RESERVE_BYTES, PIECES = 8 << 20, 8
"""The reserve is released piece by piece, since whatever filled the disk may take what is released."""
Answer = TypeVar("Answer")


class DiskSpace:
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
        """Return whether there is too little space to accept uploads."""
        return self.free() < self.min_free

    def is_full(self) -> bool:
        """Return whether there is too little space for the database to write."""
        return self.free() < RESERVE_BYTES

    def keep_reserve(self) -> None:
        """Allocate what is missing of the reserve where there is space for it."""
        if self.free() < 3 * RESERVE_BYTES:
            return
        with suppress(OSError):
            self.reserve.mkdir(mode=0o700, exist_ok=True)
            for number in range(PIECES):
                if not (self.reserve / str(number)).exists():
                    self._allocate(self.reserve / str(number))

    def _allocate(self, piece: Path) -> None:
        handle = os.open(piece, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(handle, 0, RESERVE_BYTES // PIECES)
        finally:
            os.close(handle)

    def release(self) -> bool:
        """Give a piece of the reserve up, which is more than one change of the database takes; whether there was one."""
        for number in range(PIECES):
            with suppress(OSError):
                (self.reserve / str(number)).unlink()
                return True
        return False

    def writing(self, write: Callable[[], Answer]) -> Answer:
        """Write to the database; where the disk is full, with the reserve."""
        try:
            return write()
        except DatabaseUnavailableError:
            if not self.is_full() or not self.release():
                raise
            return write()
