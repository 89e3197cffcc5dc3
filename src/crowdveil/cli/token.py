"""`crowdveil token`: who may use the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from crowdveil.cli.options import given, options_of
from crowdveil.cli.serve import place, place_options
from crowdveil.server.sources import make_ledgers
from crowdveil.server.tokens import SCOPES, USUAL, Limits, length_s

ONCE = "note: this token is not shown again; hand it over by a safe way."
_ALL = ", ".join(f"{name} ({does})" for name, does in SCOPES.items())
_EXPIRES = click.option(
    "--expires", metavar="TIME", help="How long it is good, such as 90d, 12h or 4w. [until revoked]"
)


@click.group()
def command() -> None:
    """Make and revoke the tokens that people use the service with.

    \b
    Examples:
      crowdveil token create anna --expires 90d
      crowdveil token create bert --max-running 1 --max-seconds 600
      crowdveil token create rita --scope review
      crowdveil token create nightly --scope submit --jobs-of anna
      crowdveil token list
      crowdveil token revoke anna
    """


@command.command("create", params=[*options_of(Limits), *place_options()])
@click.option("--scope", "scopes", multiple=True, type=click.Choice(list(SCOPES)), metavar="SCOPE",
              help=f"What it may do; several of: {_ALL}. [{' and '.join(USUAL)}]")  # fmt: skip
@_EXPIRES
@click.option("--jobs-of", metavar="NAME", help="Work on the jobs of this other token, in place of jobs of its own.")
@click.option("--source", "sources", multiple=True, metavar="NAME",
              help="Source of its data: every release of flows and heat map is audited against the ledger of the source, in "
              "the data directory. Several may be given; a job then names one.")  # fmt: skip
@click.argument("name")
def create(
    name: str,
    scopes: tuple[str, ...],
    expires: str | None,
    jobs_of: str | None,
    sources: tuple[str, ...],
    **values: Any,
) -> None:
    """Make a token, and show it this once: only a hash of it is kept.

    \b
    Examples:
      crowdveil token create anna --expires 90d
      crowdveil token create rita --scope review
      crowdveil token create dashboard --scope read --jobs-of anna
      crowdveil token create transit --source buses --source trams
    """
    lasts = None if expires is None else length_s(expires, "expires")
    with place(values).open() as service:
        if sources:
            make_ledgers(service.files.root, sources)
        made = service.tokens.create(
            name, scopes=scopes or USUAL, expires_s=lasts, jobs_of=jobs_of, sources=sources, **given(Limits, values)
        )
        service.needs_tokens()  # the data directory records that it has tokens
    click.echo(made)
    click.echo(ONCE, err=True)


@command.command("list", params=place_options())
def listing(**where: Any) -> None:
    """List tokens: scopes, when they were made and last used, when they expire, and what is particular to them."""
    with place(where).open_to_read() as service:
        rows = service.tokens.all()
    names = {row["id"]: row["name"] for row in rows}
    for row in rows:
        click.echo(f"{row['name']}: {', '.join(_found(row, names))}")


def _found(row: dict[str, Any], names: dict[str, str]) -> list[str]:
    """Return what is known of a token, as short phrases."""
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


@command.command("revoke", params=place_options())
@click.argument("name")
def revoke(name: str, **where: Any) -> None:
    """Take a token's rights away at once."""
    with place(where).open() as service:
        service.tokens.revoke(name)
    click.echo(f"{name}: revoked")


@command.command("log", params=place_options())
def log(**where: Any) -> None:
    """Show who did what; nothing of the data is in it."""
    with place(where).open_to_read() as service:
        names, lines = {row["id"]: row["name"] for row in service.tokens.all()}, service.store.log()
    for line in lines:
        at, who = datetime.fromtimestamp(line["at"], UTC).isoformat(timespec="seconds"), line["who"]
        click.echo(f"{at}  {names.get(who, who)}: {line['what']}  {line['job'] or ''}".rstrip())


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
