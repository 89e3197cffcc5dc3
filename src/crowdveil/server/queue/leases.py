"""Leases: a worker claims a job, renews its lease while it works, and writes only while it holds it.

Owners of queued jobs take turns, so that one with many jobs does not hold up the others. Next is the oldest job of the owner with
the fewest jobs running; among equals, of the one whose last turn is longest ago. So each owner gets an equal share of the
workers, an owner without a running job waits at most for one turn of every other, and none waits forever.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

import sqlalchemy as sa

from crowdveil.server.queue.database import Database, Do, Row
from crowdveil.server.queue.job import QueuedJob
from crowdveil.server.queue.schema import jobs, log, now
from crowdveil.server.sanitize import sendable

CRASHES_MOST = 2
"""Times that a job may end the process that runs it, or break its worker."""
LOST_MOST = 10
"""Times that a worker may vanish with a job.

More than `CRASHES_MOST`, since the job is not the cause: its process is confined, can send no signal, and is the first to be
ended when memory is short. What ends a worker comes from outside: an operator, an upgrade, a machine that fails."""

CRASHED = "the job ended the process that ran it twice{why}; give it less data, or other parameters."
LOST = f"the job's worker vanished {LOST_MOST} times; ask the operator of the server."


class LeaseStore:
    """The table of jobs as workers change it, and the audit log, a table that is only appended to."""

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

    def claim(self, worker: str, lease_s: float) -> QueuedJob | None:
        """Claim the next job."""
        if not self.db.do(sa.select(jobs.c.id).where(jobs.c.state == "queued").limit(1)):
            return None  # most of the time, and without a lock
        change = (
            sa.update(jobs).where(jobs.c.id == next_job().scalar_subquery())
            .values(
                state="running", lease=secrets.token_hex(16), lease_until=now() + lease_s, worker=worker, claimed=now(),
                started=sa.func.coalesce(jobs.c.started, now()), stage="starting", done=0, total=0, runs=jobs.c.runs + 1,
            ).returning(jobs)
        )  # fmt: skip
        with self.db.transaction(alone=True) as do:
            rows = do(change)
            return QueuedJob.of(rows[0]) if rows else None

    def holds(self, job: QueuedJob) -> bool:
        """Return whether the worker still holds the job."""
        return bool(self.db.do(sa.select(jobs.c.id).where(jobs.c.id == job.id, jobs.c.lease == job.lease)))

    def beat(self, job: QueuedJob, lease_s: float, stage: str, done: int, total: int) -> bool:
        """Extend the lease, and store the progress; False if the lease was lost."""
        return self._held(job, lease_until=now() + lease_s, stage=stage, done=done, total=total)

    def finish(self, job: QueuedJob, result: dict[str, Any]) -> bool:
        """Publish the result of a job; return False if the lease was lost."""
        return self._held(
            job, "finished a job", state="done", lease=None, ended=now(), expires=now() + jobs.c.keep_s,
            result=json.dumps(result),
        )  # fmt: skip

    def fail(self, job: QueuedJob, code: str, message: str) -> bool:
        """Fail a job with a message; return False if the lease was lost."""
        return self._held(
            job, f"failed a job ({code})", state="failed", lease=None, ended=now(), parameters="{}", error_code=code,
            error=sendable(message),
        )  # fmt: skip

    def crash(self, job: QueuedJob, why: str) -> bool:
        """Record that a job killed its process. It is retried, but not forever."""
        return self._held(job, "saw a job end its process", **_crashed(why))

    def give_back(self, job: QueuedJob) -> bool:
        """Requeue a job because its worker stops."""
        return self._held(job, state="queued", lease=None, runs=jobs.c.runs - 1, stage=None, done=0, total=0)

    def _held(self, job: QueuedJob, what: str = "", **values: Any) -> bool:
        """Change the row of a job if its worker still holds it."""
        mine = (jobs.c.id == job.id, jobs.c.lease == job.lease, jobs.c.state == "running")
        with self.db.transaction() as do:
            rows = do(sa.update(jobs).where(*mine).values(**values).returning(jobs.c.id))
            if rows and what:
                self.record(do, "worker", what, job.id)
            return bool(rows)

    def void(self, worker: str) -> None:
        """Void every lease of a dead worker."""
        held = (jobs.c.worker == worker, jobs.c.state == "running")
        self.db.do(sa.update(jobs).where(*held).values(lease_until=0.0))

    def holders(self) -> list[str]:
        """Return the workers that hold a job."""
        return [
            row["worker"] for row in self.db.do(sa.select(jobs.c.worker).distinct().where(jobs.c.state == "running"))
        ]

    def take_back(self) -> int:
        """Requeue jobs whose lease ran out, and return their number."""
        late = (jobs.c.state == "running", jobs.c.lease_until < now())
        if not self.db.do(sa.select(jobs.c.id).where(*late).limit(1)):
            return 0
        values = _again_unless(jobs.c.lost + 1 >= LOST_MOST, "lost", LOST)
        return len(self.db.do(sa.update(jobs).where(*late).values(lost=jobs.c.lost + 1, **values).returning(jobs.c.id)))


def next_job() -> sa.Select[Any]:
    """Return the query for the next job; owners at their limit of running jobs are skipped."""
    first = (
        sa.select(sa.func.min(jobs.c.place).label("place"), jobs.c.owner)
        .where(jobs.c.state == "queued").group_by(jobs.c.owner).subquery("first")
    )  # fmt: skip
    at, other = jobs.alias("j"), jobs.alias("r")
    running = (
        sa.select(sa.func.count()).select_from(other)
        .where(other.c.state == "running", other.c.owner == at.c.owner).correlate(at).scalar_subquery()
    )  # fmt: skip
    last = sa.select(sa.func.max(other.c.claimed)).where(other.c.owner == at.c.owner).correlate(at).scalar_subquery()
    return (
        sa.select(at.c.id).join(first, first.c.place == at.c.place).where(running < at.c.max_running)
        .order_by(running, sa.func.coalesce(last, 0.0), at.c.place).limit(1).with_for_update(of=at, skip_locked=True)
    )  # fmt: skip


def _crashed(why: str) -> dict[str, Any]:
    values = _again_unless(jobs.c.crashes + 1 >= CRASHES_MOST, "crashed", CRASHED.format(why=sendable(why)))
    return {"crashes": jobs.c.crashes + 1, **values}


def _again_unless(often: Any, code: str, sentence: str) -> dict[str, Any]:
    """Return the update that requeues a job, or fails it if that happened too often."""
    return {
        "lease": None, "stage": None, "done": 0, "total": 0,
        "state": sa.case((often, "failed"), else_="queued"),
        "ended": sa.case((often, now()), else_=jobs.c.ended),
        "error_code": sa.case((often, code), else_=None),
        "error": sa.case((often, sentence), else_=None),
        "parameters": sa.case((often, "{}"), else_=jobs.c.parameters),
    }  # fmt: skip
