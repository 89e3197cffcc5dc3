"""Files that were uploaded once, for previews and jobs of their owner; the folder that they are in states whose they are.

uploads/OWNER/ID/about.json   name, size and progress; its time is that of the last use
uploads/OWNER/ID/content      the bytes that arrived so far
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from crowdveil.server.queue.files import ID
from crowdveil.server.queue.job import new_id

ABOUT, CONTENT = "about.json", "content"
_OWNER = re.compile(r"[0-9A-Za-z_-]{1,64}")


class BusyError(Exception):
    """Another request is writing to the same upload."""


@dataclass
class UploadState:
    """An upload, complete or not.

    Attributes
    ----------
    name, bytes
        Name and size of the file, as declared at the beginning.
    received
        Bytes that arrived.
    keep_s
        Seconds after its last use at which it is removed.
    rows, first_line, ended_first
        Counts of a text table over all its chunks: its rows, the length of its first line, and whether that has ended.
    """

    id: str
    name: str
    bytes: int
    keep_s: float
    received: int = 0
    rows: int = 0
    first_line: int = 0
    ended_first: bool = False

    @property
    def complete(self) -> bool:
        """Return whether every byte arrived."""
        return self.received == self.bytes


class UploadFiles:
    """The folders of uploads; new ones are kept for `keep_s` seconds after their last use."""

    def __init__(self, root: Path, keep_s: float) -> None:
        self.root, self.keep_s = root / "uploads", keep_s

    def create(self, owner: str, name: str, size: int) -> UploadState:
        """Make a new, empty upload."""
        state = UploadState(new_id(), name, size, self.keep_s)
        folder = self._folder(owner, state.id)
        folder.mkdir(mode=0o700, parents=True)
        for private in (self.root, folder.parent):
            private.chmod(0o700)
        (folder / CONTENT).touch(mode=0o600)
        _write(folder / ABOUT, asdict(state))
        return state

    def get(self, owner: str, upload: str) -> UploadState | None:
        """Return an upload of an owner; None if it is another's, has expired, or never was."""
        if not ID.fullmatch(upload):
            return None
        about = self._folder(owner, upload) / ABOUT
        with suppress(OSError, ValueError, TypeError):
            state = UploadState(**json.loads(about.read_text(encoding="utf-8")))
            if time.time() - about.stat().st_mtime <= state.keep_s:
                return state
        return None

    def count(self, owner: str) -> int:
        """Return the number of uploads of an owner."""
        return len(list(self._folders(owner)))

    @contextmanager
    def appending(self, owner: str, state: UploadState) -> Iterator[BinaryIO]:
        """Open an upload to append what arrives next; what arrived is kept, however this ends.

        Bytes of an earlier request that was killed, which no count has seen, are removed first.
        """
        folder = self._folder(owner, state.id)
        with (folder / CONTENT).open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BusyError from None
            file.truncate(state.received)
            file.seek(state.received)
            try:
                yield file
            finally:
                file.flush()
                os.fsync(file.fileno())
                _write(folder / ABOUT, asdict(state))

    def share(self, owner: str, state: UploadState, target: Path) -> None:
        """Put an upload under another name, without a copy where the file system can.

        A confined process could change the content of its own input; that is another preview or job of the same owner, no more.
        """
        content = self._folder(owner, state.id) / CONTENT
        self._touch(owner, state.id)
        try:
            os.link(content, target)
        except OSError:
            shutil.copyfile(content, target)

    def copy_beginning(self, owner: str, state: UploadState, target: Path, size: int) -> None:
        """Copy the first bytes of an upload."""
        self._touch(owner, state.id)
        with (self._folder(owner, state.id) / CONTENT).open("rb") as source, target.open("xb") as copy:
            left = min(size, state.received)
            while left and (chunk := source.read(min(left, 1 << 20))):
                copy.write(chunk)
                left -= len(chunk)

    def remove(self, owner: str, upload: str) -> None:
        """Remove an upload; jobs that were made of it keep their file."""
        shutil.rmtree(self._folder(owner, upload), ignore_errors=True)

    def expire(self) -> list[str]:
        """Remove uploads whose time is over; the id of each."""
        over = [folder for folder in self._folders() if self.get(folder.parent.name, folder.name) is None]
        for folder in over:
            self.remove(folder.parent.name, folder.name)
        return [folder.name for folder in over]

    def _folder(self, owner: str, upload: str) -> Path:
        if not _OWNER.fullmatch(owner) or not ID.fullmatch(upload):
            raise ValueError("no id of an upload")
        return self.root / owner / upload

    def _folders(self, owner: str | None = None) -> Iterator[Path]:
        pattern = f"{'*' if owner is None else owner}/*"
        return (path for path in self.root.glob(pattern) if ID.fullmatch(path.name))

    def _touch(self, owner: str, upload: str) -> None:
        with suppress(FileNotFoundError):
            os.utime(self._folder(owner, upload) / ABOUT)


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a file under another name first, so that no reader sees half of it."""
    made = path.with_suffix(f".{os.getpid()}")
    made.touch(mode=0o600)
    made.write_text(json.dumps(content), encoding="utf-8")
    made.replace(path)
