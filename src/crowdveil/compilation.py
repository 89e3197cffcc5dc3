"""Report that a kernel is about to be compiled, which the first run after an installation does."""

from __future__ import annotations

from collections.abc import Callable

_listener: Callable[[], None] | None = None


def on_first_compilation(listener: Callable[[], None]) -> None:
    """Have a function called once, before the first kernel that is not on the disk is compiled."""
    global _listener
    _listener = listener


def report_compilation() -> None:
    """Call the function that waits for a compilation, once."""
    global _listener
    listener, _listener = _listener, None
    if listener is not None:
        listener()
