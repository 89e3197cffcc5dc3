"""Where partitions run: methods hand over the work of one time step, and the engine in use does it for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from crowdveil.engine.finished import Arrays, FinishedSteps, StoppedEarly
from crowdveil.engine.local import Engine, LocalEngine, Task

__all__ = ["Arrays", "Engine", "FinishedSteps", "LocalEngine", "StoppedEarly", "Task", "current", "use"]

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
