"""Let an interrupt (Ctrl-C, KeyboardInterrupt) end compiled code.

Python acts on a signal only in the main thread, and only when that is back from compiled code. So long kernels run in threads of
an engine while the main thread waits (see `crowdveil.engine.local`), and look now and then at a flag that is set on an interrupt.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP = ctypes.c_int8(0)
"""Not 0 while kernels are to end; see `crowdveil.kernels._jit.end_if_stopped`. All threads share it: an interrupt ends all
kernels of the process that look at it."""
_lock = threading.Lock()


class KernelStoppedError(Exception):
    """A kernel was ended by an interrupt of the main thread; compiled code cannot raise KeyboardInterrupt itself."""


@contextmanager
def kernels_stopped() -> Iterator[None]:
    """Have running kernels end with KernelStoppedError."""
    with _lock:
        STOP.value += 1
    try:
        yield
    finally:
        with _lock:
            STOP.value -= 1


def interrupted(error: BaseException) -> bool:
    """Return whether an interrupt is behind an error: one that comes in the middle of compiled code ends as a SystemError."""
    return caused_by(error, KeyboardInterrupt)


def caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    """Return whether an error is of a kind, or came from one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kind):
        cause = cause.__cause__ or cause.__context__
    return cause is not None
