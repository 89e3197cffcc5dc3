"""`crowdveil analyze NAME INPUT`: a command for each registered analysis; or a run file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.analyses import command_of, perform
from crowdveil.cli.remote_jobs import not_before_a_name, remote_target, server_options
from crowdveil.compat.mobidatalab.runfiles import read_analysis_file
from crowdveil.errors import ParameterError
from crowdveil.registry import ANALYSES, find_analysis


class AnalysisCommands(click.Group):
    """A command for each analysis. Those that are commands of `crowdveil` too are the same."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the analyses."""
        return list(ANALYSES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of an analysis, by its name or a name in other software."""
        try:
            return command_of(find_analysis(cmd_name).name)
        except ParameterError as error:
            raise click.UsageError(str(error), ctx) from None


@click.command(cls=AnalysisCommands, invoke_without_command=True, no_args_is_help=False, params=server_options())
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
