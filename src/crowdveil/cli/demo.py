"""`crowdveil demo`: run everything on synthetic data in a few seconds."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.engine.progress import progress_bar
from crowdveil.guarantees.base import FROM_FILES, require_not_violated, tally
from crowdveil.io.atomic import new_folder
from crowdveil.io.geojson import write_zones
from crowdveil.run import pipeline, releases
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

TILES, PEOPLE, TRIPS, TRAJECTORIES, DAYS = 144, 20_000, 200_000, 3_000, 2


@click.command()
@click.option(
    "-o", "--output", default="crowdveil-demo", show_default=True, metavar="FOLDER", help="Folder to write to."
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Seed of the city.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier demo.")
def command(output: str, seed: int, overwrite: bool) -> None:
    """Make a synthetic city, anonymize its OD flows and its trajectories, and verify both.

    \b
    Example:
      crowdveil demo -o demo/
    """
    out = Path(output)
    with (
        progress_bar("making a city") as (_, stage),
        new_folder(out, overwrite=overwrite, mark_file="city/zones.geojson") as folder,
    ):
        (folder / "city").mkdir()
        make_city(folder / "city", seed, TILES, PEOPLE, TRIPS, TRAJECTORIES, DAYS)
        stage("anonymizing flows")
        reading = {"zones": folder / "city" / "zones.geojson", "tz": "Europe/Paris"}
        trips = folder / "city" / "trips.parquet"
        flows = pipeline.run(pipeline.Request("joint", trips, folder / "flows", {"k": 10}, reading, {"seed": seed}))
        stage("anonymizing trajectories")
        drives = folder / "city" / "trajectories.parquet"
        moved = pipeline.run(
            pipeline.Request(
                "time-partitioned-microaggregation", drives, folder / "trajectories", {"k": 5}, {}, {"seed": seed}
            )
        )
        stage("verifying")
        checked = [*releases.verify(folder / "flows"), *releases.verify(folder / "trajectories")]
        require_not_violated(checked)
    click.echo(f"The city       {out / 'city'}: {TRIPS:,} trips and {TRAJECTORIES:,} trajectories of {PEOPLE:,} people")
    for what, result, where in (("OD flows", flows, "flows"), ("Trajectories", moved, "trajectories")):
        click.echo(f"\n{what:<14} {out / where}: verified, method {result.manifest['method']['name']}")
        for line in result.cost:
            click.echo(f"  {line}")
    verdict = tally([(finding.outcome, finding.with_original) for _, finding in checked], FROM_FILES)
    click.echo(f"\n{verdict}. Check again: crowdveil verify {out / 'flows'}")
    click.echo(f"Look at it: {out / 'flows' / 'report.html'} and {out / 'trajectories' / 'report.html'}")


def make_city(folder: Path, seed: int, tiles: int, people: int, trips: int, trajectories: int, days: int) -> None:
    """Write the zones, trips and trajectories of a synthetic city."""
    city = City.make(seed, tiles, people)
    write_zones(city.zones, folder / "zones.geojson")
    write_trips(city, folder / "trips.parquet", trips, days, seed=seed)
    write_trajectories(city, folder / "trajectories.parquet", trajectories, days, seed=seed)
