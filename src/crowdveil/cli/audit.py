"""`crowdveil audit`: the audit log of a service, exported and verified."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.serve import place, place_options
from crowdveil.errors import InputError
from crowdveil.io.atomic import new_file
from crowdveil.server import audit


@click.group()
def command() -> None:
    """Export and verify the audit log: who did what to which job, and nothing of the data.

    \b
    Examples:
      crowdveil audit export -o audit-2026-11.jsonl --since 2026-11-01
      crowdveil audit verify
      crowdveil audit verify audit-2026-11.jsonl
    """


@command.command("export", params=place_options())
@click.option("--since", type=click.DateTime(), metavar="DATE", help="Only lines from this time (UTC) on. [all]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File to write. [standard output]"
)
def export(since: datetime | None, output: Path | None, **where: Any) -> None:
    """Write the log as JSON lines: time, who (a token's id), what, job, and the hashes of this line and the one before."""
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


@command.command("verify", params=place_options())
@click.argument("earlier", required=False, type=click.Path(path_type=Path), metavar="[EXPORT]")
def verify(earlier: Path | None, **where: Any) -> None:
    """Check that no line of the log was changed or removed; with an earlier EXPORT, that all its lines remain."""
    lines = _lines(where)
    wrong = audit.verified(lines)
    if wrong is None and earlier is not None:
        try:
            kept = audit.parsed(earlier.read_text(encoding="utf-8").splitlines(), str(earlier))
        except (OSError, UnicodeDecodeError):
            raise InputError(earlier, "cannot be read; give a file of crowdveil audit export.") from None
        wrong = audit.missing_from(lines, kept)
    if wrong is not None:
        raise InputError(f"the audit log is not whole: {wrong}; compare it with earlier exports.")
    unchained = sum(line["hash"] is None for line in lines)
    click.echo(
        f"{len(lines):,} lines, none changed or removed"
        + (f"; {unchained:,} of an earlier version" if unchained else "")
    )
    if lines:
        click.echo(f"last hash: {lines[-1]['hash']}")


def _lines(where: dict[str, Any]) -> list[dict[str, Any]]:
    with place(where).open_to_read() as service:
        return [audit.exported(row) for row in service.store.log()]
