"""`crowdveil synth`: made-up cities and matrices, of any size, for trials, tests and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from crowdveil.errors import counted
from crowdveil.io.atomic import new_file
from crowdveil.io.geojson import write_zones
from crowdveil.io.tables import check_ending, write_flows
from crowdveil.progress import progress_bar
from crowdveil.synth.city import City
from crowdveil.synth.movers import NetworkPlacement, Traffic, write_movers
from crowdveil.synth.network import read_network, street_grid
from crowdveil.synth.profiles import PROFILES, make_profile
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

_SEED = click.Option(["--seed"], default=0, show_default=True, metavar="N", help="The same seed gives the same bytes.")
_OUTPUT = click.Option(["-o", "--output"], required=True, metavar="FILE", help="File to write: .parquet or .csv.")
_OVERWRITE = click.Option(["--overwrite"], is_flag=True, help="Replace files that exist.")
_SHARED = [
    click.Option(["--tiles"], default=2500, show_default=True, metavar="N", help="Tiles of 500 m that the city has."),
    click.Option(["--people"], default=100_000, show_default=True, metavar="N", help="People who live there."),
    click.Option(["--days"], default=7, show_default=True, metavar="N", help="Days that are covered."),
    click.Option(["--start"], default="2026-03-02", show_default=True, metavar="DATE", help="First day."),
    _SEED,
    click.Option(["--zones-out"], metavar="FILE", help="Also write the city's zones, as GeoJSON."),
    _OUTPUT,
    _OVERWRITE,
]


def _make(write: Any, n: int, what: str, values: dict[str, Any]) -> None:
    check_ending(Path(values["output"]))
    city = City.make(values["seed"], values["tiles"], values["people"])
    period = {"days": values["days"], "start": values["start"], "seed": values["seed"]}
    with (
        progress_bar(f"making {what}") as (progress, _),
        new_file(Path(values["output"]), overwrite=values["overwrite"]) as file,
    ):
        write(city, file, n, progress=progress, **period)
    if values["zones_out"]:
        write_zones(city.zones, values["zones_out"], overwrite=values["overwrite"])
    click.echo(f"{values['output']}: {n:,} {what} of {values['people']:,} people on {values['tiles']:,} tiles")


@click.group()
def command() -> None:
    """Make up a city: trips, trajectories, movers on roads or OD matrices, of any size, the same for the same seed.

    \b
    Examples:
      crowdveil synth trips 1000000 --zones-out zones.geojson -o trips.parquet
      crowdveil synth trajectories 10000 -o drives.parquet
      crowdveil synth movers 5000 --network vertices.txt edges.txt -o movers.parquet
      crowdveil synth flows nyc -o flows.parquet
    """


@command.command(params=[click.Argument(["trips"], type=int), *_SHARED])
def trips(trips: int, **values: Any) -> None:
    """Trips with people and times: user_id, departure, origin, destination."""
    _make(write_trips, trips, "trips", values)


@command.command(params=[click.Argument(["trajectories"], type=int), *_SHARED])
def trajectories(trajectories: int, **values: Any) -> None:
    """Drives along streets with the noise of GPS: lat, lon, timestamp, trajectory_id, user_id."""
    _make(write_trajectories, trajectories, "trajectories", values)


_TRAFFIC: list[tuple[str, str, str]] = [
    ("classes", "N", "Classes of movers, each half as fast as the one before."),
    ("external-classes", "N", "Classes of external objects, which slow movers down around them."),
    ("per-stamp", "N", "Movers that appear at each time-stamp."),
    ("external-per-stamp", "N", "External objects that appear at each time-stamp."),
    ("lifespan", "N", "Time-stamps at which a mover is seen at most."),
    ("speed", "X", "Divisor of the width and height of the network: the larger, the slower."),
    ("report", "N", "Probability, in thousandths, to report the position at a time stamp."),
]
_PLACE: list[tuple[str, str, str]] = [
    ("lon", "DEGREES", "Longitude of the middle of the network."),
    ("lat", "DEGREES", "Latitude of the middle of the network."),
    ("unit-m", "X", "Meters of one unit of the network."),
    ("start", "TIME", "First time-stamp, a date or a time in UTC."),
    ("step-s", "N", "Seconds between time-stamps."),
]


def _fields(of: Any, options: list[tuple[str, str, str]]) -> list[click.Parameter]:
    """Return options for the fields of a data class, with its defaults."""
    return [
        click.Option([f"--{name}"], default=getattr(of, name.replace("-", "_")), show_default=True, metavar=metavar, help=text)
        for name, metavar, text in options
    ]  # fmt: skip


@command.command(
    params=[
        click.Argument(["movers"], type=int),
        click.Option(
            ["--network"], nargs=2, metavar="NODES ROADS",
            help="Two files: `id x y` for each node, `id from to length` for each road. [a made-up grid of streets]",
        ),
        click.Option(
            ["--length"], type=float, metavar="X",
            help="How far movers want to go on average, in units. [0.4 × (width + height)]",
        ),
        *_fields(Traffic(), _TRAFFIC), *_fields(NetworkPlacement(), _PLACE), _SEED, _OUTPUT, _OVERWRITE,
    ]
)  # fmt: skip
def movers(
    movers: int, network: tuple[str, str] | None, seed: int, output: str, overwrite: bool, **values: Any
) -> None:
    """Movers on a road network, in the manner of Brinkhoff's generator: lat, lon, timestamp, trajectory_id, user_id.

    \b
    Example:
      crowdveil synth movers 5000 --network vertices.txt edges.txt -o movers.parquet
    """
    place = NetworkPlacement(**{field: values.pop(field) for field in ("lon", "lat", "unit_m", "start", "step_s")})
    traffic = Traffic(**values)
    check_ending(Path(output))
    roads = street_grid(seed) if network is None else read_network(*network)
    if network is not None and roads.left_out:
        click.echo(
            f"note: left out {counted(roads.left_out, 'node')} that no road joins to the largest part.", err=True
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
    """OD matrices that look like one of the data sets in the literature (tiles, flows, volume, share above 10)."""
    data = make_profile(profile, np.random.default_rng(seed), matrices)
    write_flows(data, output, overwrite=overwrite)
    if zones_out:
        write_zones(data.zones, zones_out, overwrite=overwrite)
    click.echo(
        f"{output}: {len(data):,} flows, {data.total:,} trips, {data.steps:,} matrices, {len(data.zones):,} tiles"
    )
