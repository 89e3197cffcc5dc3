"""`crowdveil derive OUT`: a coarser release, by adding up rows of a published one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.options import given, options_of
from crowdveil.ledger.store import open_ledger
from crowdveil.run.deriving import DeriveOptions, derive
from crowdveil.run.options import RunOptions


@click.command(
    params=[
        *options_of(DeriveOptions),
        *[o for o in options_of(RunOptions) if o.name in ("ledger", "report", "overwrite")],
    ]
)
@click.argument("release", type=click.Path(path_type=Path), metavar="OUT")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder to write the release to.",
)
def command(
    release: Path, output: Path, ledger: str | None, report: bool | None, overwrite: bool | None, **values: Any
) -> None:
    """Derive a coarser release from a published one: longer time steps, or larger zones.

    Rows are added up, so nothing can be learned that is not in the published release. The manifest names that release, and
    crowdveil verify compares the sums with it if it is in the same folder. Rows of areas that no zone holds are left out. The
    group size of a sum of people is that of its largest row, since people of several rows may be the same.

    \b
    Examples:
      crowdveil derive hours/ --step 1d -o days/
      crowdveil derive hours/ --step 1d --to-zones districts.csv -o districts/ --ledger ledger/
    """
    result = derive(
        release, output, DeriveOptions.checked(given(DeriveOptions, values)), overwrite=bool(overwrite),
        report=report is not False, ledger=None if ledger is None else open_ledger(ledger),
    )  # fmt: skip
    click.echo(f"{output}: verified and written")
    for line in result.lines():
        click.echo(line)
