"""`crowdveil review`: approve or reject results of others on a server that runs with --four-eyes."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.io.atomic import new_file
from crowdveil.remote import LOCAL_SERVER, remote

_server = click.option("--server", envvar="CROWDVEIL_SERVER", default=LOCAL_SERVER, metavar="URL",
                       help=f"The server that has it. [CROWDVEIL_SERVER, or {LOCAL_SERVER}]")  # fmt: skip


@click.group()
def command() -> None:
    """Approve or reject results of others, with a token that has the scope review (in CROWDVEIL_TOKEN).

    \b
    Examples:
      crowdveil review list
      crowdveil review report 30c2ad9df0f9470abfd8198b4cb4f86a -o report.html
      crowdveil review approve 30c2ad9df0f9470abfd8198b4cb4f86a
      crowdveil review reject 30c2ad9df0f9470abfd8198b4cb4f86a --comment "k is too small for this area"
    """


@command.command("list")
@_server
def listing(server: str) -> None:
    """List results that await review."""
    found = remote(server).reviews()
    for one in found:
        click.echo(f"{one['id']}: {one['kind']} {one['name']} of {one['submitter']}, done {one['ended_at']}")
    if not found:
        click.echo("no result awaits review.")


@command.command("report")
@_server
@click.argument("task", metavar="ID")
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="Where the report is written: a page, or the manifest."
)
@click.option("--overwrite", is_flag=True, help="Replace what exists.")
def report(task: str, output: str, overwrite: bool, server: str) -> None:
    """Fetch the report that is to be approved."""
    target = Path(output)
    with remote(server).review_report(task) as answer, new_file(target, overwrite=overwrite) as file:
        file.write_bytes(answer.read())
    click.echo(f"{output}: written")


def _add_decision(verb: str, done: str, text: str) -> None:
    @command.command(verb, help=text)
    @_server
    @click.option("--comment", default="", metavar="TEXT", help="Message to the submitter. [none]")
    @click.argument("task", metavar="ID")
    def decide(task: str, comment: str, server: str) -> None:
        remote(server).decide(task, verb, comment)
        click.echo(f"{task}: {done}")


_add_decision("approve", "approved", "Approve a result: its submitter can fetch it from now on. This cannot be undone.")
_add_decision("reject", "rejected", "Reject a result, so that it cannot be fetched. This cannot be undone.")
