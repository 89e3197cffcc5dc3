"""The queue of jobs. The row of a job decides; files follow.

A worker holds a job by a lease: a random word that it renews, and shows with every write. A worker that has lost its lease
cannot write, so each result is published once.

    queued ──▶ running ──▶ done ──▶ expired
       │  ◀──────┤ ├─────▶ failed
       └─────────┴─┴─────▶ cancelled
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from crowdveil.server.queue.database import Database, prepare
from crowdveil.server.queue.job import OPEN, NewJob, QueuedJob, json_object
from crowdveil.server.queue.leases import LeaseStore
from crowdveil.server.queue.schema import jobs, log, now
from crowdveil.server.sanitize import sendable

REMOVED = "the message was removed with the files of the job."


class Store(LeaseStore):
    """The table of jobs. An older database is upgraded first; without `create`, an empty one stays empty."""

    def __init__(self, database: Database, *, create: bool = True) -> None:
        super().__init__(database)
        prepare(database, create=create)

    # What callers of the service do

    def add(self, job: NewJob, waiting_most: int) -> bool:
        """Queue a job; return False if its owner has too many."""
        with self.db.transaction(alone=True) as do:
            mine = sa.select(sa.func.count().label("n")).where(jobs.c.owner == job.owner, jobs.c.state.in_(OPEN))
            if do(mine)[0]["n"] >= waiting_most:
                return False
            row = {n: json.dumps(value) if isinstance(value, dict) else value for n, value in vars(job).items()}
            by = row.pop("by") or job.owner
            row |= {"state": "queued", "created": now(), "review": "awaiting" if job.review else None}
            do(sa.insert(jobs).values(**row))
            self.record(do, by, f"put a job to {job.kind} into the queue", job.id)
            return True

    def get(self, job: str, owner: str | None = None) -> QueuedJob | None:
        """Return a job; with an owner, only if the job is theirs."""
        found = sa.select(jobs).where(jobs.c.id == job)
        rows = self.db.do(found if owner is None else found.where(jobs.c.owner == owner))
        return QueuedJob.of(rows[0]) if rows else None

    def of_owner(self, owner: str, limit: int = 100, before: str | None = None) -> list[QueuedJob]:
        """Return the newest jobs of an owner, or those before one of them."""
        found = sa.select(jobs).where(jobs.c.owner == owner)
        if before is not None:
            at = jobs.alias("at")
            place = sa.select(at.c.place).where(at.c.id == before, at.c.owner == owner).scalar_subquery()
            found = found.where(jobs.c.place < place)
        return [QueuedJob.of(row) for row in self.db.do(found.order_by(jobs.c.place.desc()).limit(limit))]

    def cancel(self, job: str, owner: str, by: str = "") -> QueuedJob | None:
        """Cancel a job, or remove the result of a finished one; return None if the job is another owner's."""
        theirs = (jobs.c.id == job, jobs.c.owner == owner)
        with self.db.transaction() as do:
            state = sa.case(
                (jobs.c.state.in_(OPEN), "cancelled"), (jobs.c.state == "done", "expired"), else_=jobs.c.state
            )
            ended = sa.func.coalesce(jobs.c.ended, now())
            do(sa.update(jobs).where(*theirs).values(state=state, lease=None, ended=ended, **_scrubbed()))
            rows = do(sa.select(jobs).where(*theirs))
            if rows:
                self.record(do, by or owner, "ended a job and removed its files", job)
            return QueuedJob.of(rows[0]) if rows else None

    # What reviewers do

    def awaiting(self, other_than: str, *, all_done: bool, limit: int = 1000) -> list[QueuedJob]:
        """Return finished jobs of others that await a decision, oldest first; with `all_done`, also those that were sent
        without a review."""
        open_ = jobs.c.review == "awaiting"
        waits = sa.or_(open_, jobs.c.review.is_(None)) if all_done else open_
        found = sa.select(jobs).where(jobs.c.state == "done", jobs.c.owner != other_than, waits)
        return [QueuedJob.of(row) for row in self.db.do(found.order_by(jobs.c.place).limit(limit))]

    def decide(self, job: str, reviewer: str, owner: str, *, approved: bool, comment: str) -> bool:
        """Record a review; return False if the result is gone, was decided before, or is the reviewer's own."""
        decision = "approved" if approved else "rejected"
        open_ = sa.or_(jobs.c.review == "awaiting", jobs.c.review.is_(None))
        change = (
            sa.update(jobs).where(jobs.c.id == job, jobs.c.state == "done", jobs.c.owner != owner, open_)
            .values(review=decision, reviewer=reviewer, reviewed=now(), comment=sendable(comment)).returning(jobs.c.id)
        )  # fmt: skip
        with self.db.transaction() as do:
            rows = do(change)
            if rows:
                self.record(do, reviewer, f"{decision} a result", job)
            return bool(rows)

    # Figures

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many jobs there are of each kind and state."""
        found = sa.select(jobs.c.kind, jobs.c.state, sa.func.count().label("n")).group_by(jobs.c.kind, jobs.c.state)
        return {(row["kind"], row["state"]): row["n"] for row in self.db.do(found)}

    def queue_age(self) -> float:
        """Return how many seconds the job that waits longest has waited; 0 where none waits."""
        rows = self.db.do(sa.select((now() - sa.func.min(jobs.c.created)).label("age")).where(jobs.c.state == "queued"))
        return max(0.0, rows[0]["age"] or 0.0)

    # Maintenance

    def expire(self) -> list[str]:
        """Expire old results, and return the ids of their jobs."""
        over = (jobs.c.state == "done", jobs.c.expires < now())
        with self.db.transaction() as do:
            rows = do(sa.update(jobs).where(*over).values(state="expired", **_scrubbed()).returning(jobs.c.id))
            old = (jobs.c.state.in_(("failed", "cancelled", "expired")), jobs.c.ended + jobs.c.keep_s < now())
            do(sa.update(jobs).where(*old, jobs.c.files != "{}").values(**_scrubbed()))
            for row in rows:
                self.record(do, "server", "removed a result whose time was over", row["id"])
        return [row["id"] for row in rows]

    def forget(self, after_s: float) -> None:
        """Remove rows of jobs that ended long ago, and old lines of the log."""
        ended = jobs.c.state.in_(("failed", "cancelled", "expired"))
        self.db.do(sa.delete(jobs).where(ended, jobs.c.ended < now() - after_s))
        self.db.do(sa.delete(log).where(log.c.at < now() - after_s))

    def state_of(self, job: str) -> tuple[str, dict[str, Any] | None] | None:
        """Return the state and the result of a job."""
        rows = self.db.do(sa.select(jobs.c.state, jobs.c.result).where(jobs.c.id == job))
        return (rows[0]["state"], json_object(rows[0]["result"])) if rows else None


def _scrubbed() -> dict[str, Any]:
    """Return the update that removes file names, parameters and messages from the row of a job."""
    message = sa.case((jobs.c.error.is_(None), None), else_=REMOVED)
    return {"parameters": "{}", "files": "{}", "result": None, "error": message, "comment": None}
