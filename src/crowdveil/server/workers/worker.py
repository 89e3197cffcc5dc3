"""A worker: takes a job, has a child run it, watches it, and publishes what came of it. One job at a time, no threads.

The parts that jobs need are imported once, and each child is a fork of this process: a small job starts in milliseconds.
"""

from __future__ import annotations

import json
import logging
import os
import re
import select
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.io.archive import PLAIN_NAME
from crowdveil.kernels import cached
from crowdveil.server import logs
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.files import Files
from crowdveil.server.queue.store import QueuedJob, Store
from crowdveil.server.sentences import without_paths
from crowdveil.server.workers.child import SUMMARY, TEMPORARY, Room, be_child
from crowdveil.server.workers.heartbeat import Heartbeat
from crowdveil.server.workers.process import die_with_parent, memory_of
from crowdveil.server.workers.sandbox.confine import installed, tasks_of_user

LOOK_EVERY_S = 0.2
"""How often a worker looks for jobs, and whether its own is still wanted."""
PRELOADED = (
    "crowdveil.api", "crowdveil.report.html", "jinja2", "duckdb", "pyarrow.parquet", "pyarrow.csv", "pyarrow.compute",
    "pyarrow.dataset", "shapely", "pyproj", "h3", "scipy.spatial", "fastcluster",
)  # fmt: skip
_OWN_FAULT = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
IF_THERE = ("pandas", "h5py", "matplotlib.figure", "matplotlib.font_manager")
"""What is imported where it is installed: pyarrow does so at its first table, and a list of fonts is made once and kept outside
of what a job may write.
"""
MESSAGE_MOST = 1 << 20
"""Bytes of one line that a child tells; a child that opened a hostile file is not trusted to be brief, or to speak at all."""
SENTENCE_MOST = 4000
_DIGEST, _MEDIA_TYPE = re.compile("[0-9a-f]{64}"), re.compile("[a-z]+/[a-z+-]+")


@dataclass
class ChildMessages:
    """What a child has told so far."""

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
        return {"end": "failed", "code": str(said["code"])[:64], "message": sentence[:SENTENCE_MOST]}
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
    lease_s: float = 15.0
    memory_bytes: int | None = None
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    stopping: bool = False
    confined: bool = True
    """Whether children are put into the sandbox; only tests say no."""
    compiling: int = 0
    """The process that compiles kernels for later jobs; 0 for none."""

    @cached_property
    def room(self) -> Room | None:
        """What children are confined to."""
        if not self.confined:
            return None
        installed()  # found once, and not by each child
        return Room(self.memory_bytes, tasks_of_user(), tuple(cached.folders()))

    def work(self, *, once: bool = False) -> None:
        """Run jobs until told to stop; with `once`, until there are none."""
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
        """Stop as soon as can be; the job at hand goes back into the queue."""
        self.stopping = True

    def _run_safely(self, job: QueuedJob) -> None:
        """Run a job; whatever it does to this process is held against the job, and the worker goes on."""
        try:
            self.run(job)
        except DatabaseUnavailableError:
            pass  # the lease runs out, and somebody takes the job
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
            ours = self._watched(job, run)
        finally:
            if not ours:
                shutil.rmtree(run, ignore_errors=True)

    def _watched(self, job: QueuedJob, run: Path) -> bool:
        """Whether the run's folder is the job's result now."""
        read, write = os.pipe()
        self.store.db.close()  # a connection must not be in two processes
        parent, room = os.getpid(), self.room
        child = os.fork()
        if child == 0:
            os.close(read)
            be_child(job, self.files.inputs(job.id), run, write, parent, room)
        os.close(write)
        heard = ChildMessages()
        try:
            reason = self._watch(job, child, read, heard)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            os.close(read)
            shutil.rmtree(run / TEMPORARY, ignore_errors=True)
        if (
            reason is None
            and heard.end is not None
            and heard.end["end"] == "done"
            and not _is_whole(run, job, heard.end)
        ):
            heard.end = None
        self._compile(heard.compiled)
        return self._ended(job, heard, reason, status)

    def _compile(self, wanted: list[Any]) -> None:
        """Have kernels compiled that a child lacked, for later ones: a confined child cannot keep what it compiles.

        It is done from our own sources in a process of its own, and of what the child says only types are taken.
        """
        if self.compiling:
            with suppress(ChildProcessError):
                if os.waitpid(self.compiling, os.WNOHANG)[0] == 0:
                    return
            self.compiling = 0
        kernels = cached.understood(wanted)
        if not kernels:
            return
        self.store.db.close()  # a connection must not be in two processes
        parent = os.getpid()
        self.compiling = os.fork()
        if self.compiling == 0:
            try:
                die_with_parent(parent)
                os.nice(10)
                cached.compile_all(kernels)
            finally:
                os._exit(0)

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
        if reason == "lost":  # cancelled, or given to somebody else
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
            self._failed(
                job, "no_memory", "There is not enough memory for this; use less data, or a machine with more."
            )
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


