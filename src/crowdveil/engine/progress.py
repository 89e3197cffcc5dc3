"""The callbacks by which long work reports progress, and the bar that shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int], None]
"""Called repeatedly with (done, total)."""
Stage = Callable[[str], None]
"""Called with the name of each stage as it begins."""


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""


@contextmanager
def progress_bar(first_stage: str = "working") -> Iterator[tuple[Progress, Stage]]:
    """Show a bar and the name of the stage, in a terminal or a notebook only."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield no_progress, lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: tuple[Any, ...] = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(first_stage, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        def stage(name: str) -> None:
            bar.reset(task, total=None, description=name)

        yield show, stage
