"""Figures of the queue, for metrics."""

from __future__ import annotations

import sqlalchemy as sa

from crowdveil.server.queue.database import Row
from crowdveil.server.queue.log_store import LogStore
from crowdveil.server.queue.schema import jobs, now


class FigureStore(LogStore):
    """The table of jobs in counts and times."""

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        rows = self.db.do(sa.select(jobs.c.state, sa.func.count().label("n")).group_by(jobs.c.state))
        return {row["state"]: row["n"] for row in rows}

    def counts_by_kind(self) -> dict[tuple[str, str], int]:
        """Return how many jobs there are of each kind and state."""
        found = sa.select(jobs.c.kind, jobs.c.state, sa.func.count().label("n")).group_by(jobs.c.kind, jobs.c.state)
        return {(row["kind"], row["state"]): row["n"] for row in self.db.do(found)}

    def queue_age(self) -> float:
        """Return how many seconds the job that waits longest has waited; 0 where none waits."""
        rows = self.db.do(sa.select((now() - sa.func.min(jobs.c.created)).label("age")).where(jobs.c.state == "queued"))
        return max(0.0, rows[0]["age"] or 0.0)

    def last_end(self) -> float:
        """Return when the last job ended, in seconds since 1970; 0 where none did."""
        return self.db.do(sa.select(sa.func.max(jobs.c.ended).label("ended")))[0]["ended"] or 0.0

    def ended_since(self, since: float) -> list[Row]:
        """Return id, kind, state, start and end of jobs that ran and ended since a time, in the order of their ends."""
        state = sa.case((jobs.c.state == "expired", "done"), else_=jobs.c.state).label("state")
        found = sa.select(jobs.c.id, jobs.c.kind, state, jobs.c.started, jobs.c.ended)
        return self.db.do(found.where(jobs.c.ended >= since, jobs.c.started.is_not(None)).order_by(jobs.c.ended))
