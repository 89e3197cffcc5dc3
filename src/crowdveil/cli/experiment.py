"""`crowdveil experiment`: repeat the experiments of papers, with their data and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from crowdveil.cli.console import show_lines, show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.comparison.comparison import Comparison
from crowdveil.engine.progress import progress_bar
from crowdveil.errors import Option, OutputError, ParameterError, counted
from crowdveil.experiments.figures import SIZES, draw_ratios, draw_windows, target_lines
from crowdveil.experiments.movers import NetworkPlacement, Traffic, write_movers
from crowdveil.experiments.network import read_network, street_grid
from crowdveil.experiments.profiles import PROFILES, make_profile
from crowdveil.experiments.trajectory_figures import METHODS, draw_figure
from crowdveil.experiments.zone_edits import (
    SHARES,
    SIDES,
    keep_trips,
    keep_zones,
    parse_shares,
    split_trips,
    split_zones,
)
from crowdveil.io.atomic import check_file, new_file, new_files
from crowdveil.io.geojson import write_zones
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, check_picture, write_flows, write_table
from crowdveil.io.trajectories import read_trajectories
from crowdveil.io.zones import read_zones
from crowdveil.model.zones import Zones
from crowdveil.reading import TrajectoryReading
from crowdveil.verbs.base import Task
from crowdveil.verbs.compare import OPTIONS, compared
from crowdveil.verbs.queries import measure_queries

_SHARES = ",".join(map(str, SHARES))
_SEED = click.Option(["--seed"], type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
                     help="The same seed gives the same bytes.")  # fmt: skip
_TABLE = click.Option(["-o", "--output"], required=True, metavar="FILE", help="File to write: .parquet or .csv.")
_OVERWRITE = click.Option(["--overwrite"], is_flag=True, help="Replace files that exist.")
_SHARED: list[click.Parameter] = [
    click.Argument(["zones"]),
    click.Option(["-o", "--output"], required=True, metavar="FILE", help="Zones to write: .geojson."),
    click.Option(["--zone-id"], metavar="COLUMN", help="Column of zone ids."),
    click.Option(["--trips"], metavar="FILE", help="Trips or flows between these zones, by their ids."),
    click.Option(["--trips-out"], metavar="FILE", help="Trips or flows to write: .csv or .parquet. Not anonymized."),
    click.Option(["--origin"], metavar="COLUMN", help="Column of origin zone ids."),
    click.Option(["--destination"], metavar="COLUMN", help="Column of destination zone ids."),
    click.Option(["--volume"], metavar="COLUMN", help="Column of volumes. With it a row is a flow, without it a trip."),
    click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
]


@click.group()
def command() -> None:
    """Make the data and figures of experiments in papers.

    Movers on roads, matrices like those of published data sets, maps with fewer or more zones, and figures of comparisons.

    \b
    Examples:
      crowdveil experiment movers 5000 --network vertices.txt edges.txt -o movers.parquet
      crowdveil experiment flows nyc -o flows.parquet
      crowdveil experiment crop zones.geojson --keep 60 --trips trips.parquet --trips-out west.parquet -o west.geojson
      crowdveil experiment crop zones.geojson --bbox 2.2,48.8,2.4,48.9 -o part.geojson
      crowdveil experiment split zones.geojson --trips trips.parquet --trips-out split.parquet -o split.geojson
    """


@command.command(params=[*_SHARED])
@click.option("--bbox", metavar="W,S,E,N", help="Keep zones whose center is in this box; degrees.")
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="N", help="Number of zones to keep, the outermost on one side."
)
@click.option("--side", type=click.Choice(SIDES), default="west", show_default=True, help="The side, with --keep.")
def crop(zones: str, bbox: str | None, keep: int | None, side: Any, **values: Any) -> None:
    """Keep the zones in a box, or the outermost ones on a side, and the trips between them.

    \b
    Examples:
      crowdveil experiment crop zones.geojson --keep 60 --trips trips.parquet --trips-out west.parquet -o west.geojson
      crowdveil experiment crop zones.geojson --bbox 2.2,48.8,2.4,48.9 -o part.geojson
    """
    _edit(zones, lambda tiles: keep_zones(tiles, bbox=bbox, keep=keep, side=side),
          lambda data, _, after, columns: keep_trips(data, after, **columns), **values)  # fmt: skip


@command.command(params=[*_SHARED])
@click.option("--shares", default=_SHARES, show_default=True, metavar="S,S,...",
              help="Share of a zone's trips in each of its parts; there are as many parts as shares.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
              help="Seed of the random parts of trips.")  # fmt: skip
def split(zones: str, shares: str, seed: int, **values: Any) -> None:
    """Split each zone into parts of equal area, and draw at random where in them each trip begins and ends.

    \b
    Examples:
      crowdveil experiment split zones.geojson --trips trips.parquet --trips-out split.parquet -o split.geojson
      crowdveil experiment split zones.geojson --shares 0.7,0.3 -o halves.geojson
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
    """Edit zones, and trips if there are some; nothing is written unless both can be written."""
    if (trips is None) != (trips_out is None):
        raise click.UsageError(
            "Expected --trips and --trips-out together: a file to read and one to write. Give both or neither."
        )
    if Path(output).suffix.lower() not in (".geojson", ".json"):
        raise OutputError(output, "Expected a name that ends in .geojson. Change it.")
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


