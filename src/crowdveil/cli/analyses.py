"""Commands of analyses, each drawn from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil import api
from crowdveil.analysis.base import IN_THE_HOUSE, Analysis
from crowdveil.analysis.study import StudyReading
from crowdveil.cli.console import progress_bar, show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.io.notes import ReadNotes
from crowdveil.registry import find_analysis


def command_of(name: str) -> click.Command:
    """The command of an analysis."""
    analysis = find_analysis(name)

    def call(release: str, output: str | None, plot: str | None, overwrite: bool, **values: Any) -> None:
        original, notes = values.pop("original", None), ReadNotes()
        options = given(analysis.params, values) | given(StudyReading, values)
        with progress_bar() as (progress, stage):
            found = api.analyse(
                name, release, output, original=original, plot=plot, overwrite=overwrite, notes=notes,
                progress=progress, stage=stage, **options,
            )  # fmt: skip
            lines = found.lines()
        show_notes(notes)
        click.echo("\n".join(lines))
        if original is not None:
            click.echo(IN_THE_HOUSE)
        for file in (output, plot):
            if file is not None:
                click.echo(f"{Path(file)}: written")

    return click.Command(name, callback=call, params=_options(analysis), help=_help(analysis))


def _options(analysis: Analysis) -> list[click.Parameter]:
    original = click.Option(
        ["--original"], metavar="TRIPS_OR_FLOWS",
        help="What the release was made from, to be put beside it. What comes of it is exact and stays in the house.",
    )  # fmt: skip
    return [
        click.Argument(["release"], metavar="RELEASE_FOLDER"),
        *options_of(analysis.params),
        *([original] if analysis.compares else []),
        click.Option(["-o", "--output"], metavar="FILE", help="Write all of it: .csv, .parquet or .json."),
        click.Option(["--plot"], metavar="FILE", help="Draw it: .png. Needs matplotlib (extra report)."),
        click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
        *options_of(StudyReading),
    ]


def _help(analysis: Analysis) -> str:
    """What it does, where it is documented, and examples."""
    examples = "\n".join(f"  crowdveil {analysis.name} {example}" for example in analysis.examples)
    extra = f" Needs the extra {analysis.extra}." if analysis.extra else ""
    return f"{analysis.summary}{extra}\n\n{analysis.help}\n\n\b\nExamples:\n{examples}"
