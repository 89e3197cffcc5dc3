"""Report that a kernel is about to be compiled, which the first run after an installation does."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def on_first_compilation(listener: Callable[[], None]) -> None:
    """Have a function called once, before the first kernel that is not on the disk is compiled."""
    _listeners.append(listener)


def report_compilation() -> None:
    """Call the functions that wait for a compilation, each once."""
    while _listeners:
        _listeners.pop()()
