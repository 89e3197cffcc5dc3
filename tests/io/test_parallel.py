"""Jobs on threads: results in the order of the jobs, and no thread for a single job."""

from __future__ import annotations

import random
import threading
import weakref
from functools import partial
from typing import Any

import pytest

from crowdveil.io.parallel import run_ordered, run_parallel


@pytest.mark.parametrize("last_first", [False, True])
def test_results_are_in_the_order_of_the_jobs(last_first: bool) -> None:
    for jobs in range(1, 4):
        assert (
            run_parallel(*(partial(pow, 2, i) for i in range(1, jobs + 1)), last_first=last_first) == [2, 4, 8][:jobs]
        )


def test_a_single_job_needs_no_thread() -> None:
    here = threading.get_ident()
    assert run_parallel(threading.get_ident) == [here]
    assert here not in run_parallel(threading.get_ident, threading.get_ident)


@pytest.mark.parametrize("others", [0, 1])
def test_the_error_of_a_job_is_raised(others: int) -> None:
    with pytest.raises(ZeroDivisionError):
        run_parallel(lambda: 1 / 0, *[lambda: 1] * others)


def test_jobs_begin_a_few_ahead_and_end_in_order() -> None:
    begun: list[int] = []

    def jobs() -> Any:
        for i in range(50):
            begun.append(i)
            yield lambda i=i: sum(range(random.randint(0, 3000))) * 0 + i

    found = []
    for done in run_ordered(jobs()):
        found.append(done)
        assert len(begun) <= done + 40, "not all at once"
    assert found == list(range(50))


def test_a_single_chunk_needs_no_thread() -> None:
    here = threading.get_ident()
    assert list(run_ordered([threading.get_ident])) == [here] and list(run_ordered([])) == []
    assert here not in list(run_ordered([threading.get_ident] * 2))


def test_inputs_of_jobs_that_are_done_are_let_go() -> None:
    class Chunk:
        """Rows of a job."""

    alive: list[weakref.ref[Chunk]] = []

    def jobs() -> Any:
        for i in range(20):
            chunk = Chunk()
            alive.append(weakref.ref(chunk))
            yield partial(lambda i, _: i, i, chunk)

    for done in run_ordered(jobs()):
        assert done < 15 or not any(chunk() for chunk in alive[:5])
    assert done == 19


def test_a_job_that_fails_is_reported_in_its_turn() -> None:
    def fail() -> int:
        raise ValueError("third")

    results = run_ordered([lambda: 1, lambda: 2, fail, lambda: 4])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(results)
