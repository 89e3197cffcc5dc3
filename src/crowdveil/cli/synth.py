"""`crowdveil synth`: make trips and trajectories of a synthetic city, for trials, tests and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.engine.progress import progress_bar
from crowdveil.io.atomic import check_file, new_file
from crowdveil.io.geojson import write_zones
from crowdveil.io.tables import check_ending
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

_SHARED = [
    click.Option(["--tiles"], default=2500, show_default=True, metavar="N", help="Number of tiles, of 500 m each."),
    click.Option(["--people"], default=100_000, show_default=True, metavar="N", help="Number of inhabitants."),
    click.Option(["--days"], default=7, show_default=True, metavar="N", help="Number of days."),
    click.Option(["--start"], default="2026-03-02", show_default=True, metavar="DATE", help="First day."),
    click.Option(["--seed"], default=0, show_default=True, metavar="N", help="The same seed gives the same bytes."),
    click.Option(["--zones-out"], metavar="FILE", help="Also write the city's zones, as GeoJSON."),
    click.Option(["-o", "--output"], required=True, metavar="FILE", help="File to write: .parquet or .csv."),
    click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
]


def _make(write: Any, n: int, what: str, values: dict[str, Any]) -> None:
    check_ending(Path(values["output"]))
    if values["zones_out"]:
        check_file(Path(values["zones_out"]).absolute(), overwrite=values["overwrite"])
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
    """Make trips or trajectories of a synthetic city of any size; the same seed gives the same data.

    \b
    Examples:
      crowdveil synth trips 1000000 --zones-out zones.geojson -o trips.parquet
      crowdveil synth trajectories 10000 -o drives.parquet
    """


@command.command(params=[click.Argument(["trips"], type=int), *_SHARED])
def trips(trips: int, **values: Any) -> None:
    """Make trips with the columns user_id, departure, origin and destination."""
    _make(write_trips, trips, "trips", values)


@command.command(params=[click.Argument(["trajectories"], type=int), *_SHARED])
def trajectories(trajectories: int, **values: Any) -> None:
    """Make noisy GPS tracks along streets, with the columns lat, lon, timestamp, trajectory_id and user_id."""
    _make(write_trajectories, trajectories, "trajectories", values)
