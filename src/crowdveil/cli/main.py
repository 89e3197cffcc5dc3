"""The command `crowdveil`: a list of commands, each loaded when it is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from crowdveil.cli.stopping import SENTENCE, end_now, interrupted, prompt_stop, threads_left
from crowdveil.errors import CrowdveilError, as_command_line, render

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("crowdveil.cli.demo", "Make a synthetic city, anonymize it, verify it."),
    "anonymize": ("crowdveil.cli.anonymize", "Anonymize trips, flows or trajectories with a method."),
    "verify": ("crowdveil.cli.verify", "Check a release from its files alone."),
    "report": ("crowdveil.cli.report", "Write the report of a release, one HTML file, anew."),
    "plot": ("crowdveil.cli.plot", "Draw flows, areas, profiles, heat maps or Pareto curves, as PNG or SVG."),
    "measure": ("crowdveil.cli.measure", "Measure what a release lost of the original flows or trajectories."),
    "attack": (
        "crowdveil.cli.attack",
        "Find out what an adversary gets from trajectories, before and after, or from flows.",
    ),
    "compare": ("crowdveil.cli.compare", "Run methods side by side on the same matrices, and publish nothing."),
    "sweep": ("crowdveil.cli.sweep", "Run a method with several k and budgets, and publish nothing."),
    "analyze": (
        "crowdveil.cli.analyze",
        "Learn from a release, or draw a heat map of trajectories that can be published.",
    ),
    "reconstruct": ("crowdveil.cli.reconstruct", "Estimate the flows of a release between any zones, with bounds."),
    "profiles": ("crowdveil.cli.profiles", "Trips by hour of the week that leave and reach each zone."),
    "land-use": ("crowdveil.cli.land_use", "Group zones by the shape of their profiles."),
    "topics": ("crowdveil.cli.topics", "Find flows that come up together at the same hours."),
    "methods": ("crowdveil.cli.methods", "List the methods, or tell all about one."),
    "flows": ("crowdveil.cli.flows", "Turn trips to OD flows, or flows from one format to another."),
    "filter": ("crowdveil.cli.filter", "Leave out trajectories: too short, too fast, elsewhere, other times."),
    "hierarchy": ("crowdveil.cli.hierarchy", "Make a tree over zones."),
    "serve": ("crowdveil.cli.serve", "Run jobs for others: an API over HTTP, a queue and workers."),
    "worker": ("crowdveil.cli.worker", "Run jobs of a service, on this machine or another."),
    "task": ("crowdveil.cli.task", "Show, fetch or end a job that was left to a server."),
    "review": ("crowdveil.cli.review", "Approve or reject results of others on a server."),
    "token": ("crowdveil.cli.token", "Make and revoke the tokens that people use a service with."),
    "audit": ("crowdveil.cli.audit", "Export and verify the audit log of a service."),
    "synth": ("crowdveil.cli.synth", "Make up a city: trips, trajectories, OD matrices."),
}


class StoppedError(CrowdveilError):
    """The user, or the machine, stopped the run."""


def load_command(name: str) -> click.Command:
    """Import a command."""
    command: click.Command = import_module(COMMANDS[name][0]).command
    return command


class Commands(click.Group):
    """A group whose commands are modules that are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order that people see them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name.endswith(("-api", "-task")):
            from crowdveil.cli.mobidatalab import ALIASES, alias

            return alias(cmd_name) if cmd_name in ALIASES else None
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An interrupt is told here, since click would put an empty line before the sentence."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError(SENTENCE) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _show_version(ctx: click.Context, _option: Any, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"crowdveil {version('crowdveil')}")
        ctx.exit()


def _set_threads(_ctx: click.Context, _option: Any, threads: int | None) -> None:
    """Set the number of threads before a library starts its own."""
    if threads is not None:
        from crowdveil.threads import VARIABLE, environment_for

        os.environ[VARIABLE] = str(threads)
        os.environ.update(environment_for(1))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.option(
    "--threads", type=click.IntRange(1, 4096), expose_value=False, callback=_set_threads, metavar="N",
    help="Threads to compute on. [CROWDVEIL_THREADS, or the processors that this process may use]",
)  # fmt: skip
def cli() -> None:
    """Hide every traveler in a crowd of at least k, and prove it on the file that is written.

    \b
    crowdveil demo
    crowdveil anonymize joint trips.parquet --zones zones.geojson --k 10 -o out/
    crowdveil anonymize simple-generalization cabs.csv -o out/
    crowdveil verify out/
    """


def main() -> None:
    """Run the command; whatever goes wrong is told in one sentence."""
    with prompt_stop() as watch:
        try:
            _main()
        except StoppedError as error:
            watch.ended.set()
            if not threads_left():
                _stop(str(error), watch.code)
            # Threads that compute cannot be ended, and Python would wait for them.
            end_now(watch.code, str(error))


def _main() -> None:
    try:
        cli.main(standalone_mode=False)
    except StoppedError:
        raise
    except CrowdveilError as error:
        _stop(render(error.text, as_command_line), error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        raise StoppedError(SENTENCE) from None
    except BrokenPipeError:
        # Whoever read our output went away, as `head` does: there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    except MemoryError:
        _stop("There is not enough memory for this; use less data, or a machine with more.", 2)
    except Exception as error:
        if interrupted(error):
            raise StoppedError(SENTENCE) from None
        if os.environ.get("CROWDVEIL_DEBUG"):
            raise
        _stop(f"This is a fault of ours ({type(error).__name__}); set CROWDVEIL_DEBUG=1 and run again to see where.", 1)


def _stop(sentence: str, code: int) -> None:
    click.echo(f"crowdveil: {sentence}", err=True)
    sys.exit(code)
