"""`crowdveil anonymize METHOD INPUT`: a command for each registered method; or a run file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_if_compiling, show_notes, show_sentences
from crowdveil.cli.options import GroupedCommand, NamedCommands, given, options_of
from crowdveil.cli.remote_jobs import (
    RemoteTarget,
    not_before_a_name,
    remote_target,
    server_options,
    source_option,
    take_source,
)
from crowdveil.cli.remote_jobs import anonymize as run_remotely
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import progress_bar
from crowdveil.reading import READINGS
from crowdveil.registry import METHODS, all_methods, default_method, find_method
from crowdveil.run import pipeline
from crowdveil.run.options import AuditOptions, RunOptions

EXAMPLES = {
    True: "trips.parquet --zones zones.geojson --step 1h --tz Europe/Paris",
    False: "cabs.csv",
}
OUTPUT = ("format", "export", "report", "title", "purpose", "recipient", "pairing", "overwrite")
RUN = (
    "attack",
    "seed",
    "ledger",
    "keep_unchanged",
    "independent",
    "engine",
    "master",
    "table",
    "server",
    "detach",
    "source",
)
NOT_OF_TRAJECTORIES = ("ledger", *AuditOptions.model_fields)


class AnonymizeCommands(NamedCommands):
    """A command for each method; without the name of one, the method that fits the data."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; put the name of a method before them where there is none."""
        of_the_group = not args or args[0] in ("-h", "--help") or {"-f", "--file"} & set(args)
        if not of_the_group and _is_input(args[0]):
            args = [_fitting_method(args), *args]
        return super().parse_args(ctx, args)


def _is_input(argument: str) -> bool:
    """Return whether the first argument is an option or a file, and not the name of a method."""
    named = argument in METHODS
    return not named and (argument.startswith("-") or bool(Path(argument).suffix) or Path(argument).exists())


def _fitting_method(args: list[str]) -> str:
    """Return the method for the file among the arguments, and say which it is."""
    columns = {"lat", "lon", "trajectory", "origin", "destination", "volume"}
    either = [
        *options_of(READINGS[Trajectories]),
        *options_of(READINGS[Flows]),
        *options_of(find_method("joint").params),
    ]
    parser = click.Command("anonymize", params=[
        click.Argument(["data"], required=False), *{option.name: option for option in either}.values(),
        *(option for option in options_of(RunOptions) if option.name != "k"), click.Option(["-o", "--output"]),
        *server_options(), source_option(),
    ], context_settings={"ignore_unknown_options": True, "allow_extra_args": True})  # fmt: skip
    given = parser.make_context("anonymize", list(args), resilient_parsing=True).params
    if given["data"] is None:
        raise click.UsageError("Expected a file of trips, flows or trajectories. Name it.")
    if given["engine"] == "spark":
        raise click.UsageError("Expected a method on Spark. Write its name before the input, such as joint.")
    method = default_method(given["data"], {name: given[name] for name in columns if given[name] is not None})
    what = "trajectories" if method.takes is Trajectories else "trips and flows"
    show_sentences([f"the method is {method.name}, the usual one for {what}; write another name before the input."])
    return method.name


def _unread(method: Method) -> tuple[str, ...]:
    """Return the input options that only other methods read."""
    read_by = {
        "partition": method.name == "fixed",
        "min_tiles_of": "min_tiles" in method.params.model_fields,
        "hierarchy": method.name not in ("suppression", "laplace", "fixed"),
    }
    return tuple(name for name, read in read_by.items() if not read)


class MethodCommand(GroupedCommand):
    """A command with one input."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a second file is probably that of the zones."""
        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        if ctx.args:
            more = " ".join(ctx.args)
            ctx.fail(f"Expected one input, got also {more}. Name zones with --zones {more}.")
        return ctx.args


def method_command(method: Method) -> click.Command:
    """Make a command from a method's record."""
    od = method.takes is Flows
    reading = READINGS[method.takes]

    def call(data: str, output: str, **values: Any) -> None:
        server = remote_target(values)
        source = take_source(values, server)
        if server is not None and values["engine"] == "spark":
            raise click.UsageError("--engine spark is for a run from here; leave out --server, or the engine.")
        parameters, input_options, options = (given(model, values) for model in (method.params, reading, RunOptions))
        perform(pipeline.Request(method.name, data, output, parameters, input_options, options), server, source)

    example = f"crowdveil anonymize {method.name} {method.example or EXAMPLES[od]} -o out/"
    return MethodCommand(
        method.name,
        callback=call,
        params=[
            click.Argument(["data"], metavar="TRIPS_OR_FLOWS" if od else "TRAJECTORIES"),
            *options_of(method.params),
            click.Option(["-o", "--output"], required=True, metavar="FOLDER", help="Folder to write the release to."),
            *options_of(RunOptions, without=("pairing",) if od else NOT_OF_TRAJECTORIES),
            *server_options(),
            *([source_option()] if od else []),
            *options_of(reading, without=_unread(method)),
        ],
        groups={
            "Method": tuple(method.params.model_fields),
            "Input": tuple(reading.model_fields),
            "Output": OUTPUT,
            "Run": RUN,
        },
        help=f"{method.summary}\n\nStatus: {method.status}.\n\n\b\nExample:\n  {example}",
        short_help=method.summary,
    )


def perform(
    request: pipeline.Request, server: RemoteTarget | None = None, source: dict[str, Any] | None = None
) -> None:
    """Run a request, here or on a server, and print where the release is and what it cost."""
    if server is not None:
        run_remotely(server, request, READINGS[find_method(request.method).takes], source or {})
        return
    show_if_compiling()
    with progress_bar() as (progress, stage):
        result = pipeline.run(request, progress, stage)
    show_notes(result.notes)
    pairing = request.options.get("pairing")
    if pairing is not None:
        # Not among the notes, which are in the manifest: the manifest must not show that such a file exists.
        click.echo(f"note: {pairing} links each published trajectory to its original: keep it secret.", err=True)
    click.echo(f"{result.folder}: verified and written")
    for line in result.lines():
        click.echo(line)


@click.command(
    cls=AnonymizeCommands, names=all_methods, make=lambda name: method_command(find_method(name)),
    invoke_without_command=True, no_args_is_help=False, params=server_options(),
)  # fmt: skip
@click.option("-f", "--file", "run_file", metavar="FILE", help="A run file: TOML or JSON, mdl-anonymizer's JSON too.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier release (with -f).")
@click.pass_context
def command(ctx: click.Context, /, run_file: str | None, overwrite: bool, **values: Any) -> None:
    """Anonymize trips, flows or trajectories, or as a run file says.

    Without the name of a method, trips and flows are anonymized by joint, and trajectories by microaggregation.

    \b
    Examples:
      crowdveil anonymize trips.parquet --zones zones.geojson -k 10 -o out/
      crowdveil anonymize atg-dual trips.parquet --zones zones.geojson -o out/
      crowdveil anonymize simple-generalization cabs.csv --tile-size-m 500 -o out/
      crowdveil anonymize -f run.toml
      crowdveil anonymize trips.parquet --zones zones.geojson -o out/ --server https://crowdveil.example.org
    """
    not_before_a_name(ctx)
    if run_file is not None:
        if ctx.invoked_subcommand is not None:
            raise click.UsageError("give either a method or a run file with -f, not both.")
        from crowdveil.compat.mobidatalab.runfiles import read_run_file  # here, since a run with options needs none

        perform(read_run_file(Path(run_file), overwrite=overwrite), remote_target(values))
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
