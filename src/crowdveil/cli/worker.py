"""`crowdveil worker`: one more process that runs jobs, on this machine or another."""

from __future__ import annotations

import signal
from typing import Any

import click

from crowdveil.cli.serve import place, place_options, setting_option, setting_options


@click.command(
    params=[
        *place_options(),
        setting_option("lease_s", "Silence after which this worker is taken for dead. [15]"),
        *setting_options("memory_bytes"),
        click.Option(["--number", "workers"], default=1, type=click.IntRange(0, 256), metavar="N",
                     help="Jobs that run at once here. [1]"),
        *setting_options("log_format"),
    ]
)  # fmt: skip
def command(**values: Any) -> None:
    """Run jobs of a service that has its queue in PostgreSQL; any number of these, on any number of machines.

    All machines share the data directory (NFS or the like). A worker that is stopped puts its job back into the queue.

    \b
    Example:
      crowdveil worker --database-url postgresql://crowdveil@db/crowdveil --data-dir /shared/crowdveil --number 8
    """
    from crowdveil.server import logs
    from crowdveil.server.workers.sandbox import check_confinement
    from crowdveil.server.workers.supervisor import Supervisor

    settings = place(values, values["workers"])
    logs.configure(settings.log_format)
    if (warning := check_confinement(local=False)) is not None:
        click.echo(f"WARNING: {warning}", err=True)
    supervisor = Supervisor(settings.open())
    try:
        supervisor.start()
        while True:
            signal.pause()
    except KeyboardInterrupt:  # SIGTERM too
        supervisor.stop()
