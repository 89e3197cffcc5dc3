"""The audit log of the service: lines that are a chain of hashes."""

from __future__ import annotations

import sqlalchemy as sa

from crowdveil.server import audit
from crowdveil.server.queue.database import Database, Do, Row
from crowdveil.server.queue.schema import log, now


class LogStore:
    """The table of the log."""

    def __init__(self, database: Database) -> None:
        self.db = database

    def say(self, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log: who did what, and never anything of the data."""
        with self.db.transaction() as do:
            self.record(do, who, what, job)

    def log(self) -> list[Row]:
        """The log, oldest first."""
        return self.db.do(sa.select(log).order_by(log.c.id))

    def record(self, do: Do, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log in a transaction."""
        self.db.lock(do)  # lines are a chain
        last = do(sa.select(log.c.hash).order_by(log.c.id.desc()).limit(1))
        at = round(do(sa.select(now().label("at")))[0]["at"], 3)
        previous = (last[0]["hash"] if last else None) or audit.START
        link = audit.hash_of(previous, audit.time_text(at), who, what, job)
        do(sa.insert(log).values(at=at, who=who, what=what, job=job, previous=previous, hash=link))
