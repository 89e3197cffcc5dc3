"""Start the children of workers from a process that holds no secret.

A fork has all memory of the process that it was forked from, and a worker knows the address of the database. So no child is a
fork of a worker: the crew executes a launcher with a clean environment, which imports what jobs need, once for all of them,
and forks one starter for each worker. A starter forks a child when its worker asks for one, and ends it on request.

    crew ──exec──▶ launcher ──fork──▶ starter ──fork──▶ child
      └───fork───▶ worker ◀───────────┘
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

from crowdveil.kernels import cached
from crowdveil.server.workers.child import Confinement, Order, be_child
from crowdveil.server.workers.process import die_with_parent
from crowdveil.server.workers.sandbox.confine import clean_environment, installed, tasks_of_user
from crowdveil.threads import environment_for

PRELOADED = (
    *(f"crowdveil.api.{name}" for name in ("analyze", "attack", "compare", "describe", "measure", "release")),
    "crowdveil.report.html", "duckdb", "pyarrow.parquet", "pyarrow.csv", "pyarrow.compute", "pyarrow.dataset", "shapely",
    "pyproj", "h3", "scipy.spatial", "fastcluster",
)  # fmt: skip
IF_THERE = ("pandas", "h5py", "matplotlib.figure", "matplotlib.font_manager")
"""What is imported where it is installed: pyarrow does so at its first table, and a list of fonts is made once and kept outside
of what a job may write.
"""
_CODE = "from crowdveil.server.workers.starter import main; main()"


class StarterEndedError(Exception):
    """The process that starts children is gone; its worker can run nothing more."""


@dataclass(frozen=True)
class Starter:
    """A worker's end of the connection to its starter."""

    connection: Connection

    def start(self, order: Order, pipe: int) -> int:
        """Start a child, which writes to a pipe; returns its process."""
        with _or_ended():
            self.connection.send_bytes(json.dumps(asdict(order)).encode())
            send_handle(self.connection, pipe, 0)
            return int(self.connection.recv_bytes())

    def end(self, compiled: list[Any]) -> int:
        """End the child and all that it started, and have kernels compiled that it lacked; returns its status."""
        with _or_ended():
            self.connection.send_bytes(json.dumps(compiled).encode())
            return int(self.connection.recv_bytes())


class Launcher:
    """The crew's end of the connection to the launcher, whose `jobs` jobs at once share the processors."""

    def __init__(self, jobs: int = 1) -> None:
        self.connection, theirs = Pipe()
        command = [sys.executable, "-P", "-c", _CODE, str(theirs.fileno()), str(os.getpid())]
        environment = clean_environment(os.environ) | environment_for(jobs)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env=environment,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def wait(self) -> None:
        """Wait until everything is imported."""
        with _or_ended():
            self.connection.recv_bytes()

    def starter(self) -> Starter:
        """Start one more starter."""
        ours, theirs = Pipe()
        with _or_ended():
            send_handle(self.connection, theirs.fileno(), 0)
        theirs.close()
        return Starter(ours)


@contextmanager
def _or_ended() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise StarterEndedError from None


def main() -> None:
    """Be the launcher, until the crew ends."""
    orders, crew = Connection(int(sys.argv[1])), int(sys.argv[2])
    die_with_parent(crew)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # a worker that stops ends its child itself
    preload()
    installed()  # found once, and not by each child
    cached.folders()  # nor by each starter
    orders.send_bytes(b"ready")
    me = os.getpid()
    while True:
        try:
            handle = recv_handle(orders)
        except (EOFError, OSError):
            return
        with suppress(ChildProcessError):  # starters whose workers ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            orders.close()
            be_starter(Connection(handle), me)
        os.close(handle)


def be_starter(worker: Connection, parent: int, *, confined: bool = True) -> None:
    """Start one child after another until the worker ends. Called right after the fork; never returns.

    Only tests have children that are not confined.
    """
    try:
        die_with_parent(parent)
        tasks, read, compiling = tasks_of_user(), tuple(cached.folders()), 0
        while True:
            order, pipe = Order(**json.loads(worker.recv_bytes())), recv_handle(worker)
            wanted = _run(worker, order, pipe, Confinement(order.memory, tasks, read) if confined else None)
            compiling = _compile(wanted, compiling)
    except (EOFError, OSError):
        pass  # the worker ended
    finally:
        os._exit(0)


def _run(worker: Connection, order: Order, pipe: int, confinement: Confinement | None) -> Any:
    """Run a child until its worker says that it is to end, or ends itself; returns kernels that the child lacked."""
    me = os.getpid()
    child = os.fork()
    if child == 0:
        be_child(order, pipe, me, confinement)
    os.close(pipe)
    try:
        worker.send_bytes(str(child).encode())
        wanted = json.loads(worker.recv_bytes())
    finally:
        # Not waited for before, so that the number is still that of the child.
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    worker.send_bytes(str(status).encode())
    return wanted


def _compile(wanted: Any, compiling: int) -> int:
    """Have kernels compiled that a child lacked, for later ones: a confined child cannot keep what it compiles.

    It is done from our own sources in a process of its own, one at a time, and of what the child says only types are taken.
    Returns the process, 0 for none.
    """
    if compiling:
        with suppress(ChildProcessError):
            if os.waitpid(compiling, os.WNOHANG)[0] == 0:
                return compiling
    kernels = cached.understood(wanted)
    if not kernels:
        return 0
    parent = os.getpid()
    compiling = os.fork()
    if compiling == 0:
        try:
            die_with_parent(parent)
            os.nice(10)
            cached.compile_all(kernels)
        finally:
            os._exit(0)
    return compiling


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
