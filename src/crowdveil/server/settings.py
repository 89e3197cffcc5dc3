"""The settings of the service: one model, from which the options, the environment and the docs are made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from crowdveil.engine.threads import processors
from crowdveil.errors import Text
from crowdveil.params import Params
from crowdveil.server.client import is_here

PREVIEWS = 2
"""Previews at once; others wait."""
SCOPES = {
    "submit": "submit jobs, preview files, follow and end its jobs",
    "read": "follow its jobs, and fetch their results and reports",
    "review": "read reports of others' jobs, and approve or reject their results",
    "admin": "list and revoke tokens",
    "metrics": "read /metrics",
}
USUAL = ("submit", "read")
"""Scopes of a token unless others are named."""


def variable(setting: str) -> str:
    """Return the variable of the environment for a setting.

    Not CROWDVEIL_PORT: Kubernetes sets it to tcp://… for a Service named crowdveil.
    """
    return "CROWDVEIL_LISTEN_PORT" if setting == "port" else f"CROWDVEIL_{setting.upper()}"


def default_folder() -> Path:
    """Return the default data directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "crowdveil"


class Limits(Params):
    """The limits of one token."""

    max_upload_mib: int = Field(2048, ge=1)
    """Size of all files of one request together, packed and unpacked, in MiB."""
    max_running: int = Field(4, ge=1)
    """Jobs that run at once; more wait."""
    max_waiting: int = Field(1000, ge=1)
    """Jobs that run or wait; more are refused."""
    max_seconds: int = Field(3600, ge=1)
    """Time that a job may run, in seconds."""

    @property
    def upload_bytes(self) -> int:
        """Return the size of an upload in bytes."""
        return self.max_upload_mib << 20


class Place(Params):
    """The location of the service's data, for the server, its workers and the commands on tokens."""

    data_dir: str | None = Field(None, json_schema_extra={"metavar": "FOLDER"})
    """Folder of uploads and results, which all machines share. [~/.local/state/crowdveil]"""
    database_url: str | None = Field(None, json_schema_extra={"metavar": "URL"})
    """Database of several machines, postgresql://… [a SQLite file in the data directory]"""

    @property
    def folder(self) -> Path:
        """Return the data directory."""
        return (Path(self.data_dir) if self.data_dir else default_folder()).absolute()

    @property
    def url(self) -> str:
        """Return the address of the database."""
        return self.database_url or f"sqlite:///{self.folder / 'jobs.sqlite'}"


class WorkerSettings(Place):
    """How jobs are run on one machine."""

    workers: int | None = Field(None, ge=0, le=256)
    """Jobs that run at once on this machine. [one for each core]"""
    max_memory_mib: int | None = Field(None, ge=64)
    """Memory of one job in MiB. [80 % of the memory of the machine, container or unit, shared by all that run at once]"""
    log_format: Literal["text", "json"] = "text"
    """Lines on standard error: text (warnings), or JSON with every request."""

    @property
    def jobs_at_once(self) -> int:
        """Return how many jobs run at once."""
        return processors() if self.workers is None else self.workers


class Settings(WorkerSettings, Limits):
    """The settings of the service. Limits are those of tokens that have none of their own."""

    host: str = Field("127.0.0.1", json_schema_extra={"metavar": "ADDRESS"})
    """Address to listen on."""
    port: int = Field(8000, ge=0, le=65535)
    """Port to listen on."""
    no_auth: bool = False
    """Admit everybody on this machine without a token, as clients of mdl-anonymizer require; on a loopback address only."""
    four_eyes: bool = False
    """Release a result only after another token (scope review) approved its report."""
    keep_hours: float = Field(24.0, gt=0)
    """Hours that results are kept."""
    min_free_mib: int = Field(256, ge=0)
    """Free MiB on the disk below which uploads are refused, and /ready answers 503."""

    @model_validator(mode="after")
    def _controls_access(self) -> Self:
        if self.no_auth and not self.is_local:
            raise ValueError(Text("a loopback address with {no_auth}, such as 127.0.0.1"))
        if self.no_auth and self.four_eyes:
            raise ValueError(Text("tokens with {four_eyes}, since another token approves"), Text("Leave out {no_auth}"))
        return self

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach the service."""
        return is_here(self.host)

    @property
    def limits(self) -> Limits:
        """Return the limits of tokens that have none of their own."""
        return Limits(**{name: getattr(self, name) for name in Limits.model_fields})

    @property
    def keep_s(self) -> float:
        """Return the seconds that results are kept."""
        return 3600 * self.keep_hours

    @property
    def min_free_bytes(self) -> int:
        """Return the free bytes below which uploads are refused."""
        return self.min_free_mib << 20
