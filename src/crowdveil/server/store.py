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

from crowdveil.server import audit
from crowdveil.server.database import Database, Row

STATES = ("queued", "running", "done", "failed", "cancelled", "expired")
OPEN = ("queued", "running")
CRASHES_MOST = 2
"""Times that a job may end the process that runs it."""
LOST_MOST = 10
"""Times that a worker may vanish with a job; nobody knows whose fault it was, so it is more."""

CRASHED = "the job ended the process that ran it twice{why}; give it less data, or other parameters."
LOST = f"the job's worker vanished {LOST_MOST} times; ask whoever runs the server."
REMOVED = "the message was removed with the files of the job."
_SCRUBBED = (
    "parameters = '{{}}', files = '{{}}', result = NULL, "
    f"error = CASE WHEN error IS NULL THEN NULL ELSE '{REMOVED}' END"
)
"""The change that leaves nothing of a user in the row of a job: names of files, parameters, sentences about the data."""

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS jobs (
        place {serial}, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
        parameters TEXT NOT NULL,
        files TEXT NOT NULL, limits TEXT NOT NULL, max_running BIGINT NOT NULL, state TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, started DOUBLE PRECISION, ended DOUBLE PRECISION, expires DOUBLE PRECISION,
        keep_s DOUBLE PRECISION NOT NULL, lease TEXT, lease_until DOUBLE PRECISION, worker TEXT,
        stage TEXT, done BIGINT, total BIGINT, runs BIGINT NOT NULL DEFAULT 0, crashes BIGINT NOT NULL DEFAULT 0,
        lost BIGINT NOT NULL DEFAULT 0, error_code TEXT, error TEXT, result TEXT)""",
    "CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, place)",
    "CREATE INDEX IF NOT EXISTS jobs_by_owner ON jobs (owner, place)",
    """CREATE TABLE IF NOT EXISTS tokens (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, limits TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION)""",
    "CREATE TABLE IF NOT EXISTS log (id {serial}, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, job TEXT, "
    "previous TEXT, hash TEXT)",
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)


@dataclass(frozen=True)
class Job:
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

    @staticmethod
    def of(row: Row) -> Job:
        """A job from its row."""
        known = {name: row[name] for name in Job.__dataclass_fields__}
        for name in ("parameters", "files", "limits"):
            known[name] = json.loads(known[name])
        result = known["result"]
        return Job(**known | {"result": json.loads(result) if result else None,
                              "done": row["done"] or 0, "total": row["total"] or 0})  # fmt: skip


@dataclass(frozen=True)
class NewJob:
    """What a job begins with."""

    id: str
    owner: str
    kind: str
    name: str
    parameters: dict[str, Any]
    files: dict[str, str]
    limits: dict[str, Any] = field(default_factory=dict)
    max_running: int = 4
    keep_s: float = 86_400.0


def new_id() -> str:
    """An id that nobody can guess."""
    return secrets.token_hex(16)


class Store:
    """The table of jobs."""

    def __init__(self, database: Database, *, create: bool = True) -> None:
        self.db = database
        if not create:  # commands that only read change nothing
            return
        with self.db.transaction() as do:
            do("{one_at_a_time}")  # two that begin at once would both make the tables
            for statement in _SCHEMA:
                do(statement)
            if "hash" not in {row["name"] for row in do("{columns_of_log}")}:  # of a version without hashes
                do("ALTER TABLE log ADD COLUMN previous TEXT")
                do("ALTER TABLE log ADD COLUMN hash TEXT")

    # Which data directory it belongs to

    def data_id(self) -> str | None:
        """Return the id of the data directory that the database belongs to."""
        rows = self.db.do("SELECT value FROM about WHERE name = 'data_id'")
        return rows[0]["value"] if rows else None

    def set_data_id(self, data_id: str, *, replace: bool = False) -> str:
        """Set the id where there is none yet, or in any case; returns the one that holds."""
        kept = "UPDATE SET value = excluded.value" if replace else "NOTHING"
        self.db.do(f"INSERT INTO about (name, value) VALUES ('data_id', ?) ON CONFLICT (name) DO {kept}", data_id)
        return self.data_id() or data_id

    # What callers of the service do

    def add(self, job: NewJob, waiting_most: int) -> bool:
        """Put a job at the end of the queue; False if its owner has too many there."""
        with self.db.transaction() as do:
            do("{one_at_a_time}")
            waiting = do("SELECT count(*) AS n FROM jobs WHERE owner = ? AND state IN ('queued', 'running')", job.owner)
            if waiting[0]["n"] >= waiting_most:
                return False
            do(
                "INSERT INTO jobs (id, owner, kind, name, parameters, files, limits, max_running, keep_s, state, created) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', {now})",
                job.id, job.owner, job.kind, job.name, json.dumps(job.parameters), json.dumps(job.files),
                json.dumps(job.limits), job.max_running, job.keep_s,
            )  # fmt: skip
            self.record(do, job.owner, f"put a job to {job.kind} into the queue", job.id)
            return True

    def get(self, job: str, owner: str | None = None) -> Job | None:
        """A job; with an owner, only if it is theirs."""
        mine = "" if owner is None else " AND owner = ?"
        rows = self.db.do(f"SELECT * FROM jobs WHERE id = ?{mine}", job, *([] if owner is None else [owner]))
        return Job.of(rows[0]) if rows else None

    def of_owner(self, owner: str, limit: int = 100, before: str | None = None) -> list[Job]:
        """The newest jobs of somebody, or those before one of them."""
        older = "" if before is None else " AND place < (SELECT place FROM jobs WHERE id = ? AND owner = ?)"
        values = [owner, *([] if before is None else [before, owner]), limit]
        rows = self.db.do(f"SELECT * FROM jobs WHERE owner = ?{older} ORDER BY place DESC LIMIT ?", *values)
        return [Job.of(row) for row in rows]

    def cancel(self, job: str, owner: str) -> Job | None:
        """End a job of somebody, or give up the result of one that ended. None if it is not theirs."""
        with self.db.transaction() as do:
            do(
                "UPDATE jobs SET state = CASE WHEN state IN ('queued', 'running') THEN 'cancelled' WHEN state = 'done' "
                f"THEN 'expired' ELSE state END, lease = NULL, ended = COALESCE(ended, {{now}}), {_SCRUBBED} "
                "WHERE id = ? AND owner = ?",
                job, owner,
            )  # fmt: skip
            rows = do("SELECT * FROM jobs WHERE id = ? AND owner = ?", job, owner)
            if rows:
                self.record(do, owner, "ended a job and removed its files", job)
            return Job.of(rows[0]) if rows else None

    # What workers do

    def claim(self, worker: str, lease_s: float) -> Job | None:
        """Take the job that has waited longest, of those whose owner does not have too many running."""
        if not self.db.do("SELECT id FROM jobs WHERE state = 'queued' LIMIT 1"):
            return None  # most of the time, and without a lock
        with self.db.transaction() as do:
            do("{one_at_a_time}")
            rows = do(
                "UPDATE jobs SET state = 'running', lease = ?, lease_until = {now} + ?, worker = ?, "
                "started = COALESCE(started, {now}), stage = 'starting', done = 0, total = 0, runs = runs + 1 "
                "WHERE id = (SELECT j.id FROM jobs j WHERE j.state = 'queued' AND (SELECT count(*) FROM jobs r "
                "WHERE r.owner = j.owner AND r.state = 'running') < j.max_running ORDER BY j.place LIMIT 1 "
                "{skip_locked}) RETURNING *",
                secrets.token_hex(16), lease_s, worker,
            )  # fmt: skip
            return Job.of(rows[0]) if rows else None

    def holds(self, job: Job) -> bool:
        """Whether the job is still this worker's."""
        return bool(self.db.do("SELECT id FROM jobs WHERE id = ? AND lease = ?", job.id, job.lease))

    def beat(self, job: Job, lease_s: float, stage: str, done: int, total: int) -> bool:
        """Keep the lease, and tell how far it is; False if the lease was lost."""
        return self._held(
            job, "lease_until = {now} + ?, stage = ?, done = ?, total = ?", lease_s, stage, done, total
        )  # fmt: skip

    def finish(self, job: Job, result: dict[str, Any]) -> bool:
        """Publish a result: from here on it is the job's, and no other can become it. False if the lease was lost."""
        return self._held(
            job, "state = 'done', lease = NULL, ended = {now}, expires = {now} + keep_s, result = ?", json.dumps(result),
            what="finished a job",
        )  # fmt: skip

    def fail(self, job: Job, code: str, message: str) -> bool:
        """End a job with a sentence; False if the lease was lost."""
        return self._held(
            job, "state = 'failed', lease = NULL, ended = {now}, parameters = '{{}}', error_code = ?, error = ?",
            code, message, what=f"failed a job ({code})",
        )  # fmt: skip

    def crash(self, job: Job, why: str) -> bool:
        """Note that a job ended the process that ran it: it is run again, but not for ever."""
        change = f"crashes = crashes + 1, {_again_unless(f'crashes + 1 >= {CRASHES_MOST}', 'crashed')}"
        return self._held(job, change, CRASHED.format(why=why), what="saw a job end its process")

    def give_back(self, job: Job) -> bool:
        """Put a job back as it was: its worker is told to stop."""
        return self._held(job, "state = 'queued', lease = NULL, runs = runs - 1, stage = NULL, done = 0, total = 0")

    def _held(self, job: Job, change: str, *values: Any, what: str = "") -> bool:
        """Change the row of a job if its worker still holds it."""
        with self.db.transaction() as do:
            rows = do(
                f"UPDATE jobs SET {change} WHERE id = ? AND lease = ? AND state = 'running' RETURNING id",
                *values, job.id, job.lease,
            )  # fmt: skip
            if rows and what:
                self.record(do, "worker", what, job.id)
            return bool(rows)

    # What keeps the house in order

    def void(self, worker: str) -> None:
        """Take every lease from a worker that is known to be dead."""
        self.db.do("UPDATE jobs SET lease_until = 0 WHERE worker = ? AND state = 'running'", worker)

    def holders(self) -> list[str]:
        """Workers that hold a job."""
        return [row["worker"] for row in self.db.do("SELECT DISTINCT worker FROM jobs WHERE state = 'running'")]

    def take_back(self) -> int:
        """Put jobs that nobody holds any more back into the queue; how many."""
        if not self.db.do("SELECT id FROM jobs WHERE state = 'running' AND lease_until < {now} LIMIT 1"):
            return 0
        rows = self.db.do(
            f"UPDATE jobs SET lost = lost + 1, {_again_unless(f'lost + 1 >= {LOST_MOST}', 'lost')} "
            "WHERE state = 'running' AND lease_until < {now} RETURNING id",
            LOST,
        )
        return len(rows)

    def expire(self) -> list[str]:
        """Let results go whose time is over; ids of their jobs."""
        with self.db.transaction() as do:
            rows = do(
                f"UPDATE jobs SET state = 'expired', {_SCRUBBED} WHERE state = 'done' AND expires < {{now}} RETURNING id"
            )
            do(
                f"UPDATE jobs SET {_SCRUBBED} WHERE state IN ('failed', 'cancelled', 'expired') AND ended + keep_s < {{now}} "
                "AND files <> '{{}}'"
            )
            for row in rows:
                self.record(do, "server", "removed a result whose time was over", row["id"])
        return [row["id"] for row in rows]

    def due(self) -> list[str]:
        """Return ids of jobs whose result is to be removed."""
        return [row["id"] for row in self.db.do("SELECT id FROM jobs WHERE state = 'done' AND expires < {now}")]

    def forget(self, after_s: float) -> None:
        """Remove rows of jobs that ended long ago, and old lines of the log."""
        self.db.do("DELETE FROM jobs WHERE state IN ('failed', 'cancelled', 'expired') AND ended < {now} - ?", after_s)
        # Not line by line: each removal is a line of the log, too.
        if not self.db.do("SELECT id FROM log WHERE at < {now} - ? LIMIT 1", after_s + min(after_s / 10, 86_400.0)):
            return
        with self.db.transaction() as do:
            do("{one_at_a_time}")
            last = do("SELECT id, hash FROM log WHERE at < {now} - ? ORDER BY id DESC LIMIT 1", after_s)
            if last:
                self.record(do, "server", f"{audit.REMOVED}{last[0]['hash'] or audit.START}")
                do("DELETE FROM log WHERE id <= ?", last[0]["id"])

    def state_of(self, job: str) -> tuple[str, dict[str, Any] | None] | None:
        """The state and the result of a job."""
        rows = self.db.do("SELECT state, result FROM jobs WHERE id = ?", job)
        return (rows[0]["state"], json.loads(rows[0]["result"] or "null")) if rows else None

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        return {row["state"]: row["n"] for row in self.db.do("SELECT state, count(*) AS n FROM jobs GROUP BY state")}

    def counts_by_kind(self) -> dict[tuple[str, str], int]:
        """Return how many jobs there are of each kind and state."""
        rows = self.db.do("SELECT kind, state, count(*) AS n FROM jobs GROUP BY kind, state")
        return {(row["kind"], row["state"]): row["n"] for row in rows}

    def queue_age(self) -> float:
        """Return how many seconds the job that waits longest has waited; 0 where none waits."""
        rows = self.db.do("SELECT {now} - min(created) AS age FROM jobs WHERE state = 'queued'")
        return max(0.0, rows[0]["age"] or 0.0)

    def last_end(self) -> float:
        """Return when the last job ended, in seconds since 1970; 0 where none did."""
        return self.db.do("SELECT max(ended) AS ended FROM jobs")[0]["ended"] or 0.0

    def ended_since(self, since: float) -> list[Row]:
        """Return id, kind, state, start and end of jobs that ran and ended since a time, in the order of their ends."""
        return self.db.do(
            "SELECT id, kind, CASE WHEN state = 'expired' THEN 'done' ELSE state END AS state, started, ended FROM jobs "
            "WHERE ended >= ? AND started IS NOT NULL ORDER BY ended",
            since,
        )

    def say(self, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log: who did what, and never anything of the data."""
        with self.db.transaction() as do:
            self.record(do, who, what, job)

    def log(self) -> list[Row]:
        """The log, oldest first."""
        return self.db.do("SELECT * FROM log ORDER BY id")

    @staticmethod
    def record(do: Any, who: str, what: str, job: str | None = None) -> None:
        """Write a line of the log in a transaction."""
        do("{one_at_a_time}")  # lines are a chain
        last = do("SELECT at, hash FROM log ORDER BY id DESC LIMIT 1")
        at = round(do("SELECT {now} AS at")[0]["at"], 3)
        previous = (last[0]["hash"] if last else None) or audit.START
        link = audit.hash_of(previous, audit.time_text(at), who, what, job)
        do(
            "INSERT INTO log (at, who, what, job, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            at,
            who,
            what,
            job,
            previous,
            link,
        )


def _again_unless(often: str, code: str) -> str:
    """The change that puts a job back into the queue, or ends it with a sentence where that happened too often."""
    return (
        f"lease = NULL, state = CASE WHEN {often} THEN 'failed' ELSE 'queued' END, stage = NULL, done = 0, total = 0, "
        f"ended = CASE WHEN {often} THEN {{now}} ELSE ended END, error_code = CASE WHEN {often} THEN '{code}' END, "
        f"parameters = CASE WHEN {often} THEN '{{{{}}}}' ELSE parameters END, error = CASE WHEN {often} THEN ? END"
    )
