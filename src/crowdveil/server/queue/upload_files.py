"""Files that were uploaded once, for previews and jobs of their owner: `uploads/OWNER/ID/NAME`.

The folder says whose the file is. Its time is that of the last use.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from crowdveil.server.queue.files import ID

KEEP_S = 3600.0
"""Time after its last use at which an upload is removed."""
_OWNER = re.compile(r"[0-9A-Za-z_-]{1,64}")


class UploadFiles:
    """The folders of uploads."""

    def __init__(self, root: Path) -> None:
        self.root = root / "uploads"

    def keep(self, owner: str, upload: str, received: Path) -> None:
        """Make a folder that was received an upload of an owner."""
        folder = self._folder(owner, upload)
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        received.rename(folder)

    def get(self, owner: str, upload: str) -> Path | None:
        """Return the file of an upload, and note its use; None if it is another's, has expired, or never was."""
        if not ID.fullmatch(upload):
            return None
        folder = self._folder(owner, upload)
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime <= KEEP_S:
                os.utime(folder)
                return next(folder.iterdir(), None)
        return None

    def count(self, owner: str) -> int:
        """Return the number of uploads of an owner."""
        return len(list(self._folders(owner)))

    def remove(self, owner: str, upload: str) -> None:
        """Remove an upload; jobs that were made of it keep their file."""
        shutil.rmtree(self._folder(owner, upload), ignore_errors=True)

    def expire(self) -> list[str]:
        """Remove uploads that nobody used for a while, and return their ids."""
        over = []
        for folder in self._folders("*"):
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > KEEP_S:
                    self.remove(folder.parent.name, folder.name)
                    over.append(folder.name)
        return over

    def _folder(self, owner: str, upload: str) -> Path:
        if not _OWNER.fullmatch(owner) or not ID.fullmatch(upload):
            raise ValueError("no id of an upload")
        return self.root / owner / upload

    def _folders(self, owner: str) -> Iterator[Path]:
        return (path for path in self.root.glob(f"{owner}/*") if ID.fullmatch(path.name))


def share(file: Path, target: Path) -> None:
    """Put a file under another name, without a copy where the file system can.

    A confined process could change the content of its own input; that is another preview or job of the same owner, no more.
    """
    try:
        os.link(file, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, target)
