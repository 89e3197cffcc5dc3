"""The number of threads, decided in one place: `CROWDVEIL_THREADS`, or else the processors that this process may use."""

from __future__ import annotations

import os

from crowdveil.errors import Name, ParameterError

VARIABLE = "CROWDVEIL_THREADS"
_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables of libraries; Arrow reads the first. NumExpr is not among them: the service must keep it at one."""


def processors() -> int:
    """Return the number of processors that this process may use: fewer than the machine has, under CPU affinity."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Return the number of threads that work on one thing."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        return processors()
    if not given.isascii() or not given.isdecimal() or int(given) == 0:
        raise ParameterError(Name(VARIABLE), "Expected a number of threads of at least 1. Fix it, or unset it.")
    return int(given)


def environment_for(processes: int) -> dict[str, str]:
    """Return the variables under which `processes` processes together use as many threads as one would alone."""
    share = str(max(1, thread_count() // max(1, processes)))
    return {VARIABLE: share} | {name: os.environ.get(name, share) for name in _LIBRARIES}
