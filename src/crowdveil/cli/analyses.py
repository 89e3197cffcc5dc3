"""Commands of analyses, each drawn from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil import api
from crowdveil.analysis.base import IN_THE_HOUSE, Analysis
from crowdveil.analysis.study import StudyReading
from crowdveil.cli.console import progress_bar, show_notes
from crowdveil.cli.elsewhere import (
    LARGEST,
    Elsewhere,
    check_file,
    elsewhere,
    form_of,
    put_file,
    server_options,
    split_files,
)
from crowdveil.cli.options import given, options_of
from crowdveil.io.archive import unpack
from crowdveil.io.notes import ReadNotes
from crowdveil.registry import find_analysis


def command_of(name: str) -> click.Command:
    """The command of an analysis."""
    analysis = find_analysis(name)

    def call(release: str, output: str | None, plot: str | None, overwrite: bool, **values: Any) -> None:
        original, notes, there = values.pop("original", None), ReadNotes(), elsewhere(values)
        options = given(analysis.params, values) | given(StudyReading, values)
        if there is not None:
            _run_there(there, name, release, original, output, plot, overwrite, options)
            return
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


def _run_there(
    there: Elsewhere, name: str, release: str, original: str | None, output: str | None, plot: str | None,
    overwrite: bool, options: dict[str, Any],
) -> None:  # fmt: skip
    api.check_outputs(output, plot)
    for target in (output, plot):
        check_file(target, overwrite=overwrite)
    study, files = split_files(StudyReading, {n: v for n, v in options.items() if n in StudyReading.model_fields})
    rest = {n: v for n, v in options.items() if n not in StudyReading.model_fields}
    uploads = {"release": release, **({} if original is None else {"original": original}), **files}
    form = form_of(output, "json")

    def take(_job: dict[str, Any], result: Path) -> None:
        found = {f"{name}.{form}": output, f"{name}.png": plot}
        if plot is None:
            put_file(result, Path(str(output)), overwrite=overwrite)
            return
        unpacked = result.with_name("unpacked")
        unpack(result, unpacked, LARGEST)
        for made, target in found.items():
            if target is not None:
                put_file(unpacked / made, Path(target), overwrite=overwrite)

    job = there.run(
        "analyses", name, {**rest, **study, "format": form, "plot": plot is not None}, uploads, take,
        fetch=output is not None or plot is not None,
    )  # fmt: skip
    if job is not None:
        written = [f"{Path(file)}: written" for file in (output, plot) if file is not None]
        click.echo("\n".join([*job["summary"]["lines"], *written]))


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
        *server_options(),
        *options_of(StudyReading),
    ]


def _help(analysis: Analysis) -> str:
    """What it does, where it is documented, and examples."""
    examples = "\n".join(f"  crowdveil {analysis.name} {example}" for example in analysis.examples)
    extra = f" Needs the extra {analysis.extra}." if analysis.extra else ""
    return f"{analysis.summary}{extra}\n\n{analysis.help}\n\n\b\nExamples:\n{examples}"
