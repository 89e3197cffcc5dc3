"""`crowdveil hierarchy`: build a tree over zones, or check one."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.console import show_notes
from crowdveil.io.atomic import new_files
from crowdveil.io.hierarchy import build_hierarchy, hierarchy_table
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, write_table
from crowdveil.io.zones import read_zones


@click.command()
@click.argument("zones")
@click.option("--hierarchy", "kind", default="ward", metavar="KIND|FILE",
              help="ward, kd, quadtree, h3, or a table of levels, parents or nodes. [default ward]")  # fmt: skip
@click.option("--zone-id", metavar="COLUMN", help="Column of zone ids.")
@click.option(
    "-o", "--output", metavar="FILE", help="Table to write, .csv or .parquet; without it the tree is only checked."
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def command(zones: str, kind: str, zone_id: str | None, output: str | None, overwrite: bool) -> None:
    """Build a tree over zones, print its size and depth, and write it as a table of nodes for --hierarchy.

    \b
    Examples:
      crowdveil hierarchy zones.geojson --hierarchy ward -o tree.csv
      crowdveil anonymize joint trips.csv --zones zones.geojson --hierarchy tree.csv -o out/
      crowdveil hierarchy zones.geojson --hierarchy districts.csv
    """
    if output is not None:
        check_ending(Path(output))
    notes = ReadNotes()
    with new_files(output, overwrite=overwrite) as (file,):
        tiles = read_zones(zones, zone_id=zone_id, notes=notes)
        tree = build_hierarchy(tiles, kind)
        if file is not None:
            write_table(hierarchy_table(tree, tiles), file, as_input=True)
    show_notes(notes)
    click.echo(
        f"{len(tiles):,} tiles, {len(tree.parent):,} nodes, depth {int(tree.depth.max())}{f'; {output}' if output else ''}"
    )
