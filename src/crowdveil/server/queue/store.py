"""Jobs and the queue of them. What is true of a job is in its row; files only follow.

A job is held by a lease: a random word that its worker shows with everything that it writes, and renews while it works. Who
lost the lease (was slow, was cancelled, came back from the dead) writes nothing, so results are published once.

    queued ──▶ running ──▶ done ──▶ expired
       │  ◀──────┤ ├─────▶ failed
       └─────────┴─┴─────▶ cancelled
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from crowdveil.server import audit
from crowdveil.server.queue.database import Database, Do, Row
from crowdveil.server.queue.migrate import prepare
from crowdveil.server.queue.schedule import next_job
from crowdveil.server.queue.schema import about, jobs, log, now
from crowdveil.server.texts import plain

STATES = ("queued", "running", "done", "failed", "cancelled", "expired")
OPEN = ("queued", "running")
CRASHES_MOST = 2
"""Times that a job may end the process that runs it."""
LOST_MOST = 10
"""Times that a worker may vanish with a job; the cause is not known, so it is more."""

CRASHED = "the job ended the process that ran it twice{why}; give it less data, or other parameters."
REMOVED = "the message was removed with the files of the job."
LOST = f"the job's worker vanished {LOST_MOST} times; ask the operator of the server."


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
    bytes: int = 0
    review: str | None = None
    reviewer: str | None = None
    reviewed: float | None = None
    comment: str | None = None

    @staticmethod
    def of(row: Row) -> QueuedJob:
        """A job from its row, which never fails: one bad row must not hide the others."""
        known = {name: row[name] for name in QueuedJob.__dataclass_fields__}
        for name in ("parameters", "files", "limits"):
            known[name] = _object(known[name]) or {}
        return QueuedJob(**known | {"result": _object(known["result"]), "error": plain(known["error"]),
                              "done": row["done"] or 0, "total": row["total"] or 0})  # fmt: skip


@dataclass(frozen=True)
class NewJob:
    """What a job begins with: `bytes` are those of its files, `review` says whether its result must be approved, and `by` is
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
    bytes: int = 0
    review: bool = False
    by: str = ""


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return secrets.token_hex(16)


