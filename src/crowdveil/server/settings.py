"""How a service is set up; what the command line gives, and what every part of it reads."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from crowdveil.engine.threads import processors
from crowdveil.errors import Option, OutputError, ParameterError
from crowdveil.remote import is_here
from crowdveil.server.audit import Refusals
from crowdveil.server.queue import data_dir
from crowdveil.server.queue.database import DatabaseUnavailableError, open_database
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.job import QueuedJob
from crowdveil.server.queue.store import Store
from crowdveil.server.queue.upload_files import UploadFiles
from crowdveil.server.tokens import Limits, Tokens

PREVIEWS = 2
"""Previews at once; others wait."""
FORGET_S = 90 * 86_400.0
"""How long the row of a job and the log are kept."""


def default_folder() -> Path:
    """Return the default data directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "crowdveil"


@dataclass(frozen=True)
class Settings:
    """A service. Each setting but the limits is an option of `crowdveil serve`: the string below it is the help of the option.

    Metadata say what the option has of its own: a name, a unit (how many of ours), bounds, a placeholder, a variable of the
    environment.
    """

    data: Path = field(metadata={"option": "--data-dir", "metavar": "FOLDER", "envvar": "CROWDVEIL_DATA_DIR"})
    """Uploads and results; all machines must share it. [~/.local/state/crowdveil]"""
    database_url: str | None = field(default=None, metadata={"metavar": "URL", "envvar": "CROWDVEIL_DATABASE_URL"})
    """Store and queue in PostgreSQL, for several machines. [a SQLite file in the data directory]"""
    host: str = "127.0.0.1"
    """Address to listen on; others than this machine need tokens. [127.0.0.1]"""
    port: int = field(default=8000, metadata={"min": 0, "max": 65535})
    """Port to listen on. [8000]"""
    workers: int = field(default=processors(), metadata={"min": 0, "max": 256})
    """Jobs that run at once on this machine. [one for each core]"""
    keep_s: float = field(
        default=24 * 3600.0, metadata={"option": "--keep-hours", "min": 0, "min_open": True, "unit": 3600}
    )
    """Hours that results are kept. [24]"""
    lease_s: float = field(default=15.0, metadata={"option": "--lease", "min": 0.5, "metavar": "SECONDS"})
    """Silence after which a worker is taken for dead, and its job given to another. [15]"""
    memory_bytes: int | None = field(default=None, metadata={"option": "--max-memory-mib", "min": 64, "unit": 1 << 20})
    """Memory that one job may hold. [80 % of the memory of the machine, container or unit, over all that run at once]"""
    socket: Path | None = field(default=None, metadata={"metavar": "PATH"})
    """Unix socket to listen on, in place of an address."""
    socket_mode: str = field(default="600", metadata={"metavar": "MODE"})
    """Who may use the socket, as for chmod. [600]"""
    quarantine_s: float = field(
        default=7 * 86_400.0, metadata={"option": "--quarantine-days", "min": 0, "unit": 86_400}
    )
    """Days that folders of unknown jobs are kept in quarantine. [7]"""
    min_free_bytes: int = field(default=256 << 20, metadata={"option": "--min-free-mib", "min": 0, "unit": 1 << 20})
    """Free MiB on the disk below which uploads are refused, and /ready answers 503. [256]"""
    metrics_token: str | None = field(default=None, metadata={"metavar": "TOKEN", "envvar": "CROWDVEIL_METRICS_TOKEN"})
    """Opens /metrics for other machines; better as CROWDVEIL_METRICS_TOKEN. [this machine alone]"""
    accept_new_database: bool = False
    """Start with a database that does not belong to the data directory; its files go to quarantine."""
    log_format: str = field(default="text", metadata={"choices": ("text", "json")})
    """Lines on standard error: text (warnings), or JSON with every request. [text]"""
    four_eyes: bool = False
    """Give a result out only after another token (scope review) approved its report."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not re.fullmatch("0?[0-7]{3}", self.socket_mode):
            raise ParameterError(Option("socket_mode"), "wanted three digits as for chmod, such as 660.")

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.database_url or f"sqlite:///{self.data / 'jobs.sqlite'}"

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach it."""
        return self.socket is not None or is_here(self.host)

    def open(self, *, accept_new_database: bool = False) -> Service:
        """Open the files and the database, and create them where the data directory is new."""
        own = self.database_url is None
        with data_dir.held(self.data):
            marker = data_dir.check_folder(self.data, own_database=own, accept_new_database=accept_new_database)
            store = Store(open_database(self.url))
            data_dir.bind(self.data, marker, store, accept_new_database=accept_new_database)
            files = Files(self.data)
        return self._service(files, store)

    def open_to_read(self) -> Service:
        """Open them for a command that only reads: nothing is made or changed."""
        own = self.database_url is None
        if not self.data.is_dir() or (
            data_dir.check_folder(self.data, own_database=own) is None and data_dir.is_new(self.data)
        ):
            raise ParameterError(
                Option("data_dir"), f"{self.data} is no data directory of Crowdveil; name the one of the service."
            )
        return self._service(Files(self.data, create=False), Store(open_database(self.url), create=False))

    def _service(self, files: Files, store: Store) -> Service:
        uploads = UploadFiles(files.root)
        return Service(self, files, store, Tokens(store, self.limits), uploads)


