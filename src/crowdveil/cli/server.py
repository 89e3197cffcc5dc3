"""`crowdveil server`: run the service, and work with one."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from crowdveil.cli import server_jobs
from crowdveil.cli.demo import make_city
from crowdveil.cli.options import given, options_of
from crowdveil.engine.progress import progress_bar
from crowdveil.errors import InputError, counted
from crowdveil.io.atomic import new_file
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline
from crowdveil.server.settings import SCOPES, USUAL, Limits, Place, Settings, WorkerSettings, variable

_SCOPES = ", ".join(f"{name} ({does})" for name, does in SCOPES.items())
ONCE = "note: this token is not shown again. Hand it over safely."
TILES, PEOPLE, TRIPS, TRAJECTORIES = 36, 300, 3_000, 120
"""The size of the city on which `warmup` runs methods."""


@click.group()
def command() -> None:
    """Run the service, and manage its tokens, jobs and reviews.

    \b
    Examples:
      crowdveil server start
      crowdveil server token create anna
      crowdveil server jobs 30c2ad9df0f9470abfd8198b4cb4f86a -o out/
    """


def settings_options(model: type[Params]) -> list[click.Option]:
    """Return the options of settings, each with its environment variable."""
    options = options_of(model)
    for option in options:
        option.envvar = variable(str(option.name))
    return options


@command.command("start", params=settings_options(Settings))
def start(**values: Any) -> None:
    """Start the service: an HTTP API, a web page, a queue and workers, with nothing else to install.

    The first start prints a token. Create others with crowdveil server token create NAME. Put a proxy with TLS in front of an
    address that other machines can reach. Limits apply to tokens without limits of their own.

    \b
    Examples:
      crowdveil server start
      crowdveil server start --data-dir /srv/crowdveil --workers 4 --keep-hours 2
      crowdveil server start --four-eyes
      crowdveil server start --host 0.0.0.0 --database-url postgresql://crowdveil@db/crowdveil --data-dir /shared/crowdveil
    """
    from crowdveil.server.serve import serve

    serve(Settings.checked(given(Settings, values)), click.echo, [_mobidatalab_routes()])


def make_app() -> Any:
    """Return the service as an ASGI app for any server: `uvicorn --factory crowdveil.cli.server:make_app`.

    It reads its settings from the environment. `crowdveil server worker` runs the jobs.
    """
    from crowdveil.server.serve import start_app
    from crowdveil.server.workers.sandbox import check_confinement

    named = {name: os.environ.get(variable(name)) for name in Settings.model_fields}
    check_confinement(local=False)  # the address of the server is not known here
    _, app = start_app(Settings.checked({n: v for n, v in named.items() if v}), [_mobidatalab_routes()])
    return app


def _mobidatalab_routes() -> Callable[[Any], None]:
    """Return the function that adds the routes of mdl-anonymizer."""
    from crowdveil.compat.mobidatalab.routes import add_routes

    return add_routes


@command.command("worker", params=settings_options(WorkerSettings))
def worker(**values: Any) -> None:
    """Run jobs of a service with a queue in PostgreSQL; start any number of workers on any number of machines.

    All machines share the data directory, by NFS for example. A worker that is stopped requeues its jobs.

    \b
    Example:
      crowdveil server worker --database-url postgresql://crowdveil@db/crowdveil --data-dir /shared/crowdveil --workers 4
    """
    from crowdveil.server import logs
    from crowdveil.server.service import open_service
    from crowdveil.server.workers.sandbox import check_confinement
    from crowdveil.server.workers.supervisor import Supervisor

    settings = Settings.checked(given(WorkerSettings, values))
    logs.configure(settings.log_format)
    check_confinement(local=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    supervisor = Supervisor(open_service(settings))
    try:
        supervisor.start()
        while True:
            signal.pause()
    except KeyboardInterrupt:  # SIGTERM too
        supervisor.stop()


@command.command("warmup")
@click.argument("methods", nargs=-1, metavar="[METHOD]...")
def warmup(methods: tuple[str, ...]) -> None:
    """Compile the kernels of all methods, or of those that are named, before the first run.

    Each method runs on a small synthetic city, and only its compiled kernels are kept. This takes a few minutes after an
    installation or an update, and seconds otherwise.

    \b
    Examples:
      crowdveil server warmup joint suppression
      crowdveil server warmup
    """
    chosen = [find_method(name) for name in methods] or list(all_methods().values())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="crowdveil-warmup-") as scratch, progress_bar() as (_, stage):
        folder = Path(scratch)
        make_city(folder, 0, TILES, PEOPLE, TRIPS, TRAJECTORIES, 1)
        for number, method in enumerate(chosen, 1):
            stage(f"compiling {method.name} ({number} of {len(chosen)})")
            _run_on(method, folder)
    done = counted(len(chosen), "method")
    click.echo(f"compiled the kernels of {done} ({time.perf_counter() - start:.0f} s)")


def _run_on(method: Method, folder: Path) -> None:
    """Run a method on the small city. One that cannot use this data compiles its kernels in its first run."""
    of_flows = method.takes is Flows
    data = folder / ("trips.parquet" if of_flows else "trajectories.parquet")
    reading: dict[str, Any] = {"zones": folder / "zones.geojson", "tz": "UTC"} if of_flows else {}
    parameters = {"k": 3} if "k" in method.params.model_fields else {}
    try:
        pipeline.run(pipeline.Request(method.name, data, folder / method.name, parameters, reading))
    except InputError:
        return


@command.command("audit", params=settings_options(Place))
@click.option("--since", type=click.DateTime(), metavar="DATE", help="Only lines from this time on (UTC). [all]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File to write. [standard output]"
)
def audit(since: datetime | None, output: Path | None, **values: Any) -> None:
    """Export the audit log as JSON lines: time, id and name of the token, action, and job; no data.

    \b
    Example:
      crowdveil server audit -o audit-2026-11.jsonl --since 2026-11-01
    """
    from crowdveil.server.logs import exported
    from crowdveil.server.service import open_to_read

    first = 0.0 if since is None else since.replace(tzinfo=UTC).timestamp()
    with open_to_read(Place.checked(given(Place, values))) as service:
        names = {row["id"]: row["name"] for row in service.tokens.all()}
        lines = [exported(row, names) for row in service.store.log() if row["at"] >= first]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if output is None:
        click.echo(text, nl=False)
        return
    with new_file(output, overwrite=False) as file:
        file.write_text(text, encoding="utf-8")
    click.echo(f"{output}: {len(lines):,} lines")


@command.group("token")
def token() -> None:
    """Create, list and revoke the tokens of the service's users.

    \b
    Examples:
      crowdveil server token create anna --expires 90d
      crowdveil server token create bert --max-running 1 --max-seconds 600
      crowdveil server token create rita --scope review
      crowdveil server token create nightly --scope submit --jobs-of anna
      crowdveil server token list
      crowdveil server token revoke anna
    """


@token.command("create", params=[*options_of(Limits), *settings_options(Place)])
@click.option("--scope", "scopes", multiple=True, type=click.Choice(list(SCOPES)), metavar="SCOPE",
              help=f"What the token may do; can be repeated. {_SCOPES}. [{' and '.join(USUAL)}]")  # fmt: skip
@click.option("--expires", metavar="TIME", help="Lifetime, such as 90d, 12h or 4w. [until revoked]")
@click.option("--jobs-of", metavar="NAME", help="Work on the jobs of this other token, instead of its own jobs.")
@click.option("--source", "sources", multiple=True, metavar="NAME",
              help="Source of its data: releases of flows and heat maps are audited against the ledger of this source in the "
              "data directory. Can be repeated; a job then names one.")  # fmt: skip
@click.argument("name")
def create_token(
    name: str,
    scopes: tuple[str, ...],
    expires: str | None,
    jobs_of: str | None,
    sources: tuple[str, ...],
    **values: Any,
) -> None:
    """Create a token and show it once; the server keeps only a hash.

    \b
    Examples:
      crowdveil server token create anna --expires 90d
      crowdveil server token create rita --scope review
      crowdveil server token create dashboard --scope read --jobs-of anna
      crowdveil server token create transit --source buses --source trams
    """
    from crowdveil.server.service import open_service
    from crowdveil.server.sources import make_ledgers
    from crowdveil.server.tokens import length_s

    lasts = None if expires is None else length_s(expires, "expires")
    with open_service(Settings.checked(given(Place, values))) as service:
        if sources:
            make_ledgers(service.files.root, sources)
        made = service.tokens.create(
            name, scopes=scopes or USUAL, expires_s=lasts, jobs_of=jobs_of, sources=sources, **given(Limits, values)
        )
    click.echo(made)
    click.echo(ONCE, err=True)


@token.command("list", params=settings_options(Place))
def list_tokens(**where: Any) -> None:
    """List tokens with their scopes, limits, and times of creation, last use and expiry."""
    from crowdveil.server.service import open_to_read

    with open_to_read(Place.checked(given(Place, where))) as service:
        rows = service.tokens.all()
    names = {row["id"]: row["name"] for row in rows}
    for row in rows:
        click.echo(f"{row['name']}: {', '.join(_phrases(row, names))}")


def _phrases(row: dict[str, Any], names: dict[str, str]) -> list[str]:
    """Describe a token in short phrases."""
    found = [f"may {' and '.join(row['scopes'].split())}", f"made {_day(row['created'])}"]
    found.append("never used" if row["last_used"] is None else f"last used {_day(row['last_used'])}")
    for what in ("expires", "revoked"):
        if row[what] is not None:
            found.append(f"{what} {_day(row[what])}")
    if row["owner"] is not None:
        found.append(f"jobs of {names.get(row['owner'], row['owner'])}")
    if row["sources"]:
        found.append(f"audited for {' or '.join(row['sources'].split())}")
    return found + [f"{name.replace('_', ' ')} {value:,}" for name, value in json.loads(row["limits"]).items()]


@token.command("revoke", params=settings_options(Place))
@click.argument("name")
def revoke_token(name: str, **where: Any) -> None:
    """Revoke a token: the server rejects it from the next request on."""
    from crowdveil.server.service import open_service

    with open_service(Settings.checked(given(Place, where))) as service:
        service.tokens.revoke(name)
    click.echo(f"{name}: revoked")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


command.add_command(server_jobs.jobs, "jobs")
command.add_command(server_jobs.review, "review")
