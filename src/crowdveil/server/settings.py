"""How a service is set up; what the command line gives, and what every part of it reads."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from crowdveil.server.database import open_database
from crowdveil.server.files import Files
from crowdveil.server.store import Store
from crowdveil.server.tokens import Limits, Tokens


def default_folder() -> Path:
    """Where jobs lie unless somebody says otherwise."""
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
    forget_s
        How long the row of a job and the log are kept.
    lease_s
        How long a worker may be silent before its job is given to another.
    memory_bytes
        Memory that a job may hold; None for as much as there is.
    require_sandbox
        Whether to refuse to run where the kernel cannot confine what opens uploads.
    """

    data: Path
    database_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    limits: Limits = field(default_factory=Limits)
    keep_s: float = 24 * 3600.0
    forget_s: float = 90 * 86_400.0
    lease_s: float = 15.0
    memory_bytes: int | None = None
    require_sandbox: bool = False

    @property
    def url(self) -> str:
        """The address of the data base."""
        return self.database_url or f"sqlite:///{self.data / 'jobs.sqlite'}"

    @property
    def is_local(self) -> bool:
        """Whether nobody but this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def open(self) -> Service:
        """Open the files and the data base."""
        files = Files(self.data)
        if self.database_url is None:
            (self.data / "jobs.sqlite").touch(mode=0o600)
        store = Store(open_database(self.url))
        return Service(self, files, store, Tokens(store, self.limits))


@dataclass(frozen=True)
class Service:
    """A service that is open: its files, its jobs, and who may use it."""

    settings: Settings
    files: Files
    store: Store
    tokens: Tokens

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.db.close()

    def tidy(self) -> None:
        """Give jobs that nobody holds back to the queue, and remove what nobody needs any more."""
        self.store.take_back()
        for job in self.store.expire():
            self.files.remove(job)
        self.files.sweep(self.store)
        self.store.forget(self.settings.forget_s)
