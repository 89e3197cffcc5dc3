"""`crowdveil zones crop|split`: fewer or more zones, with the trips between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from crowdveil.cli.console import show_notes
from crowdveil.errors import OutputError
from crowdveil.io.atomic import check_file, new_file
from crowdveil.io.geojson import write_zones
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, write_table
from crowdveil.io.zone_edits import SHARES, SIDES, keep_trips, keep_zones, parse_shares, split_trips, split_zones
from crowdveil.io.zones import read_zones
from crowdveil.model.zones import Zones

_SHARES = ",".join(map(str, SHARES))
_SHARED: list[click.Parameter] = [
    click.Argument(["zones"]),
    click.Option(["-o", "--output"], required=True, metavar="FILE", help="Zones to write: .geojson."),
    click.Option(["--zone-id"], metavar="COLUMN", help="Column of the zones' ids."),
    click.Option(["--trips"], metavar="FILE", help="Trips or flows between these zones, by their ids."),
    click.Option(["--trips-out"], metavar="FILE", help="Trips or flows to write: .csv or .parquet. Not anonymized."),
    click.Option(["--origin"], metavar="COLUMN", help="Column of the origin's zone id."),
    click.Option(["--destination"], metavar="COLUMN", help="Column of the destination's zone id."),
    click.Option(["--volume"], metavar="COLUMN", help="Column of volumes; with it a row is a flow, without it a trip."),
    click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
]


@click.group()
def command() -> None:
    """Crop zones to a part of the map, or split each into several, with the trips between them.

    To study what the size of a map does to methods, as the literature does: fewer tiles, or more of them.

    \b
    Examples:
      crowdveil zones crop zones.geojson --keep 599 --side west --trips trips.parquet --trips-out west.parquet -o west.geojson
      crowdveil zones crop zones.geojson --bbox 2.2,48.8,2.4,48.9 -o part.geojson
      crowdveil zones split zones.geojson --trips trips.parquet --trips-out split.parquet -o split.geojson
    """


@command.command(params=[*_SHARED])
@click.option("--bbox", metavar="W,S,E,N", help="Keep zones whose center is in this box; degrees.")
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="N", help="Keep this many zones, the outermost on one side."
)
@click.option("--side", type=click.Choice(SIDES), default="west", show_default=True, help="The side, with --keep.")
def crop(zones: str, bbox: str | None, keep: int | None, side: Any, **values: Any) -> None:
    """Keep the zones in a box, or the outermost ones on a side, and the trips between them.

    \b
    Examples:
      crowdveil zones crop zones.geojson --keep 599 --side west --trips trips.parquet --trips-out west.parquet -o west.geojson
      crowdveil zones crop zones.geojson --bbox 2.2,48.8,2.4,48.9 -o part.geojson
    """
    _edit(zones, lambda tiles: keep_zones(tiles, bbox=bbox, keep=keep, side=side),
          lambda data, _, after, columns: keep_trips(data, after, **columns), **values)  # fmt: skip


@command.command(params=[*_SHARED])
@click.option("--shares", default=_SHARES, show_default=True, metavar="S,S,...",
              help="Shares of the parts of a zone in its trips; as many parts as shares.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, metavar="N", help="Seed of the random parts of trips.")
def split(zones: str, shares: str, seed: int, **values: Any) -> None:
    """Split each zone into parts of equal area, and draw the parts that each trip begins and ends in.

    \b
    Examples:
      crowdveil zones split zones.geojson --trips trips.parquet --trips-out split.parquet -o split.geojson
      crowdveil zones split zones.geojson --shares 0.7,0.3 -o halves.geojson
    """
    law = parse_shares(shares)
    _edit(zones, lambda tiles: split_zones(tiles, len(law)),
          lambda data, before, _, columns: split_trips(data, before, law, seed=seed, **columns), **values)  # fmt: skip


def _edit(
    zones: str,
    edit: Callable[[Zones], Zones],
    edit_trips: Callable[[str, Zones, Zones, dict[str, str | None]], pa.Table],
    *,
    output: str,
    zone_id: str | None,
    trips: str | None,
    trips_out: str | None,
    overwrite: bool,
    **columns: str | None,
) -> None:
    """Edit zones, and trips if they are given; nothing is written unless both can be."""
    if (trips is None) != (trips_out is None):
        raise click.UsageError("--trips and --trips-out come together: what to read, and where to write it.")
    if Path(output).suffix.lower() not in (".geojson", ".json"):
        raise OutputError(output, "wanted a name that ends in .geojson.")
    targets = [Path(output), *([] if trips_out is None else [Path(trips_out)])]
    for path in targets:
        check_file(path.absolute(), overwrite=overwrite)
    if trips_out is not None:
        check_ending(Path(trips_out), option="trips_out")
    notes = ReadNotes()
    before = read_zones(zones, zone_id=zone_id, notes=notes)
    after = edit(before)
    table = None if trips is None else edit_trips(trips, before, after, columns)
    write_zones(after, output, overwrite=overwrite)
    show_notes(notes)
    click.echo(f"{output}: {len(after):,} zones")
    if table is not None and trips_out is not None:
        with new_file(Path(trips_out), overwrite=overwrite) as file:
            write_table(table, file, as_input=True)
        click.echo(f"{trips_out}: {len(table):,} rows, not anonymized")
