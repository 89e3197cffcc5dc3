"""Show what a command has to say: its lines, and its notes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from crowdveil.errors import printable
from crowdveil.io.notes import ReadNotes
from crowdveil.kernels._jit import compiled_before


def show_lines(lines: Iterable[str]) -> None:
    """Print lines, which may have names from files of strangers, to standard output."""
    click.echo("\n".join(map(printable, lines)))


def show_notes(notes: ReadNotes) -> None:
    """Print notes to standard error, with warnings highlighted."""
    warnings = notes.warnings()
    for sentence in warnings:
        click.echo(click.style(f"warning: {printable(sentence)}", fg="yellow", bold=True), err=True)
    show_sentences([sentence for sentence in notes.sentences() if sentence not in warnings])


def show_if_compiling() -> None:
    """Explain at a terminal why the first run takes longer."""
    if sys.stderr.isatty() and not compiled_before():
        show_sentences(["Compiling for this machine, once after each update. This takes up to two minutes."])


def show_sentences(sentences: list[str]) -> None:
    """Print notes to standard error."""
    for sentence in sentences:
        click.echo(f"note: {printable(sentence)}", err=True)
