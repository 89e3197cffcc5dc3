"""What a user sees of a command: its notes."""

from __future__ import annotations

import click

from crowdveil.io.notes import ReadNotes


def show_notes(notes: ReadNotes) -> None:
    """Print what was guessed and what was left out to standard error."""
    show_sentences(notes.sentences())


def show_sentences(sentences: list[str]) -> None:
    """Print notes to standard error."""
    for sentence in sentences:
        click.echo(f"note: {sentence}", err=True)
