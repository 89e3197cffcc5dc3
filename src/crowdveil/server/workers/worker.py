"""A worker: takes a job, has a child run it, watches it, and publishes what came of it. One job at a time, no threads.

The child is started by the worker's starter and not by a fork of this process, which knows the address of the database.
"""

from __future__ import annotations

import json
import logging
import os
import re
import select
import shutil
import socket
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdveil.errors import NO_MEMORY, CrowdveilError, shortened
from crowdveil.io.archive import PLAIN_NAME
from crowdveil.server import logs
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.job import QueuedJob
from crowdveil.server.queue.store import Store
from crowdveil.server.sentences import without_paths
from crowdveil.server.sources import has_ledger, ledger_of
from crowdveil.server.workers.child import SUMMARY, TEMPORARY, Order
from crowdveil.server.workers.process import memory_of
from crowdveil.server.workers.starter import Starter, StarterEndedError

LOOK_EVERY_S = 0.2
"""How often a worker looks for jobs, and whether its own is still wanted."""
MESSAGE_MOST = 1 << 20
"""Bytes of one line of a child; a child that opened a hostile file is not trusted to be brief, or to write at all."""
SENTENCE_MOST = 4000
"""Characters of the sentence that a job fails with."""
_DIGEST, _MEDIA_TYPE = re.compile("[0-9a-f]{64}"), re.compile("[a-z]+/[a-z+-]+")


@dataclass
class ChildMessages:
    """The messages of a child so far."""

    stage: str = "starting"
    done: int = 0
    total: int = 0
    end: dict[str, Any] | None = None
    compiled: list[Any] = field(default_factory=list)
    rest: bytes = b""
    new: bool = True

    def take(self, piece: bytes) -> None:
        """Take what came through the pipe; raises ValueError where it is nothing that a child of ours says."""
        *lines, self.rest = (self.rest + piece).split(b"\n")
        if len(self.rest) > MESSAGE_MOST:
            raise ValueError("too long")
        for line in lines:
            said = json.loads(line)
            if not isinstance(said, dict):
                raise ValueError("no message")
            self.new = True
            if "end" in said:
                self.end = _checked_end(said)
            self.compiled = said.get("compiled", self.compiled)
            self.stage = str(said.get("stage", self.stage))[:64]
            self.done, self.total = (int(said.get(n, getattr(self, n))) & (2**53 - 1) for n in ("done", "total"))


def _checked_end(said: dict[str, Any]) -> dict[str, Any]:
    """How a child says that it ended, held to its form: its result must be a plain file in the folder of the run."""
    if said["end"] == "failed":
        sentence = str(said["message"]).encode("utf-8", "replace").decode()
        return {"end": "failed", "code": str(said["code"])[:64], "message": shortened(sentence, SENTENCE_MOST)}
    result = said["result"]
    texts = ("name", "sha256", "media_type", "lease")
    if said["end"] != "done" or not isinstance(result, dict) or not all(isinstance(result.get(n), str) for n in texts):
        raise ValueError("no result")
    wanted = (("name", PLAIN_NAME), ("sha256", _DIGEST), ("media_type", _MEDIA_TYPE))
    if not all(form.fullmatch(result[name]) for name, form in wanted) or ".." in result["name"]:
        raise ValueError("no result of ours")
    return {"end": "done", "result": {**{n: result[n] for n in texts}, "bytes": int(result["bytes"])}}


