"""Where partitions run.

On one machine methods hand over the work of one time step, and the engine in use does it for all of them: `current().map`. It is
chosen with `use`, and no method knows which it is.

On a cluster the data does not come here, so the whole of a run is done in parts: `crowdveil.engine.spark.SparkEngine` reads and
groups rows, maps functions over Arrow tables, gathers few rows and writes many. It knows neither flows nor trajectories. A new
kind of partition is made of two functions that it is given, both of plain values that can be sent to executors:

    map_rows(frame, reader, schema)          reader(Arrow batches) → Arrow batches: rows with the key of their part
    map_groups(frame, key, part, schema, n)  part(Arrow table of a part) → Arrow table: rows of the release, and what is told

An error of ours that one of them raises comes out of the engine as it was. `crowdveil.run.spark` has those of flows, says what
a kind needs besides, and puts a run together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from crowdveil.engine.finished import Arrays, FinishedPartitions, StoppedEarlyError, keep_until_done
from crowdveil.engine.local import Engine, LocalEngine, Task

__all__ = [
    "Arrays",
    "Engine",
    "FinishedPartitions",
    "LocalEngine",
    "StoppedEarlyError",
    "Task",
    "current",
    "keep_until_done",
    "use",
]

_EVERYWHERE = LocalEngine()
_in_use: ContextVar[Engine] = ContextVar("crowdveil_engine")


def current() -> Engine:
    """The engine in use here: all threads of this machine, unless a caller chose another with `use`."""
    return _in_use.get(_EVERYWHERE)


@contextmanager
def use(engine: Engine) -> Iterator[Engine]:
    """Let everything called inside run its partitions on `engine`. Threads started inside do not inherit it."""
    before = _in_use.set(engine)
    try:
        yield engine
    finally:
        _in_use.reset(before)
