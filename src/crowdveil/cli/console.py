"""What a user sees of a command: its notes."""

from __future__ import annotations

import json
from typing import Any

import click

from crowdveil.io.notes import ReadNotes


def show_notes(notes: ReadNotes) -> None:
    """Print what was guessed and what was left out to standard error; warnings are highlighted."""
    warnings = notes.warnings()
    for sentence in warnings:
        click.echo(click.style(f"warning: {sentence}", fg="yellow", bold=True), err=True)
    show_sentences([sentence for sentence in notes.sentences() if sentence not in warnings])


def show_result(found: Any, *, as_json: bool) -> None:
    """Print a result as lines, or as JSON."""
    click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False) if as_json else "\n".join(found.lines()))


def show_sentences(sentences: list[str]) -> None:
    """Print notes to standard error."""
    for sentence in sentences:
        click.echo(f"note: {sentence}", err=True)