@dataclass(eq=False)
class Service:
    """A service that is open: its files, its jobs, and who may use it."""

    settings: Settings
    files: Files
    store: Store
    tokens: Tokens
    uploads: UploadFiles
    had_tokens: bool = False
    """Whether it is known already that requests need a token."""

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.db.close()

    @cached_property
    def previews(self) -> asyncio.Semaphore:
        """Places for previews, which wait for one."""
        return asyncio.Semaphore(PREVIEWS)

    def has_room(self, size: int = 0) -> bool:
        """Return whether the disk has space for a file of some bytes."""
        return shutil.disk_usage(self.files.root).free >= self.settings.min_free_bytes + size

    @cached_property
    def refusals(self) -> Refusals:
        """Refused requests, for the audit log."""
        return Refusals(self.store.say)

    def needs_tokens(self) -> bool:
        """Return whether requests need a token: there is one, or ever was one in this data directory."""
        if self.had_tokens:
            return True
        marker = data_dir.read_marker(self.files.root)
        if (marker is not None and marker.tokens) or self.tokens.any():
            with suppress(OutputError):  # a disk that is full; the next start records it
                data_dir.note_tokens(self.files.root)
            self.had_tokens = True
        return self.had_tokens

    def delete(self, job: str, owner: str, by: str = "") -> QueuedJob | None:
        """End a job of an owner and remove its files; None if it is not theirs."""
        ended = self.store.cancel(job, owner, by)
        if ended is not None:
            self.files.remove(job)
        return ended

    def tidy(self, *, purge: bool = False) -> None:
        """Return jobs without a lease to the queue, and remove what is no longer needed.

        `purge` removes old folders from the quarantine too. One step that fails does not keep the others from being done.
        """
        steps: list[Callable[[], object]] = [
            self._expire, self._expire_uploads, self.store.take_back, lambda: self.files.sweep(self.store),
            lambda: self.store.forget(FORGET_S), self.refusals.flush,
        ]  # fmt: skip
        if purge:
            steps.append(lambda: self.files.purge(self.settings.quarantine_s))
        failed: Exception | None = None
        for step in steps:
            try:
                step()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _expire(self) -> None:
        """Remove results whose time is over."""
        for job in self.store.expire():
            self.files.remove(job)

    def _expire_uploads(self) -> None:
        """Remove uploads that nobody used for a while, and write it into the log."""
        for upload in self.uploads.expire():
            with suppress(DatabaseUnavailableError):  # a full disk: the file is gone all the same
                self.store.say("server", "removed an upload whose time was over", upload)
