"""`crowdveil anonymize METHOD INPUT`: a command for each method, drawn from the registry; or a run file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import progress_bar, show_notes
from crowdveil.cli.main import StoppedError
from crowdveil.cli.options import engine_options, given, options_of
from crowdveil.cli.remote_jobs import Elsewhere, elsewhere, not_before_a_name, server_options
from crowdveil.cli.remote_jobs import anonymize as run_there
from crowdveil.compat.mobidatalab.runfiles import read_run_file
from crowdveil.engine import StoppedEarlyError
from crowdveil.errors import ParameterError
from crowdveil.method import Method
from crowdveil.model.flows import Flows
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline

EXAMPLES = {
    True: "trips.parquet --zones zones.geojson --step 1h --tz Europe/Paris",
    False: "cabs.csv",
}


class MethodCommands(click.Group):
    """A command for each method in the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the methods."""
        return list(all_methods())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a method, by its name or an alias."""
        try:
            return method_command(find_method(cmd_name))
        except ParameterError as error:
            raise click.UsageError(str(error), ctx) from None


def method_command(method: Method) -> click.Command:
    """Draw a command from a method's record."""
    od = method.takes is Flows
    reading = READINGS[method.takes]

    def call(data: str, output: str, **values: Any) -> None:
        there = elsewhere(values)
        if there is not None and values["engine"] == "spark":
            raise click.UsageError("--engine spark is for a run from here; leave out --server, or the engine.")
        request = pipeline.Request(
            method.name,
            data,
            output if values["engine"] == "spark" else Path(output),
            given(method.params, values),
            given(reading, values),
            seed=values["seed"],
            table_format=values["table_format"],
            overwrite=values["overwrite"],
            resume=values.get("resume") if values["engine"] == "spark" else _path(values, "resume"),
            pairing=_path(values, "pairing"),
            attack=values["attack"],
            report=not values["no_report"],
            private_report=_path(values, "private_report"),
            engine=values["engine"],
            master=values["master"],
        )
        perform(request, there)

    example = f"crowdveil anonymize {method.name} {EXAMPLES[od]} -o out/"
    return click.Command(
        method.name,
        callback=call,
        params=[
            click.Argument(["data"], metavar="TRIPS_OR_FLOWS" if od else "TRAJECTORIES"),
            *options_of(method.params),
            *_run_options(),
            _resume_option() if od else _pairing_option(),
            *engine_options(),
            *server_options(),
            *options_of(reading),
        ],
        help=f"{method.summary}\n\nStatus: {method.status}.\n\n\b\nExample:\n  {example}",
        short_help=method.summary,
    )


def _path(values: dict[str, Any], name: str) -> Path | None:
    return None if values.get(name) is None else Path(values[name])


def _run_options() -> list[click.Option]:
    """Options of every method."""
    return [
        click.Option(["-o", "--output"], required=True, metavar="FOLDER", help="Folder to write the release to."),
        click.Option(["--format", "table_format"], type=click.Choice(["parquet", "csv"]), default="parquet",
                     help="Form of the tables. [default parquet]"),
        click.Option(["--seed"], type=click.IntRange(min=0), metavar="N",
                     help="Makes the run reproducible. Keep it secret: who knows it can repeat every random choice. "
                          "[default: fresh random numbers]"),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier release in the folder."),
        click.Option(["--attack/--no-attack"], default=True,
                     help="Attack the release before it is published; who beats a proven guarantee stops the run. [default on]"),
        click.Option(["--no-report"], is_flag=True, help="Write no report.html into the release."),
        click.Option(["--private-report"], metavar="FILE",
                     help="Also write a report with the original beside the release, outside its folder; not for release."),
    ]  # fmt: skip


def _resume_option() -> click.Option:
    """For methods that work in time steps."""
    text = "Keep finished time steps in this folder, and go on from them after an interruption; removed at the end."
    return click.Option(["--resume"], metavar="FOLDER", help=text)


def _pairing_option() -> click.Option:
    """For methods whose trajectories get new ids."""
    text = "Write which trajectory came of which to this private file outside the release, .csv or .parquet, for measuring."
    return click.Option(["--pairing"], metavar="FILE", help=text)


def perform(request: pipeline.Request, there: Elsewhere | None = None) -> None:
    """Run a request, here or on a server, and tell where the release is and what it cost."""
    if there is not None:
        run_there(there, request, READINGS[find_method(request.method).takes])
        return
    try:
        with progress_bar() as (progress, stage):
            result = pipeline.run(request, progress, stage)
    except StoppedEarlyError as stopped:
        raise StoppedError(f"Stopped; {stopped}") from None
    show_notes(result.notes)
    if request.pairing is not None:
        # Not among the notes, which are in the manifest: that must not tell that there is such a file.
        click.echo(f"note: {request.pairing} tells whose each published trajectory is: keep it secret.", err=True)
    click.echo(f"{result.folder}: verified and written")
    if request.private_report is not None:
        click.echo(f"{request.private_report}: report with the original, not for release")
    for line in result.lines():
        click.echo(line)


@click.command(cls=MethodCommands, invoke_without_command=True, no_args_is_help=False, params=server_options())
@click.option("-f", "--file", "run_file", metavar="FILE", help="A run file: TOML or JSON, mdl-anonymizer's JSON too.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier release (with -f).")
@click.pass_context
def command(ctx: click.Context, /, run_file: str | None, overwrite: bool, **values: Any) -> None:
    """Anonymize trips, flows or trajectories with a method, or as a run file says.

    \b
    Examples:
      crowdveil anonymize joint trips.parquet --zones zones.geojson --k 10 -o out/
      crowdveil anonymize simple-generalization cabs.csv --tile-size-m 500 -o out/
      crowdveil anonymize -f run.toml
      crowdveil anonymize joint trips.parquet --zones zones.geojson -o out/ --server https://crowdveil.example.org
    """
    not_before_a_name(ctx)
    if run_file is not None:
        if ctx.invoked_subcommand is not None:
            raise click.UsageError("give either a method or a run file with -f, not both.")
        perform(read_run_file(Path(run_file), overwrite=overwrite), elsewhere(values))
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