@command.command(
    params=[
        click.Argument(["movers"], type=int),
        click.Option(
            ["--network"], nargs=2, metavar="NODES ROADS",
            help="Two files: `id x y` for each node, `id from to length` for each road. [a synthetic grid of streets]",
        ),
        *options_of(Traffic, NetworkPlacement), _SEED, _TABLE, _OVERWRITE,
    ]
)  # fmt: skip
def movers(
    movers: int, network: tuple[str, str] | None, seed: int, output: str, overwrite: bool, **values: Any
) -> None:
    """Make movers on a road network, as Brinkhoff's generator does: lat, lon, timestamp, trajectory_id, user_id.

    \b
    Example:
      crowdveil experiment movers 5000 --network vertices.txt edges.txt -o movers.parquet
    """
    place, traffic = (model.checked(given(model, values)) for model in (NetworkPlacement, Traffic))
    check_ending(Path(output))
    roads = street_grid(seed) if network is None else read_network(*network)
    if network is not None and roads.left_out:
        click.echo(
            f"note: left out {counted(roads.left_out, 'node')} that no road connects to the largest component.",
            err=True,
        )
    with (
        progress_bar("making movers") as (progress, _),
        new_file(Path(output), overwrite=overwrite) as file,
    ):
        write_movers(roads, file, movers, traffic, place, seed=seed, progress=progress)
    click.echo(f"{output}: {movers:,} movers on {roads.nodes:,} nodes and {len(roads.begin):,} roads")


@command.command(
    params=[
        click.Argument(["profile"], type=click.Choice(sorted(PROFILES))),
        click.Option(["--matrices"], default=1, show_default=True, metavar="N", help="Number of hourly matrices."),
        _SEED,
        click.Option(["--zones-out"], metavar="FILE", help="Also write the zones, as GeoJSON."),
        click.Option(["-o", "--output"], required=True, metavar="FILE", help="File to write: .parquet, .csv or .omx."),
        _OVERWRITE,
    ]
)
def flows(profile: str, matrices: int, seed: int, zones_out: str | None, output: str, overwrite: bool) -> None:
    """Make OD matrices that look like one of the data sets in the literature (tiles, flows, volume, share above 10)."""
    for path in filter(None, (output, zones_out)):
        check_file(Path(path).absolute(), overwrite=overwrite)
    data = make_profile(profile, np.random.default_rng(seed), matrices)
    write_flows(data, output, overwrite=overwrite)
    if zones_out:
        write_zones(data.zones, zones_out, overwrite=overwrite)
    click.echo(
        f"{output}: {len(data):,} flows, {data.total:,} trips, {data.steps:,} matrices, {len(data.zones):,} tiles"
    )


