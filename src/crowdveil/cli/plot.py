"""`crowdveil plot KIND FOLDER`: pictures for papers."""

from __future__ import annotations

import click

from crowdveil import api


@click.command()
@click.argument("kind", type=click.Choice(api.PLOTS))
@click.argument("folder")
@click.option("-o", "--output", required=True, metavar="FILE", help="The picture: .png or .svg.")
@click.option("--top", type=click.IntRange(1, 20_000), default=300, metavar="N", help="Flows on the map. [default 300]")
@click.option(
    "--zone", "zones", multiple=True, metavar="AREA", help="An area whose profile is drawn; may be given again."
)
@click.option("--overwrite", is_flag=True, help="Replace the file.")
def command(kind: str, folder: str, output: str, top: int, zones: tuple[str, ...], overwrite: bool) -> None:
    """Draw a release on a map, profiles of its areas, a heat map of trajectories, or the Pareto curves of a comparison.

    FOLDER is a release, and for pareto what compare or sweep wrote. Needs matplotlib (extra report).

    \b
    Examples:
      crowdveil plot flows out/ -o flows.svg --top 500
      crowdveil plot areas out/ -o areas.png
      crowdveil plot profiles out/ --zone 74 -o profile.png
      crowdveil plot pareto compared/ -o pareto.svg
    """
    api.plot(kind, folder, output, top=top, zones=zones, overwrite=overwrite)
    click.echo(f"{output}: written")
