"""Jobs on threads: results in the order of the jobs, and no thread for a single job."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from crowdveil.io.parallel import run_parallel


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