def _object(text: str | None) -> dict[str, Any] | None:
    """An object of JSON in a row; None where there is none, or it is broken."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    return plain(found) if isinstance(found, dict) else None


class Store:
    """The table of jobs. With `migrate`, an older database is brought up to date first; without `create`, nothing is made."""

    def __init__(
        self, database: Database, *, migrate: bool = False, backed_up: bool = False, create: bool = True
    ) -> None:
        self.db = database
        prepare(database, migrate=migrate, backed_up=backed_up, create=create)

    # Which data directory it belongs to

    def data_id(self) -> str | None:
        """Return the id of the data directory that the database belongs to."""
        rows = self.db.do(sa.select(about.c.value).where(about.c.name == "data_id"))
        return rows[0]["value"] if rows else None

    def set_data_id(self, data_id: str, *, replace: bool = False) -> str:
        """Set the id where there is none yet, or in any case; returns the one that holds."""
        with self.db.transaction(alone=True) as do:
            found = do(sa.select(about.c.value).where(about.c.name == "data_id"))
            if found and not replace:
                return str(found[0]["value"])
            do(sa.delete(about).where(about.c.name == "data_id"))
            do(sa.insert(about).values(name="data_id", value=data_id))
        return data_id

    # What callers of the service do

    def add(self, job: NewJob, waiting_most: int) -> bool:
        """Put a job at the end of the queue; False if its owner has too many there."""
        with self.db.transaction(alone=True) as do:
            mine = sa.select(sa.func.count().label("n")).where(jobs.c.owner == job.owner, jobs.c.state.in_(OPEN))
            if do(mine)[0]["n"] >= waiting_most:
                return False
            do(
                sa.insert(jobs).values(
                    id=job.id, owner=job.owner, kind=job.kind, name=job.name, parameters=json.dumps(job.parameters),
                    files=json.dumps(job.files), limits=json.dumps(job.limits), max_running=job.max_running,
                    keep_s=job.keep_s, state="queued", created=now(), bytes=job.bytes,
                    review="awaiting" if job.review else None,
                )
            )  # fmt: skip
            self.record(do, job.by or job.owner, f"put a job to {job.kind} into the queue", job.id)
            return True

    def get(self, job: str, owner: str | None = None) -> QueuedJob | None:
        """A job; with an owner, only if it is theirs."""
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
        """End a job of an owner, or give up the result of one that ended. None if it is another's."""
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

    def disk(self, owner: str | None = None) -> int:
        """Return the bytes of files that jobs hold, of an owner or of all."""
        held = sa.select(sa.func.coalesce(sa.func.sum(jobs.c.bytes), 0).label("n"))
        held = held.where(jobs.c.state.in_((*OPEN, "done")))
        return int(self.db.do(held if owner is None else held.where(jobs.c.owner == owner))[0]["n"])

    # What reviewers do

    def awaiting(self, other_than: str, *, all_done: bool, limit: int = 1000) -> list[QueuedJob]:
        """Return finished jobs of others that await a decision, oldest first; with `all_done`, also those that were sent
        without a review."""
        open_ = jobs.c.review == "awaiting"
        waits = sa.or_(open_, jobs.c.review.is_(None)) if all_done else open_
        found = sa.select(jobs).where(jobs.c.state == "done", jobs.c.owner != other_than, waits)
        return [QueuedJob.of(row) for row in self.db.do(found.order_by(jobs.c.place).limit(limit))]

    def decide(self, job: str, reviewer: str, owner: str, *, approved: bool, comment: str) -> bool:
        """Write down the decision on a result; False if it is not there any more, or was decided on, or is the reviewer's own."""
        decision = "approved" if approved else "rejected"
        open_ = sa.or_(jobs.c.review == "awaiting", jobs.c.review.is_(None))
        change = (
            sa.update(jobs).where(jobs.c.id == job, jobs.c.state == "done", jobs.c.owner != owner, open_)
            .values(review=decision, reviewer=reviewer, reviewed=now(), comment=plain(comment)).returning(jobs.c.id)
        )  # fmt: skip
        with self.db.transaction() as do:
            rows = do(change)
            if rows:
                self.record(do, reviewer, f"{decision} a result", job)
            return bool(rows)

    # What workers do

    def claim(self, worker: str, lease_s: float) -> QueuedJob | None:
        """Take the job whose turn it is."""
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
        """Whether the job is still this worker's."""
        return bool(self.db.do(sa.select(jobs.c.id).where(jobs.c.id == job.id, jobs.c.lease == job.lease)))

    def beat(self, job: QueuedJob, lease_s: float, stage: str, done: int, total: int) -> bool:
        """Extend the lease, and store the progress; False if the lease was lost."""
        return self._held(job, lease_until=now() + lease_s, stage=stage, done=done, total=total)

    def finish(self, job: QueuedJob, result: dict[str, Any], size: int | None = None) -> bool:
        """Publish a result: from here on it is the job's, and no other can become it. False if the lease was lost.

        `size` is that of all that is kept; the result's own where nothing is said.
        """
        held = int(result.get("bytes", 0)) if size is None else size
        return self._held(
            job, "finished a job", state="done", lease=None, ended=now(), expires=now() + jobs.c.keep_s,
            result=json.dumps(result), bytes=held,
        )  # fmt: skip

    def fail(self, job: QueuedJob, code: str, message: str) -> bool:
        """End a job with a sentence; False if the lease was lost."""
        return self._held(
            job, f"failed a job ({code})", state="failed", lease=None, ended=now(), parameters="{}", error_code=code,
            error=plain(message),
        )  # fmt: skip

    def crash(self, job: QueuedJob, why: str) -> bool:
        """Note that a job ended the process that ran it: it is run again, but not for ever."""
        return self._held(job, "saw a job end its process", **_crashed(why))

    def give_back(self, job: QueuedJob) -> bool:
        """Put a job back as it was: its worker is to stop."""
        return self._held(job, state="queued", lease=None, runs=jobs.c.runs - 1, stage=None, done=0, total=0)

    def _held(self, job: QueuedJob, what: str = "", **values: Any) -> bool:
        """Change the row of a job if its worker still holds it."""
        mine = (jobs.c.id == job.id, jobs.c.lease == job.lease, jobs.c.state == "running")
        with self.db.transaction() as do:
            rows = do(sa.update(jobs).where(*mine).values(**values).returning(jobs.c.id))
            if rows and what:
                self.record(do, "worker", what, job.id)
            return bool(rows)

    # Maintenance

    def void(self, worker: str) -> None:
        """Take every lease from a worker that is known to be dead."""
        held = (jobs.c.worker == worker, jobs.c.state == "running")
        self.db.do(sa.update(jobs).where(*held).values(lease_until=0.0))

    def crashed(self, worker: str, why: str) -> None:
        """Note that a worker was ended by its own fault while it held jobs: they are suspects, and not for ever run again."""
        held = (jobs.c.worker == worker, jobs.c.state == "running")
        with self.db.transaction() as do:
            for row in do(sa.update(jobs).where(*held).values(**_crashed(why)).returning(jobs.c.id)):
                self.record(do, "worker", "saw a job end its worker", row["id"])

    def holders(self) -> list[str]:
        """Workers that hold a job."""
        return [
            row["worker"] for row in self.db.do(sa.select(jobs.c.worker).distinct().where(jobs.c.state == "running"))
        ]

    def take_back(self) -> int:
        """Return jobs without a valid lease to the queue; return how many."""
        late = (jobs.c.state == "running", jobs.c.lease_until < now())
        if not self.db.do(sa.select(jobs.c.id).where(*late).limit(1)):
            return 0
        values = _again_unless(jobs.c.lost + 1 >= LOST_MOST, "lost", LOST)
        return len(self.db.do(sa.update(jobs).where(*late).values(lost=jobs.c.lost + 1, **values).returning(jobs.c.id)))

    def expire(self) -> list[str]:
        """Let results go whose time is over; ids of their jobs."""
        over = (jobs.c.state == "done", jobs.c.expires < now())
        with self.db.transaction() as do:
            rows = do(sa.update(jobs).where(*over).values(state="expired", **_scrubbed()).returning(jobs.c.id))
            old = (jobs.c.state.in_(("failed", "cancelled", "expired")), jobs.c.ended + jobs.c.keep_s < now())
            do(sa.update(jobs).where(*old, jobs.c.files != "{}").values(**_scrubbed()))
            for row in rows:
                self.record(do, "server", "removed a result whose time was over", row["id"])
        return [row["id"] for row in rows]

    def due(self) -> list[str]:
        """Return ids of jobs whose result is to be removed."""
        over = sa.select(jobs.c.id).where(jobs.c.state == "done", jobs.c.expires < now())
        return [row["id"] for row in self.db.do(over)]

    def forget(self, after_s: float) -> None:
        """Remove rows of jobs that ended long ago, and old lines of the log."""
        ended = jobs.c.state.in_(("failed", "cancelled", "expired"))
        self.db.do(sa.delete(jobs).where(ended, jobs.c.ended < now() - after_s))
        # Not line by line: each removal is a line of the log, too.
        late = sa.select(log.c.id).where(log.c.at < now() - (after_s + min(after_s / 10, 86_400.0)))
        if not self.db.do(late.limit(1)):
            return
        with self.db.transaction(alone=True) as do:
            last = do(sa.select(log).where(log.c.at < now() - after_s).order_by(log.c.id.desc()).limit(1))
            if last:
                self.record(do, "server", f"{audit.REMOVED}{last[0]['hash'] or audit.START}")
                do(sa.delete(log).where(log.c.id <= last[0]["id"]))

    def state_of(self, job: str) -> tuple[str, dict[str, Any] | None] | None:
        """The state and the result of a job."""
        rows = self.db.do(sa.select(jobs.c.state, jobs.c.result).where(jobs.c.id == job))
        return (rows[0]["state"], _object(rows[0]["result"])) if rows else None

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


def _scrubbed() -> dict[str, Any]:
    """The change that leaves nothing of a user in the row of a job: names of files, parameters, sentences about the data."""
    message = sa.case((jobs.c.error.is_(None), None), else_=REMOVED)
    return {"parameters": "{}", "files": "{}", "result": None, "error": message, "comment": None}


def _crashed(why: str) -> dict[str, Any]:
    values = _again_unless(jobs.c.crashes + 1 >= CRASHES_MOST, "crashed", CRASHED.format(why=plain(why)))
    return {"crashes": jobs.c.crashes + 1, **values}


def _again_unless(often: Any, code: str, sentence: str) -> dict[str, Any]:
    """The change that puts a job back into the queue, or ends it with a sentence where that happened too often."""
    return {
        "lease": None, "stage": None, "done": 0, "total": 0,
        "state": sa.case((often, "failed"), else_="queued"),
        "ended": sa.case((often, now()), else_=jobs.c.ended),
        "error_code": sa.case((often, code), else_=None),
        "error": sa.case((often, sentence), else_=None),
        "parameters": sa.case((often, "{}"), else_=jobs.c.parameters),
    }  # fmt: skip
