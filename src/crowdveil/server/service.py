"""The open service: its settings, files, jobs and tokens."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from crowdveil.errors import Option, OutputError, ParameterError
from crowdveil.server import logs
from crowdveil.server.queue.database import open_database
from crowdveil.server.queue.files import Files, UploadFiles
from crowdveil.server.queue.store import QueuedJob, Store
from crowdveil.server.settings import PREVIEWS, Place, Settings
from crowdveil.server.tokens import Tokens

FORGET_S = 90 * 86_400.0
"""How long the row of a job and the log are kept."""


@dataclass(eq=False)
class Service:
    """An open service."""

    settings: Settings
    files: Files
    store: Store
    tokens: Tokens
    uploads: UploadFiles

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.db.close()

    @cached_property
    def previews(self) -> asyncio.Semaphore:
        """Limit the previews that run at once."""
        return asyncio.Semaphore(PREVIEWS)

    @cached_property
    def memory_bytes(self) -> int:
        """The memory that one job may hold."""
        mib = self.settings.max_memory_mib
        return default_memory(self.settings.jobs_at_once + PREVIEWS) if mib is None else mib << 20

    def has_room(self, size: int = 0) -> bool:
        """Return whether the disk has space for a file of some bytes."""
        return shutil.disk_usage(self.files.root).free >= self.settings.min_free_bytes + size

    def delete(self, job: str, owner: str, by: str = "") -> QueuedJob | None:
        """End a job of an owner and remove its files; return None for jobs of others."""
        ended = self.store.cancel(job, owner, by)
        if ended is not None:
            self.files.remove(job)
        return ended

    def tidy(self) -> None:
        """Requeue the jobs of dead workers, and remove old files and rows; a step that fails does not prevent the others."""
        steps = (
            self._expire,
            self.store.take_back,
            lambda: self.files.sweep(self.store),
            lambda: self.store.forget(FORGET_S),
        )
        for step in steps:
            try:
                step()
            except Exception as error:  # a database that is briefly unavailable must not end the cleanup
                logs.say("tidy", "a step of the cleanup failed", logging.WARNING, **logs.located(error))

    def _expire(self) -> None:
        """Remove expired results and uploads, and log their removal."""
        for job in self.store.expire():
            self.files.remove(job)
        for upload in self.uploads.expire():
            self.store.say("server", "removed an expired upload", upload)


def open_service(settings: Settings) -> Service:
    """Open the files and the database, and create them where the data directory is new."""
    if not _has_data(settings):
        try:
            settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(settings, error) from None
    return _opened(settings, create=True)


def open_to_read(place: Place) -> Service:
    """Open a service for a command that only reads."""
    if not _has_data(place):
        raise ParameterError(
            Option("data_dir"), f"Expected the data directory of a service, got {place.folder}. Name another."
        )
    return _opened(Settings(**place.model_dump()), create=False)


def _has_data(place: Place) -> bool:
    """Return whether a folder is a data directory; raise if it has other contents or its database is missing."""
    try:
        names = {path.name for path in place.folder.iterdir()} - {"lost+found"} if place.folder.exists() else set()
    except OSError as error:
        raise _unusable(place, error) from None
    mark = "jobs.sqlite" if place.database_url is None else "jobs"
    if names and mark not in names:
        raise ParameterError(
            Option("data_dir"),
            f"Expected an empty folder or a data directory, got {place.folder} without {mark}. Name another folder, or "
            "restore it from a backup.",
        )
    return bool(names)


def _opened(settings: Settings, *, create: bool) -> Service:
    try:
        store = Store(open_database(settings.url), create=create)
    except sa.exc.DatabaseError:
        raise ParameterError(Option("data_dir"), "jobs.sqlite is not a database. Restore it from a backup.") from None
    files = Files(settings.folder, create=create)
    return Service(settings, files, store, Tokens(store, settings.limits), UploadFiles(files.root))


def _unusable(place: Place, error: OSError) -> OutputError:
    return OutputError(place.folder, f"the data directory cannot be used ({error.strerror}). Name another.")


SHARE_OF_MEMORY = 0.8
LEAST_MEMORY = 1 << 30


def default_memory(jobs: int, system: Path = Path("/")) -> int:
    """Return the memory limit of one of several jobs: a share of the memory, at least `LEAST_MEMORY`."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        total = 16 << 30
    return max(LEAST_MEMORY, int(SHARE_OF_MEMORY * min(total, *_cgroup_limits(system))) // max(1, jobs))


def _cgroup_limits(system: Path) -> list[int]:
    """Return the limits of memory, in bytes, of the control groups of this process (container, unit of systemd)."""
    limits = [sys.maxsize]
    with suppress(OSError):
        for line in (system / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            folder, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
            root = system / "sys/fs/cgroup" / folder
            at = root / group.lstrip("/")
            for level in (at, *at.parents):
                if level.is_relative_to(root):
                    with suppress(OSError, ValueError):  # "max", or a group that the container does not show
                        limits.append(int((level / name).read_text()))
    return limits
