"""How a service is set up; what the command line gives, and what every part of it reads."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from crowdveil.errors import Option, OutputError, ParameterError
from crowdveil.server.audit import Refusals
from crowdveil.server.limits import ClientLimits
from crowdveil.server.queue import data_dir
from crowdveil.server.queue.database import DatabaseUnavailableError, open_database
from crowdveil.server.queue.disk import DiskSpace
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.job import QueuedJob
from crowdveil.server.queue.store import Store
from crowdveil.server.queue.upload_files import UploadFiles
from crowdveil.server.quotas import DiskQuota, Previews, Rates
from crowdveil.server.tokens import Limits, Tokens


def default_folder() -> Path:
    """Return the default data directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "crowdveil"


@dataclass(frozen=True)
class Settings:
    """A service.

    Attributes
    ----------
    data
        The folder of uploads and results; all machines share it.
    database_url
        Of the store and the queue; a SQLite file in `data` without.
    host, port
        Where it listens.
    limits
        Of tokens that say nothing else.
    keep_s
        How long a result is kept.
    upload_s
        How long an upload is kept after its last use.
    forget_s
        How long the row of a job and the log are kept.
    lease_s
        How long a worker may be silent before its job is given to another.
    memory_bytes
        Memory that a job may hold; None for as much as there is.
    socket
        Path of a Unix socket to listen on in place of `host` and `port`.
    clients
        How long and how often a client may hold a connection.
    quarantine_s
        How long folders of unknown jobs are kept.
    min_free_bytes
        Free bytes on the disk below which uploads are refused.
    metrics_token
        Opens `/metrics` for other machines; None for this machine alone.
    disk_bytes
        Size of the files of all jobs together; 0 for as much as there is.
    previews
        Files that are looked at at once, of all tokens together; 0 for any number.
    four_eyes
        Whether a result is given out only after another token approved it.
    require_sandbox
        Whether to refuse to run where the kernel cannot confine what opens uploads.
    """

    data: Path
    database_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    limits: Limits = field(default_factory=Limits)
    keep_s: float = 24 * 3600.0
    upload_s: float = 3600.0
    forget_s: float = 90 * 86_400.0
    lease_s: float = 15.0
    memory_bytes: int | None = None
    socket: Path | None = None
    socket_mode: int = 0o600
    clients: ClientLimits = field(default_factory=ClientLimits)
    quarantine_s: float = 7 * 86_400.0
    min_free_bytes: int = 256 << 20
    metrics_token: str | None = None
    disk_bytes: int = 0
    previews: int = 2
    four_eyes: bool = False
    require_sandbox: bool = False

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.database_url or f"sqlite:///{self.data / 'jobs.sqlite'}"

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach it."""
        if self.socket is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def open(self, *, accept_new_database: bool = False, migrate: bool = False, backed_up: bool = False) -> Service:
        """Open the files and the database, and make them where the data directory is new.

        With `migrate`, a database of an older schema is migrated (see `migrate.prepare`).
        """
        own = self.database_url is None
        with data_dir.held(self.data):
            marker = data_dir.check_folder(self.data, own_database=own, accept_new_database=accept_new_database)
            if own:
                (self.data / data_dir.DATABASE).touch(mode=0o600)
            store = Store(open_database(self.url), migrate=migrate, backed_up=backed_up)
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
        uploads = UploadFiles(files.root, self.upload_s)
        quota, previews = DiskQuota(store, uploads, self.disk_bytes), Previews(self.previews)
        return Service(self, files, store, Tokens(store, self.limits), Rates(), previews, quota, uploads)


@dataclass(frozen=True)
class Service:
    """A service that is open: its files, its jobs, and who may use it."""

    settings: Settings
    files: Files
    store: Store
    tokens: Tokens
    rates: Rates
    previews: Previews
    quota: DiskQuota
    uploads: UploadFiles

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.db.close()

    @cached_property
    def space(self) -> DiskSpace:
        """The disk of the data directory."""
        return DiskSpace(self.files.root, self.settings.min_free_bytes)

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
            self._tokens_seen.append(True)
        return self.had_tokens

    @property
    def had_tokens(self) -> bool:
        """Whether it is known already that requests need a token; asks nothing."""
        return bool(self._tokens_seen)

    @cached_property
    def _tokens_seen(self) -> list[bool]:
        return []

    def delete(self, job: str, owner: str, by: str = "") -> QueuedJob | None:
        """End a job of an owner and remove its files, even where the disk is full; None if it is not theirs."""
        try:
            ended = self.space.writing(lambda: self.store.cancel(job, owner, by))
        except DatabaseUnavailableError:
            if not self.space.is_full() or self.store.get(job, owner) is None:
                raise
            self.files.remove(job)  # first the files, which frees space for the row
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
            lambda: self.store.forget(self.settings.forget_s), self.refusals.flush, self.space.keep_reserve,
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
        """Remove results whose time is over; where the disk is full, their files first."""
        try:
            ended = self.space.writing(self.store.expire)
        except DatabaseUnavailableError:
            if not self.space.is_full():
                raise
            for job in self.store.due():
                self.files.remove(job)
            ended = self.store.expire()
        for job in ended:
            self.files.remove(job)

    def _expire_uploads(self) -> None:
        """Remove uploads that nobody used for a while, and write it into the log."""
        for _owner, upload in self.uploads.expire():
            with suppress(DatabaseUnavailableError):  # a full disk: the file is gone all the same
                self.store.say("server", "removed an upload whose time was over", upload)