@command.command(
    params=[
        click.Argument(["figure"], type=click.Choice(["ratios", "targets", "windows"])),
        click.Argument(["data"], metavar="INPUT...", nargs=-1, required=True),
        click.Option(["-o", "--output"], metavar="FILE", help="Picture to write: .png. Not for targets."),
        _OVERWRITE,
        *options_of(*OPTIONS, without=("format",)),
    ]
)
def figure(figure: str, data: tuple[str, ...], output: str | None, overwrite: bool, **values: Any) -> None:
    """Run a comparison and make a figure or table of a paper from it.

    ratios: each measure as a ratio to the first method, box plots over matrices. targets: the target volume at which origins
    and destinations have the nearest mean sizes, for each k. windows: distortion of range queries by their window. The
    numbers are exact and confidential: do not publish them.

    \b
    Examples:
      crowdveil experiment figure ratios trips.parquet --zones zones.geojson --methods atg-dual,oigh -o ratios.png
      crowdveil experiment figure targets trips.parquet --zones zones.geojson --methods atg-dual -k 5,10 --vary v_target=40,80
      crowdveil experiment figure windows cabs.parquet --methods microaggregation,swapmob -o windows.png
    """
    options = {name: value for name, value in values.items() if value is not None and value != ()}
    if figure == "targets":
        click.echo("\n".join([*target_lines(_compared(data, {"measures": ",".join(SIZES)} | options)), CONFIDENTIAL]))
        return
    if output is None:
        raise ParameterError(Option("output"), "Expected the name of a picture. Give one.")
    check_picture(output)
    with new_file(Path(output), overwrite=overwrite) as file:
        found = _compared(data, options)
        (draw_ratios if figure == "ratios" else draw_windows)(found).save(file, "png")
        file.chmod(0o600)
    click.echo(f"{output}: written\n{CONFIDENTIAL}")


def _compared(data: tuple[str, ...], options: dict[str, Any]) -> Comparison:
    with progress_bar() as (progress, stage):
        task = Task("", options, {"data": data}, progress=progress, stage=stage)
        found = compared(task)
    show_notes(task.notes)
    return found


@command.command(params=options_of(TrajectoryReading))
@click.argument("original")
@click.argument("release")
@click.argument("queries")
@click.option("-o", "--output", metavar="FILE", help="Also write the answers: .csv or .parquet. They are confidential.")
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def queries(original: str, release: str, queries: str, output: str | None, overwrite: bool, **values: Any) -> None:
    """Measure SID and AID of your own range queries: a table with lon, lat, radius_m, start and end.

    \b
    Example:
      crowdveil experiment queries cabs.csv out/ queries.csv -o answers-confidential.csv
    """
    if output is not None:
        check_ending(Path(output))
    notes = ReadNotes()
    with new_files(output, overwrite=overwrite) as (file,):
        found = measure_queries(original, release, queries, notes=notes, **given(TrajectoryReading, values))
        if file is not None:
            write_table(found.to_arrow(), file)
    show_notes(notes)
    show_lines(found.lines())


@command.command(params=[*options_of(TrajectoryReading)])
@click.argument("figure", type=click.Choice(sorted(METHODS)))
@click.argument("data", metavar="INPUT")
@click.option("--method", metavar="NAME", help="A method with parameters, as in swapmob:max_time_s=60.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
              help="The same seed gives the same picture.")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="FILE", help="Picture to write: .png.")
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def trajectories(
    figure: str, data: str, method: str | None, seed: int, output: str, overwrite: bool, **values: Any
) -> None:
    """Draw how a method changes trajectories.

    tessellation: squares before and after they are merged. members: a group of a microaggregation, and what is published for
    it. candidates: locations that may be swapped with those of a trajectory. owners: the trajectories that the parts of a
    published one come from. The original is shown: do not publish the pictures.

    \b
    Examples:
      crowdveil experiment trajectories tessellation cabs.csv --method protected-generalization:k=5 -o tessellation.png
      crowdveil experiment trajectories members cabs.csv --method microaggregation:k=3 -o members.png
    """
    check_picture(output)
    notes = ReadNotes()
    with new_file(Path(output), overwrite=overwrite) as file:
        read = read_trajectories(data, notes=notes, **given(TrajectoryReading, values))
        draw_figure(figure, read, method, seed).save(file, "png")
        file.chmod(0o600)
    show_notes(notes)
    click.echo(f"{output}: written\n{CONFIDENTIAL}")
