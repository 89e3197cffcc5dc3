"""The audit log of the service: a table that is only appended to."""

from __future__ import annotations

import sqlalchemy as sa

from crowdveil.server.queue.database import Database, Do, Row
from crowdveil.server.queue.schema import log, now


class LogStore:
    """The table of the log."""

    def __init__(self, database: Database) -> None:
        self.db = database

    def say(self, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log: who did what, and never anything of the data."""
        self.record(self.db.do, who, what, job)

    def log(self) -> list[Row]:
        """Return the log, oldest first."""
        return self.db.do(sa.select(log).order_by(log.c.id))

    def record(self, do: Do, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log in a transaction."""
        do(sa.insert(log).values(at=now(), who=who, what=what, job=job))
