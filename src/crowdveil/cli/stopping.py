"""End a command within seconds of Ctrl-C or SIGTERM, whatever it is doing.

Python acts on a signal only when the main thread is back from compiled code, which for a long method may take minutes. So a
thread of its own hears of signals at once. It lets the command end in the usual way; if that takes too long, it removes what
is unfinished and ends the process. A command that worked ends at once, too.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

GRACE_S = 2.0
"""How long a command may take to end in the usual way."""
SENTENCE = "Stopped; nothing was written."


class Watch:
    """State of a signal that ends the command."""

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        self.ended = threading.Event()

    @property
    def code(self) -> int:
        """Return the exit code that shells give a command ended by the signal: 130 or 143."""
        return 128 + self.number

    def terminated(self, _number: int, _frame: Any) -> None:
        """Handle SIGTERM as Ctrl-C is handled."""
        self.number = signal.SIGTERM
        raise KeyboardInterrupt

    def wait(self, heard: int, end: Callable[[int, str], Any]) -> None:
        """Read signal numbers from a pipe, and call `end` if the command goes on for too long after one."""
        while numbers := os.read(heard, 1):
            number = numbers[0]
            if number not in (signal.SIGINT, signal.SIGTERM) or not self._ours():
                continue
            self.number = number
            if not self.ended.wait(GRACE_S) and self._ours():
                end(self.code, SENTENCE)

    def _ours(self) -> bool:
        """Return whether a signal ends the command: a server handles it itself, and Spark must first end its jobs."""
        return signal.getsignal(signal.SIGTERM) == self.terminated and "pyspark" not in sys.modules


@contextmanager
def prompt_stop() -> Iterator[Watch]:
    """Listen to signals while a command runs."""
    watch = Watch()
    heard, signaled = os.pipe()
    os.set_blocking(signaled, False)
    signal.signal(signal.SIGTERM, watch.terminated)
    before = signal.set_wakeup_fd(signaled, warn_on_full_buffer=False)
    process, hook = os.getpid(), sys.unraisablehook
    # An interrupt that reaches Python inside the compiler is lost there; the thread ends the process then, with one sentence.
    sys.unraisablehook = lambda lost: None if issubclass(lost.exc_type, KeyboardInterrupt) else hook(lost)
    thread = threading.Thread(target=watch.wait, args=(heard, end_now), daemon=True, name="crowdveil-stop")
    thread.start()
    try:
        yield watch
    finally:
        watch.ended.set()
        sys.unraisablehook = hook
        if os.getpid() == process:  # a worker that was forked inside has a thread less
            if signal.set_wakeup_fd(-1) == signaled:
                signal.set_wakeup_fd(before)
            os.close(signaled)
            thread.join()
            os.close(heard)


def threads_left() -> bool:
    """Return whether threads of a pool are at work, which Python would wait for at its end."""
    return any(thread.name.startswith("ThreadPoolExecutor-") for thread in threading.enumerate())


def end_now(code: int, sentence: str) -> None:
    """Remove what is unfinished and end the process, without waiting for threads that compute."""
    if "crowdveil.io.atomic" in sys.modules:  # nothing is unfinished before it is loaded, and --help never loads it
        from crowdveil.io.atomic import remove_unfinished

        remove_unfinished()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError):
        os.write(2, f"crowdveil: {sentence}\n".encode())
    os._exit(code)


def end_quickly() -> None:
    """End the process of a command that worked, without freeing each object, which takes a twelfth of a small run.

    What is registered for the end of the process is done. Where a thread is left, or something watches the process and writes of
    it later (a profile, coverage, Spark), Python ends it in the usual way.
    """
    if _watched() or any(not t.daemon for t in threading.enumerate() if t is not threading.main_thread()):
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return  # a stream is closed: Python knows what to say
    os._exit(0)


def _watched() -> bool:
    """Return whether a profiler, a debugger or a library with work to do at the end is there."""
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    tools = monitoring is not None and any(monitoring.get_tool(number) for number in range(6))
    libraries = any(name in sys.modules for name in ("coverage", "pyspark"))
    return tools or libraries or sys.getprofile() is not None or sys.gettrace() is not None


def _forget() -> None:
    """Keep a forked process from passing its signals to its parent."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forget)
