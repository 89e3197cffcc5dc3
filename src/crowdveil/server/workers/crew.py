"""The workers of one machine: started, replaced when they end, and their jobs taken back."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from crowdveil.server import logs
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.queue.store import Store
from crowdveil.server.settings import Settings
from crowdveil.server.workers.heartbeat import Heartbeat
from crowdveil.server.workers.process import die_with_parent
from crowdveil.server.workers.starter import Launcher, StarterEndedError
from crowdveil.server.workers.worker import LOOK_EVERY_S, Worker

_OWN_FAULT = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


class Crew:
    """Workers of one machine; one that ends is replaced."""

    def __init__(self, settings: Settings, number: int) -> None:
        self.settings, self.number = settings, number
        self.workers: set[int] = set()
        self.stopping = False

    def run(self, parent: int | None = None) -> None:
        """Keep as many workers as wanted until stopped; with a parent, end when it ends."""
        if parent is not None:
            die_with_parent(parent)
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        launcher = Launcher(self.number)
        service = self.settings.open()
        store, heartbeat = service.store, Heartbeat(service.files.root)
        void_dead(store)
        try:
            self._keep(launcher, store, heartbeat)
        except StarterEndedError:
            # The supervisor starts this process again; its workers end with it, and their jobs are taken back.
            logs.say("worker", "the process that starts jobs ended", logging.ERROR)
            raise SystemExit(1) from None
        heartbeat.end()
        for worker in self.workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGTERM)
        for worker in self.workers:
            os.waitpid(worker, 0)

    def _keep(self, launcher: Launcher, store: Store, heartbeat: Heartbeat) -> None:
        launcher.wait()
        while not self.stopping:
            self._bury(store)
            store.db.close()  # a connection must not be in two processes
            while len(self.workers) < self.number:
                self._fork(launcher)
            heartbeat.beat(len(self.workers))
            time.sleep(LOOK_EVERY_S / 2)

    def stop(self, *_: Any) -> None:
        """Stop as soon as can be."""
        self.stopping = True

    def _fork(self, launcher: Launcher) -> None:
        me, starter = os.getpid(), launcher.starter()
        worker = os.fork()
        if worker:
            starter.connection.close()  # so that it ends with its worker
            self.workers.add(worker)
            return
        try:
            die_with_parent(me)
            launcher.connection.close()
            service = self.settings.open()
            mine = Worker(service.store, service.files, starter, self.settings.lease_s, self.settings.memory_bytes)
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
                        # These signals come from the job itself. SIGKILL may come from outside.
                        name = f"{socket.gethostname()}:{worker}"
                        store.crashed(name, f" (signal {os.WTERMSIG(status)} in its worker)")
                void_dead(store)
                store.take_back()


def void_dead(store: Store) -> None:
    """Release the leases of workers of this machine that have ended, so that no job waits for them."""
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
