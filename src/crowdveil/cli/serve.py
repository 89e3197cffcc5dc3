"""`crowdveil serve`: the service on one machine, or its front for several."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.options import given, options_of
from crowdveil.errors import Option, ParameterError
from crowdveil.server.limits import ClientLimits
from crowdveil.server.settings import Settings, default_folder
from crowdveil.server.tokens import Limits
from crowdveil.threads import processors


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the data directory and the database: the same for the server, its workers and its tokens."""
    for option in (
        click.option("--database-url", envvar="CROWDVEIL_DATABASE_URL", metavar="URL",
                     help="Store and queue in PostgreSQL, for several machines. [a SQLite file in the data directory]"),
        click.option("--data-dir", envvar="CROWDVEIL_DATA_DIR", metavar="FOLDER", type=click.Path(path_type=Path),
                     help="Uploads and results; all machines must share it. [~/.local/state/crowdveil]"),
    ):  # fmt: skip
        command = option(command)
    return command


def log_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option of the format of the log."""
    return click.option("--log-format", type=click.Choice(["text", "json"]), default="text",
                        help="Lines on standard error: text (warnings), or JSON with every request. [text]")(command)  # fmt: skip


def place(data_dir: Path | None, database_url: str | None, **more: Any) -> Settings:
    """Return settings from these options."""
    return Settings((data_dir or default_folder()).absolute(), database_url, **more)


PREVIEWS = 2
"""Previews at once that memory is set aside for where there is no limit."""
MEMORY_HELP = (
    "Memory that one job may hold. [80 % of the memory of the machine, container or unit, over all that run at once]"
)
SANDBOX_HELP = "Refuse to start where the kernel cannot confine the processes that open uploads."


def memory_bytes(mib: int | None, at_once: int) -> int:
    """Return the bytes of memory that one job may hold: as given, or a share for `at_once` jobs."""
    from crowdveil.server.workers.process import default_memory

    return default_memory(at_once) if mib is None else mib << 20


def print_checks(require: bool) -> None:
    """Print what the sandbox enforces here, by trying it; raises where all of it is required and something is missing."""
    from crowdveil.server.workers.sandbox.trial import check_sandbox, tried

    for attempt in tried():
        click.echo(f"{'enforced    ' if attempt.refused else 'NOT ENFORCED'}  {attempt.what}")
    check_sandbox(require, click.echo)


@click.command(params=[*options_of(Limits), *options_of(ClientLimits)])
@place_options
@click.option(
    "--host", default="127.0.0.1", help="Address to listen on; others than this machine need tokens. [127.0.0.1]"
)
@click.option("--port", default=8000, type=click.IntRange(0, 65535), metavar="N", help="Port to listen on. [8000]")
@click.option("--workers", default=processors(), type=click.IntRange(0, 256), metavar="N",
              help="Jobs that run at once on this machine. [one for each core]")  # fmt: skip
@click.option("--keep-hours", default=24.0, type=click.FloatRange(min=0, min_open=True), metavar="X",
              help="Hours that results are kept. [24]")  # fmt: skip
@click.option("--upload-hours", default=1.0, type=click.FloatRange(min=0, min_open=True), metavar="X",
              help="Hours that a resumable upload is kept after its last use; others go when the job ends. [1]")  # fmt: skip
@click.option("--lease", default=15.0, type=click.FloatRange(min=0.5), metavar="SECONDS",
              help="Silence after which a worker is taken for dead, and its job given to another. [15]")  # fmt: skip
@click.option("--max-memory-mib", type=click.IntRange(min=64), metavar="N", help=MEMORY_HELP)
@click.option(
    "--socket",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Unix socket to listen on, in place of an address.",
)
@click.option("--socket-mode", default="600", metavar="MODE", help="Who may use the socket, as for chmod. [600]")
@click.option("--quarantine-days", default=7.0, type=click.FloatRange(min=0), metavar="X",
              help="Days that folders of unknown jobs are kept in quarantine. [7]")  # fmt: skip
@click.option("--min-free-mib", default=256, type=click.IntRange(min=0), metavar="N",
              help="Free MiB on the disk below which uploads are refused, and /ready answers 503. [256]")  # fmt: skip
@click.option("--metrics-token", envvar="CROWDVEIL_METRICS_TOKEN", metavar="TOKEN",
              help="Opens /metrics for other machines; better as CROWDVEIL_METRICS_TOKEN. [this machine alone]")  # fmt: skip
@click.option("--accept-new-database", is_flag=True,
              help="Start with a database that does not belong to the data directory; its files go to quarantine.")  # fmt: skip
@log_option
@click.option("--max-total-disk-mib", default=0, type=click.IntRange(min=0), metavar="N",
              help="Size of the files of all jobs together; 0 for any. [0]")  # fmt: skip
@click.option("--max-total-previews", default=2, type=click.IntRange(min=0), metavar="N",
              help="Files that are looked at (previews) at once, of all tokens together; 0 for any number. [2]")  # fmt: skip
@click.option("--four-eyes", is_flag=True,
              help="Give a result out only after another token (scope review) approved its report.")  # fmt: skip
@click.option("--migrate", is_flag=True,
              help="Migrate an older PostgreSQL database; make a backup first. A SQLite file needs no option.")  # fmt: skip
@click.option("--require-sandbox", is_flag=True, help=SANDBOX_HELP)
@click.option("--check", is_flag=True, help="Try what the sandbox enforces on this machine, print it, and end.")
def command(
    data_dir: Path | None,
    database_url: str | None,
    host: str,
    port: int,
    workers: int,
    keep_hours: float,
    upload_hours: float,
    lease: float,
    max_memory_mib: int | None,
    socket: Path | None,
    socket_mode: str,
    quarantine_days: float,
    min_free_mib: int,
    metrics_token: str | None,
    accept_new_database: bool,
    log_format: str,
    max_total_disk_mib: int,
    max_total_previews: int,
    four_eyes: bool,
    migrate: bool,
    require_sandbox: bool,
    check: bool,
    **values: Any,
) -> None:
    """Run jobs for others: an API over HTTP, a queue, and workers, with nothing else to install.

    Users of this machine need no token. For others, make tokens first (crowdveil token create NAME), and put a proxy
    with TLS in front. Limits are those of tokens that have none of their own.

    \b
    Examples:
      crowdveil serve
      crowdveil serve --data-dir /srv/crowdveil --workers 4 --keep-hours 2
      crowdveil serve --four-eyes --max-disk-mib 10240 --max-total-disk-mib 102400
      crowdveil serve --host 0.0.0.0 --database-url postgresql://crowdveil@db/crowdveil --data-dir /shared/crowdveil
    """
    from crowdveil.server.serve import serve

    if check:
        print_checks(require_sandbox)
        return
    at_once = workers + (max_total_previews or PREVIEWS)
    settings = place(
        data_dir, database_url, host=host, port=port, limits=Limits.checked(given(Limits, values)),
        keep_s=keep_hours * 3600, upload_s=upload_hours * 3600, lease_s=lease, memory_bytes=memory_bytes(max_memory_mib, at_once),
        socket=None if socket is None else socket.absolute(), socket_mode=_mode(socket_mode),
        clients=ClientLimits.checked(given(ClientLimits, values)), quarantine_s=quarantine_days * 86_400,
        min_free_bytes=min_free_mib << 20, metrics_token=metrics_token or None,
        disk_bytes=max_total_disk_mib << 20, previews=max_total_previews, four_eyes=four_eyes, require_sandbox=require_sandbox,
    )  # fmt: skip
    serve(
        settings, workers, click.echo, log_format=log_format, accept_new_database=accept_new_database, backed_up=migrate,
        extra_routes=[_add_mobidatalab_routes],
    )  # fmt: skip


def _add_mobidatalab_routes(app: Any) -> None:
    """Add the routes of mdl-anonymizer. They import the extra `server`, whose absence is reported before."""
    from crowdveil.compat.mobidatalab.routes import add_routes

    add_routes(app)


def _mode(text: str) -> int:
    if not re.fullmatch("0?[0-7]{3}", text):
        raise ParameterError(Option("socket_mode"), "wanted three digits as for chmod, such as 660.")
    return int(text, 8)
