"""`crowdveil synth`: made-up cities and matrices, of any size, for trials, tests and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from crowdveil.cli.console import progress_bar
from crowdveil.io.atomic import new_file
from crowdveil.io.geojson import write_zones
from crowdveil.io.tables import write_flows
from crowdveil.synth.city import City
from crowdveil.synth.profiles import PROFILES, make_profile
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips


def _shared(function: Any) -> Any:
    options = [
        click.option("--tiles", default=2500, show_default=True, metavar="N", help="Tiles of 500 m that the city has."),
        click.option("--people", default=100_000, show_default=True, metavar="N", help="People who live there."),
        click.option("--days", default=7, show_default=True, metavar="N", help="Days that are covered."),
        click.option("--start", default="2026-03-02", show_default=True, metavar="DATE", help="First day."),
        click.option("--seed", default=0, show_default=True, metavar="N", help="The same seed gives the same bytes."),
        click.option("--zones-out", metavar="FILE", help="Also write the city's zones, as GeoJSON."),
        click.option("-o", "--output", required=True, metavar="FILE", help="Parquet file to write."),
        click.option("--overwrite", is_flag=True, help="Replace files that exist."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _make(write: Any, n: int, what: str, values: dict[str, Any]) -> None:
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
    """Make up a city: trips, trajectories or OD matrices, of any size, the same for the same seed.

    \b
    Examples:
      crowdveil synth trips 1000000 --zones-out zones.geojson -o trips.parquet
      crowdveil synth trajectories 10000 -o drives.parquet
      crowdveil synth flows nyc -o flows.parquet
    """


@command.command()
@click.argument("trips", type=int)
@_shared
def trips(trips: int, **values: Any) -> None:
    """Trips with people and times: user_id, departure, origin, destination."""
    _make(write_trips, trips, "trips", values)


@command.command()
@click.argument("trajectories", type=int)
@_shared
def trajectories(trajectories: int, **values: Any) -> None:
    """Drives along streets with the noise of GPS: lat, lon, timestamp, trajectory_id, user_id."""
    _make(write_trajectories, trajectories, "trajectories", values)


@command.command()
@click.argument("profile", type=click.Choice(sorted(PROFILES)))
@click.option("--matrices", default=1, show_default=True, metavar="N", help="Number of hourly matrices.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="The same seed gives the same bytes.")
@click.option("--zones-out", metavar="FILE", help="Also write the zones, as GeoJSON.")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write: .parquet, .csv or .omx.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
def flows(profile: str, matrices: int, seed: int, zones_out: str | None, output: str, overwrite: bool) -> None:
    """OD matrices that look like one of the data sets in the literature (tiles, flows, volume, share above 10)."""
    data = make_profile(profile, np.random.default_rng(seed), matrices)
    write_flows(data, output, overwrite=overwrite)
    if zones_out:
        write_zones(data.zones, zones_out, overwrite=overwrite)
    click.echo(
        f"{output}: {len(data):,} flows, {data.total:,} trips, {data.steps:,} matrices, {len(data.zones):,} tiles"
    )
