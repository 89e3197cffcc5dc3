"""Commands of analyses, each drawn from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil import api
from crowdveil.analysis.base import Analysis
from crowdveil.analysis.study import Study, StudyReading
from crowdveil.cli.console import progress_bar, show_notes
from crowdveil.cli.main import COMMANDS
from crowdveil.cli.options import given, options_of
from crowdveil.io.notes import ReadNotes
from crowdveil.reading import READINGS, TrajectoryReading
from crowdveil.registry import find_analysis

IN_THE_HOUSE = "The original was read: these numbers are exact and stay in the house."


def command_of(name: str) -> click.Command:
    """The command of an analysis."""
    analysis = find_analysis(name)
    reading = READINGS.get(analysis.takes, StudyReading)

    def call(data: str, output: str | None, overwrite: bool, **values: Any) -> None:
        options = given(analysis.params, values) | given(reading, values)
        perform(name, data, output, overwrite, options, values.get("original"), values.get("plot"))

    options = _of_study(analysis) if analysis.takes is Study else _of_trajectories(analysis)
    return click.Command(name, callback=call, params=options, help=_help(analysis), short_help=analysis.summary)


def perform(
    name: str,
    data: str,
    output: str | None,
    overwrite: bool,
    options: dict[str, Any],
    original: str | None = None,
    plot: str | None = None,
) -> None:
    """Run an analysis, tell what it found, and where it was written."""
    notes = ReadNotes()
    with progress_bar() as (progress, stage):
        found = api.analyse(
            name, data, output, original=original, plot=plot, overwrite=overwrite, notes=notes, progress=progress,
            stage=stage, **options,
        )  # fmt: skip
        lines = found.lines()
    show_notes(notes)
    click.echo("\n".join(lines))
    if original is not None:
        click.echo(IN_THE_HOUSE)
    for file in (output, plot):
        if file is not None:
            click.echo(f"{Path(file)}: written")


def _of_trajectories(analysis: Analysis) -> list[click.Parameter]:
    return [
        click.Argument(["data"], metavar="TRAJECTORIES"),
        *options_of(analysis.params),
        click.Option(["-o", "--output"], metavar="FOLDER_OR_FILE", help="Write all of it, or what the ending says."),
        click.Option(["--overwrite"], is_flag=True, help="Replace what exists."),
        *[o for o in options_of(TrajectoryReading) if o.name not in ("zones", "zone_id")],
    ]


def _of_study(analysis: Analysis) -> list[click.Parameter]:
    original = click.Option(
        ["--original"], metavar="TRIPS_OR_FLOWS",
        help="What the release was made from, to be put beside it. What comes of it is exact and stays in the house.",
    )  # fmt: skip
    return [
        click.Argument(["data"], metavar="RELEASE_FOLDER"),
        *options_of(analysis.params),
        *([original] if analysis.compares else []),
        click.Option(["-o", "--output"], metavar="FILE", help="Write all of it: .csv, .parquet or .json."),
        click.Option(["--plot"], metavar="FILE", help="Draw it: .png. Needs matplotlib (extra report)."),
        click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
        *options_of(StudyReading),
    ]


def _help(analysis: Analysis) -> str:
    """What it does, where it is documented, and examples."""
    command = analysis.name if analysis.name in COMMANDS else f"analyze {analysis.name}"
    examples = "\n".join(f"  crowdveil {command} {example}" for example in analysis.examples)
    extra = f" Needs the extra {analysis.extra}." if analysis.extra else ""
    return f"{analysis.summary}{extra}\n\n{analysis.help}\n\n\b\nExamples:\n{examples}"
