"""`crowdveil ledger`: audit new releases against earlier ones in a confidential ledger."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_lines
from crowdveil.cli.options import given, options_of
from crowdveil.ledger.recording import retire, verify_ledger
from crowdveil.ledger.store import Ledger, create_ledger
from crowdveil.ledger.wording import entry_lines, entry_rows, explain
from crowdveil.reading import EitherReading
from crowdveil.run.ledgers import Checked, add_release, check_release

_FOLDER = click.argument("ledger", type=click.Path(path_type=Path), metavar="LEDGER")
_RELEASE = click.argument("release", type=click.Path(path_type=Path), metavar="OUT")
_ORIGINAL = click.option("--original", metavar="FILE", help="The trips, flows or trajectories behind the release.")

_INDEPENDENT = click.option(
    "--independent",
    is_flag=True,
    help="State that new records in the period of an earlier release are other trips.",
)


@click.group()
def command() -> None:
    """Audit releases against earlier ones of the same data: subtraction must not reveal a group of fewer than k.

    A ledger is a folder for one source of data. It holds keyed hashes of the records behind each release and is confidential:
    keep it with the data. Runs with --ledger audit their release before it is published, and add it.

    \b
    Examples:
      crowdveil ledger init ledger/
      crowdveil anonymize joint trips.parquet --zones zones.geojson --step 1h -o hours/ --ledger ledger/
      crowdveil ledger list ledger/
      crowdveil ledger check ledger/ out/ --original trips.parquet --zones zones.geojson
      crowdveil ledger add ledger/ out/ --original trips.parquet --zones zones.geojson
      crowdveil ledger explain ledger/
      crowdveil ledger verify ledger/
      crowdveil ledger retire ledger/ 3 --reason "never sent"
    """


@command.command("init")
@_FOLDER
def init(ledger: Path) -> None:
    """Create an empty ledger in a new folder that only its owner can read."""
    create_ledger(ledger)
    click.echo(f"{ledger}: empty ledger created. It is confidential: do not publish it.")


@command.command("list")
@_FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON.")
def list_entries(ledger: Path, as_json: bool) -> None:
    """List the entries with release, method, k, period, state and audit."""
    opened = Ledger(ledger)
    if as_json:
        click.echo(json.dumps(entry_rows(opened), indent=2))
    else:
        show_lines(entry_lines(opened))


@command.command("check", params=options_of(EitherReading))
@_FOLDER
@_RELEASE
@_ORIGINAL
@_INDEPENDENT
def check(ledger: Path, release: Path, original: str | None, independent: bool, **values: Any) -> None:
    """Audit a release or a heat map against the ledger without adding it.

    The original is read with the options of the release; only files, such as zones, must be named again. Exit code 0 if no
    group of fewer than k can be derived, 1 otherwise.
    """
    reading = given(EitherReading, values)
    found = check_release(release, Ledger(ledger), original, reading, independent=independent)
    _show(release, found)
    if not found.passed:
        sys.exit(1)


@command.command("add", params=options_of(EitherReading))
@_FOLDER
@_RELEASE
@_ORIGINAL
@click.option(
    "--published", is_flag=True, help="Add the release whatever the audit finds, because it is already public."
)
@_INDEPENDENT
def add(ledger: Path, release: Path, original: str | None, published: bool, independent: bool, **values: Any) -> None:
    """Audit a release or a heat map, and add it to the ledger unless a group of fewer than k can be derived."""
    reading = given(EitherReading, values)
    found = add_release(release, Ledger(ledger), original, reading, published=published, independent=independent)
    _show(release, found)


def _show(release: Path, found: Checked) -> None:
    verdict = "passed" if found.passed else "refused"
    click.echo(f"{release}: {verdict if found.entry is None else f'entry {found.entry}'}")
    show_lines(f"  {line}" for line in found.lines)


@command.command("explain")
@_FOLDER
@click.argument("entry", required=False, type=int, metavar="[ENTRY]")
def explain_entry(ledger: Path, entry: int | None) -> None:
    """Explain the audit of an entry, or of the last refused release: rows, subtraction and size of the set."""
    show_lines(explain(Ledger(ledger), entry))


@command.command("verify")
@_FOLDER
@click.option("--last", metavar="HASH", help="Last hash of an earlier check, to detect lines removed at the end.")
def verify(ledger: Path, last: str | None) -> None:
    """Check that no line or file of the ledger was changed or removed."""
    show_lines(verify_ledger(Ledger(ledger), last))


@command.command("retire")
@_FOLDER
@click.argument("entry", type=int, metavar="ENTRY")
@click.option("--reason", required=True, metavar="TEXT", help="Reason why nobody has the release; kept in the ledger.")
def retire_entry(ledger: Path, entry: int, reason: str) -> None:
    """Leave an entry out of later audits. Only for a release that nobody received; published data stay known."""
    retire(Ledger(ledger), entry, reason)
    click.echo(f"entry {entry}: retired; later releases are not audited against it")
