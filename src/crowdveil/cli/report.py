"""`crowdveil report FOLDER`: the report of a release, one HTML file."""

from __future__ import annotations

import click

from crowdveil.verbs import plot as api


@click.command()
@click.argument("folder")
def command(folder: str) -> None:
    """Write report.html of a release again, from its files alone.

    \b
    Examples:
      crowdveil report out/
    """
    click.echo(f"{api.write_report(folder)}: written")