@dataclass
class Worker:
    """A worker on a store and its files."""

    store: Store
    files: Files
    starter: Starter
    lease_s: float = 15.0
    memory_bytes: int | None = None
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    stopping: bool = False

    def work(self, *, once: bool = False) -> None:
        """Run jobs until stopped; with `once`, until there are none."""
        while not self.stopping:
            try:
                self.store.take_back()
                job = self.store.claim(self.name, self.lease_s)
            except (CrowdveilError, OSError) as error:
                logs.say("worker", str(error), logging.WARNING)
                time.sleep(5 * LOOK_EVERY_S)
                continue
            if job is not None:
                self._run_safely(job)
            elif once:
                return
            else:
                time.sleep(LOOK_EVERY_S)

    def stop(self, *_: Any) -> None:
        """Stop as soon as can be; the current job goes back into the queue."""
        self.stopping = True

    def _run_safely(self, job: QueuedJob) -> None:
        """Run a job; whatever it does to this process is held against the job, and the worker goes on."""
        try:
            self.run(job)
        except DatabaseUnavailableError:
            pass  # the lease runs out, and another worker takes the job
        except StarterEndedError:
            self.stopping = True  # the crew starts another worker, and takes the job back
        except Exception as error:
            logs.say("worker", "a job broke its worker", logging.ERROR, **logs.located(error))
            with suppress(DatabaseUnavailableError):
                self.store.crash(job, f" ({type(error).__name__} in its worker)")
                self._remove_if("failed", job)

    def run(self, job: QueuedJob) -> None:
        """Run one job to its end, or until it is not ours any more."""
        run = self.files.run(job.id, job.lease or "")
        try:
            run.mkdir(mode=0o700)
        except OSError:
            self.store.fail(
                job,
                "no_files",
                "the job's files are not there; if there are several machines, they must share one data directory.",
            )
            return
        ours = False
        try:
            if self._lacks_ledger(job):
                return
            ours = self._watched(job, run)
        finally:
            if not ours:
                shutil.rmtree(run, ignore_errors=True)

    def _lacks_ledger(self, job: QueuedJob) -> bool:
        """End a job whose ledger is lost: with a new one it would be audited against nothing."""
        source = job.parameters.get("source")
        if source is None or has_ledger(self.files.root, source):
            return False
        sentence = f"the ledger of the source {source} is missing; ask the operator of the server to restore it."
        self._failed(job, "no_ledger", sentence)
        return True

    def _watched(self, job: QueuedJob, run: Path) -> bool:
        """Whether the run's folder is the job's result now."""
        read, write = os.pipe()
        heard, status = ChildMessages(), 0
        try:
            child = self.starter.start(_order(job, self.files, run, self.memory_bytes), write)
            os.close(write)
            try:
                reason = self._watch(job, child, read, heard)
            finally:
                status = self.starter.end(heard.compiled)
        finally:
            os.close(read)
            shutil.rmtree(run / TEMPORARY, ignore_errors=True)
        if (
            reason is None
            and heard.end is not None
            and heard.end["end"] == "done"
            and not _is_whole(run, job, heard.end)
        ):
            heard.end = None
        return self._ended(job, heard, reason, status)

    def _watch(self, job: QueuedJob, child: int, read: int, heard: ChildMessages) -> str | None:
        """Listen to a child until its end; why it is to be ended before that."""
        begun, beaten = time.monotonic(), 0.0
        while True:
            ready, _, _ = select.select([read], [], [], LOOK_EVERY_S)
            if ready:
                piece = os.read(read, 1 << 16)
                if not piece:
                    return None
                try:
                    heard.take(piece)
                except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
                    return "garbled"
                if heard.end is not None:
                    return None
            if self.stopping:
                return "stopping"
            now = time.monotonic()
            if now - beaten > self.lease_s / 5 or (heard.new and now - beaten > LOOK_EVERY_S):
                if not self.store.beat(job, self.lease_s, heard.stage, heard.done, heard.total):
                    return "lost"
                beaten, heard.new = now, False
            elif not ready and not self.store.holds(job):
                return "lost"
            if now - begun > job.limits.get("max_seconds", float("inf")):
                return "time"
            if self.memory_bytes is not None and memory_of(child) > self.memory_bytes:
                return "memory"

    def _ended(self, job: QueuedJob, heard: ChildMessages, reason: str | None, status: int) -> bool:
        """Write down how a job ended; whether its result is published."""
        if reason == "lost":  # cancelled, or given to another worker
            self._remove_if("cancelled", job)
            return False
        if reason == "stopping":
            self.store.give_back(job)
        elif reason == "time":
            most = job.limits["max_seconds"]
            self._failed(
                job, "too_long", f"the job ran longer than the {most:,} seconds that it may; give it less data."
            )
        elif reason == "memory":
            self._failed(job, "no_memory", NO_MEMORY)
        elif reason == "garbled" or heard.end is None:
            signaled = os.WIFSIGNALED(status) and reason is None
            self.store.crash(job, f" (signal {os.WTERMSIG(status)})" if signaled else "")
            self._remove_if("failed", job)
        elif heard.end["end"] == "done":
            if not self.store.finish(job, heard.end["result"], self.files.size(job.id, job.lease or "")):
                return False
            self.files.keep_result(job.id, job.lease or "")
            return True
        else:
            self._failed(job, heard.end["code"], heard.end["message"])
        return False

    def _remove_if(self, state: str, job: QueuedJob) -> None:
        """Remove the files of a job that is in some state now."""
        found = self.store.state_of(job.id)
        if found is not None and found[0] == state:
            self.files.remove(job.id)

    def _failed(self, job: QueuedJob, code: str, message: str) -> None:
        if self.store.fail(job, code, without_paths(message)):
            self.files.remove(job.id)


def _order(job: QueuedJob, files: Files, run: Path, memory: int | None) -> Order:
    """Return the order of a child: nothing of who sent it, or of other jobs but the ledger of its source."""
    source = job.parameters.get("source")
    return Order(
        job.kind, job.name, job.parameters, job.files, job.limits, job.lease or "", str(files.inputs(job.id)), str(run),
        memory, None if source is None else str(ledger_of(files.root, source)),
    )  # fmt: skip


def _is_whole(run: Path, job: QueuedJob, end: dict[str, Any]) -> bool:
    """Whether what a child says to have made is there: plain files of its own run, and no links to others."""
    result = end["result"]
    try:
        made = [os.lstat(run / name) for name in (result["name"], SUMMARY)]
    except OSError:
        return False
    plain = all(stat.S_ISREG(m.st_mode) and m.st_nlink == 1 for m in made)
    return plain and result["lease"] == job.lease and made[0].st_size == result["bytes"]
