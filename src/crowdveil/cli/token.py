"""`crowdveil token`: who may use the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.options import given, options_of
from crowdveil.cli.serve import place, place_options
from crowdveil.server.tokens import Limits


@click.group()
def command() -> None:
    """Make and revoke the tokens that people use the service with.

    \b
    Examples:
      crowdveil token create anna
      crowdveil token create bert --max-running 1 --max-seconds 600
      crowdveil token list
      crowdveil token revoke anna
    """


@command.command("create", params=options_of(Limits))
@place_options
@click.argument("name")
def create(name: str, data_dir: Path | None, database_url: str | None, **values: Any) -> None:
    """Make a token, and show it this once: only a hash of it is kept."""
    with place(data_dir, database_url).open() as service:
        made = service.tokens.create(name, **given(Limits, values))
        service.needs_tokens()  # the data directory records that it has tokens
        click.echo(made)
    click.echo("note: this token is not shown again; hand it over by a safe way.", err=True)


@command.command("list")
@place_options
def listing(data_dir: Path | None, database_url: str | None) -> None:
    """List tokens, when they were made, and what is particular to them."""
    with place(data_dir, database_url).open_to_read() as service:
        rows = service.tokens.all()
    for row in rows:
        revoked = "" if row["revoked"] is None else f", revoked {_day(row['revoked'])}"
        limits = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in json.loads(row["limits"]).items())
        click.echo(f"{row['name']}: made {_day(row['created'])}{revoked}{f'; {limits}' if limits else ''}")


@command.command("revoke")
@place_options
@click.argument("name")
def revoke(name: str, data_dir: Path | None, database_url: str | None) -> None:
    """Take a token's rights away at once."""
    with place(data_dir, database_url).open() as service:
        service.tokens.revoke(name)
    click.echo(f"{name}: revoked")


@command.command("log")
@place_options
def log(data_dir: Path | None, database_url: str | None) -> None:
    """Show who did what; nothing of the data is in it."""
    with place(data_dir, database_url).open_to_read() as service:
        names, lines = {row["id"]: row["name"] for row in service.tokens.all()}, service.store.log()
    for line in lines:
        at, who = datetime.fromtimestamp(line["at"], UTC).isoformat(timespec="seconds"), line["who"]
        click.echo(f"{at}  {names.get(who, who)}: {line['what']}  {line['job'] or ''}".rstrip())


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
