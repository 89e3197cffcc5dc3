"""`crowdveil worker`: one more process that runs jobs, on this machine or another."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from crowdveil.cli.serve import MEMORY_HELP, SANDBOX_HELP, log_option, memory_bytes, place, place_options


@click.command()
@place_options
@click.option("--lease", default=15.0, type=click.FloatRange(min=0.5), metavar="SECONDS",
              help="Silence after which this worker is taken for dead. [15]")  # fmt: skip
@click.option("--max-memory-mib", type=click.IntRange(min=64), metavar="N", help=MEMORY_HELP)
@click.option("--require-sandbox", is_flag=True, help=SANDBOX_HELP)
@click.option("--number", default=1, type=click.IntRange(0, 256), metavar="N", help="Jobs that run at once here. [1]")
@log_option
@click.option("--parent", type=int, hidden=True)
def command(
    data_dir: Path | None,
    database_url: str | None,
    lease: float,
    max_memory_mib: int | None,
    require_sandbox: bool,
    number: int,
    log_format: str,
    parent: int | None,
) -> None:
    """Run jobs of a service that has its queue in PostgreSQL; any number of these, on any number of machines.

    All machines share the data directory (NFS or the like). A worker that is stopped puts its job back into the queue.

    \b
    Example:
      crowdveil worker --database-url postgresql://crowdveil@db/crowdveil --data-dir /shared/crowdveil --number 8
    """
    from crowdveil.server import logs
    from crowdveil.server.workers.crew import Crew
    from crowdveil.server.workers.sandbox.trial import check_sandbox

    logs.configure(log_format)
    check_sandbox(require_sandbox, partial(click.echo, err=True))
    settings = place(data_dir, database_url, lease_s=lease, memory_bytes=memory_bytes(max_memory_mib, number))
    Crew(settings, number).run(parent)
