"""`crowdveil analyze NAME INPUT`: a command for each registered analysis, made from its record; or a run file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.analysis.base import CONFIDENTIAL, Analysis
from crowdveil.analysis.heatmap_manifest import GEOJSON
from crowdveil.analysis.study import Study, StudyReading
from crowdveil.cli.console import show_notes
from crowdveil.cli.options import NamedCommands, given, options_of
from crowdveil.cli.remote_jobs import (
    RemoteTarget,
    not_before_a_name,
    put_file,
    put_folder,
    remote_target,
    server_options,
    source_option,
    split_files,
    take_source,
)
from crowdveil.compat.mobidatalab.runfiles import read_analysis_file
from crowdveil.io.notes import ReadNotes
from crowdveil.progress import progress_bar
from crowdveil.reading import READINGS, TrajectoryReading
from crowdveil.registry import all_analyses, find_analysis
from crowdveil.run.options import RunOptions
from crowdveil.verbs import analyze as api
from crowdveil.verbs.opened import check_outputs


def command_of(name: str) -> click.Command:
    """Return the command of an analysis."""
    analysis = find_analysis(name)
    reading = READINGS.get(analysis.takes, StudyReading)

    def call(data: str, output: str | None, overwrite: bool, **values: Any) -> None:
        server = remote_target(values)
        options = given(analysis.params, values) | given(reading, values) | take_source(values, server)
        if values.get("ledger") is not None:
            if server is not None:
                raise click.UsageError("--ledger is for a run from here; name a source of the server with --source.")
            options["ledger"] = values["ledger"]
        perform(name, data, output, overwrite, options, values.get("original"), values.get("plot"), server)

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
    server: RemoteTarget | None = None,
) -> None:
    """Run an analysis, here or on a server, print what it found, and where it was written."""
    if server is not None:
        analysis = find_analysis(name)
        if analysis.takes is Study:
            lines = _study_remotely(server, name, data, original, output, plot, overwrite, options)
        else:
            lines = _map_remotely(server, analysis, data, output, overwrite, options)
        if lines is None:
            return
    else:
        notes = ReadNotes()
        with progress_bar() as (progress, stage):
            found = api.analyze(
                name, data, output, original=original, plot=plot, overwrite=overwrite, notes=notes, progress=progress,
                stage=stage, **options,
            )  # fmt: skip
            lines = found.lines()
        show_notes(notes)
        if original is not None:
            lines = [*lines, CONFIDENTIAL]
    click.echo("\n".join(lines))
    for file in (output, plot):
        if file is not None:
            click.echo(f"{Path(file)}: written")


def _study_remotely(
    server: RemoteTarget, name: str, release: str, original: str | None, output: str | None, plot: str | None,
    overwrite: bool, options: dict[str, Any],
) -> list[str] | None:  # fmt: skip
    """Analyze a release on a server; return the lines of the result, None where the job is detached."""
    check_outputs(output, plot)
    values, files = split_files(StudyReading, options)
    uploads = {"release": release, **({} if original is None else {"original": original}), **files}
    return server.run_for_table(
        "analyses",
        name,
        {**values, "plot": plot is not None},
        uploads,
        output,
        overwrite=overwrite,
        plot=plot,
        made=name,
    )


def _map_remotely(
    server: RemoteTarget, analysis: Analysis, data: str, output: str | None, overwrite: bool, options: dict[str, Any]
) -> list[str] | None:
    """Analyze trajectories on a server: write all files into a folder, or the one that the ending names."""
    target = None if output is None else Path(output)
    if target is not None and analysis.check_output is not None:
        analysis.check_output(target, overwrite=overwrite)
    whole = target is None or target.is_dir() or not target.suffix
    form = "all" if target is None or whole else target.suffix.lower().removeprefix(".")

    def take(_job: dict[str, Any], result: Path) -> None:
        if whole:
            put_folder(result, Path(str(output)), overwrite=overwrite, mark_file=GEOJSON)
        else:
            put_file(result, Path(str(output)), overwrite=overwrite)

    parameters = {**options, "format": "geojson" if form == "json" else form}
    job = server.run("analyses", analysis.name, parameters, {"data": data}, take, fetch=output is not None)
    return None if job is None else job["summary"]["lines"]


def _of_trajectories(analysis: Analysis) -> list[click.Parameter]:
    return [
        click.Argument(["data"], metavar="TRAJECTORIES"),
        *options_of(analysis.params),
        click.Option(
            ["-o", "--output"],
            metavar="FOLDER_OR_FILE",
            help="Write all files into a folder, or the one that the ending names.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace what exists."),
        *[o for o in options_of(RunOptions) if o.name == "ledger"],
        *server_options(),
        source_option(),
        *[o for o in options_of(TrajectoryReading) if o.name not in ("zones", "zone_id")],
    ]


def _of_study(analysis: Analysis) -> list[click.Parameter]:
    original = click.Option(
        ["--original"], metavar="TRIPS_OR_FLOWS",
        help="The data that the release was made from, to compare. Results are then exact and confidential: do not publish them.",
    )  # fmt: skip
    return [
        click.Argument(["data"], metavar="RELEASE_FOLDER"),
        *options_of(analysis.params),
        *([original] if analysis.compares else []),
        click.Option(["-o", "--output"], metavar="FILE", help="Write all of it: .csv, .parquet or .json."),
        click.Option(["--plot"], metavar="FILE", help="Draw it: .png."),
        click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
        *server_options(),
        *options_of(StudyReading),
    ]


def _help(analysis: Analysis) -> str:
    """Return the help of a command: what it does, the extra that it needs, examples."""
    examples = "\n".join(f"  crowdveil analyze {analysis.name} {example}" for example in analysis.examples)
    extra = f" Needs the extra {analysis.extra}." if analysis.extra else ""
    return f"{analysis.summary}{extra}\n\n{analysis.help}\n\n\b\nExamples:\n{examples}"


@click.command(
    cls=NamedCommands, names=lambda: all_analyses(), make=lambda name: command_of(find_analysis(name).name),
    invoke_without_command=True, no_args_is_help=False, params=server_options(),
)  # fmt: skip
@click.option("-f", "--file", "run_file", metavar="FILE", help="A run file: TOML or JSON, mdl-anonymizer's JSON too.")
@click.option("--overwrite", is_flag=True, help="Replace what exists (with -f).")
@click.pass_context
def command(ctx: click.Context, /, run_file: str | None, overwrite: bool, **values: Any) -> None:
    """Learn from a release of flows, or draw a heat map of trajectories that can be published.

    \b
    Examples:
      crowdveil analyze quadtree-heatmap cabs.csv --min-k 10 -o map/
      crowdveil analyze land-use out/ --zones zones.geojson --plot map.png
      crowdveil analyze -f run.json
    """
    not_before_a_name(ctx)
    if run_file is not None:
        if ctx.invoked_subcommand is not None:
            raise click.UsageError("give either an analysis or a run file with -f, not both.")
        wanted = read_analysis_file(Path(run_file), overwrite=overwrite)
        perform(
            wanted.analysis, wanted.data, wanted.output, wanted.overwrite, wanted.options, server=remote_target(values)
        )
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
