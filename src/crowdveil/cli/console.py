"""What a user sees while work goes on: notes and a progress bar on a terminal, and quiet in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from crowdveil.io.notes import ReadNotes
from crowdveil.progress import Progress, no_progress
from crowdveil.run.pipeline import Stage


def show_notes(notes: ReadNotes) -> None:
    """Print what was guessed and what was left out to standard error."""
    show_sentences(notes.sentences())


def show_sentences(sentences: list[str]) -> None:
    """Print notes to standard error."""
    for sentence in sentences:
        click.echo(f"note: {sentence}", err=True)


@contextmanager
def progress_bar(first_stage: str = "working") -> Iterator[tuple[Progress, Stage]]:
    """Show a bar and the name of the stage, on a terminal only."""
    if not sys.stderr.isatty():
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
