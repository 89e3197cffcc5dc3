"""A synthetic city to try the service with: its trips, zones and trajectories as files, made in a process of its own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from crowdveil.server.workers.process import be_apart

NAMES = ("trips.csv", "zones.geojson", "drives.csv")
TILES, PEOPLE, TRIPS, DRIVES, DAYS, SEED = 144, 2_500, 30_000, 300, 1, 5


def make(_request: dict[str, Any]) -> dict[str, Any]:
    """Write the files into the current folder."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    from crowdveil.io.geojson import write_zones
    from crowdveil.synth.city import City
    from crowdveil.synth.trajectories import write_trajectories
    from crowdveil.synth.trips import write_trips

    city = City.make(SEED, TILES, PEOPLE)
    write_zones(city.zones, "zones.geojson")
    write_trips(city, "trips.parquet", TRIPS, DAYS, seed=SEED)
    write_trajectories(city, "drives.parquet", DRIVES, DAYS, seed=SEED)
    for name in ("trips", "drives"):
        made = Path(f"{name}.parquet")
        pacsv.write_csv(pq.read_table(made), f"{name}.csv")
        made.unlink()
    return {"made": list(NAMES)}


def main() -> None:
    """Be the process that makes it."""
    import_module(
        "crowdveil.kernels.synth.city"
    )  # before it is confined: compiled kernels are found where they can be written
    be_apart(make)