def _is_whole(run: Path, job: QueuedJob, end: dict[str, Any]) -> bool:
    """Whether what a child says to have made is there: plain files of its own run, and no links to others."""
    result = end["result"]
    try:
        made = [os.lstat(run / name) for name in (result["name"], SUMMARY)]
    except OSError:
        return False
    plain = all(stat.S_ISREG(m.st_mode) and m.st_nlink == 1 for m in made)
    return plain and result["lease"] == job.lease and made[0].st_size == result["bytes"]


def preload() -> None:
    """Import what jobs need, once for all of them."""
    from importlib import import_module
    from pkgutil import walk_packages

    from crowdveil import kernels
    from crowdveil.registry import ANALYSES, ATTACKS, MEASURES, all_methods

    # pandas imports numexpr, which would start threads, and no thread survives a fork.
    os.environ.setdefault("NUMEXPR_NUM_THREADS", "1")
    compiled = [found.name for found in walk_packages(kernels.__path__, f"{kernels.__name__}.")]
    for module in {*PRELOADED, *ANALYSES.values(), *ATTACKS.values(), *MEASURES.values(), *compiled}:
        import_module(module)
    for module in IF_THERE:
        with suppress(ImportError):
            import_module(module)
    all_methods()
    numba: Any = import_module("numba")
    numba.njit(lambda x: x + 1)(1)  # the compiler's own start, which every child would pay for again


class Crew:
    """Workers of one machine: forks of a process that has imported everything, so that a dead one is replaced in no time."""

    def __init__(self, make: Callable[[], Worker], number: int) -> None:
        self.make, self.number = make, number
        self.workers: set[int] = set()
        self.stopping = False

    def run(self, parent: int | None = None) -> None:
        """Keep as many workers as wanted until told to stop; with a parent, end when it ends."""
        if parent is not None:
            die_with_parent(parent)
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        preload()
        first = self.make()
        store, heartbeat = first.store, Heartbeat(first.files.root)
        void_dead(store)
        while not self.stopping:
            self._bury(store)
            store.db.close()  # a connection must not be in two processes
            while len(self.workers) < self.number:
                self._fork()
            heartbeat.beat(len(self.workers))
            time.sleep(LOOK_EVERY_S / 2)
        heartbeat.end()
        for worker in self.workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGTERM)
        for worker in self.workers:
            os.waitpid(worker, 0)

    def stop(self, *_: Any) -> None:
        """Stop as soon as can be."""
        self.stopping = True

    def _fork(self) -> None:
        me = os.getpid()
        worker = os.fork()
        if worker:
            self.workers.add(worker)
            return
        try:
            die_with_parent(me)
            mine = self.make()
            signal.signal(signal.SIGTERM, mine.stop)
            signal.signal(signal.SIGINT, mine.stop)
            mine.work()
        except BaseException as error:
            logs.say("worker", "a worker ended", logging.ERROR, **logs.located(error))
        finally:
            os._exit(0)

    def _bury(self, store: Store) -> None:
        """Take the jobs of workers that died back."""
        dead: dict[int, int] = {}
        for worker in self.workers:
            found, status = os.waitpid(worker, os.WNOHANG)
            if found == worker:
                dead[worker] = status
        self.workers -= dead.keys()
        if dead:
            with suppress(DatabaseUnavailableError):
                for worker, status in dead.items():
                    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _OWN_FAULT:
                        # Nobody sends these: the job that it held did it. Who was killed may have been killed by anybody.
                        name = f"{socket.gethostname()}:{worker}"
                        store.crashed(name, f" (signal {os.WTERMSIG(status)} in its worker)")
                void_dead(store)
                store.take_back()


def void_dead(store: Store) -> None:
    """Workers of this machine that are not there any more hold nothing; nobody has to wait for their leases."""
    here = socket.gethostname()
    for holder in store.holders():
        host, _, number = holder.rpartition(":")
        if host == here and number.isdecimal() and not _is_worker(int(number)):
            store.void(holder)


def _is_worker(process: int) -> bool:
    """Whether a number is that of a worker: numbers of processes are given again."""
    try:
        return b"worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except FileNotFoundError:
        return not Path("/proc/self").is_dir()
    except OSError:
        return True
