"""`crowdveil report FOLDER`: the report of a release, one HTML file."""

from __future__ import annotations

from typing import Any

import click

from crowdveil.api import show as api
from crowdveil.cli.options import given, options_of
from crowdveil.reading import EitherReading


@click.command(params=options_of(EitherReading))
@click.argument("folder")
@click.option(
    "--private-report",
    metavar="FILE",
    help="Show the original too, in a file outside the release; confidential, do not publish.",
)
@click.option("--original", metavar="FILE", help="The trips, flows or trajectories that the release was made from.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier private report.")
def command(folder: str, private_report: str | None, original: str | None, overwrite: bool, **values: Any) -> None:
    """Write report.html of a release again, from its files alone.

    With --private-report it compares with the original, in a confidential file outside the release; it is read as it was for
    the release, and only files, such as zones, must be given again.

    \b
    Examples:
      crowdveil report out/
      crowdveil report out/ --private-report ours.html --original trips.parquet --zones zones.geojson
    """
    reading = given(EitherReading, values)
    if (reading or original is not None) and private_report is None:
        raise click.UsageError("the original is for a confidential report; name its file with --private-report.")
    if private_report is not None and original is None:
        raise click.UsageError("--private-report shows the original; give it with --original.")
    file = api.write_report(folder, private_report, original=original, overwrite=overwrite, **reading)
    click.echo(
        f"{file}: {'written' if private_report is None else 'confidential report with the original; do not publish it'}"
    )
