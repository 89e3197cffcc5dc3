"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, total) now and then."""


def no_progress(done: int, total: int) -> None:
    """Show nothing."""
