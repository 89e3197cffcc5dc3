"""Who may use the service: tokens, of which only a hash is kept, and what each may do."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from crowdveil.errors import ParameterError
from crowdveil.params import Params
from crowdveil.server.store import Store

PREFIX = "cv_"
LOCAL = "local"
"""Who everybody on this machine is, where there are no tokens."""


class Limits(Params):
    """What one token may do."""

    max_upload_mib: int = Field(2048, ge=1)
    """Size of all files of one request together, and of what is unpacked of them, in MiB."""
    max_rows: int = Field(100_000_000, ge=1)
    """Rows of a file."""
    max_running: int = Field(4, ge=1)
    """Jobs that run at once; more wait."""
    max_waiting: int = Field(1000, ge=1)
    """Jobs that run or wait; more are refused."""
    max_seconds: int = Field(3600, ge=1)
    """Time that a job may run, in seconds."""

    @property
    def upload_bytes(self) -> int:
        """The size in bytes."""
        return self.max_upload_mib << 20


@dataclass(frozen=True)
class Caller:
    """Somebody who may use the service."""

    id: str
    name: str
    limits: Limits = field(default_factory=Limits)


class Tokens:
    """The table of tokens."""

    def __init__(self, store: Store, default: Limits | None = None) -> None:
        self.store, self.default = store, default or Limits()

    def create(self, name: str, **limits: Any) -> str:
        """Make a token; it is returned once, and only its hash is kept."""
        if not name or len(name) > 100 or not name.isprintable():
            raise ParameterError("name: wanted up to 100 printable signs.")
        Limits.checked(limits)
        if any(row["name"] == name and row["revoked"] is None for row in self.all()):
            raise ParameterError("name: there is a token of that name; revoke it first, or take another name.")
        token = PREFIX + secrets.token_urlsafe(32)
        with self.store.db.transaction() as do:
            do(
                "INSERT INTO tokens (id, name, hash, limits, created) VALUES (?, ?, ?, ?, {now})",
                secrets.token_hex(8), name, hashed(token), json.dumps(limits),
            )  # fmt: skip
            self.store.record(do, "operator", f"made the token {name}")
        return token

    def revoke(self, name: str) -> None:
        """Take a token's rights away; its jobs stay its own, and nobody can see them."""
        with self.store.db.transaction() as do:
            rows = do("UPDATE tokens SET revoked = {now} WHERE name = ? AND revoked IS NULL RETURNING id", name)
            if not rows:
                raise ParameterError(
                    "name: there is no such token, or it was revoked before; see crowdveil token list."
                )
            self.store.record(do, "operator", f"revoked the token {name}")

    def all(self) -> list[dict[str, Any]]:
        """Tokens without their hashes, oldest first."""
        return self.store.db.do("SELECT id, name, limits, created, revoked FROM tokens ORDER BY created")

    def any(self) -> bool:
        """Whether there ever was one: from then on nobody comes in without."""
        return bool(self.store.db.do("SELECT id FROM tokens LIMIT 1"))

    def caller(self, token: str) -> Caller | None:
        """Whose token it is, None if it is nobody's."""
        # Looked up by hash: how long that takes tells nothing of a token.
        rows = self.store.db.do("SELECT id, name, limits FROM tokens WHERE hash = ? AND revoked IS NULL", hashed(token))
        if not rows:
            return None
        given = json.loads(rows[0]["limits"])
        return Caller(rows[0]["id"], rows[0]["name"], self.default.model_copy(update=given))

    def local(self) -> Caller:
        """Everybody on this machine."""
        return Caller(LOCAL, LOCAL, self.default)


def hashed(token: str) -> str:
    """What is kept of a token. It has 256 random bits, so that a plain hash cannot be turned round."""
    return hashlib.sha256(token.encode()).hexdigest()
