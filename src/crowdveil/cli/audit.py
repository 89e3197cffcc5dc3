"""`crowdveil audit`: export the audit log of a service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.serve import place, place_options
from crowdveil.io.atomic import new_file
from crowdveil.server import audit


@click.group()
def command() -> None:
    """Export the audit log: who did what to which job, and nothing of the data.

    \b
    Example:
      crowdveil audit export -o audit-2026-11.jsonl --since 2026-11-01
    """


@command.command("export", params=place_options())
@click.option("--since", type=click.DateTime(), metavar="DATE", help="Only lines from this time (UTC) on. [all]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File to write. [standard output]"
)
def export(since: datetime | None, output: Path | None, **where: Any) -> None:
    """Write the log as JSON lines: time, who (a token's id), what, and job."""
    lines = _lines(where)
    if since is not None:
        first = audit.time_text(since.replace(tzinfo=UTC).timestamp())
        lines = [line for line in lines if line["time"] >= first]
    texts = "".join(json.dumps(line) + "\n" for line in lines)
    if output is None:
        click.echo(texts, nl=False)
        return
    with new_file(output, overwrite=False) as file:
        file.write_text(texts, encoding="utf-8")
    click.echo(f"{output}: {len(lines):,} lines")


def _lines(where: dict[str, Any]) -> list[dict[str, Any]]:
    with place(where).open_to_read() as service:
        return [audit.exported(row) for row in service.store.log()]
