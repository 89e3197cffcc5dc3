"""The callback by which long work reports progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called repeatedly with (done, total)."""


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""
