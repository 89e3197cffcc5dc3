"""The queue of jobs. The row of a job decides; files follow.

A worker holds a job by a lease: a random word that it sends with every write and that expires unless renewed. A worker that has
lost its lease cannot write, so each result is published once.

    queued ──▶ running ──▶ done ──▶ expired
       │  ◀──────┤ ├─────▶ failed
       └─────────┴─┴─────▶ cancelled

Owners of queued jobs take turns, so an owner with many jobs does not block the others. The next job is the oldest one of the
owner with the fewest running jobs; of several such owners, the one whose last turn is longest ago. Each owner gets an equal share
of the workers, an owner without a running job waits at most for one turn of every other, and nobody waits forever.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from crowdveil.errors import Text, parts_of, text_of
from crowdveil.server.queue.database import Database, Do, Row, prepare, sendable
from crowdveil.server.queue.schema import jobs, log, now

STATES = ("queued", "running", "done", "failed", "cancelled", "expired")
OPEN = ("queued", "running")
CRASHES_MOST = 2
"""Times that a job may end the process that runs it, or break its worker."""
LOST_MOST = 10
"""Times that a worker may vanish with a job.

More than `CRASHES_MOST`, since the job is not the cause: its process is confined, can send no signal, and is the first that the
kernel ends when memory is short. A worker is ended from outside: by an operator, an upgrade, or a failing machine."""
CRASHED = "the job crashed its process twice{why}. Give it less data, or other parameters."
LOST = f"the job's worker vanished {LOST_MOST} times. Ask the operator of the server."
REVIEWS_MOST = 1000
"""Results that a list of reviews shows."""
REMOVED = "the message was removed with the files of the job."


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
    error: Text | None = None
    result: dict[str, Any] | None = None
    review: str | None = None
    reviewer: str | None = None
    reviewed: float | None = None
    comment: str | None = None

    @staticmethod
    def of(row: Row) -> QueuedJob:
        """Read a job from its row. This never fails, so that one bad row does not stop the queue."""
        values = {name: row[name] for name in QueuedJob.__dataclass_fields__}
        for name in ("parameters", "files", "limits"):
            values[name] = _json_object(values[name]) or {}
        values |= {"result": _json_object(row["result"]), "error": _text(row["error"])}
        return QueuedJob(**values | {"done": row["done"] or 0, "total": row["total"] or 0})


@dataclass(frozen=True)
class NewJob:
    """A new job. `review` tells whether its result must be approved; `by` is the token that sent it, if not its owner."""

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


class Store:
    """The table of jobs, and the append-only audit log. Without `create`, an empty database stays empty."""

    def __init__(self, database: Database, *, create: bool = True) -> None:
        self.db = database
        prepare(database, create=create)

    # The audit log

    def say(self, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log: who did what, and never anything of the data."""
        self.record(self.db.do, who, what, job)

    def record(self, do: Do, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log in a transaction."""
        do(sa.insert(log).values(at=now(), who=who, what=what, job=job))

    def log(self) -> list[Row]:
        """Return the log, oldest first."""
        return self.db.do(sa.select(log).order_by(log.c.id))

    # Users

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
        query = sa.select(jobs).where(jobs.c.id == job)
        rows = self.db.do(query if owner is None else query.where(jobs.c.owner == owner))
        return QueuedJob.of(rows[0]) if rows else None

    def of_owner(self, owner: str, limit: int = 100, before: str | None = None) -> list[QueuedJob]:
        """Return the newest jobs of an owner, or those before one of them."""
        query = sa.select(jobs).where(jobs.c.owner == owner)
        if before is not None:
            at = jobs.alias("at")
            place = sa.select(at.c.place).where(at.c.id == before, at.c.owner == owner).scalar_subquery()
            query = query.where(jobs.c.place < place)
        return [QueuedJob.of(row) for row in self.db.do(query.order_by(jobs.c.place.desc()).limit(limit))]

    def cancel(self, job: str, owner: str, by: str = "") -> QueuedJob | None:
        """Cancel a job, or remove the result of a finished one; return None if the job is another owner's."""
        own = (jobs.c.id == job, jobs.c.owner == owner)
        state = sa.case((jobs.c.state.in_(OPEN), "cancelled"), (jobs.c.state == "done", "expired"), else_=jobs.c.state)
        ended = sa.func.coalesce(jobs.c.ended, now())
        with self.db.transaction() as do:
            do(sa.update(jobs).where(*own).values(state=state, lease=None, ended=ended, **_scrubbed()))
            rows = do(sa.select(jobs).where(*own))
            if rows:
                self.record(do, by or owner, "ended a job and removed its files", job)
            return QueuedJob.of(rows[0]) if rows else None

    # Reviewers

    def awaiting(self, other_than: str, *, all_done: bool) -> list[QueuedJob]:
        """Return the finished jobs of others that await a decision, oldest first.

        With `all_done`, jobs that were sent without a review are among them.
        """
        open_ = jobs.c.review == "awaiting"
        waits = sa.or_(open_, jobs.c.review.is_(None)) if all_done else open_
        query = sa.select(jobs).where(jobs.c.state == "done", jobs.c.owner != other_than, waits)
        return [QueuedJob.of(row) for row in self.db.do(query.order_by(jobs.c.place).limit(REVIEWS_MOST))]

    def decide(self, job: str, reviewer: str, owner: str, *, approved: bool, comment: str) -> bool:
        """Record a review; return False if the result is gone, was decided before, or is the reviewer's own."""
        decision = "approved" if approved else "rejected"
        open_ = sa.or_(jobs.c.review == "awaiting", jobs.c.review.is_(None))
        mine = (jobs.c.id == job, jobs.c.state == "done", jobs.c.owner != owner, open_)
        values = {"review": decision, "reviewer": reviewer, "reviewed": now(), "comment": sendable(comment)}
        return self._changed(mine, values, reviewer, f"{decision} a result")

    # Workers

    def claim(self, worker: str, lease_s: float) -> QueuedJob | None:
        """Claim the next job."""
        if not self.db.do(sa.select(jobs.c.id).where(jobs.c.state == "queued").limit(1)):
            return None  # the usual case, which needs no lock
        change = (
            sa.update(jobs).where(jobs.c.id == _next_job().scalar_subquery())
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
        ended = {"ended": now(), "expires": now() + jobs.c.keep_s}
        return self._held(job, "finished a job", state="done", lease=None, result=json.dumps(result), **ended)

    def fail(self, job: QueuedJob, code: str, message: str | Text) -> bool:
        """Fail a job with a message; return False if the lease was lost."""
        error = {"error_code": code, "error": _stored(message), "parameters": "{}"}
        return self._held(job, f"failed a job ({code})", state="failed", lease=None, ended=now(), **error)

    def crash(self, job: QueuedJob, why: str) -> bool:
        """Record that a job crashed its process. It is retried, but not forever."""
        values = _again_unless(jobs.c.crashes + 1 >= CRASHES_MOST, "crashed", CRASHED.format(why=why))
        return self._held(job, "saw a job crash its process", crashes=jobs.c.crashes + 1, **values)

    def give_back(self, job: QueuedJob) -> bool:
        """Requeue a job because its worker stops."""
        return self._held(job, state="queued", lease=None, runs=jobs.c.runs - 1, stage=None, done=0, total=0)

    def take_back(self) -> int:
        """Requeue jobs whose lease ran out, and return their number."""
        late = (jobs.c.state == "running", jobs.c.lease_until < now())
        if not self.db.do(sa.select(jobs.c.id).where(*late).limit(1)):
            return 0
        values = _again_unless(jobs.c.lost + 1 >= LOST_MOST, "lost", LOST)
        return len(self.db.do(sa.update(jobs).where(*late).values(lost=jobs.c.lost + 1, **values).returning(jobs.c.id)))

    def _held(self, job: QueuedJob, what: str = "", **values: Any) -> bool:
        """Change the row of a job if its worker still holds it."""
        mine = (jobs.c.id == job.id, jobs.c.lease == job.lease, jobs.c.state == "running")
        return self._changed(mine, values, "worker", what)

    def _changed(self, where: Any, values: dict[str, Any], who: str, what: str) -> bool:
        """Change a row and write a line of the log together; return False if there is no such row."""
        with self.db.transaction() as do:
            rows = do(sa.update(jobs).where(*where).values(**values).returning(jobs.c.id))
            if rows and what:
                self.record(do, who, what, rows[0]["id"])
            return bool(rows)

    # Metrics

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of jobs of each kind and state."""
        query = sa.select(jobs.c.kind, jobs.c.state, sa.func.count().label("n")).group_by(jobs.c.kind, jobs.c.state)
        return {(row["kind"], row["state"]): row["n"] for row in self.db.do(query)}

    def queue_age(self) -> float:
        """Return the waiting time of the oldest queued job in seconds; 0 if none waits."""
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
                self.record(do, "server", "removed an expired result", row["id"])
        return [row["id"] for row in rows]

    def forget(self, after_s: float) -> None:
        """Remove rows of jobs that ended long ago, and old lines of the log."""
        ended = jobs.c.state.in_(("failed", "cancelled", "expired"))
        self.db.do(sa.delete(jobs).where(ended, jobs.c.ended < now() - after_s))
        self.db.do(sa.delete(log).where(log.c.at < now() - after_s))


def _json_object(text: str | None) -> dict[str, Any] | None:
    """Return a JSON object from a row, or None if it is missing or broken."""
    try:
        value = json.loads(text or "null")
    except ValueError:
        return None
    return sendable(value) if isinstance(value, dict) else None


def _next_job() -> sa.Select[Any]:
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


def _again_unless(often: Any, code: str, sentence: str) -> dict[str, Any]:
    """Return the update that requeues a job, or fails it if that happened too often."""
    return {
        "lease": None, "stage": None, "done": 0, "total": 0,
        "state": sa.case((often, "failed"), else_="queued"),
        "ended": sa.case((often, now()), else_=jobs.c.ended),
        "error_code": sa.case((often, code), else_=None),
        "error": sa.case((often, _stored(sentence)), else_=None),
        "parameters": sa.case((often, "{}"), else_=jobs.c.parameters),
    }  # fmt: skip


def _stored(message: str | Text) -> str:
    """Return a message as JSON, for a row."""
    return json.dumps(sendable(parts_of(message)))


def _text(stored: str | None) -> Text | None:
    """Return the message of a row; text in another form is shown unchanged."""
    try:
        return None if stored is None else text_of(json.loads(stored))
    except (ValueError, KeyError, TypeError):
        return Text.of([sendable(stored)])


def _scrubbed() -> dict[str, Any]:
    """Return the update that removes file names, parameters and messages from the row of a job."""
    message = sa.case((jobs.c.error.is_(None), None), else_=_stored(REMOVED))
    return {"parameters": "{}", "files": "{}", "result": None, "error": message, "comment": None}
