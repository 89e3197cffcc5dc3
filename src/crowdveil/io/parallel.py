"""Independent work on threads: numpy, Arrow and our kernels let go of the interpreter while they compute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from crowdveil.threads import thread_count

Done = TypeVar("Done")


def side_by_side(*jobs: Callable[[], Any]) -> list[Any]:
    """Run jobs at the same time, as far as there are cores; their results, in order. The first error is raised."""
    with ThreadPoolExecutor(min(len(jobs), thread_count())) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


def in_order(jobs: Iterable[Callable[[], Done]]) -> Iterator[Done]:
    """Run jobs on threads, a few ahead of whoever takes the results; these come in the order of the jobs.

    Jobs are asked for as they are begun, so that what they work on need not be there all at once.
    """
    threads = thread_count()
    begun: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for job in jobs:
            begun.append(pool.submit(job))
            if len(begun) > threads:  # one more than there are threads, so that none waits while a result is used
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
