"""Run independent jobs on threads: numpy, Arrow and the kernels release the interpreter lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from crowdveil.engine.threads import thread_count

Result = TypeVar("Result")


def run_parallel(*jobs: Callable[[], Any], last_first: bool = False) -> list[Any]:
    """Run jobs in parallel, at most one per core, and return their results in order. Raise the first error.

    With `last_first` the last job is started first. A single job is done without a thread.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    order = -1 if last_first else 1
    with ThreadPoolExecutor(min(len(jobs), thread_count())) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs[::order]][::order]]


def run_ordered(jobs: Iterable[Callable[[], Result]]) -> Iterator[Result]:
    """Run jobs on threads, a few ahead of the consumer, and yield results in the order of the jobs.

    Jobs are drawn from the iterable when they start, so that their inputs need not all be in memory. A single one, as of
    small data, is done without a thread.
    """
    later = iter(jobs)
    first = list(islice(later, 2))
    if len(first) < 2:
        yield from (job() for job in first)
        return
    threads = thread_count()
    started: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for job in _emptied(first, later):
            started.append(pool.submit(job))
            if len(started) > threads:  # one more than threads, so that none idles while a result is used
                yield started.popleft().result()
        while started:
            yield started.popleft().result()


def _emptied(first: list[Result], later: Iterator[Result]) -> Iterator[Result]:
    """Yield the items of a list and then others; the list keeps none of them."""
    while first:
        yield first.pop(0)
    yield from later
