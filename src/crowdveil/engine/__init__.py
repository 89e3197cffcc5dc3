"""Engines that run partitions.

On one machine, a method gives the task of one time step to the current engine, which runs it for all of them: `current().map`.
A caller chooses another number of threads with `use`.

On a cluster, the data stays there, and the whole run is done in partitions: `crowdveil.engine.spark.SparkEngine` reads and groups
rows, maps functions over Arrow tables and collects few rows. It knows neither flows nor trajectories. A kind of partition is two
functions of plain values that can be sent to executors:

    map_rows(frame, reader, schema)          reader(Arrow batches) → Arrow batches: rows with the key of their partition
    map_groups(frame, key, part, schema, n)  part(Arrow table of a partition) → Arrow table: its results, as one row

The engine passes on a CrowdveilError that one of them raises. `crowdveil.run.spark` has the functions of flows and
trajectories, and assembles a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from crowdveil.engine.local import Arrays, LocalEngine, Task, apart, timed_tasks

__all__ = [
    "Arrays",
    "LocalEngine",
    "Task",
    "apart",
    "current",
    "timed_tasks",
    "use",
]

_DEFAULT = LocalEngine()
_in_use: ContextVar[LocalEngine] = ContextVar("crowdveil_engine")


def current() -> LocalEngine:
    """Return the current engine: all threads of this machine, unless a caller chose another with `use`."""
    return _in_use.get(_DEFAULT)


@contextmanager
def use(engine: LocalEngine) -> Iterator[LocalEngine]:
    """Run all partitions of the block on `engine`. Threads started inside do not inherit it."""
    before = _in_use.set(engine)
    try:
        yield engine
    finally:
        _in_use.reset(before)
