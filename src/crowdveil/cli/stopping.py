"""End a command soon after Ctrl-C or SIGTERM.

Python handles signals only in the main thread, and not in compiled code. Long kernels therefore run in other threads, while the
main thread waits (see `crowdveil.engine.local`), and a command that is stopped does not wait for them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from crowdveil.engine.local import kernels_running
from crowdveil.io.atomic import remove_unfinished

SENTENCE = "Stopped; nothing was written."


class Signals:
    """The signal that ends a command."""

    def __init__(self) -> None:
        self.number: int = signal.SIGINT

    @property
    def code(self) -> int:
        """Return the exit code of shells for a command that a signal ended: 130 or 143."""
        return 128 + self.number

    def interrupt(self, number: int, _frame: Any) -> None:
        """Handle SIGTERM like Ctrl-C."""
        self.number = number
        raise KeyboardInterrupt


@contextmanager
def interrupt_on_sigterm() -> Iterator[Signals]:
    """Let SIGTERM interrupt a command like Ctrl-C."""
    signals = Signals()
    before = signal.signal(signal.SIGTERM, signals.interrupt)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGTERM, before)


def leave_kernels(number: int, sentence: str) -> None:
    """End the process by a signal if kernels are running: a normal exit would unload their machine code."""
    if not kernels_running():
        return
    remove_unfinished()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.write(f"crowdveil: {sentence}\n")
        sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
