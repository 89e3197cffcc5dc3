"""Workers: threads of the supervisor. Each claims a job, runs it in a sandboxed process, and publishes its result."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError, Text, text_of
from crowdveil.io.archive import PLAIN_NAME
from crowdveil.server import logs
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.store import QueuedJob, Store
from crowdveil.server.sources import has_ledger, ledger_of
from crowdveil.server.workers.job import PROGRESS, SUMMARY
from crowdveil.server.workers.sandbox import ANSWER, TEMPORARY, Bounds, Sandboxed, start

LOOK_EVERY_S = 0.2
"""Seconds between two looks for jobs, and between two checks of the lease."""
SENTENCE_MOST = 4000
"""Characters of the sentence that a job fails with."""
_DIGEST, _MEDIA_TYPE = re.compile("[0-9a-f]{64}"), re.compile("[a-z]+/[a-z+-]+")
_LARGEST = 2**53


def checked_answer(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    """Validate the answer of a job, which may have opened hostile files; return None if it is malformed."""
    result, error = (answer or {}).get("result"), (answer or {}).get("error")
    if isinstance(error, dict):
        try:
            return {
                "error": {"code": str(error["code"])[:64], "text": text_of(error["parts"]).shortened(SENTENCE_MOST)}
            }
        except (KeyError, TypeError):
            return None
    forms = (("name", PLAIN_NAME), ("sha256", _DIGEST), ("media_type", _MEDIA_TYPE))
    if not isinstance(result, dict) or not isinstance(result.get("bytes"), int):
        return None
    if not all(isinstance(result.get(name), str) and form.fullmatch(result[name]) for name, form in forms):
        return None
    if ".." in result["name"]:
        return None
    return {"result": {n: result[n] for n in ("name", "sha256", "media_type", "bytes")}}


def checked_progress(report: dict[str, Any] | None) -> tuple[str, int, int]:
    """Return stage, done and total of a progress report, which a hostile process may have written."""
    report = report or {}
    stage, numbers = report.get("stage", "starting"), (report.get("done"), report.get("total"))
    done, total = (n if isinstance(n, int) and 0 <= n < _LARGEST else 0 for n in numbers)
    return str(stage)[:64], done, total


@dataclass
class Worker:
    """A worker on a store and its files."""

    store: Store
    files: Files
    lease_s: float = 15.0
    memory_bytes: int | None = None
    processes: int = 1
    module: str = "crowdveil.server.workers.job"
    stopping: threading.Event = field(default_factory=threading.Event)
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    def work(self, *, once: bool = False) -> None:
        """Run jobs until stopped; with `once`, until there are none."""
        while not self.stopping.is_set():
            try:
                self.store.take_back()
                job = self.store.claim(self.name, self.lease_s)
            except (CrowdveilError, OSError) as error:
                logs.say("worker", str(error), logging.WARNING)
                self.stopping.wait(5 * LOOK_EVERY_S)
                continue
            if job is not None:
                self._run_safely(job)
            elif once:
                return
            else:
                self.stopping.wait(LOOK_EVERY_S)

    def _run_safely(self, job: QueuedJob) -> None:
        """Run a job; an unexpected error counts as a crash of the job, and the worker continues."""
        try:
            self.run(job)
        except DatabaseUnavailableError:
            pass  # the lease runs out, and another worker takes the job
        except Exception as error:
            logs.say("worker", "a job broke its worker", logging.ERROR, **logs.located(error))
            with suppress(DatabaseUnavailableError):
                self.store.crash(job, f" ({type(error).__name__} in its worker)")
                self._remove_if("failed", job)

    def run(self, job: QueuedJob) -> None:
        """Run one job to its end, or until its lease is lost."""
        run = self.files.run(job.id, job.lease or "")
        try:
            run.mkdir(mode=0o700)
        except FileNotFoundError:
            sentence = "the job's files are missing. Several machines must share one data directory."
            self.store.fail(job, "no_files", sentence)
            return
        published = False
        try:
            published = not self._lacks_ledger(job) and self._run_in(job, run)
        finally:
            if not published:
                shutil.rmtree(run, ignore_errors=True)

    def _lacks_ledger(self, job: QueuedJob) -> bool:
        """Fail a job whose ledger is lost, and return whether it is. A new ledger would audit nothing."""
        source = job.parameters.get("source")
        if source is None or has_ledger(self.files.root, source):
            return False
        sentence = f"the ledger of the source {source} is missing. Ask the operator of the server to restore it."
        self._failed(job, "no_ledger", sentence)
        return True

    def _run_in(self, job: QueuedJob, run: Path) -> bool:
        """Run a job in a folder, and return whether the result was published."""
        source = job.parameters.get("source")
        ledger = None if source is None else ledger_of(self.files.root, source)
        inputs = self.files.inputs(job.id)
        # The process learns nothing of the owner, or of other jobs except the ledger of its source.
        request = {
            "kind": job.kind, "name": job.name, "parameters": job.parameters, "files": job.files, "limits": job.limits,
            "inputs": str(inputs.resolve()), "run": str(run.resolve()), "ledger": ledger and str(ledger.resolve()),
        }  # fmt: skip
        # No file may be much larger than an upload.
        bounds = Bounds(self.memory_bytes, int(job.limits.get("upload_bytes", 1 << 40)) * 8)
        write = [inputs] if ledger is None else [inputs, ledger]
        running = start(self.module, request, run, bounds, write=write, processes=self.processes)
        try:
            reason = self._watch(job, running)
        finally:
            running.end()
        answer = None if reason else checked_answer(running.read(ANSWER))
        for left in (ANSWER, PROGRESS):
            (run / left).unlink(missing_ok=True)
        shutil.rmtree(run / TEMPORARY, ignore_errors=True)
        if answer is not None and "result" in answer and not _is_whole(run, answer["result"]):
            answer = None
        return self._ended(job, answer, reason, running.signal())

    def _watch(self, job: QueuedJob, running: Sandboxed) -> str | None:
        """Wait for a job to end; return the reason if it must be stopped earlier."""
        started, beaten, reported = time.monotonic(), 0.0, None
        while True:
            with suppress(subprocess.TimeoutExpired):
                running.process.wait(LOOK_EVERY_S)
                return None
            if self.stopping.is_set():
                return "stopping"
            now, progress = time.monotonic(), checked_progress(running.read(PROGRESS))
            if now - beaten > self.lease_s / 5 or progress != reported:
                if not self.store.beat(job, self.lease_s, *progress):
                    return "lost"
                beaten, reported = now, progress
            elif not self.store.holds(job):
                return "lost"
            if now - started > job.limits.get("max_seconds", float("inf")):
                return "time"

    def _ended(self, job: QueuedJob, answer: dict[str, Any] | None, reason: str | None, number: int) -> bool:
        """Record the end of a job, and return whether its result was published."""
        if reason == "lost":  # it was cancelled, or another worker has it
            self._remove_if("cancelled", job)
        elif reason == "stopping":
            self.store.give_back(job)
        elif reason == "time":
            most = job.limits["max_seconds"]
            self._failed(job, "too_long", f"the job ran longer than its limit of {most:,} seconds. Give it less data.")
        elif answer is None:
            self.store.crash(job, f" (signal {number})" if number else "")
            self._remove_if("failed", job)
        elif "error" in answer:
            self._failed(job, answer["error"]["code"], answer["error"]["text"])
        else:
            lease = job.lease or ""
            if self.store.finish(job, answer["result"] | {"lease": lease}):
                self.files.keep_result(job.id, lease)
                return True
        return False

    def _remove_if(self, state: str, job: QueuedJob) -> None:
        """Remove the files of a job if it is in the given state."""
        current = self.store.get(job.id)
        if current is not None and current.state == state:
            self.files.remove(job.id)

    def _failed(self, job: QueuedJob, code: str, message: str | Text) -> None:
        if self.store.fail(job, code, message):
            self.files.remove(job.id)


def _is_whole(run: Path, result: dict[str, Any]) -> bool:
    """Check that the reported result and its summary are regular files of this run."""
    try:
        files = [os.lstat(run / name) for name in (result["name"], SUMMARY)]
    except OSError:
        return False
    return all(stat.S_ISREG(m.st_mode) and m.st_nlink == 1 for m in files) and files[0].st_size == result["bytes"]
