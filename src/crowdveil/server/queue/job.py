"""Jobs as rows of the database."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from crowdveil.server.queue.database import Row
from crowdveil.server.sanitize import sendable

STATES = ("queued", "running", "done", "failed", "cancelled", "expired")
OPEN = ("queued", "running")


@dataclass(frozen=True)
class QueuedJob:
    """A row of jobs."""

    id: str
    owner: str
    kind: str
    name: str
    parameters: dict[str, Any]
    files: dict[str, str]
    limits: dict[str, Any]
    state: str
    created: float
    keep_s: float
    started: float | None = None
    ended: float | None = None
    expires: float | None = None
    lease: str | None = None
    stage: str | None = None
    done: int = 0
    total: int = 0
    runs: int = 0
    error_code: str | None = None
    error: str | None = None
    result: dict[str, Any] | None = None
    review: str | None = None
    reviewer: str | None = None
    reviewed: float | None = None
    comment: str | None = None

    @staticmethod
    def of(row: Row) -> QueuedJob:
        """Read a job from its row. This never fails, so that one bad row does not hide the others."""
        known = {name: row[name] for name in QueuedJob.__dataclass_fields__}
        for name in ("parameters", "files", "limits"):
            known[name] = json_object(known[name]) or {}
        return QueuedJob(**known | {"result": json_object(known["result"]), "error": sendable(known["error"]),
                              "done": row["done"] or 0, "total": row["total"] or 0})  # fmt: skip


@dataclass(frozen=True)
class NewJob:
    """A new job: `review` says whether its result must be approved, and `by` is
    the token that sent it, where that is not its owner."""

    id: str
    owner: str
    kind: str
    name: str
    parameters: dict[str, Any]
    files: dict[str, str]
    limits: dict[str, Any] = field(default_factory=dict)
    max_running: int = 4
    keep_s: float = 86_400.0
    review: bool = False
    by: str = ""


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return secrets.token_hex(16)


def json_object(text: str | None) -> dict[str, Any] | None:
    """Return a JSON object from a row, or None if it is missing or broken."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    return sendable(found) if isinstance(found, dict) else None
