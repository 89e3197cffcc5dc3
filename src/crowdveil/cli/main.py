"""The command `crowdveil`: a list of commands, each loaded on demand."""

from __future__ import annotations

import errno
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from crowdveil.cli.stopping import SENTENCE, interrupt_on_sigterm, leave_kernels
from crowdveil.errors import NO_MEMORY, CrowdveilError, MissingExtraError, as_command_line, render
from crowdveil.version import __version__

COMMANDS = {
    "demo": "Make a synthetic city, anonymize it and verify the result.",
    "anonymize": "Anonymize trips, flows or trajectories.",
    "verify": "Check a release from its files alone.",
    "derive": "Derive a coarser release from a published one by adding up its rows.",
    "ledger": "Audit releases against earlier ones of the same data, in a confidential ledger.",
    "report": "Rewrite the report of a release, one HTML file.",
    "plot": "Draw maps, matrices, losses, trajectories and trees, as PNG or SVG.",
    "measure": "Measure the information loss of a release of flows or trajectories.",
    "attack": "Estimate the re-identification risk of trajectories, before and after anonymization, or of flows.",
    "describe": "Describe OD matrices: size, density, and the share that is already k-anonymous.",
    "compare": "Run methods with several parameters side by side, and publish nothing.",
    "analyze": "Analyze a release of flows, or draw a heat map of trajectories for publication.",
    "methods": "List the methods, or describe one.",
    "flows": "Turn trips into OD flows, or convert flows to another format.",
    "trips": "Find trips in trajectories or records of calls.",
    "filter": "Leave out trajectories: too short, too fast, outside a box or a time window.",
    "hierarchy": "Build a tree over zones, or check one.",
    "server": "Run the service, and manage its tokens, jobs, reviews and audit log.",
    "synth": "Make trips or trajectories of a synthetic city.",
    "experiment": "Repeat experiments of papers: their data and figures.",
}
"""The commands and their summaries."""
VERBS = ("anonymize", "verify", "derive", "report", "plot", "measure", "attack", "describe", "compare", "analyze", "flows",
         "trips", "filter")  # fmt: skip
"""The commands that are drawn from records."""

ALIASES = {"measures": "measure", "analysis": "analyze", "anonymise": "anonymize", "analyse": "analyze"}
"""Names of commands in mdl-anonymizer, and British spellings, which --help does not list."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk or an exceeded quota."""

EXTRAS: dict[str, str] = {
    "alembic": "server", "fastapi": "server", "prometheus_client": "server", "python_multipart": "server",
    "sqlalchemy": "server", "starlette": "server", "uvicorn": "server", "psycopg": "postgres", "sklearn": "analysis",
    "h5py": "omx", "pandas": "pandas", "geopandas": "pandas", "polars": "polars",
    "furo": "docs", "myst_parser": "docs", "sphinx": "docs", "sphinx_click": "docs",
    "pyspark": "spark",
}  # fmt: skip
"""The extra that installs each optional module."""


class StoppedError(CrowdveilError):
    """The run was stopped, by the user or by a signal."""


def load_command(name: str) -> click.Command:
    """Draw the command of a verb from its record, or import a command from its module."""
    if name in VERBS:
        from crowdveil.cli.draw import draw  # here, since `--help` does not need it

        command = draw(import_module(f"crowdveil.verbs.{name}").VERB)
    else:
        command = import_module(f"crowdveil.cli.{name}").command
    command.name = name
    return command


class Commands(click.Group):
    """A group of commands, each imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name.endswith(("-api", "-task")):
            from crowdveil.compat.mobidatalab import commands

            return commands.make_command(cmd_name) if cmd_name in commands.COMMANDS else None
        name = ALIASES.get(cmd_name, cmd_name)
        return load_command(name) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the arguments; if there is none, suggest the nearest name."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            for near in get_close_matches(name, COMMANDS, n=1, cutoff=0.7):
                ctx.fail(f"there is no command {name}. Did you mean {near}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Handle an interrupt here, since click would print an empty line first."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError(SENTENCE) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(ctx: click.Context, _option: Any, wanted: bool) -> None:
    if wanted:
        click.echo(f"crowdveil {__version__}")
        ctx.exit()


def _set_threads(_ctx: click.Context, _option: Any, threads: int | None) -> None:
    """Set the number of threads before any library starts some."""
    if threads is not None:
        from crowdveil.engine.threads import VARIABLE, environment_for

        os.environ[VARIABLE] = str(threads)
        os.environ.update(environment_for(1))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.option(
    "--threads", type=click.IntRange(1, 4096), expose_value=False, callback=_set_threads, metavar="N",
    help="Number of threads. [CROWDVEIL_THREADS, or the processors available to this process]",
)  # fmt: skip
def cli() -> None:
    """Anonymize mobility data for publication: OD matrices and trajectories.

    k-anonymity is verified on the published files.

    \b
    crowdveil demo
    crowdveil anonymize trips.parquet --zones zones.geojson -k 10 -o out/
    crowdveil anonymize simple-generalization cabs.csv -o out/
    crowdveil verify out/
    """


def main() -> None:
    """Run the command; report any error in one sentence."""
    with interrupt_on_sigterm() as signals:
        try:
            _main()
        except StoppedError as error:
            leave_kernels(signals.number, str(error))
            _stop(str(error), signals.code)


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
        # The reader closed the pipe, as `head` does, so no message can reach it.
        _drop_output()
        sys.exit(2)
    except MemoryError:
        _stop(NO_MEMORY, 2)
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # lost in compiled code
            raise StoppedError(SENTENCE) from None
        missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if missing in EXTRAS:
            _stop(str(MissingExtraError(missing, EXTRAS[missing], "this command")), MissingExtraError.exit_code)
        if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
            _drop_output()
            _stop("Cannot write the output: the disk is full. Free space, or redirect the output.", 2)
        if os.environ.get("CROWDVEIL_DEBUG"):
            raise
        _stop(
            f"Internal error ({type(error).__name__}), please report it; set CROWDVEIL_DEBUG=1 and run again to see where.",
            1,
        )


def _drop_output() -> None:
    """Drop unwritten output, which Python would try to write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(sentence: str, code: int) -> None:
    click.echo(f"crowdveil: {sentence}", err=True)
    sys.exit(code)
