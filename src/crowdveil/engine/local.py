"""Run partitions on the threads of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy.typing as npt

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.engine.threads import thread_count

T = TypeVar("T")
Arrays = tuple[npt.NDArray[Any], ...]
"""Results of a partition."""
Task = Callable[[int], Arrays]
"""The task of one partition, by its number from 0. Pure: equal numbers give equal arrays."""

TICK_S = 0.1
"""Seconds between calls of progress."""
FINISH_S = 0.5
"""Seconds to wait for running tasks after an interrupt; kernels that take longer are left behind."""
THREAD_NAME = "crowdveil-task"


_task_seconds: ContextVar[list[list[float]] | None] = ContextVar("task_seconds", default=None)


@contextmanager
def timed_tasks() -> Iterator[list[list[float]]]:
    """Collect the processor seconds of tasks: for each call of `LocalEngine.map` inside the block those of its partitions."""
    collected: list[list[float]] = []
    before = _task_seconds.set(collected)
    try:
        yield collected
    finally:
        _task_seconds.reset(before)


class LocalEngine:
    """Runs tasks on threads of this machine, in parallel while they release the interpreter lock, as kernels do.

    Parameters
    ----------
    threads
        Number of threads; by default one per processor.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or thread_count()

    def map(self, task: Task, count: int, progress: Progress = no_progress) -> list[Arrays]:
        """Run the task for partitions 0 to `count` - 1 and return results in this order.

        `progress` is called in the caller's thread with an ascending number of done partitions that ends at `count`. If
        tasks fail, no more are started, and the error of the lowest failing partition is raised unchanged.
        """
        work = _Work(task, count)
        self._supervise(work, progress)
        if work.failed:
            raise work.failed[min(work.failed)]
        progress(count, count)
        collected = _task_seconds.get()
        if collected is not None:
            collected.append([work.seconds[partition] for partition in range(count)])
        return [work.results[partition] for partition in range(count)]

    def _supervise(self, work: _Work, progress: Progress) -> None:
        """Start the threads; the caller's thread reports progress and can be interrupted."""
        # Python does not wait for daemons at its end: an interrupt is not held up by a long kernel.
        running = [
            threading.Thread(target=work.run, name=THREAD_NAME, daemon=True)
            for _ in range(min(self.threads, work.count))
        ]
        try:
            for thread in running:
                thread.start()
            reported = 0
            while _join(running, TICK_S):
                if reported < (done := len(work.results)) < work.count:
                    progress(reported := done, work.count)
        except BaseException as error:
            work.stopped = True  # no other task starts
            _join(running, FINISH_S if isinstance(error, KeyboardInterrupt) else None)
            raise


def _join(threads: list[threading.Thread], seconds: float | None) -> bool:
    """Wait for threads, at most some seconds in all; return whether one still runs."""
    end = None if seconds is None else time.monotonic() + seconds
    for thread in threads:
        if thread.ident is not None:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
    return any(thread.is_alive() for thread in threads)


def kernels_running() -> bool:
    """Return whether a thread of this process is still at a task."""
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


def apart(work: Callable[[], T]) -> T:
    """Run one long kernel in another thread, so that an interrupt ends it."""
    made: list[T] = []

    def task(partition: int) -> Arrays:
        made.append(work())
        return ()

    LocalEngine(1).map(task, 1)
    return made[0]


class _Work:
    """Tasks and results; threads take one partition at a time.

    Taking a partition costs a microsecond, where a future each would cost thirty, and keeps all threads busy to the end.
    Partitions are taken in order, so when one fails, all before it run to their end: the lowest failing partition is always
    among those seen.
    """

    def __init__(self, task: Task, count: int) -> None:
        self.task, self.count = task, count
        self.results: dict[int, Arrays] = {}
        self.failed: dict[int, BaseException] = {}
        self.seconds: dict[int, float] = {}
        self.stopped = False
        self._next = iter(range(count))
        self._lock = threading.Lock()

    def run(self) -> None:
        """Run partitions until there are none left, or the work is stopped."""
        while (partition := self._take()) is not None:
            begin = time.thread_time()
            try:
                arrays = self.task(partition)
            except BaseException as error:
                with self._lock:
                    self.failed[partition], self.stopped = error, True
            else:
                with self._lock:
                    self.results[partition] = arrays
                    self.seconds[partition] = time.thread_time() - begin

    def _take(self) -> int | None:
        with self._lock:
            return None if self.stopped else next(self._next, None)
