"""Tokens: their secrets (only hashes are stored), scopes, limits and sources."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from crowdveil.errors import Option, ParameterError
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.schema import now, tokens
from crowdveil.server.queue.store import Store
from crowdveil.server.settings import SCOPES, USUAL, Limits

PREFIX = "cv_"
LOCAL = "local"
"""The owner of all jobs of this machine with --no-auth."""
SEEN_EVERY_S = 60.0
"""Seconds between two updates of the last use of a token."""
_UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_LONGEST_S = 100 * 366 * 86_400


@dataclass(frozen=True)
class Caller:
    """A user of the service.

    Attributes
    ----------
    id
        The owner of its jobs: the token itself, or the token whose jobs it shares.
    name, token
        The name and the id of the token, as in the log.
    scopes
        Its rights.
    sources
        Sources of data whose ledgers its releases are audited against.
    """

    id: str
    name: str
    limits: Limits = field(default_factory=Limits)
    scopes: frozenset[str] = frozenset(USUAL)
    token: str = ""
    sources: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """Return the id for the log."""
        return self.token or self.id


class ExpiredError(ParameterError):
    """The token has expired."""


class Tokens:
    """The table of tokens."""

    def __init__(self, store: Store, default: Limits | None = None) -> None:
        self.store, self.default = store, default or Limits()
        self._seen: dict[str, float] = {}

    def create(
        self,
        name: str,
        *,
        scopes: tuple[str, ...] = USUAL,
        expires_s: float | None = None,
        jobs_of: str | None = None,
        sources: tuple[str, ...] = (),
        **limits: Any,
    ) -> str:
        """Create a token and return it once; only its hash is stored. With `jobs_of`, it shares the jobs of another token.

        Releases of flows and heat maps of a token with `sources` are audited against the ledger of one of them.
        """
        if not name or len(name) > 100 or not name.isprintable():
            raise ParameterError(Option("name"), "Expected up to 100 printable characters.")
        Limits.checked(limits)
        if not scopes or not set(scopes) <= set(SCOPES):
            raise ParameterError(Option("scope"), f"Expected one or more of {', '.join(SCOPES)}.")
        rows = [row for row in self.all() if row["revoked"] is None]
        if any(row["name"] == name for row in rows):
            raise ParameterError(
                Option("name"), "there is a token of that name. Revoke it first, or choose another name."
            )
        other = next((row for row in rows if row["name"] == jobs_of), None)
        if jobs_of is not None and other is None:
            raise ParameterError(
                Option("jobs_of"), "there is no such token, or it was revoked. See crowdveil server token list."
            )
        secret = _secret()
        row = sa.insert(tokens).values(
            id=secrets.token_hex(8), name=name, hash=hashed(secret), limits=json.dumps(limits), created=now(),
            scopes=" ".join(s for s in SCOPES if s in scopes), expires=_after(expires_s),
            owner=None if other is None else other["owner"] or other["id"], sources=" ".join(sources),
        )  # fmt: skip
        with self.store.db.transaction() as do:
            do(row)
            self.store.record(do, "operator", f"made the token {name}")
        return secret

    def revoke(self, name: str, by: str = "operator") -> None:
        """Revoke a token. No other token can see its jobs."""
        mine = (tokens.c.name == name, tokens.c.revoked.is_(None))
        with self.store.db.transaction() as do:
            rows = do(sa.update(tokens).where(*mine).values(revoked=now()).returning(tokens.c.id))
            if not rows:
                raise ParameterError(
                    Option("name"), "there is no such token, or it was revoked before. See crowdveil server token list."
                )
            self.store.record(do, by, f"revoked the token {name}")

    def all(self) -> list[dict[str, Any]]:
        """Return all tokens without their hashes, oldest first."""
        columns = [c for c in tokens.c if c.name != "hash"]
        return self.store.db.do(sa.select(*columns).order_by(tokens.c.created))

    def any(self) -> bool:
        """Return whether there ever was a token."""
        return bool(self.store.db.do(sa.select(tokens.c.id).limit(1)))

    def name_of(self, owner: str | None) -> str | None:
        """Return the name of a token."""
        rows = [] if owner is None else self.store.db.do(sa.select(tokens.c.name).where(tokens.c.id == owner))
        return rows[0]["name"] if rows else owner

    def caller(self, token: str) -> Caller | None:
        """Return the caller of a token, or None if the token is unknown; raise if it has expired."""
        # Looking up a hash takes a time that does not depend on the token.
        digest = hashed(token)
        over = sa.func.coalesce(tokens.c.expires < now(), sa.false()).label("over")
        columns = (tokens.c.id, tokens.c.name, tokens.c.limits, tokens.c.scopes, tokens.c.owner, tokens.c.sources, over)
        good = tokens.c.revoked.is_(None)
        rows = self.store.db.do(sa.select(*columns).where(tokens.c.hash == digest, good))
        if not rows:
            return None
        row = rows[0]
        if row["over"]:
            raise ExpiredError("the token has expired. Ask the operator of the server for a new one.")
        self._note_use(row["id"])
        limits = self.default.model_copy(update=json.loads(row["limits"]))
        scopes = frozenset(row["scopes"].split())
        sources = tuple(row["sources"].split())
        return Caller(row["owner"] or row["id"], row["name"], limits, scopes, row["id"], sources)

    def _note_use(self, token: str) -> None:
        """Record that a token was used, at most once a minute."""
        at, before = time.monotonic(), self._seen.get(token)
        if before is not None and at - before < SEEN_EVERY_S:
            return
        self._seen[token] = at
        late = sa.or_(tokens.c.last_used.is_(None), tokens.c.last_used < now() - SEEN_EVERY_S)
        with suppress(DatabaseUnavailableError):  # a full disk must not block requests that only read
            self.store.db.do(sa.update(tokens).where(tokens.c.id == token, late).values(last_used=now()))

    def local(self) -> Caller:
        """Return the caller of this machine, who has all rights except review and administration."""
        return Caller(LOCAL, LOCAL, self.default, frozenset({*USUAL, "metrics"}))


def length_s(text: str, name: str) -> float:
    """Return the seconds of a duration such as 90d, 12h, 4w or 30min."""
    match = re.fullmatch(r"(\d{1,6})\s*(min|h|d|w)", text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else -1
    if not 0 <= seconds <= _LONGEST_S:
        raise ParameterError(Option(name), "Expected a duration such as 90d, 12h, 4w or 30min.")
    return float(seconds)


def hashed(token: str) -> str:
    """Return the stored hash of a token. With 256 random bits, a plain hash cannot be inverted."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def _after(seconds: float | None) -> Any:
    return None if seconds is None else now() + seconds
